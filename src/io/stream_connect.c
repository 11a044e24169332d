/* Connecting to an address: name lookup, then one address after the other, as far as the reach
 * allows. Called by ws_connect.c, bus/amqp.c, bus/nats_link.c, bus/line_client.c and
 * cmd/bus_dead.c. */
#include "io/address.h"
#include "io/lookup.h"
#include "io/stream_uv.h"

#include "base/mem.h"

#include <errno.h>

/* For an address that does not answer, while there is another one: the caller, too, waits only for
 * seconds. */
enum { PATIENCE_MS = 2000 };

/*
 * One attempt: look the name up, then try its addresses one by one. The struct lives until the last
 * callback libuv owes us, cancelled or not.
 */
struct connect {
    struct loop *loop;
    void (*done)(void *owner, struct stream *s, int code);
    void *owner;
    char *address;
    const struct reach *reach; /* NULL: anywhere */
    struct stream *stream;     /* being connected */
    struct lookup *lookup;     /* under way, or NULL */
    uv_connect_t request;
    struct addrinfo *found, *next;
    struct timer patience; /* set while `next` could be tried instead */
    struct deferred later; /* reports, from the loop, a failure that was known at once */
    int code;
    bool cancelled;
};

static void connect_free(struct connect *c)
{
    if (c->found)
        freeaddrinfo(c->found);
    mem_free(c->address);
    mem_free(c);
}

static void finish(struct connect *c, struct stream *s, int code)
{
    c->done(c->owner, s, code);
    connect_free(c);
}

static void fail_later(struct deferred *d)
{
    struct connect *c = CONTAINER_OF(d, struct connect, later);
    finish(c, NULL, c->code);
}

static void try_next(struct connect *c);

static void on_connected(uv_connect_t *request, int status)
{
    struct connect *c = CONTAINER_OF(request, struct connect, request);
    struct stream *s = c->stream;

    loop_enter(c->loop);
    timer_clear(&c->loop->timers, &c->patience);
    c->stream = NULL;
    if (c->cancelled) {
        connect_free(c);
    } else if (status == 0) {
        bool tcp = s->in.uv.handle.type == UV_TCP;
        stream_connected(s, tcp ? NULL : c->address);
        finish(c, s, 0);
    } else {
        c->code = status == UV_ECANCELED ? UV_ETIMEDOUT : status; /* on_impatient */
        stream_close(s, uv_strerror(c->code));
        try_next(c);
    }
}

/* libuv then reports to on_connected. */
static void on_impatient(struct timer *t)
{
    stream_close(CONTAINER_OF(t, struct connect, patience)->stream, uv_strerror(UV_ETIMEDOUT));
}

static int try_address(struct connect *c, const struct sockaddr *sa)
{
    if (c->reach && !reach_has_address(c->reach, sa))
        return c->code = ERR_REACH;
    c->stream = stream_new_socket(c->loop, true);
    int code = uv_tcp_connect(&c->request, &c->stream->in.uv.tcp, sa, on_connected);
    if (code < 0) {
        stream_close(c->stream, uv_strerror(code));
        c->stream = NULL;
        c->code = code;
    } else if (c->next) {
        c->patience.fire = on_impatient;
        timer_set(&c->loop->timers, &c->patience, PATIENCE_MS);
    }
    return code;
}

/* May end and free the connect. */
static void try_next(struct connect *c)
{
    while (c->next) {
        struct addrinfo *at = c->next;
        c->next = at->ai_next;
        if (try_address(c, at->ai_addr) == 0)
            return;
    }
    finish(c, NULL, c->code);
}

static void on_found(void *owner, struct addrinfo *found, int code)
{
    struct connect *c = owner;

    c->lookup = NULL;
    c->found = c->next = found;
    c->code = code;
    try_next(c);
}

/* Begin to connect; a negative code if that failed at once. */
static int begin(struct connect *c)
{
    struct address a;
    struct sockaddr_storage sa;
    int code = address_parse(&a, c->address, NULL);

    if (code < 0)
        return code;
    if (c->reach && (a.path || !reach_has_host(c->reach, span_str(a.host), a.port)))
        return ERR_REACH;
    if (a.path) {
        c->stream = stream_new_socket(c->loop, false);
        uv_pipe_connect(&c->request, &c->stream->in.uv.pipe, a.path, on_connected);
        return 0;
    }
    if (address_numeric(&a, &sa) == 0)
        return try_address(c, (struct sockaddr *)&sa);
    c->lookup = lookup_start(c->loop, a.host, a.digits, on_found, c);
    return c->lookup ? 0 : -EAGAIN;
}

struct connect *stream_connect_within(struct loop *l, const struct reach *reach,
                                      const char *address,
                                      void (*done)(void *owner, struct stream *s, int code),
                                      void *owner)
{
    struct connect *c = MEM_NEW(struct connect);
    c->loop = l;
    c->reach = reach;
    c->done = done;
    c->owner = owner;
    c->address = mem_str(address);
    c->code = begin(c);
    if (c->code < 0)
        loop_defer(l, &c->later, fail_later);
    return c;
}

struct connect *stream_connect(struct loop *l, const char *address,
                               void (*done)(void *owner, struct stream *s, int code), void *owner)
{
    return stream_connect_within(l, NULL, address, done, owner);
}

void stream_connect_cancel(struct connect *c)
{
    c->cancelled = true;
    timer_clear(&c->loop->timers, &c->patience);
    if (c->stream) {
        /* libuv reports the connect as cancelled, and that frees the struct connect. */
        stream_close(c->stream, "cancelled");
        return;
    }
    if (c->lookup)
        lookup_cancel(c->lookup);
    loop_undefer(&c->later);
    connect_free(c);
}
