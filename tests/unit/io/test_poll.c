#include "io_test.h"

#include "io/poll.h"

#include <sys/socket.h>

struct watcher {
    struct poll *poll;
    int fd; /* as a library has it: another number for the same socket */
    int n_readable, n_writable;
    char got[64];
    ssize_t n_got;
    bool close_inside;
};

static void on_ready(void *owner, bool readable, bool writable)
{
    struct watcher *w = owner;

    w->n_readable += readable;
    w->n_writable += writable;
    if (readable)
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

static void test_readable_then_writable_on_request(void **state)
{
    (void)state;
    struct loop *l = loop_new();
    struct watcher w;
    int other = watcher_init(&w, l);

    run_for(l, 20);
    assert_int_equal(w.n_readable + w.n_writable, 0);
    assert_int_equal(write(other, "hello", 5), 5);
    WAIT(l, w.n_readable == 1);
    assert_int_equal(w.n_got, 5);
    assert_int_equal(w.n_writable, 0);
    poll_want_write(w.poll, true);
    WAIT(l, w.n_writable > 0);
    poll_want_write(w.poll, false);
    loop_step(l, 0);
    int before = w.n_writable;
    run_for(l, 20);
    assert_int_equal(w.n_writable, before);
    poll_close(w.poll);
    close(w.fd);
    close(other);
    loop_free(l);
}

static void test_hanging_up_is_seen_by_both_sides(void **state)
{
    (void)state;
    struct loop *l = loop_new();
    struct watcher w;
    int other = watcher_init(&w, l);
    char byte;

    w.close_inside = true;
    poll_hang_up(w.poll);
    WAIT(l, w.n_readable == 1);
    assert_int_equal(w.n_got, 0);
    assert_null(w.poll);
    assert_int_equal(read(other, &byte, 1), 0);
    close(w.fd);
    close(other);
    loop_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_readable_then_writable_on_request),
        cmocka_unit_test(test_hanging_up_is_seen_by_both_sides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
