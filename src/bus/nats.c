/* The NATS engine's operations (open, connect, publish, close) and the handlers for news from the
 * link's thread. Called by bus.c through nats_engine, for nats:// and tls:// URLs. */
#include "base/log.h"
#include "bus/engine.h"
#include "bus/nats_engine.h"
#include "bus/nats_message.h"

#include <inttypes.h>
#include <unistd.h>

enum {
    USUAL_PAYLOAD = 1024 * 1024, /* a server's limit where nobody changed it */
    HEADER_ROOM = 8 * 1024,      /* headers count as payload */
};

/* --- the end of a turn --- */

static void on_work(struct deferred *d)
{
    struct nats_client *e = CONTAINER_OF(d, struct nats_client, work);

    nats_pipe_read_answers(e);
    if (nats_subs_work(e))
        nats_work_later(e);
    nats_pipe_write(e);
}

void nats_work_later(struct nats_client *e)
{
    loop_defer(e->loop, &e->work, on_work);
}

static void on_tick(struct timer *t)
{
    struct nats_client *e = CONTAINER_OF(t, struct nats_client, tick);

    nats_pipe_tick(e);
    nats_subs_tick(e);
    nats_work_later(e);
    timer_set(loop_timers(e->loop), &e->tick, NATS_TICK_MS);
}

/* --- news of the link --- */

static void lose(struct nats_client *e, const char *why, bool comes_back)
{
    e->up = false;
    timer_clear(loop_timers(e->loop), &e->tick);
    nats_subs_drop(e);
    nats_pipe_drop(e);
    engine_lost(e->bus, why, comes_back);
}

static void on_up(struct nats_client *e, struct nats_news *n)
{
    if (e->up) /* it was lost before we had heard that it was made */
        lose(e, "the connection was made anew", true);
    e->max_payload = n->max_payload;
    if (!nats_pipe_open(e))
        return; /* it is lost again already, and that is the next we hear */
    e->up = true;
    timer_set(loop_timers(e->loop), &e->tick, NATS_TICK_MS);
    engine_up(e->bus);
}

static void on_down(struct nats_client *e, struct nats_news *n)
{
    if (e->up)
        lose(e, n->text, true);
}

static void on_lost(struct nats_client *e, struct nats_news *n)
{
    lose(e, n->text, false);
}

static void on_note(struct nats_client *e, struct nats_news *n)
{
    (void)e;
    log_warn("nats", "%s", n->text);
}

static void on_poked(struct nats_client *e, struct nats_news *n)
{
    (void)n;
    nats_work_later(e);
}

static void on_leaving(struct nats_client *e, struct nats_news *n)
{
    (void)n;
    nats_pipe_let_go(e);
    nats_link_let_go(e->link);
}

static void on_gone(struct nats_client *e, struct nats_news *n)
{
    struct bus *b = e->bus;

    (void)n;
    nats_link_join(e->link);
    mailbox_close(e->box);
    loop_undefer(&e->work);
    nats_subs_fini(e);
    nats_pipe_fini(e);
    nats_link_free(e->link);
    nats_address_fini(&e->address);
    mem_free(e);
    engine_closed(b);
}

static const struct {
    void (*hear)(struct nats_client *e, struct nats_news *n);
    bool always; /* also when we are closing */
} ears[] = {
    [NATS_ATTACHED] = {nats_pipe_attach, true},
    [NATS_POKED] = {on_poked, true},
    [NATS_LEAVING] = {on_leaving, true},
    [NATS_UP] = {on_up, false},
    [NATS_DOWN] = {on_down, false},
    [NATS_LOST] = {on_lost, false},
    [NATS_STREAM] = {nats_pipe_stream, false},
    [NATS_CONSUMER] = {nats_leg_consumer, false},
    [NATS_NOTE] = {on_note, false},
    [NATS_GONE] = {on_gone, true},
};

static void on_news(void *owner, struct mail *mail)
{
    struct nats_client *e = owner;
    struct nats_news *n = CONTAINER_OF(mail, struct nats_news, mail);

    if (!e->closing || ears[n->kind].always)
        ears[n->kind].hear(e, n);
    nats_news_free(n);
}

static void discard_news(void *owner, struct mail *mail)
{
    (void)owner;
    nats_news_free(CONTAINER_OF(mail, struct nats_news, mail));
}

static const struct mailbox_events mail_events = {.deliver = on_news, .discard = discard_news};

/* --- the engine --- */

static int check_options(struct nats_client *e, const struct bus_options *options, struct err *err)
{
    if (!nats_prefix_is_valid(options->prefix)) {
        err_set(err, ERR_CONFIG, "'%s' cannot stand in front of NATS subjects", options->prefix);
        err_hint(err, "a prefix is one or more words of letters, digits, - and _, parted by dots");
        return ERR_CONFIG;
    }
    int code = nats_address_parse(&e->address, options->url, err);
    if (code == 0 && options->ca && access(options->ca, R_OK) < 0) {
        code = err_set(err, ERR_CONFIG, "cannot read the certificates in %s", options->ca);
        nats_address_fini(&e->address);
    }
    return code;
}

static void *open_engine(struct bus *b, struct loop *loop, const struct bus_options *options,
                         struct err *err)
{
    struct nats_client *e = MEM_NEW(struct nats_client);
    char token[ID_TOKEN_SIZE];

    if (check_options(e, options, err) < 0) {
        mem_free(e);
        return NULL;
    }
    if (e->address.user)
        log_add_secret(span_str(e->address.password ? e->address.password : e->address.user));
    e->bus = b;
    e->loop = loop;
    e->options = options;
    e->tick.fire = on_tick;
    id_token(token);
    snprintf(e->inbox, sizeof e->inbox, "_INBOX.%s", token);
    e->link_options = (struct nats_link_options){
        .address = &e->address,
        .name = options->name,
        .prefix = options->prefix,
        .ca = options->ca,
        .jetstream = options->jetstream,
    };
    nats_pipe_init(e);
    nats_subs_init(e);
    e->box = mailbox_new(loop, &mail_events, e);
    e->link = nats_link_new(&e->link_options, e->box);
    return e;
}

static void connect_engine(void *engine)
{
    struct nats_client *e = engine;
    nats_link_connect(e->link);
}

/* The socket is served until the thread says that it is about to leave. */
static void close_engine(void *engine)
{
    struct nats_client *e = engine;
    e->closing = true;
    e->up = false;
    timer_clear(loop_timers(e->loop), &e->tick);
    nats_subs_drop(e);
    nats_pipe_drop(e);
    nats_pipe_write(e);
    nats_link_stop(e->link);
}

static void describe(const void *engine, struct buf *out)
{
    const struct nats_client *e = engine;
    buf_printf(out, "%s at " SPAN_FMT, e->options->jetstream ? "NATS JetStream" : "NATS",
               SPAN_ARG(buf_view(&e->address.label)));
}

static size_t max_body(const void *engine)
{
    const struct nats_client *e = engine;
    size_t payload = e->max_payload ? e->max_payload : USUAL_PAYLOAD;

    return payload > 2 * HEADER_ROOM ? payload - HEADER_ROOM : payload / 2;
}

static void publish(void *engine, uint64_t number, struct span topic, const struct message *m)
{
    struct nats_client *e = engine;
    BUF_SCOPED subject = {0}, reply = {0}, once = {0};
    bool jet = e->options->jetstream;

    /* On NATS that would be a pattern: nobody can wait at such a topic, as in bus_publish. */
    if (span_find(topic, '>') < topic.n) {
        log_warn("nats", "'" SPAN_FMT "' is no subject: a message to it was dropped",
                 SPAN_ARG(topic));
        engine_sent(e->bus, number, BUS_SENT);
        return;
    }
    nats_put_subject(&subject, e->options->prefix, topic);
    if (jet)
        buf_printf(&reply, "%s.p.%" PRIu64, e->inbox, number);
    else if (nats_pipe_is_fresh(e))
        buf_printf(&reply, "%s.n", e->inbox);
    /* After a lost connection it may be sent once more: the stream keeps one. */
    buf_printf(&once, SPAN_FMT "@" SPAN_FMT, SPAN_ARG(m->id), SPAN_ARG(topic));
    nats_pipe_publish(e, number,
                      nats_message_new(buf_cstr(&subject), reply.n ? buf_cstr(&reply) : NULL, m,
                                       jet ? buf_cstr(&once) : NULL));
}

static void settle(void *engine, struct engine_sub *sub, uint64_t tag, enum bus_verdict verdict)
{
    struct nats_client *e = engine;
    (void)sub;
    nats_sub_settle(e, tag, verdict);
}

const struct engine_ops nats_engine = {
    .name = "NATS",
    .open = open_engine,
    .connect = connect_engine,
    .close = close_engine,
    .describe = describe,
    .max_body = max_body,
    .subscribe = nats_sub_open,
    .unsubscribe = nats_sub_close,
    .publish = publish,
    .settle = settle,
};
