#include "bus/bus.h"

#include "bus_test.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>

/* A party on the bus that records its events. */
struct party {
    struct bus *bus;
    struct bus_options options;
    int n_up, n_down, n_closed;
    struct buf got;
    int n_got, n_redelivered;
    struct bus_sub *last_sub;
    uint64_t last_tag;
    char last_id[40], last_source[16];
    bool holds; /* does not settle */
    enum bus_verdict verdict;
    int sent[6]; /* by enum bus_sent */
};

static void on_up(void *owner)
{
    ((struct party *)owner)->n_up++;
}

static void on_down(void *owner, const char *why)
{
    (void)why;
    ((struct party *)owner)->n_down++;
}

static void on_closed(void *owner)
{
    struct party *p = owner;
    p->n_closed++;
    p->bus = NULL;
}

static const struct bus_events events = {on_up, on_down, on_closed};

static void on_deliver(void *owner, const struct bus_delivery *d)
{
    struct party *p = owner;

    buf_printf(&p->got, " " SPAN_FMT, SPAN_ARG(d->message->body));
    p->n_got++;
    p->n_redelivered += d->redelivered;
    p->last_sub = d->sub;
    p->last_tag = d->tag;
    snprintf(p->last_id, sizeof p->last_id, SPAN_FMT, SPAN_ARG(d->message->id));
    snprintf(p->last_source, sizeof p->last_source, SPAN_FMT, SPAN_ARG(d->message->source));
    assert_true(d->message->sent_ms > 1700000000000);
    if (!p->holds)
        bus_settle(d->sub, d->tag, p->verdict);
}

static void on_sent(void *owner, enum bus_sent how)
{
    ((struct party *)owner)->sent[how]++;
}

static void party_open(struct party *p, struct loop *l, const char *url, const char *name)
{
    struct err err = {0};

    p->options.url = url;
    p->options.name = name;
    p->bus = bus_open(l, &p->options, &events, p, &err);
    assert_string_equal(err.text, "");
    assert_non_null(p->bus);
}

static struct bus_sub *listen_to(struct party *p, const char *topic, const char *group)
{
    return bus_subscribe(p->bus, &(struct bus_subscription){.topic = topic, .group = group},
                         on_deliver, p);
}

static void tell(struct party *p, const char *topic, const char *body)
{
    bus_publish(p->bus, span_str(topic),
                &(struct message){.type = SPAN("test"), .body = span_str(body)}, 0, on_sent, p);
}

static void party_close(struct party *p, struct loop *l)
{
    bus_close(p->bus);
    WAIT(l, p->n_closed == 1);
    buf_fini(&p->got);
}

/* The test's own folder; `url` is unix:FOLDER/bus/bus.sock, whose folder does not exist yet. */
struct place {
    char folder[64];
    char url[160];
    char path[128];
};

static void place_make(struct place *at)
{
    snprintf(at->folder, sizeof at->folder, "/tmp/rialto-bus-XXXXXX");
    assert_non_null(mkdtemp(at->folder));
    snprintf(at->path, sizeof at->path, "%s/bus/bus.sock", at->folder);
    snprintf(at->url, sizeof at->url, "unix:%s", at->path);
}

static void place_remove(struct place *at)
{
    char name[160];

    snprintf(name, sizeof name, "%s.lock", at->path);
    unlink(name);
    assert_int_equal(access(at->path, F_OK), -1); /* the host removes its socket */
    snprintf(name, sizeof name, "%s/bus", at->folder);
    rmdir(name);
    assert_int_equal(rmdir(at->folder), 0);
}

static unsigned mode_of(const char *path)
{
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 0777;
}

static void test_hosting(void **state)
{
    (void)state;
    struct loop *l = loop_new();
    struct place at;
    struct party p = {0};

    place_make(&at);
    party_open(&p, l, at.url, "me");
    assert_int_equal(p.n_up, 0); /* the callback comes from the loop */
    listen_to(&p, "a.*", "g");
    tell(&p, "a.b", "1");
    WAIT(l, p.n_got == 1 && p.sent[BUS_SENT] == 1);
    assert_int_equal(p.n_up, 1);
    assert_true(bus_is_up(p.bus));
    char folder[160];
    snprintf(folder, sizeof folder, "%s/bus", at.folder);
    assert_int_equal(mode_of(at.path), 0600);
    assert_int_equal(mode_of(folder), 0700);
    assert_non_null(strstr(bus_describe(p.bus), "hosted here"));
    tell(&p, "no topic", "x"); /* reaches nobody, which is no error */
    tell(&p, "a.*", "x");
    WAIT(l, p.sent[BUS_SENT] == 3);
    assert_int_equal(p.n_got, 1);
    party_close(&p, l);
    place_remove(&at);
    loop_free(l);
}

/* Members that the sender leaves out are filled in, and no two messages have the same id. */
static void test_envelope(void **state)
{
    (void)state;
    struct loop *l = loop_new();
    struct place at;
    struct party p = {0};
    char first[40];

    place_make(&at);
    party_open(&p, l, at.url, "me");
    listen_to(&p, "t", "g");
    tell(&p, "t", "1");
    WAIT(l, p.n_got == 1);
    assert_int_equal(strspn(p.last_id, "0123456789abcdef"), 32);
    assert_string_equal(p.last_source, "me");
    strcpy(first, p.last_id);
    tell(&p, "t", "2");
    WAIT(l, p.n_got == 2);
    assert_string_not_equal(p.last_id, first);
    bus_publish(p.bus, SPAN("t"),
                &(struct message){.id = SPAN("mine"), .source = SPAN("you"), .body = SPAN("3")}, 0,
                NULL, NULL);
    WAIT(l, p.n_got == 3);
    assert_string_equal(p.last_id, "mine");
    assert_string_equal(p.last_source, "you");
    party_close(&p, l);
    place_remove(&at);
    loop_free(l);
}

/* A sender that retries inside its callback each time it is refused must not block the loop. */
static void again(void *owner, enum bus_sent how)
{
    struct party *p = owner;

    p->sent[how]++;
    if (how == BUS_TOO_LARGE)
        bus_publish(p->bus, SPAN("t"), &(struct message){.body = SPAN("too much")}, 0, again, p);
}

static void test_stubborn(void **state)
{
    (void)state;
    struct loop *l = loop_new();
    struct place at;
    struct party p = {.options = {.max_message = 3}};

    place_make(&at);
    party_open(&p, l, at.url, "me");
    again(&p, BUS_TOO_LARGE);
    WAIT(l, p.sent[BUS_TOO_LARGE] > 10);
    bus_close(p.bus);
    WAIT(l, p.n_closed == 1);
    assert_int_equal(p.sent[BUS_CLOSED], 1);
    place_remove(&at);
    loop_free(l);
}

/* A host and a party that joins can send in both directions. */
static void test_joining(void **state)
{
    (void)state;
    struct loop *l = loop_new();
    struct place at;
    struct party host = {0}, guest = {0};

    place_make(&at);
    party_open(&host, l, at.url, "host");
    party_open(&guest, l, at.url, "guest");
    listen_to(&host, "to.host", "h");
    listen_to(&guest, "to.guest", "g");
    WAIT(l, host.n_up && guest.n_up);
    tell(&guest, "to.host", "ready"); /* arrives after the guest's subscription */
    WAIT(l, host.n_got == 1);
    for (int i = 1; i < 100; i++) {
        tell(&host, "to.guest", "{\"n\":1}");
        tell(&guest, "to.host", "text");
    }
    WAIT(l, guest.n_got == 99 && host.n_got == 100);
    WAIT(l, host.sent[BUS_SENT] == 99 && guest.sent[BUS_SENT] == 100);
    assert_null(strstr(bus_describe(guest.bus), "hosted here"));
    /* "Full" means that a retry may help. Messages that the host can never accept also got it. */
    char long_word[MESSAGE_MAX_WORD + 2];
    memset(long_word, 'x', sizeof long_word);
    const struct message m = {.correlation = span_of(long_word, sizeof long_word)};
    bus_publish(guest.bus, SPAN("to.host"), &m, 0, on_sent, &guest);
    WAIT(l, guest.sent[BUS_TOO_LARGE] || guest.sent[BUS_FULL]);
    assert_int_equal(guest.sent[BUS_TOO_LARGE], 1);
    party_close(&guest, l);
    party_close(&host, l);
    place_remove(&at);
    loop_free(l);
}

/*
 * The host's lock is an empty file, so users and clean-up programs may delete it. The next party
 * then took a new lock, found the socket in use, and gave up.
 */
static void test_lock_removed(void **state)
{
    (void)state;
    struct loop *l = loop_new();
    struct place at;
    struct party host = {0}, guest = {0};
    char lock[160];

    place_make(&at);
    party_open(&host, l, at.url, "host");
    snprintf(lock, sizeof lock, "%s.lock", at.path);
    assert_int_equal(unlink(lock), 0);
    party_open(&guest, l, at.url, "guest");
    listen_to(&guest, "t", "g");
    WAIT(l, host.n_up && guest.n_up);
    tell(&guest, "t", "m");
    WAIT(l, guest.n_got == 1);
    assert_null(strstr(bus_describe(guest.bus), "hosted here"));
    party_close(&guest, l);
    party_close(&host, l);
    place_remove(&at);
    loop_free(l);
}

/* The host leaves; one of the two that had joined becomes the host, and the other joins it. */
static void test_takeover(void **state)
{
    (void)state;
    struct loop *l = loop_new();
    struct place at;
    struct party host = {0}, a = {0}, b = {0};

    place_make(&at);
    party_open(&host, l, at.url, "host");
    WAIT(l, host.n_up);
    party_open(&a, l, at.url, "a");
    party_open(&b, l, at.url, "b");
    listen_to(&a, "to.a", "a");
    listen_to(&b, "to.b", "b");
    WAIT(l, a.n_up && b.n_up);
    party_close(&host, l);
    WAIT(l, a.n_down == 1 && b.n_down == 1);
    /* Published while there is no host: the message waits. */
    tell(&a, "x.y", "into the void");
    WAIT(l, a.n_up == 2 && b.n_up == 2);
    /* Each first sends to itself: when that arrives, its subscription is active. */
    tell(&a, "to.a", "1");
    tell(&b, "to.b", "1");
    WAIT(l, a.n_got == 1 && b.n_got == 1);
    tell(&a, "to.b", "2");
    tell(&b, "to.a", "2");
    WAIT(l, a.n_got == 2 && b.n_got == 2 && a.sent[BUS_SENT] == 3);
    bool a_hosts = strstr(bus_describe(a.bus), "hosted here") != NULL;
    bool b_hosts = strstr(bus_describe(b.bus), "hosted here") != NULL;
    assert_int_equal(a_hosts + b_hosts, 1);
    party_close(&a, l);
    party_close(&b, l);
    place_remove(&at);
    loop_free(l);
}

/* A tag from before a reconnect must not settle another message after it. */
static void test_stale_tag(void **state)
{
    (void)state;
    struct loop *l = loop_new();
    struct place at;
    struct party host = {0}, a = {.holds = true};

    place_make(&at);
    party_open(&host, l, at.url, "host");
    WAIT(l, host.n_up);
    party_open(&a, l, at.url, "a");
    struct bus_sub *sub = listen_to(&a, "t", "g");
    WAIT(l, a.n_up);
    tell(&a, "t", "1");
    WAIT(l, a.n_got == 1);
    uint64_t stale = a.last_tag;
    party_close(&host, l);
    WAIT(l, a.n_up == 2);
    tell(&a, "t", "2");
    WAIT(l, a.n_got == 2);
    assert_int_not_equal(stale, a.last_tag);
    bus_settle(sub, stale, BUS_ACK);
    bus_unsubscribe(sub);
    a.holds = false;
    listen_to(&a, "t", "g");
    WAIT(l, a.n_got == 3); /* the second message was not settled by the old tag */
    assert_int_equal(a.n_redelivered, 1);
    party_close(&a, l);
    place_remove(&at);
    loop_free(l);
}

/* Without a host the outbox keeps messages, up to its bound and until each message expires. */
static void test_outbox(void **state)
{
    (void)state;
    struct loop *l = loop_new();
    struct place at;
    struct party p = {.options = {.join_only = true, .max_outbox = 100000, .max_message = 50000}};
    struct party host = {0};
    char *big = mem_zalloc(60001);

    place_make(&at);
    memset(big, 'x', 60000);
    party_open(&p, l, at.url, "p");
    WAIT(l, p.n_down == 1);
    tell(&p, "t", big);
    WAIT(l, p.sent[BUS_TOO_LARGE] == 1);
    bus_publish(p.bus, SPAN("t"), &(struct message){.body = SPAN("1")}, 10, on_sent, &p);
    WAIT(l, p.sent[BUS_EXPIRED] == 1);
    big[40000] = 0;
    for (int i = 0; i < 5; i++)
        tell(&p, "t", big);
    WAIT(l, p.sent[BUS_FULL] == 2);
    assert_int_equal(p.sent[BUS_SENT], 0);
    party_open(&host, l, at.url, "host");
    listen_to(&host, "t", "g");
    WAIT(l, host.n_got == 3 && p.sent[BUS_SENT] == 3);
    assert_int_equal(p.n_down, 1);
    party_close(&host, l);
    tell(&p, "t", "never");
    party_close(&p, l);
    assert_int_equal(p.sent[BUS_CLOSED], 1);
    mem_free(big);
    place_remove(&at);
    loop_free(l);
}

static int n_late;

static void publish_once_more(void *owner, enum bus_sent how)
{
    struct party *p = owner;

    assert_int_equal(how, BUS_CLOSED);
    listen_to(p, "t", "late");
    if (++n_late < 4)
        bus_publish(p->bus, SPAN("t"), &(struct message){0}, 0, publish_once_more, p);
}

/*
 * A callback that reports that the bus was closed may publish and subscribe, as any callback may.
 * That left deferred work of the bus in the loop, which then ran on freed memory, and leaked the
 * subscription.
 */
static void test_used_to_the_last(void **state)
{
    (void)state;
    struct loop *l = loop_new();
    struct place at;
    struct party p = {.options = {.join_only = true}};

    n_late = 0;
    place_make(&at);
    party_open(&p, l, at.url, "p");
    bus_publish(p.bus, SPAN("t"), &(struct message){0}, 0, publish_once_more, &p);
    bus_close(p.bus);
    listen_to(&p, "t", "after");
    WAIT(l, p.n_closed == 1);
    assert_int_equal(n_late, 4);
    run_for(l, 20);
    buf_fini(&p.got);
    place_remove(&at);
    loop_free(l);
}

static void test_wrong_urls(void **state)
{
    (void)state;
    static const char *const urls[] = {"",
                                       "http://x",
                                       "tcp://",
                                       "tcp://host",
                                       "unix:/nonexistent/folder/deep/bus.sock",
                                       "ampq://me:hunter2@host",
                                       "tcp://me:hunter2@host"};
    struct loop *l = loop_new();

    for (size_t i = 0; i < COUNT_OF(urls); i++) {
        struct party p = {.options = {.url = urls[i]}};
        struct err err = {0};
        assert_null(bus_open(l, &p.options, &events, &p, &err));
        assert_string_not_equal(err.text, "");
        /* The error for a wrong URL must not show the password. */
        assert_null(strstr(err.text, "hunter2"));
    }
    loop_free(l);
}

/* TCP is only allowed with a token, and only on loopback addresses. */
static void test_tcp(void **state)
{
    (void)state;
    static const struct {
        const char *listen, *token;
    } wrong[] = {{"127.0.0.1:0", NULL}, {"127.0.0.1:0", ""}, {"0.0.0.0:0", "secret"}};
    struct loop *l = loop_new();
    struct place at;

    place_make(&at);
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct party p = {
            .options = {.url = at.url, .listen = wrong[i].listen, .token = wrong[i].token}};
        struct err err = {0};
        assert_null(bus_open(l, &p.options, &events, &p, &err));
        assert_string_not_equal(err.text, "");
        loop_step(l, 0);
    }
    place_remove(&at);
    loop_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hosting),      cmocka_unit_test(test_envelope),
        cmocka_unit_test(test_stubborn),     cmocka_unit_test(test_joining),
        cmocka_unit_test(test_takeover),     cmocka_unit_test(test_stale_tag),
        cmocka_unit_test(test_outbox),       cmocka_unit_test(test_used_to_the_last),
        cmocka_unit_test(test_tcp),          cmocka_unit_test(test_wrong_urls),
        cmocka_unit_test(test_lock_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
