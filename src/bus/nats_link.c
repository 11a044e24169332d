/* The connection to a NATS cluster: its servers, TLS, logging in, pings and the end. Called by
 * nats.c, and by nats_sub.c and nats_request.c to send; what arrives is given to nats.c and
 * nats_sub.c. */
#include "bus/nats_inside.h"

#include "base/ascii.h"
#include "base/log.h"
#include "base/mem.h"
#include "wire/json.h"
#include "wire/json_out.h"

#include <stdarg.h>

enum {
    HANDSHAKE_MS = 5000, /* of one server */
    GOODBYE_MS = 1000,
    SILENT_ASK = 1,  /* ticks without a word from the server until we send a PING */
    SILENT_DEAD = 3, /* ticks until the connection counts as lost: 25 s at least */
    MAX_OUTBOX = 64 * 1024 * 1024,
    COMPLAINT = 300, /* bytes of an -ERR that are shown */
};

/* --- servers --- */

static bool is_numeric(const char *host)
{
    return strspn(host, "0123456789.") == strlen(host) || strchr(host, ':');
}

static void place_fini(struct nats_place *p)
{
    mem_free(p->target);
    mem_free(p->name);
    *p = (struct nats_place){0};
}

static char *host_of(const char *target)
{
    struct span host = span_str(target);

    while (host.n && host.p[--host.n] != ':')
        ;
    return mem_span(host.n > 1 && host.p[0] == '[' ? span_cut(host, 1, host.n - 2) : host);
}

/* Takes ownership of both strings. */
static void place_add(struct nats_link *l, char *target, char *name)
{
    struct nats_place p = {.target = target, .name = name};
    bool known = l->n_places == COUNT_OF(l->places);

    for (size_t i = 0; i < l->n_places; i++)
        known = known || strcmp(l->places[i].target, target) == 0;
    if (known)
        place_fini(&p);
    else
        l->places[l->n_places++] = p;
}

/*
 * A server announces the other servers of the cluster, and the list replaces the one before. Most
 * servers announce IP addresses, while certificates have names: the certificate of such a server
 * must have the name of the server that announced it. This also holds for all servers that are
 * announced before TLS, because anybody could have sent that list.
 */
static void learn_places(struct nats_client *e, struct span urls)
{
    struct nats_link *l = &e->link;
    struct json_iter it = json_iter(urls);
    bool believed = !e->address.secure || stream_is_secure(l->stream);
    BUF_SCOPED scratch = {0};

    if (!urls.n)
        return;
    struct nats_place here = {mem_str(l->places[l->at].target), mem_str(l->places[l->at].name)};
    while (l->n_places > l->n_own)
        place_fini(&l->places[--l->n_places]);
    place_add(l, mem_str(here.target), mem_str(here.name));
    while (json_next(&it)) {
        scratch.n = 0;
        char *target =
            it.type == JSON_STRING ? nats_host_port(json_text(it.value, &scratch)) : NULL;
        if (!target)
            continue;
        char *name = host_of(target);
        if (!believed || (is_numeric(name) && !is_numeric(here.name))) {
            mem_free(name);
            name = mem_str(here.name);
        }
        place_add(l, target, name);
    }
    for (size_t i = 0; i < l->n_places; i++)
        if (strcmp(l->places[i].target, here.target) == 0)
            l->at = i;
    place_fini(&here);
}

/* --- the end of a connection --- */

static void report(struct deferred *d)
{
    struct nats_client *e = CONTAINER_OF(d, struct nats_client, link.later);
    struct bus *bus = e->bus;

    if (e->link.ended) {
        nats_free(e);
        engine_closed(bus);
        return;
    }
    char *why = e->link.lost_why;
    e->link.lost_why = NULL;
    engine_lost(bus, why);
    mem_free(why);
}

static void drop_connection(struct nats_client *e, const char *reason)
{
    struct nats_link *l = &e->link;

    if (l->connecting)
        stream_connect_cancel(l->connecting);
    l->connecting = NULL;
    if (l->stream)
        stream_abandon(l->stream, reason, 0);
    l->stream = NULL;
    nats_reader_stop(&l->reader);
    timer_clear(loop_timers(e->loop), &l->deadline);
    mem_free(l->complaint);
    l->complaint = NULL;
    l->pings = l->silent = 0;
    l->moving = false;
    l->state = NATS_DOWN;
    nats_down(e);
}

static void try_next(struct nats_client *e);

/* Drops this connection, then tries the next server or reports the loss. */
static __attribute__((format(printf, 2, 3))) void lose(struct nats_client *e, const char *fmt, ...)
{
    struct nats_link *l = &e->link;
    enum nats_state state = l->state;
    struct buf why = {0};
    va_list ap;

    if (state == NATS_DOWN)
        return;
    va_start(ap, fmt);
    buf_vprintf(&why, fmt, ap);
    va_end(ap);
    drop_connection(e, buf_cstr(&why));
    mem_free(l->lost_why);
    l->lost_why = buf_take(&why);
    l->ended = state == NATS_LEAVING;
    if (state < NATS_UP && l->tries)
        try_next(e);
    else
        loop_defer(e->loop, &l->later, report);
}

static void on_deadline(struct timer *t)
{
    struct nats_client *e = CONTAINER_OF(t, struct nats_client, link.deadline);
    lose(e, "%s gives no answer within %d s", e->link.places[e->link.at].target,
         HANDSHAKE_MS / 1000);
}

/* --- logging in --- */

static bool start_tls(struct nats_client *e)
{
    struct nats_link *l = &e->link;
    struct err err = {0};

    if (!l->tls)
        l->tls = tls_context_client(e->options->ca, &err);
    if (!l->tls) {
        lose(e, "%s", err.text);
        return false;
    }
    stream_secure(l->stream, l->tls, l->places[l->at].name, NULL, HANDSHAKE_MS);
    return true;
}

/* Begins TLS when we or the server insist on it. False: the connection is lost. */
static bool upgrade(struct nats_client *e, const struct nats_info *info, size_t behind)
{
    if (stream_is_secure(e->link.stream) || !(e->address.secure || info->tls_required))
        return true;
    if (!info->tls_required && !info->tls_available)
        lose(e, "the server does not speak TLS: use nats:// in the address");
    else if (behind) /* somebody between us and the server may have added it */
        lose(e, "the server sent more than its greeting before TLS");
    else
        return start_tls(e);
    return false;
}

static int put_login(struct nats_client *e, const struct nats_info *info, struct buf *json,
                     struct err *err)
{
    const struct nats_address *a = &e->address;

    json_out_open(json, NULL, '{');
    json_out_bool(json, "verbose", false);
    json_out_bool(json, "pedantic", false);
    json_out_bool(json, "tls_required", stream_is_secure(e->link.stream));
    json_out_str(json, "name", e->options->name ? e->options->name : "rialto");
    json_out_str(json, "lang", "rialto");
    json_out_str(json, "version", RIALTO_VERSION);
    json_out_number(json, "protocol", 1); /* the server may send INFO again */
    json_out_bool(json, "headers", true);
    json_out_bool(json, "no_responders", true);
    if (a->user && a->password) {
        json_out_str(json, "user", a->user);
        json_out_str(json, "pass", a->password);
    } else if (a->user) {
        json_out_str(json, "auth_token", a->user);
    }
    int code = 0;
    if (e->options->credentials && !info->nonce.n)
        code = err_set(err, ERR_PROTOCOL,
                       "the server asks for no signature: it does not know "
                       "users by the credentials in %s",
                       e->options->credentials);
    else if (e->options->credentials)
        code = nats_login_put(json, e->options->credentials, info->nonce, err);
    buf_char(json, '}');
    return code;
}

static void log_in(struct nats_client *e, const struct nats_info *info)
{
    BUF_SCOPED json = {0}, inbox = {0};
    struct err err = {0};

    if (put_login(e, info, &json, &err) < 0) {
        lose(e, "%s", err.text);
        return;
    }
    struct buf *out = stream_out(e->link.stream);
    nats_write_connect(out, buf_view(&json));
    buf_printf(&inbox, "%s.>", e->inbox);
    nats_write_sub(out, buf_view(&inbox), SPAN_EMPTY, NATS_ANSWERS_SID);
    e->link.state = NATS_LOGIN;
    nats_link_ping(e);
}

static void on_checked(struct nats_client *e, void *owner, bool granted, const char *text)
{
    (void)owner;
    if (!granted) {
        lose(e, "%s", text);
        return;
    }
    timer_clear(loop_timers(e->loop), &e->link.deadline);
    e->link.state = NATS_UP;
    nats_up(e);
}

static void on_login(struct nats_client *e)
{
    e->link.state = NATS_PREPARING;
    if (e->options->jetstream)
        nats_request_jetstream(e, on_checked, NULL);
    else
        on_checked(e, NULL, true, NULL);
}

/* --- what the server says --- */

static void on_info(struct nats_client *e, const struct nats_op *op)
{
    struct nats_link *l = &e->link;
    struct nats_info info;

    if (nats_read_info(&info, op->text) < 0) {
        lose(e, "the server sent an INFO that cannot be read");
        return;
    }
    e->max_payload = info.max_payload;
    learn_places(e, info.urls);
    if (l->state == NATS_GREETING && !info.headers)
        lose(e, "the server knows no headers: nats-server 2.2 is the oldest that does");
    else if (l->state == NATS_GREETING && upgrade(e, &info, op->behind))
        log_in(e, &info);
    else if (l->state == NATS_UP && info.leaving && l->n_places > 1 && !l->moving) {
        l->moving = true;
        nats_subs_mute(e);
        nats_link_ping(e);
    }
}

static void on_pong(struct nats_client *e)
{
    struct nats_link *l = &e->link;

    l->pings -= l->pings > 0;
    if (l->state == NATS_LOGIN)
        on_login(e);
    else if (l->state == NATS_LEAVING && !l->pings)
        lose(e, "closed");
    else if (l->state == NATS_UP)
        nats_pong(e);
    if (l->moving && !l->pings)
        lose(e, "%s shuts down", l->places[l->at].target);
}

/* A permissions violation refuses one request only; after any other -ERR the server ends the
 * connection. */
static void on_complaint(struct nats_client *e, struct span text)
{
    struct nats_link *l = &e->link;
    bool rights = span_starts(text, SPAN("Permissions Violation"));

    text = span_cut(text, 0, COMPLAINT);
    if (rights) {
        log_warn("nats", SPAN_FMT, SPAN_ARG(text));
    } else if (l->state < NATS_UP && span_has_nocase(text, SPAN("auth"))) {
        const char *file = e->options->credentials;
        lose(e, "the server refuses the %s%s",
             file ? "credentials in " : "user name, password or token in the address",
             file ? file : "");
    } else {
        mem_free(l->complaint);
        l->complaint = mem_span(text);
    }
}

static void on_op(void *owner, const struct nats_op *op)
{
    struct nats_client *e = owner;

    if (e->link.state == NATS_GREETING && op->kind != NATS_INFO && op->kind != NATS_ERR)
        lose(e, "what listens there does not greet as NATS does");
    else if (op->kind == NATS_INFO)
        on_info(e, op);
    else if (op->kind == NATS_PONG)
        on_pong(e);
    else if (op->kind == NATS_ERR)
        on_complaint(e, op->text);
    else if (op->kind == NATS_MSG && op->sid == NATS_ANSWERS_SID)
        nats_answer(e, op);
    else if (op->kind == NATS_MSG)
        nats_sub_message(e, op);
    else if (op->kind == NATS_PING) {
        nats_write_pong(stream_out(e->link.stream));
        stream_wrote(e->link.stream);
    }
}

static void on_data(void *owner, struct span chunk)
{
    struct nats_client *e = owner;

    e->link.silent = 0;
    int code = nats_reader_feed(&e->link.reader, chunk, on_op, e);
    if (code && e->link.state == NATS_GREETING)
        lose(e, "what listens there does not speak NATS%s",
             e->address.secure ? " (or wants TLS first: tls://HOST?tls_first)" : "");
    else if (code)
        lose(e, "the server broke the protocol: %s", err_name(code));
}

static void on_closed(void *owner, const char *reason)
{
    struct nats_client *e = owner;
    struct nats_link *l = &e->link;

    l->stream = NULL;
    lose(e, "the connection is lost: %s", l->complaint ? l->complaint : reason);
}

static const struct stream_events link_events = {.data = on_data, .closed = on_closed};

/* --- connecting --- */

static void on_connected(void *owner, struct stream *s, int code)
{
    struct nats_client *e = owner;
    struct nats_link *l = &e->link;
    size_t outbox = e->options->max_outbox ? e->options->max_outbox : MAX_OUTBOX;

    l->connecting = NULL;
    if (code && l->lost_why) { /* an earlier server's reason tells more than this one */
        lose(e, "%s", l->lost_why);
        return;
    }
    if (code) {
        lose(e, "no NATS server answers there: %s", err_name(code));
        return;
    }
    nats_reader_fini(&l->reader);
    nats_reader_init(&l->reader);
    l->stream = s;
    l->state = NATS_GREETING;
    stream_set_limit(s, 2 * outbox + STREAM_LIMIT);
    stream_start(s, &link_events, e);
    if (e->address.tls_first)
        (void)start_tls(e);
}

static void try_next(struct nats_client *e)
{
    struct nats_link *l = &e->link;

    l->tries--;
    l->at = (l->at + 1) % l->n_places;
    l->state = NATS_REACHING;
    timer_set(loop_timers(e->loop), &l->deadline, HANDSHAKE_MS);
    l->connecting = stream_connect(e->loop, l->places[l->at].target, on_connected, e);
}

void nats_link_connect(struct nats_client *e)
{
    struct nats_link *l = &e->link;

    l->tries = l->n_places;
    try_next(e);
}

void nats_link_leave(struct nats_client *e)
{
    struct nats_link *l = &e->link;

    if (l->state != NATS_UP) {
        drop_connection(e, "leaving");
        l->ended = true;
        loop_defer(e->loop, &l->later, report);
        return;
    }
    l->state = NATS_LEAVING;
    timer_set(loop_timers(e->loop), &l->deadline, GOODBYE_MS);
    nats_link_ping(e);
}

int nats_link_init(struct nats_client *e, struct err *err)
{
    struct nats_link *l = &e->link;

    if (e->address.secure && !(l->tls = tls_context_client(e->options->ca, err)))
        return ERR_CONFIG;
    for (int i = 0; i < e->address.n; i++)
        place_add(l, mem_str(e->address.servers[i]), host_of(e->address.servers[i]));
    l->n_own = l->n_places;
    l->at = id_random_u64() % l->n_places; /* so that not all clients use the same server */
    l->deadline.fire = on_deadline;
    return 0;
}

void nats_link_fini(struct nats_client *e)
{
    struct nats_link *l = &e->link;

    loop_undefer(&l->later);
    nats_reader_fini(&l->reader);
    if (l->tls)
        tls_context_free(l->tls);
    while (l->n_places)
        place_fini(&l->places[--l->n_places]);
    mem_free(l->lost_why);
}

/* --- using the link --- */

bool nats_link_is_open(const struct nats_client *e)
{
    return e->link.stream && e->link.state >= NATS_PREPARING;
}

struct buf *nats_link_out(struct nats_client *e)
{
    return stream_out(e->link.stream);
}

void nats_link_wrote(struct nats_client *e)
{
    stream_wrote(e->link.stream);
}

void nats_link_say(struct nats_client *e, struct span subject, struct span reply, const char *words)
{
    if (!nats_link_is_open(e))
        return;
    nats_write_pub(nats_link_out(e), subject, reply, SPAN_EMPTY, span_str(words));
    nats_link_wrote(e);
}

void nats_link_ping(struct nats_client *e)
{
    nats_write_ping(nats_link_out(e));
    nats_link_wrote(e);
    e->link.pings++;
}

void nats_link_tick(struct nats_client *e)
{
    struct nats_link *l = &e->link;

    if (++l->silent == SILENT_ASK)
        nats_make_sure(e, 0);
    if (l->silent >= SILENT_DEAD)
        lose(e, "nothing was heard for %d s", (SILENT_DEAD - 1) * NATS_TICK_MS / 1000);
}
