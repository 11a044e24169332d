#include "io/address.h"
#include "io/listen.h"

#include "io_test.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

struct host {
    struct listener *listener;
    struct party guest;
    int n;
    bool close_at_once;
};

static void on_accept(void *owner, struct stream *s)
{
    struct host *h = owner;
    h->n++;
    if (h->n == 1)
        party_join(&h->guest, s);
    else
        stream_close(s, "one is enough");
    if (h->close_at_once) {
        listener_close(h->listener);
        h->listener = NULL;
    }
}

static void host_open(struct host *h, struct loop *l, const char *address)
{
    struct err err = {0};
    *h = (struct host){0};
    h->listener = listener_open(l, address, on_accept, h, &err);
    assert_string_equal(err.text, "");
    assert_non_null(h->listener);
}

/* A client connects and both sides send. On return both streams are closed. */
static void meet(struct loop *l, struct host *h, const char *address)
{
    struct party client;
    party_connect(&client, l, address);
    stream_write(client.stream, SPAN("hello"));
    WAIT(l, h->n == 1 && party_has(&h->guest, "hello"));
    stream_write(h->guest.stream, SPAN("welcome"));
    WAIT(l, party_has(&client, "welcome"));
    party_leave(&client, l);
    WAIT(l, h->guest.n_eof == 1);
    party_leave(&h->guest, l);
}

static void test_tcp(void **state)
{
    (void)state;
    const char *addresses[] = {"127.0.0.1:0", ":0", "localhost:0", "[::1]:0"};
    struct loop *l = loop_new();
    for (size_t i = 0; i < COUNT_OF(addresses); i++) {
        struct host h;
        struct err err = {0};
        h.listener = listener_open(l, addresses[i], on_accept, &h, &err);
        if (!h.listener && i == 3)
            break; /* this machine has no IPv6 */
        assert_non_null(h.listener);
        listener_close(h.listener);
        host_open(&h, l, addresses[i]);
        char wanted[64];
        int port = listener_port(h.listener);
        assert_in_range(port, 1, 65535);
        if (i < 2) {
            snprintf(wanted, sizeof wanted, "127.0.0.1:%d", port);
            assert_string_equal(listener_address(h.listener), wanted);
        }
        meet(l, &h, listener_address(h.listener));
        listener_close(h.listener);
    }
    loop_free(l);
}

/* A client connects; apart() is the end of both sides. */
static struct loop *together(struct host *h, struct party *client)
{
    struct loop *l = loop_new();
    host_open(h, l, "127.0.0.1:0");
    party_connect(client, l, listener_address(h->listener));
    WAIT(l, h->n == 1);
    return l;
}

static void apart(struct loop *l, struct host *h, struct party *client)
{
    party_leave(client, l);
    party_leave(&h->guest, l);
    listener_close(h->listener);
    loop_free(l);
}

static void test_names_of_both_ends(void **state)
{
    (void)state;
    struct host h;
    struct party client;
    struct loop *l = together(&h, &client);
    assert_string_equal(stream_name(client.stream), listener_address(h.listener));
    assert_int_equal(strncmp(stream_name(h.guest.stream), "127.0.0.1:", 10), 0);
    assert_string_not_equal(stream_name(h.guest.stream), listener_address(h.listener));
    apart(l, &h, &client);
}

/* After a message to which we said nothing, the kernel acknowledged each later one at once. A
 * program that played 2,000 pages, and had just answered their pings, was 8 % slower. */
static void test_what_gets_no_answer_is_acknowledged(void **state)
{
    (void)state;
    struct host h;
    struct party client;
    struct loop *l = together(&h, &client);
    for (size_t i = 1; i <= 20; i++) { /* the kernel learns that we answer */
        stream_write(client.stream, SPAN("?"));
        WAIT(l, h.guest.got.n == i);
        stream_write(h.guest.stream, SPAN("!"));
        WAIT(l, client.got.n == i);
    }
    size_t at_once = 0; /* a busy kernel may put it off */
    for (size_t i = 21; i <= 40; i++) {
        stream_write(client.stream, SPAN("."));
        WAIT(l, h.guest.got.n == i);
        stream_acknowledge(h.guest.stream);
        at_once += stream_unread(client.stream) == 0;
    }
    assert_in_range(at_once, 16, 20); /* 10 without it */
    apart(l, &h, &client);
}

/* "localhost" is looked up in a thread; both addresses found may have to be tried. */
static void test_connect_by_name(void **state)
{
    (void)state;
    struct loop *l = loop_new();
    struct host h;
    char address[64];
    host_open(&h, l, "127.0.0.1:0");
    snprintf(address, sizeof address, "localhost:%d", listener_port(h.listener));
    meet(l, &h, address);
    listener_close(h.listener);
    loop_free(l);
}

static void test_unix_socket(void **state)
{
    (void)state;
    char folder[32], address[64], *path = address + 5;
    struct loop *l = loop_new();
    struct host h;
    struct stat st;
    make_folder(folder);
    snprintf(address, sizeof address, "unix:%s/s", folder);
    umask(022);
    host_open(&h, l, address);
    assert_int_equal(umask(022), 022); /* restored */
    assert_string_equal(listener_address(h.listener), address);
    assert_int_equal(listener_port(h.listener), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);

    struct err err;
    assert_null(listener_open(l, address, on_accept, &h, &err)); /* the first still listens */
    assert_non_null(strstr(err.text, "in use"));
    assert_true(err.hint[0] != '\0');
    assert_int_equal(stat(path, &st), 0);
    WAIT(l, h.n == 1 && h.guest.n_eof == 1); /* the connection that probed for a listener */
    party_leave(&h.guest, l);
    h.n = 0;

    meet(l, &h, address);
    listener_close(h.listener);
    loop_step(l, 0);
    assert_int_equal(stat(path, &st), -1); /* removed */
    assert_int_equal(rmdir(folder), 0);
    loop_free(l);
}

static void test_stale_unix_socket_is_replaced(void **state)
{
    (void)state;
    char folder[32], address[64];
    struct loop *l = loop_new();
    struct host h;
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    make_folder(folder);
    snprintf(address, sizeof address, "unix:%s/s", folder);
    strcpy(sa.sun_path, address + 5);
    int dead = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(dead, (struct sockaddr *)&sa, sizeof sa), 0);
    close(dead);
    host_open(&h, l, address);
    meet(l, &h, address);
    listener_close(h.listener);

    /* A file that is no socket may be user data: it is not removed. */
    int file = open(sa.sun_path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(file >= 0);
    close(file);
    struct err err;
    assert_null(listener_open(l, address, on_accept, &h, &err));
    assert_int_equal(unlink(sa.sun_path), 0);
    assert_int_equal(rmdir(folder), 0);
    loop_free(l);
}

static void test_bad_addresses(void **state)
{
    (void)state;
    char long_path[200] = "unix:/";
    memset(long_path + 6, 'x', sizeof long_path - 7);
    const char *bad[] = {"",
                         "127.0.0.1",
                         "127.0.0.1:",
                         "127.0.0.1:65536",
                         "host:1x",
                         "::1:80",
                         "unix:",
                         "127.0.0.1:-1",
                         long_path,
                         "[::1]",
                         "no.such.name.invalid:1",
                         "unix:/no/such/folder/s"};
    struct loop *l = loop_new();
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct err err = {0};
        assert_null(listener_open(l, bad[i], on_accept, NULL, &err));
        assert_true(err.text[0] != '\0');
    }
    struct host h;
    struct err err = {0};
    host_open(&h, l, "127.0.0.1:0");
    assert_null(listener_open(l, listener_address(h.listener), on_accept, NULL, &err));
    assert_non_null(strstr(err.text, "address already in use"));
    assert_non_null(strstr(err.text, listener_address(h.listener)));
    assert_true(err.hint[0] != '\0');
    listener_close(h.listener);
    loop_free(l);
}

static void on_connected_or_not(void *owner, struct stream *s, int code)
{
    (void)code; /* the kernel resets connections that were not accepted */
    if (s)
        party_join(owner, s);
}

static void test_no_accept_after_close(void **state)
{
    (void)state;
    struct loop *l = loop_new();
    struct host h;
    struct party clients[3];
    host_open(&h, l, "127.0.0.1:0");
    h.close_at_once = true;
    char address[64];
    snprintf(address, sizeof address, "%s", listener_address(h.listener));
    for (int i = 0; i < 3; i++) {
        clients[i] = (struct party){0};
        stream_connect(l, address, on_connected_or_not, &clients[i]);
    }
    WAIT(l, h.n == 1);
    run_for(l, 30);
    assert_int_equal(h.n, 1);
    for (int i = 0; i < 3; i++)
        party_leave(&clients[i], l);
    party_leave(&h.guest, l);
    loop_free(l);
}

/* --- connecting --- */

struct attempt {
    int n, code;
};

static void on_failed(void *owner, struct stream *s, int code)
{
    struct attempt *a = owner;
    assert_null(s);
    a->n++;
    a->code = code;
}

static void test_connect_failures(void **state)
{
    (void)state;
    struct loop *l = loop_new();
    struct host h;
    char refused[64];
    host_open(&h, l, "127.0.0.1:0");
    snprintf(refused, sizeof refused, "%s", listener_address(h.listener));
    listener_close(h.listener);
    const char *bad[] = {refused, "nonsense", "unix:/no/such/socket", "no.such.name.invalid:1"};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct attempt a = {0};
        stream_connect(l, bad[i], on_failed, &a);
        assert_int_equal(a.n, 0); /* the callback comes from the loop */
        WAIT(l, a.n);
        assert_true(a.code < 0);
        if (i == 0)
            assert_int_equal(a.code, -ECONNREFUSED);
    }
    loop_free(l);
}

static void test_cancelled_connects_stay_silent(void **state)
{
    (void)state;
    struct loop *l = loop_new();
    struct host h;
    struct attempt a = {0};
    host_open(&h, l, "127.0.0.1:0");
    const char *kinds[] = {listener_address(h.listener), "nonsense", "localhost:1",
                           "unix:/no/such/socket"};
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        stream_connect_cancel(stream_connect(l, kinds[i], on_failed, &a));
        struct connect *c = stream_connect(l, kinds[i], on_failed, &a);
        if (i == 2)
            loop_step(l, 0); /* the lookup may be running in its thread now */
        stream_connect_cancel(c);
    }
    run_for(l, 50);
    assert_int_equal(a.n, 0);
    listener_close(h.listener);
    if (h.n)
        party_leave(&h.guest, l);
    loop_free(l);
}

/*
 * A client that vanished from the network would keep its session for ever: accepted sockets need
 * TCP keepalive. /proc/net/tcp shows it as timer 2; the client's socket has no timer.
 */
static void test_accepted_sockets_are_watched(void **state)
{
    (void)state;
    struct loop *l = loop_new();
    struct host h;
    host_open(&h, l, "127.0.0.1:0");
    struct sockaddr_in sa = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)listener_port(h.listener)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof sa), 0);
    socklen_t size = sizeof sa;
    assert_int_equal(getsockname(fd, (struct sockaddr *)&sa, &size), 0);
    WAIT(l, h.n == 1);

    FILE *table = fopen("/proc/net/tcp", "r");
    char line[256];
    unsigned local, remote, timer;
    int watched = 0, bare = 0;
    while (fgets(line, sizeof line, table)) {
        if (sscanf(line, " %*d: %*x:%x %*x:%x %*x %*x:%*x %x:", &local, &remote, &timer) != 3)
            continue;
        watched += local == (unsigned)listener_port(h.listener) && remote == ntohs(sa.sin_port) &&
                   timer == 2;
        bare += local == ntohs(sa.sin_port) && timer == 0;
    }
    fclose(table);
    assert_int_equal(watched, 1);
    assert_int_equal(bare, 1);
    close(fd);
    party_leave(&h.guest, l);
    listener_close(h.listener);
    loop_free(l);
}

static void test_address_is_this_host(void **state)
{
    static const struct {
        const char *own, *given;
        bool same;
    } rows[] = {
        {"192.0.2.7", "192.0.2.7", true},
        {"192.0.2.7", "192.0.2.70", false},
        {"192.0.2.7", "192.0.2.7.evil.example", false},
        {"192.0.2.7", "a.example", false},
        {"192.0.2.7", "[::ffff:192.0.2.7]", true},
        {"::ffff:192.0.2.7", "192.0.2.7", true}, /* an IPv4 client of a listener at [::] */
        {"2001:db8::7", "[2001:DB8:0::7]", true},
        {"2001:db8::7", "2001:db8::7", false},
        {"2001:db8::7", "[2001:db8::8]", false},
        {"2001:db8::7", "[]", false},
        {"2001:db8::7", "", false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct address a = {.port = 80};
        struct sockaddr_storage sa = {0};
        snprintf(a.host, sizeof a.host, "%s", rows[i].own);
        assert_int_equal(address_numeric(&a, &sa), 0);
        assert_int_equal(address_is(&sa, span_str(rows[i].given)), rows[i].same);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tcp),
        cmocka_unit_test(test_names_of_both_ends),
        cmocka_unit_test(test_what_gets_no_answer_is_acknowledged),
        cmocka_unit_test(test_connect_by_name),
        cmocka_unit_test(test_unix_socket),
        cmocka_unit_test(test_stale_unix_socket_is_replaced),
        cmocka_unit_test(test_bad_addresses),
        cmocka_unit_test(test_no_accept_after_close),
        cmocka_unit_test(test_connect_failures),
        cmocka_unit_test(test_cancelled_connects_stay_silent),
        cmocka_unit_test(test_accepted_sockets_are_watched),
        cmocka_unit_test(test_address_is_this_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
