/* Questions that servers ask during calls of agents, handed back as the reply to the call: the call
 * waits without a job, and the job of the agent's answer takes it over. Called by job.c,
 * worker_manage.c and worker.c. */
#include "base/log.h"
#include "base/mem.h"
#include "rockbot/form.h"
#include "rockbot/worker_inside.h"
#include "wire/json_out.h"

#include <stdio.h>

enum {
    MAX_OPEN = 50,
    MAX_OPEN_OF_SESSION = 5,
    MAX_KEPT = 150,           /* open ones, and ended ones to tell a late answer why */
    MAX_QUESTION = 32 * 1024, /* bytes of a question */
    APPROVAL_MS = 60 * 1000,  /* how long an answer waits for its approval */
    MINUTE_MS = 60 * 1000,
};

struct handback {
    struct list node;
    struct arena arena;
    struct span id, agent, session, server, tool, call_id, arguments;
    struct span key, schema;
    struct call *call;            /* waits for the answer; NULL when it has ended or goes on */
    uint64_t budget;              /* of the call; begins again after the answer */
    uint64_t asked;               /* questions of this call so far, including this one */
    bool decides;                 /* the answer needs an approval */
    bool saves;                   /* copied from the job */
    struct job *answer;           /* waits for its approval, or NULL */
    struct span content;          /* of that answer */
    char approval[ID_TOKEN_SIZE]; /* id of the request for its approval */
    char ended[160];              /* why the question cannot be answered any more; "" while open */
};

static bool is_open(const struct handback *q)
{
    return !q->ended[0];
}

static void handback_free(struct bus_worker *w, struct handback *q)
{
    list_remove(&q->node);
    w->n_questions--;
    arena_fini(&q->arena);
    mem_free(q);
}

static struct handback *find(const struct bus_worker *w, struct span id)
{
    LIST_EACH (&w->questions, it) {
        struct handback *q = LIST_ENTRY(it, struct handback, node);
        if (span_eq(q->id, id))
            return q;
    }
    return NULL;
}

static struct handback *find_call(const struct bus_worker *w, const struct call *call)
{
    LIST_EACH (&w->questions, it) {
        struct handback *q = LIST_ENTRY(it, struct handback, node);
        if (q->call == call)
            return q;
    }
    return NULL;
}

/* --- asking --- */

/* May one more question be open? Drops the oldest ended question when too many are kept. */
static bool has_room(struct bus_worker *w, struct span agent, struct span session)
{
    size_t n = 0, n_session = 0;
    struct handback *oldest = NULL;

    LIST_EACH (&w->questions, it) {
        struct handback *q = LIST_ENTRY(it, struct handback, node);
        if (!q->call && !oldest)
            oldest = q;
        n += q->call != NULL;
        n_session += q->call && span_eq(q->agent, agent) && span_eq(q->session, session);
    }
    if (n >= MAX_OPEN || n_session >= MAX_OPEN_OF_SESSION)
        return false;
    if (w->n_questions >= MAX_KEPT)
        handback_free(w, oldest);
    return true;
}

/* q_WORKER_RANDOM, and _NAME for a worker that has a name. */
static struct span new_id(const struct bus_worker *w, struct arena *arena)
{
    char random[ID_TOKEN_SIZE];
    BUF_SCOPED id = {0};

    id_token(random);
    buf_printf(&id, "q_%.8s_%s", w->token, random);
    if (w->options->name)
        buf_printf(&id, "_%s", w->options->name);
    return arena_span(arena, buf_view(&id));
}

static struct handback *handback_new(const struct job *j, const struct ask *ask, struct span schema,
                                     bool decides)
{
    struct handback *q = MEM_NEW(struct handback);
    struct arena *arena = &q->arena;

    q->id = new_id(j->worker, arena);
    q->agent = arena_span(arena, j->agent);
    q->session = arena_span(arena, j->session);
    q->server = arena_span(arena, j->server);
    q->tool = arena_span(arena, j->tool);
    q->call_id = arena_span(arena, j->call_id);
    q->arguments = arena_span(arena, j->arguments);
    q->key = arena_span(arena, ask->key);
    q->schema = arena_span(arena, schema);
    q->budget = j->budget;
    q->asked = j->asked + 1;
    q->decides = decides;
    q->saves = j->saves;
    list_append(&j->worker->questions, &q->node);
    j->worker->n_questions++;
    return q;
}

/* The agent reads the server's words as one line each, so that they cannot be taken for ours. */
static void put_question(struct buf *out, const struct handback *q, struct span message,
                         struct span fields)
{
    uint64_t minutes = (q->call->provider->policy.ask_timeout + MINUTE_MS - 1) / MINUTE_MS;

    buf_printf(out,
               "[rialto] The MCP server '" SPAN_FMT "' needs input before it can finish '" SPAN_FMT
               "':\n  \"",
               SPAN_ARG(q->server), SPAN_ARG(q->tool));
    content_put_line(out, message);
    buf_str(out, "\"\n  Fields: ");
    buf_span(out, fields);
    buf_printf(out,
               "\nAnswer with mcp_answer(question_id: \"" SPAN_FMT
               "\", answers: {...}), or mcp_answer(question_id: \"" SPAN_FMT
               "\", decline: true). If you do not know, ask the user first; the question stays "
               "open for %llu minutes.",
               SPAN_ARG(q->id), SPAN_ARG(q->id), (unsigned long long)minutes);
    if (q->decides)
        buf_str(out, " It is a decision: an answer counts only once somebody else on the bus has "
                     "approved it.");
}

bool handback_ask(struct job *j, const struct ask *ask)
{
    const struct bus_worker *w = j->worker;
    struct provider *p = j->call ? j->call->provider : NULL;
    struct bus_asking asking = {0};
    struct json_slot mode = json_get(ask->params, "mode"),
                     message = json_get(ask->params, "message");
    struct span schema = json_get(ask->params, "requestedSchema").value;
    BUF_SCOPED fields = {0}, text = {0}, scratch = {0};
    bool decides;

    if (p && j->can_answer && !w->closing)
        asking = w->host->asking(w->host->arg, p);
    if (!asking.handback || j->asked >= asking.max || ask->params.n > MAX_QUESTION ||
        !span_is(ask->method, "elicitation/create") ||
        (mode.type != JSON_NONE && !json_string_is(mode.value, SPAN("form"))))
        return false;
    if (!form_describe(&fields, schema, &(struct form_denied){asking.denied, asking.n_denied},
                       &decides) ||
        (decides && !w->approvals) || !has_room(j->worker, j->agent, j->session))
        return false;
    struct handback *q = handback_new(j, ask, schema, decides);
    q->call = j->call;
    q->call->consumer_data = NULL;
    j->call = NULL;
    put_question(&text, q, rockbot_text(&message, &scratch), buf_view(&fields));
    log_info("bus",
             "server '" SPAN_FMT "' asks during '" SPAN_FMT "': handed back to '" SPAN_FMT "'",
             SPAN_ARG(q->server), SPAN_ARG(q->tool), SPAN_ARG(q->agent));
    worker_reply_result(j, buf_view(&text), SPAN_EMPTY, false);
    return true;
}

/* --- ends --- */

/* Ends the question. An answer that waits for its approval fails. */
static void end(struct handback *q, const char *why, struct span detail)
{
    struct job *answer = q->answer;

    if (is_open(q))
        snprintf(q->ended, sizeof q->ended, "%s" SPAN_FMT, why, SPAN_ARG(span_cut(detail, 0, 100)));
    q->answer = NULL;
    if (answer)
        job_fail(answer, "invalid_arguments", false, "the question '" SPAN_FMT "' %s",
                 SPAN_ARG(q->id), q->ended);
}

void handback_withdrawn(struct bus_worker *w, const struct call *call)
{
    struct handback *q = find_call(w, call);

    if (q)
        end(q, "was taken back by the server", SPAN_EMPTY);
}

void handback_done(struct bus_worker *w, const struct call *call, const struct outcome *outcome)
{
    struct handback *q = find_call(w, call);

    if (!q)
        return;
    q->call = NULL;
    if (outcome->kind != OUTCOME_FAILED)
        end(q, "is closed: the server ended the call without the answer", SPAN_EMPTY);
    else if (outcome->why == FAIL_TIMEOUT)
        end(q, "has expired, and its call was ended. Call the tool again", SPAN_EMPTY);
    else
        end(q, "is closed: its call has ended: ", outcome->text);
}

void handback_release(struct bus_worker *w, struct span agent, struct span session)
{
    LIST_EACH_SAFE (&w->questions, it) {
        struct handback *q = LIST_ENTRY(it, struct handback, node);
        if (!q->call || !span_eq(q->agent, agent) || !span_eq(q->session, session))
            continue;
        end(q, "was dropped with its session", SPAN_EMPTY);
        call_cancel(q->call, FAIL_CANCELLED); /* calls handback_done */
    }
}

/* --- answering --- */

static void fail_answer(struct job *j, const char *code, bool retryable, struct span text)
{
    (void)code, (void)retryable;
    LIST_EACH (&j->worker->questions, it) {
        struct handback *q = LIST_ENTRY(it, struct handback, node);
        if (q->answer == j)
            q->answer = NULL;
    }
    j->worker->counts.managed++;
    job_reply(j, ROCKBOT_ANSWERED,
              (const struct span[ROCKBOT_MAX_MEMBERS]){[ANSWERED_QUESTION] = j->question,
                                                       [ANSWERED_SERVER] = j->server,
                                                       [ANSWERED_TOOL] = j->tool,
                                                       [ANSWERED_ERROR] = text});
}

/* The answer's job takes the call over. `content` is a raw object; empty: declined. */
static void resume(struct job *j, struct handback *q, struct span content)
{
    struct call *call = q->call;
    BUF_SCOPED body = {0};

    buf_str(&body, content.n ? "{\"action\":\"accept\",\"content\":" : "{\"action\":\"decline\"");
    buf_span(&body, content);
    buf_char(&body, '}');
    q->answer = NULL;
    q->call = NULL;
    end(q, "was answered already", SPAN_EMPTY);
    j->arguments = arena_span(&j->arena, q->arguments);
    j->can_answer = true;
    j->asked = q->asked;
    j->saves = q->saves;
    j->call = call;
    call->consumer_data = j;
    j->began = loop_now(j->worker->loop);
    job_limit(j, q->budget);
    ask_answer(call, q->key, &(struct outcome){.kind = OUTCOME_RESULT, .body = buf_view(&body)});
}

static void ask_for_approval(struct job *j, struct handback *q, struct span content)
{
    struct message m = {.type = SPAN(ROCKBOT_TOPIC_ASK)};
    BUF_SCOPED body = {0}, source = {0};

    id_token(q->approval);
    q->answer = j;
    q->content = arena_span(&q->arena, content);
    buf_char(&body, '{');
    json_out_str(&body, "request_id", q->approval);
    json_out_text(&body, "tool_name", q->tool);
    json_out_raw(&body, "arguments", content);
    json_out_text(&body, "server_alias", q->server);
    json_out_raw(&body, "channel_id", SPAN("null"));
    buf_char(&body, '}');
    buf_str(&source, ROCKBOT_BRIDGE);
    buf_span(&source, q->agent);
    m.source = buf_view(&source);
    m.body = buf_view(&body);
    (void)message_add_header(&m, ROCKBOT_TRUST, SPAN(ROCKBOT_TRUST_REQUEST));
    job_limit(j, APPROVAL_MS);
    bus_publish(j->worker->bus, SPAN(ROCKBOT_TOPIC_ASK), &m, APPROVAL_MS, NULL, NULL);
}

/* Anything but true is a no. The agent that answered cannot approve its answer. */
static void decide(struct bus_worker *w, const struct message *m)
{
    struct json_slot id = json_get(m->body, "request_id");
    bool approved = json_get(m->body, "approved").type == JSON_TRUE;
    BUF_SCOPED scratch = {0};
    struct span text = rockbot_text(&id, &scratch);

    LIST_EACH (&w->questions, it) {
        struct handback *q = LIST_ENTRY(it, struct handback, node);
        if (!q->answer || !span_is(text, q->approval) || span_eq(m->source, q->agent))
            continue;
        if (approved)
            resume(q->answer, q, q->content);
        else
            job_fail(q->answer, "execution_failed", false,
                     "the answer was not approved by '" SPAN_FMT
                     "'. The question is open still: answer otherwise, or decline it",
                     SPAN_ARG(span_cut(m->source, 0, MESSAGE_MAX_WORD)));
        return;
    }
}

static void on_approval(void *owner, const struct bus_delivery *d)
{
    enum json_type type = JSON_NONE;
    struct message_copy copy;

    message_copy(&copy, d->message);
    bus_settle(d->sub, d->tag, BUS_ACK);
    if (json_skim(copy.m.body, NULL, NULL, &type, NULL) == 0 && type == JSON_OBJECT)
        decide(owner, &copy.m);
    message_copy_fini(&copy);
}

/* A waiting call does not outlive its worker; the id tells whether an earlier worker asked. */
static void fail_unknown(struct job *j)
{
    char own[16];

    snprintf(own, sizeof own, "q_%.8s_", j->worker->token);
    job_fail(j, "invalid_arguments", false,
             "there is no open question '" SPAN_FMT "'%s. If the call is still needed, call the "
             "tool again, with the answer in its arguments if it takes it there",
             SPAN_ARG(j->question),
             span_starts(j->question, SPAN("q_")) && !span_starts(j->question, span_str(own))
                 ? ": the bridge was restarted since, and the call that waited for it is gone"
                 : "");
}

static void take_answer(struct job *j, struct handback *q, struct span answers)
{
    enum json_type type = JSON_NONE;
    struct err err = {0};

    if (json_skim(answers, NULL, NULL, &type, NULL) != 0 || type != JSON_OBJECT)
        job_fail(j, "invalid_arguments", false,
                 "the answers must be a JSON object with the fields of the question, or decline "
                 "must be true. The question is open still");
    else if (form_check(q->schema, answers, &err) < 0)
        job_fail(j, "invalid_arguments", false,
                 "the answers do not fit the question: %s. The question is open still", err.text);
    else if (q->decides)
        ask_for_approval(j, q, answers);
    else
        resume(j, q, answers);
}

void handback_answer(struct job *j, const struct json_slot *slots)
{
    struct handback *q = find(j->worker, j->server);
    BUF_SCOPED answers = {0};

    j->fail = fail_answer;
    j->finish = worker_finish_invoke;
    j->question = j->server;
    j->server = SPAN_EMPTY;
    j->session = job_text(j, &slots[ANSWER_SESSION]);
    if (!q || !span_eq(q->agent, j->agent)) {
        fail_unknown(j);
        return;
    }
    if (!span_eq(q->session, j->session)) {
        job_fail(j, "invalid_arguments", false,
                 "the question '" SPAN_FMT "' was put to another session, which must answer it",
                 SPAN_ARG(j->question));
        return;
    }
    j->server = arena_span(&j->arena, q->server);
    j->tool = arena_span(&j->arena, q->tool);
    j->call_id = slots[ANSWER_CALL].type == JSON_STRING ? job_text(j, &slots[ANSWER_CALL])
                                                        : arena_span(&j->arena, q->call_id);
    if (!is_open(q) || q->answer)
        job_fail(j, "invalid_arguments", false, "the question '" SPAN_FMT "' %s",
                 SPAN_ARG(j->question),
                 q->answer ? "has an answer already, which waits to be approved" : q->ended);
    else if (slots[ANSWER_DECLINE].type == JSON_TRUE)
        resume(j, q, SPAN_EMPTY);
    else
        take_answer(j, q, rockbot_text(&slots[ANSWER_ANSWERS], &answers));
}

bool handback_is_elsewhere(const struct bus_worker *w, struct span id)
{
    struct span rest = span_from(id, span_find(id, '_') + 1);
    const char *name = w->options->name ? w->options->name : "";

    rest = span_from(rest, span_find(rest, '_') + 1);
    return !span_is(span_from(rest, span_find(rest, '_') + 1), name);
}

/* --- life --- */

void handback_init(struct bus_worker *w)
{
    char group[64];

    list_init(&w->questions);
    id_token(w->token);
    snprintf(group, sizeof group, "rialto-answers.%s", w->token);
    if (w->options->approvals)
        w->approvals =
            bus_subscribe(w->bus,
                          &(struct bus_subscription){
                              .topic = ROCKBOT_TOPIC_APPROVAL, .group = group, .ephemeral = true},
                          on_approval, w);
}

void handback_end_all(struct bus_worker *w)
{
    LIST_EACH_SAFE (&w->questions, it) {
        struct handback *q = LIST_ENTRY(it, struct handback, node);
        if (q->call)
            call_cancel(q->call, FAIL_SHUTDOWN); /* calls handback_done */
    }
}

void handback_fini(struct bus_worker *w)
{
    struct handback *q;

    if (w->approvals)
        bus_unsubscribe(w->approvals);
    while ((q = LIST_FIRST(&w->questions, struct handback, node)))
        handback_free(w, q);
}
