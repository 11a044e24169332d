/* One request of an agent: duplicates, time limit, waiting for the server, opening the call,
 * sending the reply. Called by worker_invoke.c, worker_manage.c, worker.c, handback.c and
 * enclosures.c, and by the core with the events of the call. */
#include "base/log.h"
#include "base/mem.h"
#include "bus/topic.h"
#include "rockbot/enclosures.h"

#include <stdarg.h>

/* Sending a reply is tried for longer than the call may take: the agent may wait longer than it
 * says, and the bus may be away for a moment. */
enum { MIN_WORTH_MS = 60 * 1000, SEND_AGAIN_MS = 500 };

static void on_timer(struct timer *t);

/* --- beginning --- */

static struct span reply_topic_of(struct job *j, const struct message *m)
{
    bool invoke = j->type == ROCKBOT_INVOKE;
    BUF_SCOPED topic = {0};
    struct span copy;

    if (m->reply_to.n && topic_is_valid(m->reply_to))
        return arena_span(&j->arena, m->reply_to);
    if (m->reply_to.n)
        log_warn("bus", "'" SPAN_FMT "' is not a topic to reply to: using the agent's own",
                 SPAN_ARG(m->reply_to));
    buf_str(&topic, invoke ? ROCKBOT_TOPIC_RESULT : ROCKBOT_TOPIC_MANAGED);
    buf_span(&topic, m->source);
    copy = arena_span(&j->arena, buf_view(&topic));
    return copy;
}

/* A message that was received before: it waits for the running job's reply, or gets the kept reply
 * again. */
static void come_again(struct bus_worker *w, struct recent_entry *e, const struct bus_delivery *d)
{
    struct job *running = e->work;

    w->counts.duplicates++;
    if (running && running->n_claims < JOB_MAX_CLAIMS) {
        running->claims[running->n_claims++] = (struct claim){d->sub, d->tag};
        return;
    }
    if (!running && e->reply) {
        struct message again;
        message_pack_read(e->reply, &again);
        again.id = SPAN_EMPTY;
        again.sent_ms = 0;
        bus_publish(w->bus, span_str(e->topic), &again, MIN_WORTH_MS, NULL, NULL);
    }
    bus_settle(d->sub, d->tag, BUS_ACK);
}

struct job *job_new(struct bus_worker *w, const struct bus_delivery *d, enum rockbot_record type)
{
    const struct message *m = d->message;
    struct recent_entry *before = m->id.n ? recent_find(&w->recent, m->source, m->id) : NULL;

    if (before) {
        come_again(w, before, d);
        return NULL;
    }
    struct job *j = MEM_NEW(struct job);
    j->worker = w;
    j->type = type;
    j->claims[j->n_claims++] = (struct claim){d->sub, d->tag};
    j->agent = arena_span(&j->arena, m->source);
    j->correlation = arena_span(&j->arena, m->correlation);
    j->reply_topic = reply_topic_of(j, m);
    trace_extract(&j->trace, m);
    trace_descend(&j->trace);
    j->began = loop_now(w->loop);
    j->timer.fire = on_timer;
    list_append(&w->jobs, &j->node);
    if (m->id.n)
        j->memory = recent_add(&w->recent, m->source, m->id, j);
    return j;
}

struct span job_text(struct job *j, const struct json_slot *slot)
{
    BUF_SCOPED scratch = {0};
    struct span copy = arena_span(&j->arena, rockbot_text(slot, &scratch));

    return copy;
}

void job_limit(struct job *j, uint64_t budget)
{
    j->budget = budget;
    timer_set(loop_timers(j->worker->loop), &j->timer, budget);
}

static void job_free(struct job *j)
{
    struct bus_worker *w = j->worker;

    enclosures_drop(j);
    list_remove(&j->node);
    if (w)
        timer_clear(loop_timers(w->loop), &j->timer);
    if (w && j->memory && j->memory->work == j)
        j->memory->work = NULL;
    buf_fini(&j->outgoing);
    buf_fini(&j->reply);
    arena_fini(&j->arena);
    mem_free(j);
    if (w)
        worker_job_ended(w);
}

/* --- the reply --- */

/* `source` holds the text that the message points to. */
static struct message reply_of(const struct job *j, struct buf *source)
{
    struct message m = {.type = span_str(rockbot_name(j->reply_type)),
                        .correlation = j->correlation,
                        .body = buf_view(&j->reply)};

    buf_str(source, ROCKBOT_BRIDGE);
    buf_span(source, j->agent);
    m.source = buf_view(source);
    (void)message_add_header(&m, ROCKBOT_TRUST, SPAN(ROCKBOT_TRUST_OUTPUT));
    (void)message_add_header(&m, ROCKBOT_PROVIDER, SPAN(ROCKBOT_PROVIDER_MCP));
    trace_inject(&j->trace, &m);
    return m;
}

/* Keeps the reply, acknowledges the deliveries, so that the next may come, and frees the job. */
static void settle(struct job *j)
{
    BUF_SCOPED source = {0};
    struct message m = reply_of(j, &source);

    if (j->memory)
        recent_finish(&j->worker->recent, j->memory, j->reply_topic, &m);
    j->memory = NULL;
    for (size_t i = 0; i < j->n_claims; i++)
        bus_settle(j->claims[i].sub, j->claims[i].tag, BUS_ACK);
    job_free(j);
}

static void give_up(struct job *j, enum bus_sent how)
{
    j->worker->counts.unsent++;
    log_warn("bus", "a reply of %zu bytes to '" SPAN_FMT "' was not sent: %s", j->reply.n,
             SPAN_ARG(j->reply_topic), bus_sent_name(how));
    settle(j);
}

static void fail_too_large(struct job *j)
{
    size_t size = j->reply.n;

    buf_reset(&j->reply, 0);
    job_fail(j, "execution_failed", false,
             "the result is too large for the bus: %zu bytes, and a message may have %zu. Ask for "
             "less: a part, a filter, a summary",
             size, bus_max_body(j->worker->bus));
}

static void on_sent(void *owner, enum bus_sent how)
{
    struct job *j = owner;
    struct bus_worker *w = j->worker;

    j->sending = false;
    if (!w || how == BUS_CLOSED) {
        job_free(j);
        return;
    }
    switch (how) {
    case BUS_SENT:
        w->counts.replies++;
        w->counts.errors += j->reply_type == ROCKBOT_ERROR;
        settle(j);
        break;
    case BUS_TOO_LARGE:
        if (j->is_error)
            give_up(j, how);
        else
            fail_too_large(j);
        break;
    case BUS_FULL:
        if (loop_now(w->loop) < j->send_until)
            timer_set(loop_timers(w->loop), &j->timer, SEND_AGAIN_MS);
        else
            give_up(j, how);
        break;
    case BUS_EXPIRED:
    case BUS_CLOSED:
        give_up(j, how);
        break;
    }
}

static void send(struct job *j)
{
    struct bus_worker *w = j->worker;
    uint64_t now = loop_now(w->loop);
    BUF_SCOPED source = {0};
    struct message m = reply_of(j, &source);

    j->sending = true;
    bus_publish(w->bus, j->reply_topic, &m, now < j->send_until ? j->send_until - now : 1, on_sent,
                j);
}

void job_reply(struct job *j, enum rockbot_record type, const struct span *values)
{
    struct bus_worker *w = j->worker;
    uint64_t worth = 2 * j->budget;

    timer_clear(loop_timers(w->loop), &j->timer);
    enclosures_drop(j);
    j->resume = NULL;
    j->reply_type = type;
    rockbot_put(&j->reply, type, values);
    j->send_until = loop_now(w->loop) + (worth > MIN_WORTH_MS ? worth : MIN_WORTH_MS);
    send(j);
}

void job_fail(struct job *j, const char *code, bool retryable, const char *fmt, ...)
{
    BUF_SCOPED raw = {0}, line = {0};
    va_list ap;

    va_start(ap, fmt);
    buf_vprintf(&raw, fmt, ap);
    va_end(ap);
    content_put_line(&line, buf_view(&raw));
    j->is_error = true;
    j->fail(j, code, retryable, buf_view(&line));
}

/* --- the call --- */

void job_open(struct job *j, struct view *v, const struct request *request)
{
    struct bus_worker *w = j->worker;

    /* After this process was stopped (SIGSTOP, sleep) the server's events come before our timers:
     * the budget may be used up already. */
    if (loop_now(w->loop) - j->began >= j->budget) {
        timer_clear(loop_timers(w->loop), &j->timer);
        on_timer(&j->timer);
        return;
    }
    struct call *call = call_open(w->host->router, &w->peer, v, request, j);
    if (call)
        j->call = call; /* NULL: the call has ended, and the job may be freed */
}

/* A call without a job waits for the answer to a question that was handed back (handback.c). */
static void on_event(struct peer *self, struct call *call, const struct event *event)
{
    if (!call->consumer_data && event->kind == EVENT_UNASKED)
        handback_withdrawn(CONTAINER_OF(self, struct bus_worker, peer), call);
}

/* A question that is not handed back is declined, which lets the server go on without the answer.
 * Only the operator decides whether a held call may run: the agent is not asked. */
static void on_ask(struct peer *self, struct call *call, const struct ask *ask)
{
    struct job *j = call->consumer_data;
    const struct outcome declined = {.kind = OUTCOME_RESULT,
                                     .body = SPAN("{\"action\":\"decline\"}")};
    const struct outcome unasked = {.kind = OUTCOME_FAILED,
                                    .why = FAIL_REFUSED,
                                    .text = SPAN("agents on the bus cannot be asked")};

    (void)self;
    if (call->state == CALL_HELD)
        ask_answer(call, ask->key, &unasked);
    else if (!j || !handback_ask(j, ask))
        ask_answer(call, ask->key, &declined);
}

static void on_done(struct peer *self, struct call *call, const struct outcome *outcome)
{
    struct job *j = call->consumer_data;

    if (!j) {
        handback_done(CONTAINER_OF(self, struct bus_worker, peer), call, outcome);
        return;
    }
    j->call = NULL;
    j->finish(j, outcome);
}

const struct peer_verbs job_verbs = {.event = on_event, .ask = on_ask, .done = on_done};

static void on_timer(struct timer *t)
{
    struct job *j = CONTAINER_OF(t, struct job, timer);

    if (j->reply.n) {
        send(j);
        return;
    }
    j->timed_out = true;
    if (j->call)
        call_cancel(j->call, FAIL_TIMEOUT); /* calls `done` before it returns */
    else if (j->enclosures)
        job_fail(j, "timeout", true,
                 "timed out: the files of the call were not exchanged with server '" SPAN_FMT
                 "' within %llu ms",
                 SPAN_ARG(j->server), (unsigned long long)j->budget);
    else if (j->question.n)
        job_fail(j, "timeout", true,
                 "timed out: nobody approved the answer. The question is open still");
    else
        job_fail(j, "timeout", true,
                 "timed out: server '" SPAN_FMT "' did not come up within %llu ms",
                 SPAN_ARG(j->server), (unsigned long long)j->budget);
}

/* --- the server --- */

static void fail_unknown_server(struct job *j)
{
    BUF_SCOPED names = {0};

    worker_put_servers(&names, j->worker);
    job_fail(j, "tool_not_found", false, "there is no server '" SPAN_FMT "'. The servers are: %s",
             SPAN_ARG(j->server), buf_cstr(&names));
}

void job_fail_unreachable(struct job *j, const struct provider *p)
{
    const char *why = p->halted ? "it was stopped by its operator" : provider_why(p);
    bool locked = p->locked && !p->halted;

    job_fail(j, locked ? "auth_required" : "tool_not_found", false,
             "server '%s' is registered but cannot be reached now%s%s. %s", p->alias,
             why[0] ? ": " : "", why,
             locked ? "A person must renew its credentials"
                    : "Try again later, or use another server");
}

bool job_awaits(struct job *j, struct provider *p)
{
    bool resting = p->state == PROVIDER_DOWN || p->state == PROVIDER_BACKOFF;

    if (!j->awaits) {
        j->awaits = true;
        j->starts = p->stats.starts - (p->state == PROVIDER_STARTING);
    }
    if (p->halted || provider_needs_sign_in(p) || (resting && p->stats.starts > j->starts))
        return false;
    provider_want(p);
    return p->state != PROVIDER_READY;
}

struct provider *job_server(struct job *j, void (*resume)(struct job *j))
{
    struct provider *p = worker_server(j->worker, j->server);

    if (!p) {
        fail_unknown_server(j);
        return NULL;
    }
    if (p->catalog)
        return p; /* the router starts an idle server and lets the call wait */
    if (job_awaits(j, p)) {
        j->resume = resume;
        return NULL;
    }
    if (!p->catalog)
        job_fail_unreachable(j, p);
    return p->catalog ? p : NULL;
}

/* --- giving up --- */

void job_abandon(struct job *j)
{
    if (j->sending) {
        /* The reply is in the outbox; whether it is sent does not matter any more. */
        timer_clear(loop_timers(j->worker->loop), &j->timer);
        list_remove(&j->node);
        j->memory = NULL;
        j->worker = NULL;
    } else if (j->reply.n) {
        job_free(j);
    } else if (j->call) {
        call_cancel(j->call, FAIL_SHUTDOWN);
    } else {
        job_fail(j, "execution_failed", true, "the bridge is shutting down: try again");
    }
}
