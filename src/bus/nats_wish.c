/* JetStream's streams and consumers: found, or made as the bus needs them, by requests to the
 * server. Called by nats_link.c to see that there is a JetStream, by nats.c for what is published
 * and by nats_sub.c for subscriptions.
 *
 * Topics with the same first segment share a stream, which keeps messages for a day and dead
 * letters for three. A stream that is there already and takes the subject is used as it is. */
#include "bus/nats_inside.h"

#include "wire/json.h"

#include <inttypes.h>

#define SECONDS(n) ((uint64_t)(n)*1000000000)

enum {
    ASK_MS = 5000,
    STREAM_BYTES = 256 * 1024 * 1024,
    DEAD_MESSAGES = 10000,
    DAY_S = 24 * 3600,
    IDLE_S = 300,    /* an ephemeral consumer that gets no requests is deleted */
    ACK_WAIT_S = 15, /* without a sign of life until another worker gets the message */
};

enum step { CHECK, FIND, MAKE, CONSUMER };

struct nats_wish {
    struct nats_client *engine;
    uint64_t id;
    enum step step;
    char *subject, *group; /* group: NULL = only the stream is wanted */
    bool ephemeral;
    char *stream; /* once it is known */
    struct timer late;
    nats_wish_fn *done;
    void *owner;
};

/* --- requests: a subject and a body each --- */

static void put_check(const struct nats_wish *w, struct buf *subject, struct buf *body)
{
    (void)w;
    (void)body;
    buf_str(subject, "INFO");
}

static void put_find(const struct nats_wish *w, struct buf *subject, struct buf *body)
{
    buf_str(subject, "STREAM.NAMES");
    buf_str(body, "{\"subject\":");
    json_quote(body, span_str(w->subject));
    buf_char(body, '}');
}

/* Retention is not "interest": on a restart nats-server 2.9 forgets messages that one of several
 * consumers has not acknowledged yet. */
static void put_make(const struct nats_wish *w, struct buf *subject, struct buf *body)
{
    struct span root = nats_root(w->engine->options->prefix, span_str(w->subject));
    /* Topics of dead letters begin with "dlq". */
    bool dead = root.n >= 3 && span_is(span_from(root, root.n - 3), "dlq");
    BUF_SCOPED name = {0}, below = {0};

    nats_put_stream_name(&name, root);
    buf_printf(&below, SPAN_FMT ".>", SPAN_ARG(root));
    buf_printf(subject, "STREAM.CREATE.%s", buf_cstr(&name));
    buf_printf(body, "{\"name\":\"%s\",\"subjects\":[", buf_cstr(&name));
    json_quote(body, buf_view(&below));
    buf_char(body, ',');
    json_quote(body, root);
    buf_printf(body,
               "],\"retention\":\"limits\",\"discard\":\"old\",\"storage\":\"file\","
               "\"num_replicas\":1,\"max_consumers\":-1,\"max_msg_size\":-1,\"max_msgs\":%d,"
               "\"max_bytes\":%d,\"max_age\":%" PRIu64 "}",
               dead ? DEAD_MESSAGES : -1, STREAM_BYTES, SECONDS(dead ? 3 * DAY_S : DAY_S));
}

/* No limit for unacknowledged messages: each subscriber asks for no more than its prefetch, and a
 * limit for all of them together would keep a second worker from helping the first. */
static void put_consumer(const struct nats_wish *w, struct buf *subject, struct buf *body)
{
    BUF_SCOPED name = {0};

    nats_put_consumer_name(&name, w->group, w->subject);
    buf_printf(subject, "CONSUMER.DURABLE.CREATE.%s.%s", w->stream, buf_cstr(&name));
    buf_str(body, "{\"stream_name\":");
    json_quote(body, span_str(w->stream));
    buf_printf(body,
               ",\"config\":{\"durable_name\":\"%s\",\"deliver_policy\":\"new\",\"ack_policy\":"
               "\"explicit\",\"replay_policy\":\"instant\","
               "\"ack_wait\":%" PRIu64 ",\"max_ack_pending\":-1,",
               buf_cstr(&name), SECONDS(ACK_WAIT_S));
    if (w->ephemeral)
        buf_printf(body, "\"inactive_threshold\":%" PRIu64 ",", SECONDS(IDLE_S));
    buf_str(body, "\"filter_subject\":");
    json_quote(body, span_str(w->subject));
    buf_str(body, "}}");
}

static const struct {
    void (*put)(const struct nats_wish *w, struct buf *subject, struct buf *body);
    const char *failed;
} steps[] = {
    [CHECK] = {put_check,
               "no JetStream here (start nats-server with -js, or leave `jetstream` out)"},
    [FIND] = {put_find, "cannot ask for streams"},
    [MAKE] = {put_make, "cannot make a stream"},
    [CONSUMER] = {put_consumer, "cannot make a consumer"},
};

/* --- one wish --- */

static void ask(struct nats_wish *w)
{
    struct nats_client *e = w->engine;
    BUF_SCOPED subject = {0}, body = {0}, reply = {0};

    buf_str(&subject, "$JS.API.");
    steps[w->step].put(w, &subject, &body);
    buf_printf(&reply, "%s.a.%" PRIu64, e->inbox, w->id);
    timer_set(loop_timers(e->loop), &w->late, ASK_MS);
    nats_link_say(e, buf_view(&subject), buf_view(&reply), buf_cstr(&body));
}

void nats_wish_drop(struct nats_wish *w)
{
    timer_clear(loop_timers(w->engine->loop), &w->late);
    idmap_take(&w->engine->wishes, w->id);
    mem_free(w->subject);
    mem_free(w->group);
    mem_free(w->stream);
    mem_free(w);
}

static void end(struct nats_wish *w, bool granted, struct buf *text)
{
    struct nats_client *e = w->engine;
    nats_wish_fn *done = w->done;
    void *owner = w->owner;

    nats_wish_drop(w);
    done(e, owner, granted, buf_cstr(text));
}

static void fail(struct nats_wish *w, const char *why)
{
    BUF_SCOPED text = {0};

    buf_printf(&text, "%s: %s", steps[w->step].failed, why);
    end(w, false, &text);
}

static void on_late(struct timer *t)
{
    fail(CONTAINER_OF(t, struct nats_wish, late), "no answer within 5 s");
}

/* {"code":…,"err_code":…,"description":…} */
static void refused(struct nats_wish *w, struct span error)
{
    BUF_SCOPED why = {0}, scratch = {0};
    struct json_slot code = json_get(error, "err_code"), text = json_get(error, "description");

    buf_span(&why, text.type == JSON_STRING ? json_text(text.value, &scratch) : SPAN("refused"));
    if (code.type == JSON_NUMBER)
        buf_printf(&why, " (" SPAN_FMT ")", SPAN_ARG(code.value));
    fail(w, buf_cstr(&why));
}

static void grant(struct nats_wish *w)
{
    BUF_SCOPED text = {0};

    if (w->step == CONSUMER) {
        buf_printf(&text, "$JS.API.CONSUMER.MSG.NEXT.%s.", w->stream);
        nats_put_consumer_name(&text, w->group, w->subject);
    } else if (w->stream) {
        buf_str(&text, w->stream);
    }
    end(w, true, &text);
}

/* The first stream that takes this subject; others may have made it. */
static char *first_stream(struct span answer)
{
    struct json_iter it = json_iter(json_get(answer, "streams").value);
    BUF_SCOPED name = {0};

    if (!json_next(&it) || it.type != JSON_STRING)
        return NULL;
    json_unescape(&name, it.value);
    /* The name becomes part of subjects, where these characters mean something. */
    if (name.n && !strpbrk(buf_cstr(&name), " .*>\t\r\n"))
        return buf_take(&name);
    return NULL;
}

static void go_on(struct nats_wish *w, struct span answer)
{
    BUF_SCOPED ours = {0};

    if (w->step == FIND) {
        w->stream = first_stream(answer);
    } else if (w->step == MAKE) {
        nats_put_stream_name(&ours, nats_root(w->engine->options->prefix, span_str(w->subject)));
        w->stream = buf_take(&ours);
    }
    if (w->step == FIND && !w->stream)
        w->step = MAKE;
    else if (w->group && w->step != CONSUMER)
        w->step = CONSUMER;
    else {
        grant(w);
        return;
    }
    ask(w);
}

void nats_wish_answer(struct nats_client *e, uint64_t id, const struct nats_op *op)
{
    struct nats_wish *w = idmap_get(&e->wishes, id);
    enum json_type type = JSON_NONE;

    if (!w)
        return;
    if (nats_headers_status(op->headers)) {
        fail(w, "nobody answers such requests");
    } else if (json_skim(op->payload, NULL, NULL, &type, NULL) < 0 || type != JSON_OBJECT) {
        fail(w, "the answer cannot be read");
    } else {
        struct json_slot error = json_get(op->payload, "error");
        if (error.type == JSON_OBJECT)
            refused(w, error.value);
        else
            go_on(w, op->payload);
    }
}

/* --- wishing --- */

static struct nats_wish *wish(struct nats_client *e, enum step first, const char *subject,
                              nats_wish_fn *done, void *owner)
{
    struct nats_wish *w = MEM_NEW(struct nats_wish);

    w->engine = e;
    w->id = ++e->last_id;
    w->step = first;
    w->subject = mem_str(subject);
    w->late.fire = on_late;
    w->done = done;
    w->owner = owner;
    idmap_put(&e->wishes, w->id, w);
    return w;
}

void nats_wish_jetstream(struct nats_client *e, nats_wish_fn *done, void *owner)
{
    ask(wish(e, CHECK, NULL, done, owner));
}

struct nats_wish *nats_wish_stream(struct nats_client *e, const char *subject, const char *group,
                                   bool ephemeral, nats_wish_fn *done, void *owner)
{
    struct nats_wish *w = wish(e, FIND, subject, done, owner);

    w->group = mem_str(group);
    w->ephemeral = ephemeral;
    ask(w);
    return w;
}

void nats_wishes_drop(struct nats_client *e)
{
    size_t at = 0;
    uint64_t id;
    void *w;

    while (idmap_next(&e->wishes, &at, &id, &w)) {
        nats_wish_drop(w);
        at = 0; /* the map has changed */
    }
}
