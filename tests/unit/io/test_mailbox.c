#include "io_test.h"

#include "io/mailbox.h"

#include <pthread.h>

struct letter {
    struct mail mail;
    int sender, number;
};

enum { SENDERS = 4, LETTERS = 5000 };

struct reader {
    struct loop *loop;
    struct mailbox *box;
    int delivered, discarded;
    int last[SENDERS]; /* number of the latest letter of each */
    bool out_of_order;
    int close_at;    /* close when so many were delivered; 0 = never */
    int answers;     /* post so many more from inside */
    bool off_thread; /* something was delivered on another thread than ours */
    pthread_t home;
};

static struct letter *letter_new(int sender, int number)
{
    struct letter *l = MEM_NEW(struct letter);
    l->sender = sender;
    l->number = number;
    return l;
}

static void on_letter(void *owner, struct mail *m)
{
    struct reader *r = owner;
    struct letter *l = CONTAINER_OF(m, struct letter, mail);

    if (!pthread_equal(pthread_self(), r->home))
        r->off_thread = true;
    if (l->number <= r->last[l->sender])
        r->out_of_order = true;
    r->last[l->sender] = l->number;
    r->delivered++;
    if (r->answers > 0) {
        r->answers--;
        mailbox_post(r->box, &letter_new(l->sender, l->number + 1)->mail);
    }
    mem_free(l);
    if (r->close_at && r->delivered == r->close_at)
        mailbox_close(r->box);
}

static void on_undelivered(void *owner, struct mail *m)
{
    struct reader *r = owner;
    r->discarded++;
    mem_free(CONTAINER_OF(m, struct letter, mail));
}

static const struct mailbox_events reading = {.deliver = on_letter, .discard = on_undelivered};

static void reader_init(struct reader *r)
{
    *r = (struct reader){.loop = loop_new(), .home = pthread_self()};
    r->box = mailbox_new(r->loop, &reading, r);
}

struct sender {
    pthread_t thread;
    struct mailbox *box;
    int name;
};

static void *send_letters(void *arg)
{
    struct sender *s = arg;
    for (int i = 1; i <= LETTERS; i++)
        mailbox_post(s->box, &letter_new(s->name, i)->mail);
    return NULL;
}

static void start_senders(struct sender *senders, struct reader *r)
{
    for (int i = 0; i < SENDERS; i++) {
        senders[i] = (struct sender){.box = r->box, .name = i};
        assert_int_equal(pthread_create(&senders[i].thread, NULL, send_letters, &senders[i]), 0);
    }
}

static void join_senders(struct sender *senders)
{
    for (int i = 0; i < SENDERS; i++)
        pthread_join(senders[i].thread, NULL);
}

static void test_all_arrive_on_the_loop_in_each_senders_order(void **state)
{
    (void)state;
    struct reader r;
    struct sender senders[SENDERS];

    reader_init(&r);
    start_senders(senders, &r);
    WAIT(r.loop, r.delivered == SENDERS * LETTERS);
    join_senders(senders);
    assert_false(r.out_of_order);
    assert_false(r.off_thread);
    mailbox_close(r.box);
    assert_int_equal(r.discarded, 0);
    loop_free(r.loop);
}

/* Nothing is delivered from inside mailbox_post, also when the loop's own thread posts. */
static void test_a_post_from_the_loop_comes_in_a_later_turn(void **state)
{
    (void)state;
    struct reader r;

    reader_init(&r);
    r.answers = 2;
    mailbox_post(r.box, &letter_new(0, 1)->mail);
    assert_int_equal(r.delivered, 0);
    WAIT(r.loop, r.delivered == 3);
    assert_false(r.out_of_order);
    mailbox_close(r.box);
    loop_free(r.loop);
}

static void test_closing_discards_what_is_pending(void **state)
{
    (void)state;
    struct reader r;
    struct sender senders[SENDERS];

    reader_init(&r);
    start_senders(senders, &r);
    join_senders(senders);
    mailbox_close(r.box);
    assert_int_equal(r.discarded, SENDERS * LETTERS);
    run_for(r.loop, 20);
    assert_int_equal(r.delivered, 0);
    loop_free(r.loop);
}

/* The owner may close while a batch is being delivered: the rest of it goes to discard. */
static void test_closing_from_inside_a_delivery(void **state)
{
    (void)state;
    struct reader r;

    reader_init(&r);
    r.close_at = 3;
    for (int i = 1; i <= 10; i++)
        mailbox_post(r.box, &letter_new(0, i)->mail);
    WAIT(r.loop, r.delivered == 3);
    assert_int_equal(r.discarded, 7);
    run_for(r.loop, 20);
    assert_int_equal(r.delivered, 3);
    loop_free(r.loop);
}

static void test_an_open_mailbox_keeps_the_loop_running(void **state)
{
    (void)state;
    struct reader r;

    reader_init(&r);
    r.close_at = 1;
    mailbox_post(r.box, &letter_new(0, 1)->mail);
    loop_run(r.loop); /* until the mailbox is closed, and no longer */
    assert_int_equal(r.delivered, 1);
    loop_free(r.loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_arrive_on_the_loop_in_each_senders_order),
        cmocka_unit_test(test_a_post_from_the_loop_comes_in_a_later_turn),
        cmocka_unit_test(test_closing_discards_what_is_pending),
        cmocka_unit_test(test_closing_from_inside_a_delivery),
        cmocka_unit_test(test_an_open_mailbox_keeps_the_loop_running),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
