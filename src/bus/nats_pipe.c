/* The NATS connection on the loop's side: reading and writing the socket, publishing, and finding
 * out whether messages have arrived. Called by nats.c and nats_sub.c. */
#include "base/log.h"
#include "bus/nats_engine.h"
#include "wire/json.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    QUEUE_MESSAGES = 64 * 1024, /* of one subscription; beyond them NATS drops, and says so */
    QUEUE_BYTES = 64 * 1024 * 1024,
    BUFFERED_BYTES = 1024 * 1024, /* in libnats' hands, which moves them all after each write */
    FRESH_MS = 10000,             /* after a reconnect: others may be still on their way */
    AGAIN_MS = 250,
    STREAM_AGAIN_MS = 3000, /* when their consumers have come back, who wait for 2 s */
    ASK_MS = 1,      /* how long we wait for company before we ask whether messages have arrived */
    SILENT_ASK = 2,  /* ticks without a word until we ask whether anybody is there */
    SILENT_DEAD = 4, /* and until nobody is */
};

/*
 * Plain NATS confirms nothing. But the server handles what we send in order: when a message that we
 * send to ourselves comes back, all before it has arrived. Unless there was another socket between:
 * then who knows.
 */
struct nats_unsure {
    struct list node;
    uint64_t place;  /* among all that was sent */
    uint64_t socket; /* which of them it left by */
    uint64_t number; /* of a publication, or 0 */
    uint64_t leg;    /* a subscription, or 0 */
    natsMsg *msg;    /* kept while the connection is fresh: to be sent again if nobody heard it */
};

/* A stream that must be there before the first message is published to it. */
struct nats_root {
    uint64_t id;
    bool ready;
    struct list letters;
};

struct letter {
    struct list node;
    uint64_t number;
    natsMsg *msg;
};

/* --- the socket --- */

bool nats_pipe_is_live(const struct nats_client *e)
{
    return e->pipe.connection && nats_link_is_live(e->link);
}

static void on_ready(void *owner, bool readable, bool writable)
{
    struct nats_client *e = owner;

    (void)writable; /* is what the work at the end of the turn looks after */
    if (!nats_pipe_is_live(e)) {
        poll_close(e->pipe.poll);
        e->pipe.poll = NULL;
        return;
    }
    if (readable) {
        e->pipe.heard = true;
        natsConnection_ProcessReadEvent(e->pipe.connection);
    }
    nats_work_later(e);
}

void nats_pipe_attach(struct nats_client *e, struct nats_news *n)
{
    struct nats_pipe *p = &e->pipe;

    if (p->poll)
        poll_close(p->poll);
    p->connection = n->connection;
    p->poll = poll_new(e->loop, n->fd, on_ready, e);
    n->fd = -1;
    nats_work_later(e);
}

void nats_pipe_let_go(struct nats_client *e)
{
    struct nats_pipe *p = &e->pipe;

    nats_pipe_write(e);
    if (p->poll)
        poll_close(p->poll);
    p->poll = NULL;
    p->connection = NULL;
}

void nats_pipe_tick(struct nats_client *e)
{
    struct nats_pipe *p = &e->pipe;

    p->n_silent = p->heard ? 0 : p->n_silent + 1;
    p->heard = false;
    if (p->n_silent == SILENT_ASK)
        nats_pipe_make_sure(e, 0);
    if (p->n_silent >= SILENT_DEAD && p->poll)
        poll_hang_up(p->poll);
}

/* --- sending --- */

/*
 * When a server was away everybody comes back, one after the other; and plain NATS drops what is
 * published before the first subscriber is there. So for a while after a reconnect each message
 * asks to be told if there was none, and is sent again then.
 */
bool nats_pipe_is_fresh(const struct nats_client *e)
{
    return !e->options->jetstream && loop_now(e->loop) < e->pipe.fresh_until;
}

/* As a rule one question at a time: the next one is about all that was sent meanwhile. */
static void ask_soon(struct nats_client *e)
{
    struct nats_pipe *p = &e->pipe;

    if (!p->asking && p->last_unsure > p->asked_upto && !timer_is_set(&p->ask))
        timer_set(loop_timers(e->loop), &p->ask, ASK_MS);
}

static void ask_now(struct nats_client *e)
{
    struct nats_pipe *p = &e->pipe;
    struct buf subject = {0};

    if (!nats_pipe_is_live(e) || !p->answers)
        return;
    buf_printf(&subject, "%s.e.%" PRIu64 ".%" PRIu64, e->inbox, nats_link_sockets(e->link),
               p->last_unsure);
    natsConnection_Publish(p->connection, buf_cstr(&subject), "", 0);
    p->asked_upto = p->last_unsure;
    p->asking = true;
    buf_fini(&subject);
    nats_work_later(e);
}

static void on_ask(struct timer *t)
{
    ask_now(CONTAINER_OF(t, struct nats_client, pipe.ask));
}

static void unsure_add(struct nats_client *e, uint64_t number, uint64_t leg, natsMsg *msg)
{
    struct nats_unsure *u = MEM_NEW(struct nats_unsure);

    u->place = ++e->pipe.last_unsure;
    u->socket = nats_link_sockets(e->link);
    u->number = number;
    u->leg = leg;
    u->msg = msg;
    list_append(&e->pipe.unsure, &u->node);
    if (msg)
        ask_now(e);
    else
        ask_soon(e);
}

void nats_pipe_make_sure(struct nats_client *e, uint64_t leg)
{
    unsure_add(e, 0, leg, NULL);
}

static void keep_letter(struct list *where, uint64_t number, natsMsg *msg)
{
    struct letter *l = MEM_NEW(struct letter);

    l->number = number;
    l->msg = msg;
    list_append(where, &l->node);
}

/* The first of them; the caller has the message then. */
static bool take_letter(struct list *where, uint64_t *number, natsMsg **msg)
{
    struct letter *l = LIST_FIRST(where, struct letter, node);

    if (!l)
        return false;
    *number = l->number;
    *msg = l->msg;
    list_remove(&l->node);
    mem_free(l);
    return true;
}

static void free_letters(struct list *where)
{
    uint64_t number;
    natsMsg *msg;

    while (take_letter(where, &number, &msg))
        natsMsg_Destroy(msg);
}

static void publish_now(struct nats_client *e, uint64_t number, natsMsg *msg)
{
    natsStatus s = NATS_CONNECTION_DISCONNECTED;

    if (nats_pipe_is_live(e))
        s = natsConnection_PublishMsg(e->pipe.connection, msg);
    if (s == NATS_OK && number && !e->options->jetstream) {
        bool keep = nats_pipe_is_fresh(e);
        unsure_add(e, number, 0, keep ? msg : NULL);
        msg = keep ? NULL : msg;
    }
    natsMsg_Destroy(msg);
    if (s == NATS_MAX_PAYLOAD && number)
        engine_sent(e->bus, number, BUS_TOO_LARGE);
    /* All else is a connection that is lost, and that we shall hear. */
}

static bool has_room(struct nats_client *e)
{
    return !nats_link_wants_write(e->link) ||
           natsConnection_Buffered(e->pipe.connection) < BUFFERED_BYTES;
}

static void send_now(struct nats_client *e, uint64_t number, natsMsg *msg)
{
    if (nats_pipe_is_live(e) && (!list_empty(&e->pipe.backlog) || !has_room(e)))
        keep_letter(&e->pipe.backlog, number, msg);
    else
        publish_now(e, number, msg);
    nats_work_later(e);
}

static void send_backlog(struct nats_client *e)
{
    uint64_t number;
    natsMsg *msg;

    while (nats_pipe_is_live(e) && has_room(e) && take_letter(&e->pipe.backlog, &number, &msg))
        publish_now(e, number, msg);
}

void nats_pipe_say(struct nats_client *e, const char *subject, const char *reply, const char *words)
{
    if (!nats_pipe_is_live(e))
        return;
    if (reply)
        natsConnection_PublishRequestString(e->pipe.connection, subject, reply, words);
    else
        natsConnection_PublishString(e->pipe.connection, subject, words);
    nats_work_later(e);
}

static void root_free(struct nats_root *r)
{
    free_letters(&r->letters);
    mem_free(r);
}

/* To a stream, which may have to be made first. */
static void store(struct nats_client *e, uint64_t number, natsMsg *msg)
{
    const char *subject = natsMsg_GetSubject(msg);
    struct span root = nats_root(e->options->prefix, span_str(subject));
    struct nats_root *r = map_get(&e->pipe.roots, root);
    if (!r) {
        r = MEM_NEW(struct nats_root);
        r->id = ++e->last_id;
        list_init(&r->letters);
        map_put(&e->pipe.roots, root, r);
        nats_link_find_stream(e->link, r->id, subject);
    }
    if (r->ready)
        send_now(e, number, msg);
    else
        keep_letter(&r->letters, number, msg);
}

void nats_pipe_publish(struct nats_client *e, uint64_t number, natsMsg *msg)
{
    if (!e->options->jetstream)
        send_now(e, number, msg);
    else if (e->pipe.holds)
        keep_letter(&e->pipe.held, number, msg);
    else
        store(e, number, msg);
}

void nats_pipe_hold(struct nats_client *e)
{
    e->pipe.holds++;
}

void nats_pipe_release(struct nats_client *e)
{
    uint64_t number;
    natsMsg *msg;

    e->pipe.holds--;
    /* When the connection is lost they are sent anew with the next. */
    while (!e->pipe.holds && e->up && take_letter(&e->pipe.held, &number, &msg))
        store(e, number, msg);
}

static struct nats_root *find_root(struct nats_client *e, uint64_t id, struct span *key)
{
    size_t at = 0;
    void *value;

    while (map_next(&e->pipe.roots, &at, key, &value))
        if (((struct nats_root *)value)->id == id)
            return value;
    return NULL;
}

void nats_pipe_stream(struct nats_client *e, struct nats_news *n)
{
    struct span key;
    struct nats_root *r = find_root(e, n->id, &key);
    uint64_t number;
    natsMsg *msg;

    if (!r)
        return;
    if (n->ok) {
        r->ready = true;
        while (take_letter(&r->letters, &number, &msg))
            send_now(e, number, msg);
        return;
    }
    /* The next message tries again. */
    log_warn("nats", SPAN_FMT ": %s", SPAN_ARG(key), n->text);
    map_del(&e->pipe.roots, key);
    while (take_letter(&r->letters, &number, &msg)) {
        natsMsg_Destroy(msg);
        if (number)
            engine_sent(e->bus, number, BUS_FULL);
    }
    root_free(r);
}

void nats_pipe_write(struct nats_client *e)
{
    struct nats_pipe *p = &e->pipe;

    send_backlog(e);
    if (nats_pipe_is_live(e) && nats_link_wants_write(e->link))
        natsConnection_ProcessWriteEvent(p->connection);
    if (p->poll)
        poll_want_write(p->poll, nats_pipe_is_live(e) && nats_link_wants_write(e->link));
}

/* --- what has arrived --- */

/* NATS_TIMEOUT when there is none. */
static natsStatus next_message(natsSubscription *sub, natsMsg **msg)
{
    int messages = 0, bytes = 0;

    if (!sub || natsSubscription_GetPending(sub, &messages, &bytes) != NATS_OK || !messages)
        return NATS_TIMEOUT;
    natsStatus s = natsSubscription_NextMsg(msg, sub, 0);
    return s == NATS_OK || s == NATS_NO_RESPONDERS ? s : NATS_TIMEOUT;
}

natsMsg *nats_next(natsSubscription *sub)
{
    natsMsg *msg = NULL;

    return next_message(sub, &msg) == NATS_OK ? msg : NULL;
}

/* The next message for each stream sees to it that it is there. */
static void forget_streams(struct nats_client *e)
{
    size_t at = 0;
    struct span key;
    void *root;

    while (map_next(&e->pipe.roots, &at, &key, &root)) {
        if (!((struct nats_root *)root)->ready)
            continue;
        map_del(&e->pipe.roots, key);
        root_free(root);
        at = 0; /* the map has changed */
    }
}

/* Somebody deleted a stream: what was published to it is stored nowhere. */
static void on_homeless(struct nats_client *e)
{
    if (timer_is_set(&e->pipe.again))
        return;
    log_warn("nats", "a stream is gone: what is not stored yet is published once more");
    timer_set(loop_timers(e->loop), &e->pipe.again, STREAM_AGAIN_MS);
}

static void on_again(struct timer *t)
{
    struct nats_client *e = CONTAINER_OF(t, struct nats_client, pipe.again);
    uint64_t number;
    natsMsg *msg;

    if (e->options->jetstream) {
        forget_streams(e);
        engine_again(e->bus);
        return;
    }
    while (take_letter(&e->pipe.unheard, &number, &msg))
        send_now(e, number, msg);
}

static void is_sure(struct nats_client *e, struct nats_unsure *u, bool unheard)
{
    if (u->leg)
        nats_leg_is_sure(e, u->leg);
    if (u->msg && unheard && nats_pipe_is_fresh(e)) {
        keep_letter(&e->pipe.unheard, u->number, u->msg);
        u->msg = NULL;
        if (!timer_is_set(&e->pipe.again))
            timer_set(loop_timers(e->loop), &e->pipe.again, AGAIN_MS);
    } else if (u->number) {
        engine_sent(e->bus, u->number, BUS_SENT);
    }
}

static void unsure_free(struct nats_unsure *u)
{
    natsMsg_Destroy(u->msg);
    mem_free(u);
}

/* "SOCKET.PLACE" */
static void on_arrived(struct nats_client *e, const char *text)
{
    struct nats_pipe *p = &e->pipe;
    struct nats_unsure *u;
    char *end = NULL;
    uint64_t socket = strtoull(text, &end, 10);
    uint64_t place = *end == '.' ? strtoull(end + 1, NULL, 10) : 0;

    bool nobody = p->nobody;

    p->nobody = false;
    if (socket != nats_link_sockets(e->link))
        return;
    p->asking = place < p->asked_upto;
    while ((u = LIST_FIRST(&p->unsure, struct nats_unsure, node)) && u->place <= place) {
        list_remove(&u->node);
        if (u->socket == socket)
            is_sure(e, u, nobody && u->place == place);
        unsure_free(u);
    }
    ask_soon(e);
}

/* {"stream":…,"seq":…}, or {"error":…} from a stream that is full. */
static void on_stored(struct nats_client *e, const char *number, struct span text)
{
    bool ok = json_skim(text, NULL, NULL, NULL, NULL) == 0 &&
              json_get(text, "error").type == JSON_NONE &&
              json_get(text, "seq").type == JSON_NUMBER;

    if (!ok)
        log_warn("nats", "a message was not stored: " SPAN_FMT, SPAN_ARG(span_cut(text, 0, 300)));
    engine_sent(e->bus, strtoull(number, NULL, 10), ok ? BUS_SENT : BUS_FULL);
}

/*
 * libnats makes an error of the server's word that nobody heard a message, without saying which.
 * The answer to the question that was asked behind that very message comes next, and it does say.
 */
void nats_pipe_read_answers(struct nats_client *e)
{
    natsMsg *msg;
    natsStatus s;

    while ((s = next_message(e->pipe.answers, &msg)) != NATS_TIMEOUT) {
        if (s != NATS_OK) {
            e->pipe.nobody = true;
            if (e->options->jetstream)
                on_homeless(e);
            continue;
        }
        const char *what = natsMsg_GetSubject(msg) + strlen(e->inbox);
        if (strncmp(what, ".e.", 3) == 0)
            on_arrived(e, what + 3);
        else if (strncmp(what, ".p.", 3) == 0)
            on_stored(e, what + 3,
                      span_of(natsMsg_GetData(msg), (size_t)natsMsg_GetDataLength(msg)));
        natsMsg_Destroy(msg);
    }
}

/* --- life --- */

natsSubscription *nats_pipe_subscribe(struct nats_client *e, const char *subject, const char *group)
{
    natsSubscription *sub = NULL;
    natsStatus s = NATS_CONNECTION_DISCONNECTED;

    if (nats_pipe_is_live(e))
        s = group ? natsConnection_QueueSubscribeSync(&sub, e->pipe.connection, subject, group)
                  : natsConnection_SubscribeSync(&sub, e->pipe.connection, subject);
    if (s == NATS_OK)
        natsSubscription_SetPendingLimits(sub, QUEUE_MESSAGES, QUEUE_BYTES);
    else if (nats_pipe_is_live(e))
        log_warn("nats", "cannot subscribe to %s: %s", subject, natsStatus_GetText(s));
    nats_work_later(e);
    return sub;
}

void nats_pipe_init(struct nats_client *e)
{
    list_init(&e->pipe.unsure);
    list_init(&e->pipe.backlog);
    list_init(&e->pipe.held);
    list_init(&e->pipe.unheard);
    e->pipe.again.fire = on_again;
    e->pipe.ask.fire = on_ask;
}

bool nats_pipe_open(struct nats_client *e)
{
    struct buf subject = {0};

    buf_printf(&subject, "%s.>", e->inbox);
    e->pipe.answers = nats_pipe_subscribe(e, buf_cstr(&subject), NULL);
    buf_fini(&subject);
    e->pipe.heard = true;
    e->pipe.n_silent = 0;
    if (e->pipe.opened)
        e->pipe.fresh_until = loop_now(e->loop) + FRESH_MS;
    e->pipe.opened = true;
    return e->pipe.answers != NULL;
}

void nats_pipe_drop(struct nats_client *e)
{
    struct nats_pipe *p = &e->pipe;
    struct nats_unsure *u;
    size_t at = 0;
    struct span key;
    void *root;

    if (p->answers)
        nats_link_drop(e->link, p->answers);
    p->answers = NULL;
    while ((u = LIST_FIRST(&p->unsure, struct nats_unsure, node))) {
        list_remove(&u->node);
        unsure_free(u);
    }
    p->asked_upto = p->last_unsure;
    p->asking = false;
    free_letters(&p->backlog);
    free_letters(&p->held);
    free_letters(&p->unheard);
    timer_clear(loop_timers(e->loop), &p->again);
    timer_clear(loop_timers(e->loop), &p->ask);
    while (map_next(&p->roots, &at, &key, &root))
        root_free(root);
    map_fini(&p->roots);
    p->roots = (struct map){0};
}

void nats_pipe_fini(struct nats_client *e)
{
    nats_pipe_drop(e);
}
