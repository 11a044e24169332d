/* JetStream's streams and consumers: found, or made as the bus needs them, by requests to the
 * server. Called by nats_link.c to see that there is a JetStream, by nats.c for what is published
 * and by nats_sub.c for subscriptions.
 *
 * Topics with the same first segment share a stream, which keeps messages for a day and dead
 * letters for three. A stream that is there already and takes the subject is used as it is. */
#include "bus/nats_inside.h"

#include "wire/json.h"
#include "wire/json_out.h"

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

struct nats_request {
    struct nats_client *engine;
    uint64_t id;
    enum step step;
    char *subject, *group; /* group: NULL = only the stream is wanted */
    bool ephemeral;
    char *stream; /* once it is known */
    struct timer late;
    nats_request_fn *done;
    void *owner;
};

/* --- requests: a subject and a body each --- */

static void put_check(const struct nats_request *r, struct buf *subject, struct buf *body)
{
    (void)r;
    (void)body;
    buf_str(subject, "INFO");
}

static void put_find(const struct nats_request *r, struct buf *subject, struct buf *body)
{
    buf_str(subject, "STREAM.NAMES");
    buf_char(body, '{');
    json_out_str(body, "subject", r->subject);
    buf_char(body, '}');
}

/* Retention is not "interest": on a restart nats-server 2.9 forgets messages that one of several
 * consumers has not acknowledged yet. */
static void put_make(const struct nats_request *r, struct buf *subject, struct buf *body)
{
    struct span root = nats_root(r->engine->options->prefix, span_str(r->subject));
    /* Topics of dead letters begin with "dlq". */
    bool dead = root.n >= 3 && span_is(span_from(root, root.n - 3), "dlq");
    BUF_SCOPED name = {0}, below = {0};

    nats_put_stream_name(&name, root);
    buf_printf(&below, SPAN_FMT ".>", SPAN_ARG(root));
    buf_printf(subject, "STREAM.CREATE.%s", buf_cstr(&name));
    buf_char(body, '{');
    json_out_text(body, "name", buf_view(&name));
    json_out_open(body, "subjects", '[');
    json_out_text(body, NULL, buf_view(&below));
    json_out_text(body, NULL, root);
    buf_printf(body,
               "],\"retention\":\"limits\",\"discard\":\"old\",\"storage\":\"file\","
               "\"num_replicas\":1,\"max_consumers\":-1,\"max_msg_size\":-1,\"max_msgs\":%d,"
               "\"max_bytes\":%d,\"max_age\":%" PRIu64 "}",
               dead ? DEAD_MESSAGES : -1, STREAM_BYTES, SECONDS(dead ? 3 * DAY_S : DAY_S));
}

/* No limit for unacknowledged messages: each subscriber asks for no more than its prefetch, and a
 * limit for all of them together would keep a second worker from helping the first. */
static void put_consumer(const struct nats_request *r, struct buf *subject, struct buf *body)
{
    BUF_SCOPED name = {0};

    nats_put_consumer_name(&name, r->group, r->subject);
    buf_printf(subject, "CONSUMER.DURABLE.CREATE.%s.%s", r->stream, buf_cstr(&name));
    buf_char(body, '{');
    json_out_str(body, "stream_name", r->stream);
    json_out_open(body, "config", '{');
    json_out_text(body, "durable_name", buf_view(&name));
    json_out_str(body, "deliver_policy", "new");
    json_out_str(body, "ack_policy", "explicit");
    json_out_str(body, "replay_policy", "instant");
    json_out_number(body, "ack_wait", SECONDS(ACK_WAIT_S));
    json_out_raw(body, "max_ack_pending", SPAN("-1"));
    if (r->ephemeral)
        json_out_number(body, "inactive_threshold", SECONDS(IDLE_S));
    json_out_str(body, "filter_subject", r->subject);
    buf_str(body, "}}");
}

static const struct {
    void (*put)(const struct nats_request *r, struct buf *subject, struct buf *body);
    const char *failed;
} steps[] = {
    [CHECK] = {put_check,
               "no JetStream here (start nats-server with -js, or leave `jetstream` out)"},
    [FIND] = {put_find, "cannot ask for streams"},
    [MAKE] = {put_make, "cannot make a stream"},
    [CONSUMER] = {put_consumer, "cannot make a consumer"},
};

/* --- one request --- */

static void ask(struct nats_request *r)
{
    struct nats_client *e = r->engine;
    BUF_SCOPED subject = {0}, body = {0}, reply = {0};

    buf_str(&subject, "$JS.API.");
    steps[r->step].put(r, &subject, &body);
    buf_printf(&reply, "%s.a.%" PRIu64, e->inbox, r->id);
    timer_set(loop_timers(e->loop), &r->late, ASK_MS);
    nats_link_say(e, buf_view(&subject), buf_view(&reply), buf_cstr(&body));
}

void nats_request_drop(struct nats_request *r)
{
    timer_clear(loop_timers(r->engine->loop), &r->late);
    idmap_take(&r->engine->requests, r->id);
    mem_free(r->subject);
    mem_free(r->group);
    mem_free(r->stream);
    mem_free(r);
}

static void end(struct nats_request *r, bool granted, struct buf *text)
{
    struct nats_client *e = r->engine;
    nats_request_fn *done = r->done;
    void *owner = r->owner;

    nats_request_drop(r);
    done(e, owner, granted, buf_cstr(text));
}

static void fail(struct nats_request *r, const char *why)
{
    BUF_SCOPED text = {0};

    buf_printf(&text, "%s: %s", steps[r->step].failed, why);
    end(r, false, &text);
}

static void on_late(struct timer *t)
{
    fail(CONTAINER_OF(t, struct nats_request, late), "no answer within 5 s");
}

/* {"code":…,"err_code":…,"description":…} */
static void refused(struct nats_request *r, struct span error)
{
    BUF_SCOPED why = {0}, scratch = {0};
    struct json_slot code = json_get(error, "err_code"), text = json_get(error, "description");

    buf_span(&why, text.type == JSON_STRING ? json_text(text.value, &scratch) : SPAN("refused"));
    if (code.type == JSON_NUMBER)
        buf_printf(&why, " (" SPAN_FMT ")", SPAN_ARG(code.value));
    fail(r, buf_cstr(&why));
}

static void grant(struct nats_request *r)
{
    BUF_SCOPED text = {0};

    if (r->step == CONSUMER) {
        buf_printf(&text, "$JS.API.CONSUMER.MSG.NEXT.%s.", r->stream);
        nats_put_consumer_name(&text, r->group, r->subject);
    } else if (r->stream) {
        buf_str(&text, r->stream);
    }
    end(r, true, &text);
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

static void go_on(struct nats_request *r, struct span answer)
{
    BUF_SCOPED ours = {0};

    if (r->step == FIND) {
        r->stream = first_stream(answer);
    } else if (r->step == MAKE) {
        nats_put_stream_name(&ours, nats_root(r->engine->options->prefix, span_str(r->subject)));
        r->stream = buf_take(&ours);
    }
    if (r->step == FIND && !r->stream)
        r->step = MAKE;
    else if (r->group && r->step != CONSUMER)
        r->step = CONSUMER;
    else {
        grant(r);
        return;
    }
    ask(r);
}

void nats_request_answer(struct nats_client *e, uint64_t id, const struct nats_op *op)
{
    struct nats_request *r = idmap_get(&e->requests, id);
    enum json_type type = JSON_NONE;

    if (!r)
        return;
    if (nats_headers_status(op->headers)) {
        fail(r, "nobody answers such requests");
    } else if (json_skim(op->payload, NULL, NULL, &type, NULL) < 0 || type != JSON_OBJECT) {
        fail(r, "the answer cannot be read");
    } else {
        struct json_slot error = json_get(op->payload, "error");
        if (error.type == JSON_OBJECT)
            refused(r, error.value);
        else
            go_on(r, op->payload);
    }
}

/* --- asking --- */

static struct nats_request *begin(struct nats_client *e, enum step first, const char *subject,
                                  nats_request_fn *done, void *owner)
{
    struct nats_request *r = MEM_NEW(struct nats_request);

    r->engine = e;
    r->id = ++e->last_id;
    r->step = first;
    r->subject = mem_str(subject);
    r->late.fire = on_late;
    r->done = done;
    r->owner = owner;
    idmap_put(&e->requests, r->id, r);
    return r;
}

void nats_request_jetstream(struct nats_client *e, nats_request_fn *done, void *owner)
{
    ask(begin(e, CHECK, NULL, done, owner));
}

struct nats_request *nats_request_stream(struct nats_client *e, const char *subject,
                                         const char *group, bool ephemeral, nats_request_fn *done,
                                         void *owner)
{
    struct nats_request *r = begin(e, FIND, subject, done, owner);

    r->group = mem_str(group);
    r->ephemeral = ephemeral;
    ask(r);
    return r;
}

void nats_requests_drop(struct nats_client *e)
{
    size_t at = 0;
    uint64_t id;
    void *r;

    while (idmap_next(&e->requests, &at, &id, &r)) {
        nats_request_drop(r);
        at = 0; /* the map has changed */
    }
}
