/* Looking up host names, with name servers that answer late. */
#include "io_test.h"

#include "base/err.h"
#include "io/listen.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <stdatomic.h>

enum { NAP_MS = 1500 };

static atomic_int asked, answered;

/* Replaces the system's function: "slow.test" is answered only after a while,
 * "two.test" has two addresses. */
int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                struct addrinfo **found)
{
    int (*system)(const char *, const char *, const struct addrinfo *, struct addrinfo **) = NULL;

    if (strcmp(host, "none.test") == 0)
        return EAI_NONAME;
    if (strcmp(host, "slow.test") == 0) {
        asked++;
        usleep(NAP_MS * 1000);
        answered++;
        return EAI_AGAIN;
    }
    *(void **)&system = dlsym(RTLD_NEXT, "getaddrinfo");
    if (strcmp(host, "two.test") == 0 && system("127.0.0.2", service, hints, found) == 0)
        return system("127.0.0.1", service, hints, &(*found)->ai_next);
    return system(host, service, hints, found);
}

struct attempt {
    int n_done, code;
    struct stream *stream;
};

static void on_done(void *owner, struct stream *s, int code)
{
    struct attempt *a = owner;

    a->n_done++;
    a->stream = s;
    a->code = code;
}

static void on_accept(void *owner, struct stream *s)
{
    (void)owner;
    stream_close(s, "seen");
}

static void test_a_name_is_found(void **state)
{
    struct loop *l = loop_new();
    struct err err;
    struct attempt a = {0};
    char address[64];

    (void)state;
    struct listener *ls = listener_open(l, "127.0.0.1:0", on_accept, NULL, &err);
    assert_non_null(ls);
    snprintf(address, sizeof address, "localhost:%d", listener_port(ls));
    stream_connect(l, address, on_done, &a);
    assert_int_equal(a.n_done, 0); /* no callback inside stream_connect */
    WAIT(l, a.n_done == 1);
    assert_int_equal(a.code, 0);
    stream_close(a.stream, "enough");
    listener_close(ls);
    loop_free(l);
}

/* A server that has no room for more connections, and answers none: a host that is turned off, or
 * behind a firewall, looks like that. */
static int open_full(int port, int fillers[3])
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int full = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    inet_pton(AF_INET, "127.0.0.2", &at.sin_addr);
    assert_int_equal(bind(full, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(full, 0), 0);
    for (int i = 0; i < 3; i++) {
        fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        connect(fillers[i], (struct sockaddr *)&at, sizeof at);
    }
    return full;
}

/* The next address was tried only when the kernel gave the first one up, after two minutes: a host
 * whose first address does not answer was never reached, because callers wait for seconds. */
static void test_an_address_that_does_not_answer(void **state)
{
    struct loop *l = loop_new();
    struct err err;
    struct attempt a = {0};
    char address[64];
    int fillers[3];

    (void)state;
    struct listener *ls = listener_open(l, "127.0.0.1:0", on_accept, NULL, &err);
    assert_non_null(ls);
    int full = open_full(listener_port(ls), fillers);
    snprintf(address, sizeof address, "two.test:%d", listener_port(ls));
    stream_connect(l, address, on_done, &a);
    WAIT_MS(l, a.n_done == 1, 4500);
    assert_int_equal(a.code, 0);
    stream_close(a.stream, "enough");
    /* Who leaves meanwhile hears nothing more. */
    a = (struct attempt){0};
    struct connect *c = stream_connect(l, address, on_done, &a);
    run_for(l, 200);
    stream_connect_cancel(c);
    run_for(l, 2000);
    assert_int_equal(a.n_done, 0);
    listener_close(ls);
    loop_free(l);
    for (int i = 0; i < 3; i++)
        close(fillers[i]);
    close(full);
}

static void test_a_name_that_nobody_has(void **state)
{
    struct loop *l = loop_new();
    struct attempt a = {0};

    (void)state;
    stream_connect(l, "none.test:80", on_done, &a);
    WAIT(l, a.n_done == 1);
    assert_null(a.stream);
    assert_string_equal(err_name(a.code), "there is no host of that name");
    loop_free(l);
}

/* A program that ended on Ctrl-C while a name server did not answer had to wait for the answer:
 * nine seconds. */
static void test_leaving_does_not_wait_for_an_answer(void **state)
{
    struct loop *l = loop_new();
    struct attempt a = {0};

    (void)state;
    struct connect *c = stream_connect(l, "slow.test:80", on_done, &a);
    WAIT(l, asked == 1);
    stream_connect_cancel(c);
    loop_free(l);
    assert_int_equal(answered, 0);
    assert_int_equal(a.n_done, 0);
    while (answered == 0)
        usleep(10000);
}

/* A loop with only a lookup pending runs until the lookup is answered. */
static void test_a_late_answer(void **state)
{
    struct loop *l = loop_new();
    struct attempt a = {0};

    (void)state;
    stream_connect(l, "slow.test:80", on_done, &a);
    loop_run(l);
    assert_int_equal(a.n_done, 1);
    assert_true(a.code < 0);
    loop_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_name_is_found),
        cmocka_unit_test(test_an_address_that_does_not_answer),
        cmocka_unit_test(test_a_name_that_nobody_has),
        cmocka_unit_test(test_leaving_does_not_wait_for_an_answer),
        cmocka_unit_test(test_a_late_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
