/* Finds or creates JetStream streams and consumers, with blocking requests to the server. Called by
 * nats_link.c and nats_connect.c, on the link's thread. */
#include "bus/nats_stream.h"

#include "bus/nats_words.h"
#include "wire/json.h"

#define SECONDS(n) ((int64_t)(n)*1000000000)

enum {
    ASK_MS = 5000,
    STREAM_BYTES = 256 * 1024 * 1024,
    DEAD_MESSAGES = 10000,
    DAY_S = 24 * 3600,
    IDLE_S = 300, /* an ephemeral consumer that nobody asks goes away */
};

static natsStatus say_why(natsStatus s, jsErrCode code, struct buf *out, const char *what)
{
    const char *detail = nats_GetLastError(NULL);

    out->n = 0;
    buf_printf(out, "%s: %s", what, detail && detail[0] ? detail : natsStatus_GetText(s));
    if (code)
        buf_printf(out, " (%d)", (int)code);
    return s;
}

/* The first stream that takes this subject, whoever made it. */
static natsStatus find_stream(natsConnection *connection, const char *subject, struct buf *name)
{
    natsMsg *answer = NULL;
    struct buf ask = {0};

    buf_str(&ask, "{\"subject\":");
    json_quote(&ask, span_str(subject));
    buf_char(&ask, '}');
    natsStatus s = natsConnection_RequestString(&answer, connection, "$JS.API.STREAM.NAMES",
                                                buf_cstr(&ask), ASK_MS);
    buf_fini(&ask);
    if (s != NATS_OK)
        return s;
    struct span text = span_of(natsMsg_GetData(answer), (size_t)natsMsg_GetDataLength(answer));
    s = NATS_NOT_FOUND;
    if (json_skim(text, NULL, NULL, NULL, NULL) == 0) {
        struct json_iter it = json_iter(json_get(text, "streams").value);
        if (json_next(&it) && it.type == JSON_STRING) {
            name->n = 0;
            json_unescape(name, it.value);
            s = NATS_OK;
        }
    }
    natsMsg_Destroy(answer);
    return s;
}

static natsStatus make_stream(const struct nats_stream_wish *w, struct span root, struct buf *out)
{
    BUF_SCOPED name = {0}, below = {0}, itself = {0};
    jsStreamConfig config;
    jsErrCode code = 0;
    /* The segment in front of dead letters' topics. */
    bool dead = root.n >= 3 && span_is(span_from(root, root.n - 3), "dlq");

    nats_put_stream_name(&name, root);
    buf_span(&itself, root);
    buf_printf(&below, SPAN_FMT ".>", SPAN_ARG(root));
    const char *subjects[] = {buf_cstr(&below), buf_cstr(&itself)};
    jsStreamConfig_Init(&config);
    config.Name = buf_cstr(&name);
    config.Subjects = subjects;
    config.SubjectsLen = 2;
    config.MaxBytes = STREAM_BYTES;
    /* Not by interest: nats-server 2.9 forgets on a restart what one of several consumers has
     * not acknowledged yet. */
    config.Retention = js_LimitsPolicy;
    config.Discard = js_DiscardOld;
    config.MaxAge = SECONDS(dead ? 3 * DAY_S : DAY_S);
    if (dead)
        config.MaxMsgs = DEAD_MESSAGES;
    natsStatus s = js_AddStream(NULL, w->js, &config, NULL, &code);
    if (s == NATS_OK) {
        out->n = 0;
        buf_span(out, buf_view(&name));
    } else {
        say_why(s, code, out, "cannot make a stream");
    }
    return s;
}

natsStatus nats_stream_ensure(const struct nats_stream_wish *w, struct buf *out)
{
    struct span root = nats_root(w->prefix, w->subject);
    BUF_SCOPED subject = {0};

    buf_span(&subject, w->subject);
    natsStatus s = find_stream(w->connection, buf_cstr(&subject), out);
    if (s == NATS_NOT_FOUND)
        s = make_stream(w, root, out);
    else if (s != NATS_OK)
        say_why(s, 0, out, "cannot ask for streams");
    return s;
}

natsStatus nats_consumer_ensure(jsCtx *js, const char *stream, const char *group,
                                const char *subject, bool ephemeral, struct buf *out)
{
    jsConsumerConfig config;
    jsErrCode code = 0;
    BUF_SCOPED name = {0};

    nats_put_consumer_name(&name, group, subject);
    jsConsumerConfig_Init(&config);
    config.Durable = buf_cstr(&name);
    config.FilterSubject = subject;
    config.DeliverPolicy = js_DeliverNew;
    config.AckPolicy = js_AckExplicit;
    config.AckWait = (int64_t)NATS_ACK_WAIT_MS * 1000000;
    /* Each subscriber asks for no more than its prefetch: a limit for all of them together would
     * keep a second worker from helping the first. */
    config.MaxAckPending = -1;
    if (ephemeral)
        config.InactiveThreshold = SECONDS(IDLE_S);
    natsStatus s = js_AddConsumer(NULL, js, stream, &config, NULL, &code);
    if (s == NATS_OK) {
        out->n = 0;
        buf_span(out, buf_view(&name));
    } else {
        say_why(s, code, out, "cannot make a consumer");
    }
    return s;
}

natsStatus nats_stream_check(jsCtx *js, struct buf *why)
{
    jsAccountInfo *info = NULL;
    jsErrCode code = 0;
    natsStatus s = js_GetAccountInfo(&info, js, NULL, &code);

    jsAccountInfo_Destroy(info);
    if (s != NATS_OK)
        say_why(s, code, why,
                "no JetStream here (start nats-server with -js, or leave `jetstream` out)");
    return s;
}
