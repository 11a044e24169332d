/*
 * Each connection has its own bound, but there are many: 40 clients that did not read made the
 * bridge hold 600 MB. The sum is bounded as well, and clients that read must not be cut off for it.
 */
#include "http_site.h"

#include <sys/socket.h>

enum { MIB = 1024 * 1024, SLOW = 12, LIMIT = 16 * MIB };

struct hall {
    struct listener *listener;
    struct party guests[SLOW + 1];
    int n;
};

static void on_accept(void *owner, struct stream *s)
{
    struct hall *h = owner;

    party_join(&h->guests[h->n++], s);
}

static void test_those_who_do_not_read_are_cut(void **state)
{
    (void)state;
    struct loop *l = loop_new();
    struct hall h = {0};
    struct err err = {0};
    struct party clients[SLOW + 1];
    char *block = mem_zalloc(MIB);
    h.listener = listener_open(l, "127.0.0.1:0", on_accept, &h, &err);
    assert_non_null(h.listener);
    loop_holdings(l)->limit = LIMIT;
    for (int i = 0; i <= SLOW; i++) {
        party_connect(&clients[i], l, listener_address(h.listener));
        WAIT(l, h.n == i + 1);
        if (i < SLOW)
            stream_pause(clients[i].stream);
    }
    /* In total six times the limit, while no stream comes near its own limit. */
    size_t most = 0;
    for (int round = 0; round < 8; round++) {
        for (int i = 0; i <= SLOW; i++) {
            if (h.guests[i].stream)
                stream_write(h.guests[i].stream, span_of(block, MIB));
            most = loop_holdings(l)->bytes > most ? loop_holdings(l)->bytes : most;
        }
        WAIT(l, clients[SLOW].got.n == (size_t)(round + 1) * MIB);
    }
    assert_true(most <= LIMIT);
    int cut = 0;
    for (int i = 0; i < SLOW; i++) {
        cut += h.guests[i].n_closed;
        assert_true(!h.guests[i].n_closed || strstr(h.guests[i].reason, "the bridge held"));
    }
    assert_in_range(cut, 6, SLOW);
    assert_int_equal(h.guests[SLOW].n_closed, 0);
    for (int i = 0; i <= SLOW; i++) {
        party_leave(&clients[i], l);
        party_leave(&h.guests[i], l);
    }
    assert_int_equal(loop_holdings(l)->bytes, 0);
    listener_close(h.listener);
    mem_free(block);
    loop_free(l);
}

/* Our own pipe to a server's stdin counts, but is never closed to free memory. */
static void test_our_own_pipes_are_not_cut(void **state)
{
    (void)state;
    struct loop *l = loop_new();
    struct party a;
    char *block = mem_zalloc(MIB);
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    party_join(&a, stream_from_fds(l, fds[0], fds[0], "pipe"));
    loop_holdings(l)->limit = MIB;
    for (int i = 0; i < 4; i++)
        stream_write(a.stream, span_of(block, MIB));
    run_for(l, 20);
    assert_int_equal(a.n_closed, 0);
    assert_true(loop_holdings(l)->bytes > MIB);
    close(fds[1]);
    party_leave(&a, l);
    assert_int_equal(loop_holdings(l)->bytes, 0);
    mem_free(block);
    loop_free(l);
}

/* Incomplete request bodies count too: the largest and oldest are refused with 503. */
static void test_bodies_that_do_not_end(void **state)
{
    (void)state;
    enum { CLIENTS = 6, PART = 80000, ROOM = 128 * 1024 }; /* ROOM: the buffer for a PART */
    struct site site;
    struct party c[CLIENTS];
    site_open(&site);
    loop_holdings(site.loop)->limit = 3 * ROOM + ROOM / 2;
    for (int i = 0; i < CLIENTS; i++) {
        party_connect(&c[i], site.loop, site.address);
        struct buf *out = stream_out(c[i].stream);
        buf_printf(out, "POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: %d\r\n\r\n", PART + 5);
        memset(buf_room(out, PART), 'x', PART);
        out->n += PART;
        stream_wrote(c[i].stream);
        run_for(site.loop, 20);
    }
    int refused = 0;
    for (int i = 0; i < CLIENTS; i++)
        refused += party_has(&c[i], "503") && party_has(&c[i], "limits.memory");
    assert_int_equal(refused, 3);
    stream_write(c[CLIENTS - 1].stream, SPAN("yyyyy"));
    WAIT(site.loop, party_has(&c[CLIENTS - 1], "yyyyy"));
    for (int i = 0; i < CLIENTS; i++)
        party_leave(&c[i], site.loop);
    WAIT(site.loop, loop_holdings(site.loop)->bytes == 0);
    site_close(&site);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_those_who_do_not_read_are_cut),
        cmocka_unit_test(test_our_own_pipes_are_not_cut),
        cmocka_unit_test(test_bodies_that_do_not_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
