/* Tool calls of agents: reads the message, finds server and tool, makes the call, and writes the
 * result or the error. Called by worker.c for messages of served agents on the invoke topic, and by
 * handback.c and enclosures.c to reply. */
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "bus/stamp.h"
#include "rockbot/enclosures.h"
#include "rockbot/hints.h"
#include "wire/rpc.h"

enum {
    DEFAULT_TIMEOUT_MS = 30 * 1000, /* of a call whose agent does not say how long it waits */
    AGENT_WAITS_MS = 60 * 1000,     /* how long such an agent waits */
    MAX_TIMEOUT_MS = 15 * 60 * 1000,
    MARGIN_MS = 2000,          /* so that our reply arrives before the agent gives up */
    CLOCK_MS = 1000,           /* error of stamps: some engines keep whole seconds */
    FIRST_TIME_MS = 30 * 1000, /* how late a message may be at its first delivery */
    RELIST_MS = 5 * 1000,      /* how long a server may take to answer with its lists */
};

/* --- replies --- */

static void fail_invoke(struct job *j, const char *code, bool retryable, struct span text)
{
    job_reply(j, ROCKBOT_ERROR,
              (const struct span[ROCKBOT_MAX_MEMBERS]){
                  [ERROR_CALL] = j->call_id,
                  [ERROR_TOOL] = j->tool,
                  [ERROR_CODE] = span_str(code),
                  [ERROR_MESSAGE] = text,
                  [ERROR_RETRYABLE] = retryable ? SPAN("true") : SPAN("false")});
}

void worker_reply_result(struct job *j, struct span text, struct span blocks, bool is_error)
{
    const struct span values[ROCKBOT_MAX_MEMBERS] = {[RESULT_CALL] = j->call_id,
                                                     [RESULT_TOOL] = j->tool,
                                                     [RESULT_CONTENT] = text,
                                                     [RESULT_BLOCKS] = blocks,
                                                     [RESULT_IS_ERROR] =
                                                         is_error ? SPAN("true") : SPAN("false")};
    BUF_SCOPED result = {0};

    if (j->type == ROCKBOT_INVOKE) {
        job_reply(j, ROCKBOT_RESULT, values);
        return;
    }
    rockbot_put(&result, ROCKBOT_RESULT, values);
    j->worker->counts.managed++;
    job_reply(j, ROCKBOT_ANSWERED,
              (const struct span[ROCKBOT_MAX_MEMBERS]){[ANSWERED_QUESTION] = j->question,
                                                       [ANSWERED_SERVER] = j->server,
                                                       [ANSWERED_TOOL] = j->tool,
                                                       [ANSWERED_RESULT] = buf_view(&result)});
}

static const struct target *find_tool(struct view *v, struct span name)
{
    const struct target *t = view_find(v, ITEM_TOOL, name);

    for (size_t i = 0; !t && (t = view_item(v, ITEM_TOOL, i)); i++) {
        if (span_eq_nocase(t->public_name, name))
            break;
        t = NULL;
    }
    return t;
}

static void put_hint(struct buf *out, const struct job *j, struct span error)
{
    const struct bus_host *host = j->worker->host;
    struct provider *p = worker_server(j->worker, j->server);
    const struct target *t = p ? find_tool(host->view(host->arg, p), j->tool) : NULL;
    struct json_slot schema = {0};

    if (t)
        schema = json_get(t->item->raw, "inputSchema");
    if (schema.type == JSON_OBJECT)
        (void)hints_put(out, j->tool, schema.value, j->arguments, error);
}

/* What becomes of binary content in results of the job's server. */
static struct content_options content_of(const struct job *j)
{
    const struct bus_host *host = j->worker->host;
    struct provider *p = worker_server(j->worker, j->server);
    const struct config_attachments *rules = p ? host->files(host->arg, p) : NULL;
    struct content_options options = j->worker->content;

    if (!rules)
        return options;
    options.attach_limit = 0;
    if (!rules->capture)
        options.attachments = NULL;
    for (size_t i = 0; i < rules->capture_fields.n && !options.capture; i++) {
        const struct config_capture *rule = &rules->capture_fields.items[i];
        for (size_t k = 0; k < rule->tools.n; k++)
            if (span_eq_nocase(j->tool, span_str(rule->tools.items[k])))
                options.capture = rule;
    }
    return options;
}

static void finish_result(struct job *j, const struct outcome *outcome)
{
    struct content_options options = content_of(j);
    struct content c;

    if (!outcome->is_error && enclosures_unpack(j, outcome->body))
        return;
    if (outcome->is_error)
        options.capture = NULL;
    content_read(&c, outcome->body, &options);
    if (outcome->is_error) {
        BUF_SCOPED hint = {0};
        put_hint(&hint, j, buf_view(&c.text));
        buf_span(&c.text, c.text.n ? buf_view(&hint) : span_from(buf_view(&hint), 2));
    }
    worker_reply_result(j, buf_view(&c.text), buf_view(&c.blocks), outcome->is_error);
    content_fini(&c);
}

/* Invalid params and unknown methods become a result with an error, because the model can correct
 * the call. Any other error is a failure of the call. */
static void finish_error(struct job *j, const struct outcome *outcome)
{
    struct rpc_error e = rpc_error_of(outcome->body);
    BUF_SCOPED message = {0}, text = {0};

    if (e.message.n)
        json_unescape(&message, e.message);
    if (e.code != RPC_INVALID_PARAMS && e.code != RPC_METHOD_NOT_FOUND) {
        job_fail(j, "execution_failed", true, "server '" SPAN_FMT "' failed with %lld: " SPAN_FMT,
                 SPAN_ARG(j->server), (long long)e.code, SPAN_ARG(buf_view(&message)));
    } else {
        buf_printf(&text, "Error %lld: ", (long long)e.code);
        content_put_line(&text, buf_view(&message));
        put_hint(&text, j, buf_view(&text));
        worker_reply_result(j, buf_view(&text), SPAN_EMPTY, true);
    }
}

/* Agents look for the words "timed out", and give up after two such errors in a row. */
static void fail_timeout(struct job *j, const struct outcome *outcome)
{
    bool harmless = j->timed_out ? false : outcome->retryable;
    const char *advice = harmless ? "" : ". It may have done its work all the same: look first";

    if (j->timed_out)
        job_fail(j, "timeout", true,
                 "server '" SPAN_FMT "' timed out: '" SPAN_FMT "' gave no answer within %llu ms%s",
                 SPAN_ARG(j->server), SPAN_ARG(j->tool), (unsigned long long)j->budget, advice);
    else
        job_fail(j, "timeout", true, "%s" SPAN_FMT "%s",
                 span_has_nocase(outcome->text, SPAN("timed out")) ? "" : "timed out: ",
                 SPAN_ARG(outcome->text), advice);
}

static void finish_failed(struct job *j, const struct outcome *outcome)
{
    /* Agents are told that calling again may help; the text warns that it may do harm. */
    bool retryable = outcome->retryable || outcome->why == FAIL_CRASHED;
    static const char *const codes[FAIL_COUNT] = {[FAIL_NONE] = "execution_failed",
                                                  [FAIL_UNKNOWN] = "tool_not_found",
                                                  [FAIL_UNAVAILABLE] = "tool_not_found",
                                                  [FAIL_CRASHED] = "execution_failed",
                                                  [FAIL_TIMEOUT] = "timeout",
                                                  [FAIL_BUSY] = "execution_failed",
                                                  [FAIL_CANCELLED] = "execution_failed",
                                                  [FAIL_REFUSED] = "execution_failed",
                                                  [FAIL_DENIED] = "invalid_arguments",
                                                  [FAIL_ARGUMENTS] = "invalid_arguments",
                                                  [FAIL_PROTOCOL] = "execution_failed",
                                                  [FAIL_SHUTDOWN] = "execution_failed",
                                                  [FAIL_LIMITED] = "execution_failed"};
    struct span text = outcome->text;

    if (outcome->why == FAIL_TIMEOUT) {
        fail_timeout(j, outcome);
    } else if (outcome->locked) {
        job_fail(j, "auth_required", false, SPAN_FMT ". A person must renew its credentials",
                 SPAN_ARG(text));
    } else if (outcome->why == FAIL_UNAVAILABLE) {
        job_fail(j, codes[outcome->why], false,
                 SPAN_FMT ". It is registered but cannot be reached now: try again later",
                 SPAN_ARG(text));
    } else if (j->worker->closing) {
        job_fail(j, codes[outcome->why], false,
                 "the bridge is shutting down, and the call was ended. It may have done its work "
                 "all the same: look before calling again");
    } else if (outcome->why == FAIL_SHUTDOWN || outcome->why == FAIL_CANCELLED) {
        job_fail(j, codes[outcome->why], false,
                 "the call was ended: server '" SPAN_FMT "' is being stopped or removed",
                 SPAN_ARG(j->server));
    } else {
        job_fail(j, codes[outcome->why], retryable, SPAN_FMT "%s", SPAN_ARG(text),
                 outcome->why == FAIL_CRASHED && !outcome->retryable
                     ? ". It may have done its work all the same: look before calling again"
                     : "");
    }
}

void worker_finish_invoke(struct job *j, const struct outcome *outcome)
{
    if (outcome->kind == OUTCOME_RESULT)
        finish_result(j, outcome);
    else if (outcome->kind == OUTCOME_ERROR)
        finish_error(j, outcome);
    else
        finish_failed(j, outcome);
}

/* --- finding the tool --- */

/* Models often write the server's name before the tool's. Returns where the tool's name begins. */
static size_t after_server(struct span name)
{
    for (size_t i = 0; i + 2 < name.n; i++)
        if (name.p[i] == '_' && name.p[i + 1] == '_')
            return i + 2;
    return 0;
}

static void fail_unknown_tool(struct job *j, const struct provider *p, struct view *v)
{
    const struct bus_host *host = j->worker->host;
    size_t at = after_server(j->tool);
    struct provider *named = at ? worker_server(j->worker, span_cut(j->tool, 0, at - 2)) : NULL;
    struct span own = span_from(j->tool, at);
    BUF_SCOPED names = {0};

    if (named && find_tool(host->view(host->arg, named), own)) {
        job_fail(j, "tool_not_found", false,
                 "server '%s' has no tool '" SPAN_FMT "'. Did you mean the tool '" SPAN_FMT
                 "' of server '%s'? Give the server and the tool apart, not as one name",
                 p->alias, SPAN_ARG(j->tool), SPAN_ARG(own), named->alias);
        return;
    }
    worker_put_names(&names, v, ITEM_TOOL);
    job_fail(j, "tool_not_found", false,
             "server '%s' has no tool '" SPAN_FMT "'. Its tools are: %s", p->alias,
             SPAN_ARG(j->tool), buf_cstr(&names));
}

/* The first server that shows agents a tool with exactly this name. */
static struct provider *owner_of(const struct bus_worker *w, struct span tool)
{
    const struct bus_host *host = w->host;

    for (struct provider *p = NULL; (p = host->next(host->arg, p));)
        if (view_find(host->view(host->arg, p), ITEM_TOOL, tool))
            return p;
    return NULL;
}

/* --- calling the tool --- */

/* The server's own limit wins; else the agent's, less a margin for our reply; else the default. */
static uint64_t budget_of(struct bus_worker *w, const struct provider *p, uint64_t asked)
{
    uint64_t max = w->options->max_timeout_ms ? w->options->max_timeout_ms : MAX_TIMEOUT_MS;
    uint64_t given = asked < max ? asked : max;
    uint64_t own = p ? worker_timeout_of(w, p) : 0;

    if (!own && !asked)
        own = DEFAULT_TIMEOUT_MS;
    if (own)
        return own < max ? own : max;
    return given - (given / 2 < MARGIN_MS ? given / 2 : MARGIN_MS);
}

/* {"name":NAME,"arguments":{...},"_meta":{}}; sets the positions of name and _meta in the
 * request. */
static void put_params(struct buf *params, struct buf *meta, const struct job *j, struct span tool,
                       struct request *request)
{
    buf_str(params, "{\"name\":");
    request->name_at.at = params->n;
    json_quote(params, tool);
    request->name_at.n = params->n - request->name_at.at;
    buf_str(params, ",\"arguments\":");
    buf_span(params, j->outgoing.n ? buf_view(&j->outgoing) : j->arguments);
    if (j->trace.parent[0]) {
        buf_printf(meta, "\"traceparent\":\"%s\"", j->trace.parent);
        if (j->trace.state[0]) {
            buf_str(meta, ",\"tracestate\":");
            json_quote(meta, span_str(j->trace.state));
        }
        buf_str(params, ",\"_meta\":");
        request->meta_at = (struct cut){params->n, 2};
        buf_str(params, "{}");
    }
    buf_char(params, '}');
    request->params = buf_view(params);
    request->meta_keep = buf_view(meta);
}

static void await_lists(struct job *j);

/* The server may have a new tool without having reported it, or the known catalog is from an
 * earlier start. */
static bool ask_for_lists(struct job *j, struct provider *p)
{
    uint64_t generation = p->catalog->generation;

    if (j->relisted || p->halted)
        return false;
    if (p->state == PROVIDER_READY && !worker_relist(j->worker, p) &&
        !worker_is_relisting(j->worker, p))
        return false;
    j->relisted = true;
    j->generation = generation;
    await_lists(j);
    return true;
}

/* Called again with every change while the server starts. */
static void call_tool(struct job *j)
{
    const struct bus_host *host = j->worker->host;
    struct provider *p = job_server(j, call_tool);
    struct view *v = p ? host->view(host->arg, p) : NULL;
    const struct target *t = v ? find_tool(v, j->tool) : NULL;

    if (!p)
        return;
    j->resume = NULL;
    if (!t) {
        if (ask_for_lists(j, p))
            return;
        if (p->state == PROVIDER_READY)
            fail_unknown_tool(j, p, v);
        else
            job_fail_unreachable(j, p);
        return;
    }
    struct request request = {.op = OP_CALL_TOOL,
                              .name = arena_span(&j->arena, t->public_name),
                              .timeout = j->budget + JOB_ENDS_FIRST_MS,
                              .answers = host->asking(host->arg, p).off ? 0 : JOB_ANSWERS,
                              .party = map_hash(j->agent)};
    BUF_SCOPED params = {0}, meta = {0};
    put_params(&params, &meta, j, request.name, &request);
    buf_reset(&j->outgoing, 0);
    if (enclosures_pack(j, v, &request, call_tool))
        job_open(j, v, &request);
}

static void await_lists(struct job *j)
{
    struct provider *p = worker_server(j->worker, j->server);
    bool coming = p && p->state != PROVIDER_READY && job_awaits(j, p);
    uint64_t waited = loop_now(j->worker->loop) - j->began;
    bool listing = p && p->state == PROVIDER_READY && p->catalog->generation == j->generation &&
                   waited < RELIST_MS;

    if (!coming && !listing) {
        call_tool(j);
        return;
    }
    j->resume = await_lists;
    if (listing)
        worker_look_within(j->worker, RELIST_MS - waited);
}

/* Is there a server, starting or not tried yet, whose tools are not known? */
static bool is_any_coming(const struct bus_worker *w)
{
    for (struct provider *p = NULL; (p = w->host->next(w->host->arg, p));)
        if (!p->catalog && (p->state == PROVIDER_STARTING || (!p->why && !p->halted)))
            return true;
    return false;
}

/* For an invoke that names no server; the server with the tool may still be starting. */
static void find_server(struct job *j)
{
    struct provider *p = owner_of(j->worker, j->tool);

    if (p) {
        j->server = arena_span(&j->arena, span_str(p->alias));
        call_tool(j);
    } else if (is_any_coming(j->worker)) {
        j->resume = find_server;
    } else {
        job_fail(j, "tool_not_found", false,
                 "no server has a tool '" SPAN_FMT "'. Name the server too", SPAN_ARG(j->tool));
    }
}

/* --- reading the message --- */

/* Arguments are a text with a JSON object in it, or absent; some publishers send the object. */
static bool read_arguments(struct job *j, const struct json_slot *given)
{
    enum json_type type = given->type;
    BUF_SCOPED text = {0};

    if (type == JSON_NONE || type == JSON_OBJECT) {
        j->arguments = type == JSON_NONE ? SPAN("{}") : arena_span(&j->arena, given->value);
        return true;
    }
    if (type != JSON_STRING)
        return false;
    json_unescape(&text, given->value);
    struct span inside = buf_view(&text);
    while (inside.n && (unsigned char)inside.p[0] <= ' ')
        inside = span_from(inside, 1);
    j->arguments = inside.n ? arena_span(&j->arena, inside) : SPAN("{}");
    return json_skim(j->arguments, NULL, NULL, &type, NULL) == 0 && type == JSON_OBJECT;
}

/* Has the agent stopped waiting, judged by the stamp or by how long its messages usually take? */
static bool is_overdue(const struct bus_worker *w, const struct bus_delivery *d, uint64_t asked)
{
    uint64_t sent = d->message->sent_ms, waits = asked ? asked : AGENT_WAITS_MS;

    if (sent && stamp_now() > sent + waits + (d->redelivered ? CLOCK_MS : FIRST_TIME_MS))
        return true;
    return worker_travel_time(w, d->message) > (int64_t)(waits + CLOCK_MS);
}

/* A worker with a name leaves messages for servers that it does not have to other workers. */
static bool is_elsewhere(const struct bus_worker *w, const struct message *m,
                         const struct json_slot *tool)
{
    struct span server = message_header(m, ROCKBOT_SERVER);
    BUF_SCOPED scratch = {0};

    if (!w->options->name)
        return false;
    return server.n ? !worker_server(w, server) : !owner_of(w, rockbot_text(tool, &scratch));
}

static void begin(struct job *j, const struct bus_delivery *d, const struct json_slot *slots)
{
    struct bus_worker *w = j->worker;
    struct span server = message_header(d->message, ROCKBOT_SERVER);
    uint64_t asked = rockbot_timeout(d->message);
    struct provider *p;

    j->fail = fail_invoke;
    j->finish = worker_finish_invoke;
    j->call_id = job_text(j, &slots[INVOKE_CALL]);
    j->tool = job_text(j, &slots[INVOKE_TOOL]);
    j->session = job_text(j, &slots[INVOKE_SESSION]);
    j->can_answer = span_is(span_trim(message_header(d->message, ROCKBOT_HANDBACK)), "1");
    p = server.n ? worker_server(w, server) : owner_of(w, j->tool);
    j->server = arena_span(&j->arena, p ? span_str(p->alias) : server);
    w->counts.invokes++;
    job_limit(j, budget_of(w, p, asked));
    if (is_overdue(w, d, asked)) {
        w->counts.stale++;
        job_fail(
            j, "timeout", true,
            "timed out: the request waited on the bus for longer than its caller does, and was "
            "not carried out (or the clocks of the two machines differ)");
    } else if (!read_arguments(j, &slots[INVOKE_ARGUMENTS])) {
        job_fail(j, "invalid_arguments", false,
                 "the arguments of '" SPAN_FMT "' must be a JSON object, or nothing",
                 SPAN_ARG(j->tool));
    } else if (server.n) {
        call_tool(j);
    } else {
        find_server(j);
    }
}

/* The type is that of an invoke, or left out. */
static bool is_invoke(struct span type)
{
    return !type.n || span_is(type, "unknown") || rockbot_record(type) == ROCKBOT_INVOKE;
}

void worker_invoke(struct bus_worker *w, const struct bus_delivery *d)
{
    struct json_slot slots[ROCKBOT_MAX_MEMBERS];
    struct err err = {0};
    struct job *j;

    if (!is_invoke(d->message->type) ||
        rockbot_read(ROCKBOT_INVOKE, d->message->body, slots, &err) < 0) {
        w->counts.dead++;
        log_warn("bus", "an invoke of '" SPAN_FMT "' cannot be used: %s",
                 SPAN_ARG(d->message->source), err.text[0] ? err.text : "it is of another type");
        bus_settle(d->sub, d->tag, BUS_DEAD);
    } else if (is_elsewhere(w, d->message, &slots[INVOKE_TOOL])) {
        w->counts.elsewhere++;
        bus_settle(d->sub, d->tag, BUS_ACK);
    } else if ((j = job_new(w, d, ROCKBOT_INVOKE))) {
        begin(j, d, slots);
    }
}
