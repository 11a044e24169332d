/* Looking up host names, with name servers that answer late. */
#include "io_test.h"

#include "base/err.h"
#include "io/listen.h"

#include <dlfcn.h>
#include <netdb.h>
#include <stdatomic.h>

enum { NAP_MS = 1500 };

static atomic_int asked, answered;

/* Replaces the system's function: "slow.test" is answered only after a while. */
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
        cmocka_unit_test(test_a_name_that_nobody_has),
        cmocka_unit_test(test_leaving_does_not_wait_for_an_answer),
        cmocka_unit_test(test_a_late_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
