#include "io_test.h"

#include "io/poll.h"

#include <sys/socket.h>

struct watcher {
    struct poll *poll;
    int fd; /* read by the test: the poll has a duplicate of it */
    int n_readable;
    char got[64];
    ssize_t n_got;
    bool close_inside;
};

static void on_ready(void *owner)
{
    struct watcher *w = owner;

    w->n_readable++;
    w->n_got = read(w->fd, w->got, sizeof w->got);
    if (w->close_inside) {
        poll_close(w->poll);
        w->poll = NULL;
    }
}

static int watcher_init(struct watcher *w, struct loop *l)
{
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    *w = (struct watcher){.fd = fds[0], .n_got = -1};
    w->poll = poll_new(l, dup(fds[0]), on_ready, w);
    return fds[1];
}

static void test_it_tells_when_there_is_something_to_read(void **state)
{
    (void)state;
    struct loop *l = loop_new();
    struct watcher w;
    int other = watcher_init(&w, l);

    run_for(l, 20);
    assert_int_equal(w.n_readable, 0);
    assert_int_equal(write(other, "hello", 5), 5);
    WAIT(l, w.n_readable == 1);
    assert_int_equal(w.n_got, 5);
    run_for(l, 20);
    assert_int_equal(w.n_readable, 1);
    poll_close(w.poll);
    close(w.fd);
    close(other);
    loop_free(l);
}

static void test_the_end_counts_as_something_to_read(void **state)
{
    (void)state;
    struct loop *l = loop_new();
    struct watcher w;
    int other = watcher_init(&w, l);

    w.close_inside = true;
    close(other);
    WAIT(l, w.n_readable == 1);
    assert_int_equal(w.n_got, 0);
    assert_null(w.poll);
    close(w.fd);
    loop_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_tells_when_there_is_something_to_read),
        cmocka_unit_test(test_the_end_counts_as_something_to_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
