/* Handlers for management requests of agents: details, register and unregister, prompts, resources,
 * answers to questions. Called by worker.c for messages of served agents on the manage topic. */
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "rockbot/surface.h"
#include "rockbot/worker_inside.h"
#include "wire/rpc.h"

/* Agents wait 30 s for an answer. */
enum { BUDGET_MS = 25 * 1000, MAX_SERVER_NAME = 64 };

/* How a request is answered. */
struct row {
    enum rockbot_record request, response;
    size_t error_at; /* the response's member for an error */
    bool echoes_two; /* the response repeats the second member of the request */
    bool of_server;  /* the request is about an existing server */
    void (*begin)(struct job *j, const struct json_slot *slots);
    void (*finish)(struct job *j, const struct outcome *outcome);
};

static const struct row *row_of(enum rockbot_record request);

/* --- answers --- */

/* Replies with the handler's `values`; the first members are repeated from the request. */
static void answer(struct job *j, struct span *values)
{
    const struct row *row = row_of(j->type);

    values[0] = j->server;
    if (row->echoes_two)
        values[1] = j->tool;
    j->worker->counts.managed++;
    job_reply(j, row->response, values);
}

/* Errors are a member of the response: lists are empty then, and success is false. */
static void fail_manage(struct job *j, const char *code, bool retryable, struct span text)
{
    struct span values[ROCKBOT_MAX_MEMBERS] = {0};

    (void)code, (void)retryable;
    values[row_of(j->type)->error_at] = text;
    answer(j, values);
}

/* True when the call has a result; else the job fails with the reason. */
static bool has_result(struct job *j, const struct outcome *outcome, const char *advice)
{
    BUF_SCOPED message = {0};

    if (outcome->kind == OUTCOME_RESULT)
        return true;
    if (outcome->kind == OUTCOME_ERROR) {
        struct rpc_error e = rpc_error_of(outcome->body);
        if (e.message.n)
            json_unescape(&message, e.message);
    } else {
        buf_span(&message, j->timed_out ? SPAN("timed out") : outcome->text);
    }
    job_fail(j, "execution_failed", false, SPAN_FMT "%s%s", SPAN_ARG(buf_view(&message)),
             advice ? ". " : "", advice ? advice : "");
    return false;
}

static struct view *view_of(const struct job *j, struct provider *p)
{
    return j->worker->host->view(j->worker->host->arg, p);
}

/* --- details --- */

static void tell_details(struct job *j)
{
    struct provider *p = job_server(j, tell_details);
    struct bus_server_facts facts = {0};
    BUF_SCOPED tools = {0}, prompts = {0}, n_resources = {0};
    struct surface surface;
    const struct target *t;

    if (!p)
        return;
    if (!provider_advertised(p)) {
        provider_want(p);
        job_fail(j, "tool_not_found", true, "server '%s' is not connected%s%s. Try again later",
                 p->alias, p->why ? ": " : "", provider_why(p));
        return;
    }
    struct view *v = view_of(j, p);
    j->worker->host->facts(j->worker->host->arg, p, &facts);
    surface_read(&surface, v);
    for (size_t i = 0; (t = view_item(v, ITEM_TOOL, i)); i++) {
        buf_str(&tools, i ? "," : "[");
        surface_put_tool(&tools, t);
    }
    buf_str(&tools, tools.n ? "]" : "");
    surface_put_prompts(&prompts, v);
    buf_u64(&n_resources, surface.n_resources);
    answer(j,
           (struct span[ROCKBOT_MAX_MEMBERS]){[DETAILS_TOOLS] = buf_view(&tools),
                                              [DETAILS_ID] = facts.server_id,
                                              [DETAILS_FINGERPRINT] = span_str(surface.fingerprint),
                                              [DETAILS_IMPLEMENTATION] = facts.implementation,
                                              [DETAILS_TITLE] = facts.display_name,
                                              [DETAILS_VERSION] = facts.version,
                                              [DETAILS_DESCRIPTION] = facts.description,
                                              [DETAILS_INSTRUCTIONS] = facts.instructions,
                                              [DETAILS_PROMPTS] = buf_view(&prompts),
                                              [DETAILS_N_RESOURCES] = buf_view(&n_resources)});
    surface_fini(&surface);
}

static void begin_details(struct job *j, const struct json_slot *slots)
{
    (void)slots;
    tell_details(j);
}

/* --- register and unregister --- */

static bool is_server_name(struct span name)
{
    bool under = false;

    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!word && (!i || !(c == '_' || c == '.' || c == '-')))
            return false;
        if (c == '_' && under)
            return false;
        under = c == '_';
    }
    return name.n && name.n <= MAX_SERVER_NAME;
}

/* Removes a registered server that did not come up. */
static void take_back(struct job *j)
{
    const struct bus_host *host = j->worker->host;
    struct err err = {0};

    if (host->remove(host->arg, j->server, &err) < 0)
        log_warn("bus", "'" SPAN_FMT "' could not be removed again: %s", SPAN_ARG(j->server),
                 err.text);
    bus_worker_look(j->worker);
}

/* Replies when the added server is up or has failed. */
static void await_registered(struct job *j)
{
    struct provider *p = worker_server(j->worker, j->server);
    BUF_SCOPED summary = {0};
    size_t n = 0;

    j->resume = NULL;
    if (p && p->state == PROVIDER_READY && p->catalog) {
        for (struct view *v = view_of(j, p); view_item(v, ITEM_TOOL, n);)
            n++;
        buf_printf(&summary, "%zu tool(s) available.", n);
        answer(j,
               (struct span[ROCKBOT_MAX_MEMBERS]){
                   [REGISTERED_SUCCESS] = SPAN("true"), [REGISTERED_SUMMARY] = buf_view(&summary)});
    } else if (!p) {
        job_fail(j, "execution_failed", false, "the server was removed while it started");
    } else if (p->why && (p->state == PROVIDER_BACKOFF || p->state == PROVIDER_DOWN)) {
        BUF_SCOPED why = {0};
        buf_str(&why, p->why);
        take_back(j);
        job_fail(j, "execution_failed", false, "the server was not kept: %s", buf_cstr(&why));
    } else {
        j->resume = await_registered;
    }
}

/* The time of the request is over, or the worker closes: a server that is still starting is
 * removed. */
static void fail_register(struct job *j, const char *code, bool retryable, struct span text)
{
    if (j->resume == await_registered)
        take_back(j);
    fail_manage(j, code, retryable, text);
}

static void begin_register(struct job *j, const struct json_slot *slots)
{
    const struct bus_host *host = j->worker->host;
    BUF_SCOPED url = {0}, command = {0}, type = {0};
    struct err err = {0};

    j->fail = fail_register;
    if (!is_server_name(j->server)) {
        job_fail(j, "invalid_arguments", false,
                 "'" SPAN_FMT
                 "' cannot be the name of a server: up to 64 letters, digits, '_', '.' and "
                 "'-', beginning with a letter or a digit, and no '__'",
                 SPAN_ARG(j->server));
        return;
    }
    if (worker_server(j->worker, j->server)) {
        job_fail(j, "invalid_arguments", false,
                 "there is a server '" SPAN_FMT
                 "' already; it is not replaced. Choose another name",
                 SPAN_ARG(j->server));
        return;
    }
    struct bus_new_server s = {
        .name = j->server,
        .type = rockbot_text(&slots[REGISTER_TYPE], &type),
        .url = rockbot_text(&slots[REGISTER_URL], &url),
        .command = rockbot_text(&slots[REGISTER_COMMAND], &command),
        .args = slots[REGISTER_ARGS].value,
        .env = slots[REGISTER_ENV].value,
    };
    int rc = host->add(host->arg, &s, &err);
    if (rc < 0)
        job_fail(j, "invalid_arguments", false, "%s%s%s", err.text, err.hint[0] ? ". " : "",
                 err.hint);
    else
        await_registered(j);
}

static void begin_unregister(struct job *j, const struct json_slot *slots)
{
    const struct bus_host *host = j->worker->host;
    const struct provider *p = worker_server(j->worker, j->server);
    struct err err = {0};

    (void)slots;
    /* The server's own spelling of its name: the agent's may differ in case. */
    struct span name = p ? arena_span(&j->arena, span_str(p->alias)) : j->server;
    if (host->remove(host->arg, name, &err) < 0) {
        job_fail(j, "invalid_arguments", false, "%s%s%s", err.text, err.hint[0] ? ". " : "",
                 err.hint);
        return;
    }
    bus_worker_look(j->worker);
    answer(j, (struct span[ROCKBOT_MAX_MEMBERS]){[UNREGISTERED_SUCCESS] = SPAN("true")});
}

/* --- prompts --- */

static void open_named(struct job *j, struct view *v, enum op op, const char *key)
{
    struct request request = {
        .op = op, .name = j->tool, .answers = JOB_ANSWERS, .party = map_hash(j->agent)};
    BUF_SCOPED params = {0};

    buf_printf(&params, "{\"%s\":", key);
    request.name_at.at = params.n;
    json_quote(&params, j->tool);
    request.name_at.n = params.n - request.name_at.at;
    if (j->arguments.n)
        buf_printf(&params, ",\"arguments\":" SPAN_FMT, SPAN_ARG(j->arguments));
    buf_char(&params, '}');
    request.params = buf_view(&params);
    job_open(j, v, &request);
}

static void get_prompt(struct job *j)
{
    struct provider *p = job_server(j, get_prompt);
    BUF_SCOPED names = {0};

    if (!p)
        return;
    j->resume = NULL;
    struct view *v = view_of(j, p);
    if (!view_find(v, ITEM_PROMPT, j->tool)) {
        worker_put_names(&names, v, ITEM_PROMPT);
        job_fail(j, "tool_not_found", false,
                 "server '%s' has no prompt '" SPAN_FMT "'. Its prompts are: %s", p->alias,
                 SPAN_ARG(j->tool), buf_cstr(&names));
        return;
    }
    open_named(j, v, OP_GET_PROMPT, "name");
}

static void begin_prompt(struct job *j, const struct json_slot *slots)
{
    j->arguments = arena_span(&j->arena, slots[GET_PROMPT_ARGUMENTS].value);
    get_prompt(j);
}

static void finish_prompt(struct job *j, const struct outcome *outcome)
{
    BUF_SCOPED messages = {0}, description = {0};

    if (!has_result(j, outcome, NULL))
        return;
    struct json_slot text = json_get(outcome->body, "description");
    content_put_messages(&messages, outcome->body);
    answer(j, (struct span[ROCKBOT_MAX_MEMBERS]){[PROMPT_DESCRIPTION] =
                                                     rockbot_text(&text, &description),
                                                 [PROMPT_MESSAGES] = buf_view(&messages)});
}

/* --- resources --- */

static void list_resources(struct job *j)
{
    struct provider *p = job_server(j, list_resources);
    BUF_SCOPED resources = {0}, templates = {0};

    if (!p)
        return;
    surface_put_resources(&resources, view_of(j, p), ITEM_RESOURCE);
    surface_put_resources(&templates, view_of(j, p), ITEM_TEMPLATE);
    answer(
        j,
        (struct span[ROCKBOT_MAX_MEMBERS]){
            [RESOURCES_LIST] = buf_view(&resources), [RESOURCES_TEMPLATES] = buf_view(&templates)});
}

static void begin_resources(struct job *j, const struct json_slot *slots)
{
    (void)slots;
    list_resources(j);
}

static void read_resource(struct job *j)
{
    struct provider *p = job_server(j, read_resource);

    if (!p)
        return;
    j->resume = NULL;
    open_named(j, view_of(j, p), OP_READ_RESOURCE, "uri");
}

static void begin_read(struct job *j, const struct json_slot *slots)
{
    (void)slots;
    read_resource(j);
}

static void finish_read(struct job *j, const struct outcome *outcome)
{
    BUF_SCOPED contents = {0};

    if (!has_result(j, outcome, "List the server's resources to see what can be read"))
        return;
    content_put_resource(&contents, outcome->body, &j->worker->content);
    answer(j, (struct span[ROCKBOT_MAX_MEMBERS]){[RESOURCE_CONTENTS] = buf_view(&contents)});
}

/* --- the table of requests --- */

static const struct row rows[] = {
    {ROCKBOT_GET_DETAILS, ROCKBOT_DETAILS, DETAILS_ERROR, false, true, begin_details, NULL},
    {ROCKBOT_REGISTER, ROCKBOT_REGISTERED, REGISTERED_ERROR, false, false, begin_register, NULL},
    {ROCKBOT_UNREGISTER, ROCKBOT_UNREGISTERED, UNREGISTERED_ERROR, false, true, begin_unregister,
     NULL},
    {ROCKBOT_GET_PROMPT, ROCKBOT_PROMPT, PROMPT_ERROR, true, true, begin_prompt, finish_prompt},
    {ROCKBOT_LIST_RESOURCES, ROCKBOT_RESOURCES, RESOURCES_ERROR, false, true, begin_resources,
     NULL},
    {ROCKBOT_READ_RESOURCE, ROCKBOT_RESOURCE, RESOURCE_ERROR, true, true, begin_read, finish_read},
    {ROCKBOT_ANSWER, ROCKBOT_ANSWERED, ANSWERED_ERROR, false, false, handback_answer, NULL},
};

static const struct row *row_of(enum rockbot_record request)
{
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (rows[i].request == request)
            return &rows[i];
    return NULL;
}

/* A worker with a name answers only for its own servers and questions; requests to add a server are
 * for the worker without a name. */
static bool is_elsewhere(const struct bus_worker *w, const struct row *row,
                         const struct json_slot *slots)
{
    BUF_SCOPED scratch = {0};

    if (row->request == ROCKBOT_ANSWER)
        return handback_is_elsewhere(w, rockbot_text(&slots[0], &scratch));
    if (!w->options->name)
        return false;
    return !row->of_server || !worker_server(w, rockbot_text(&slots[0], &scratch));
}

static void refuse(struct bus_worker *w, const struct bus_delivery *d, const char *why)
{
    w->counts.dead++;
    log_warn("bus", "a " SPAN_FMT " of '" SPAN_FMT "' cannot be used: %s",
             SPAN_ARG(d->message->type), SPAN_ARG(d->message->source), why);
    bus_settle(d->sub, d->tag, BUS_DEAD);
}

static void begin(struct bus_worker *w, const struct bus_delivery *d, const struct row *row,
                  const struct json_slot *slots)
{
    struct job *j = job_new(w, d, row->request);

    if (!j)
        return;
    j->fail = fail_manage;
    j->finish = row->finish;
    j->server = job_text(j, &slots[0]);
    if (row->echoes_two)
        j->tool = job_text(j, &slots[1]);
    job_limit(j, BUDGET_MS);
    row->begin(j, slots);
}

void worker_manage(struct bus_worker *w, const struct bus_delivery *d)
{
    enum rockbot_record type = rockbot_record(d->message->type);
    const struct row *row = row_of(type);
    struct json_slot slots[ROCKBOT_MAX_MEMBERS];
    struct err err = {0};

    if (type == ROCKBOT_RELEASE && rockbot_read(type, d->message->body, slots, &err) == 0) {
        BUF_SCOPED session = {0};
        handback_release(w, d->message->source, rockbot_text(&slots[0], &session));
        bus_settle(d->sub, d->tag, BUS_ACK);
    } else if (!row) {
        if (type != ROCKBOT_RELEASE)
            log_info("bus", "'" SPAN_FMT "' asks for a '" SPAN_FMT "', which is not known here",
                     SPAN_ARG(d->message->source), SPAN_ARG(d->message->type));
        bus_settle(d->sub, d->tag, BUS_ACK);
    } else if (!d->message->reply_to.n) {
        refuse(w, d, "it has no reply-to");
    } else if (rockbot_read(type, d->message->body, slots, &err) < 0) {
        refuse(w, d, err.text);
    } else if (is_elsewhere(w, row, slots)) {
        w->counts.elsewhere++;
        bus_settle(d->sub, d->tag, BUS_ACK);
    } else {
        begin(w, d, row, slots);
    }
}
