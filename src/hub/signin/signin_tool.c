/* The tool sign_in, and calls that wait until somebody has signed in. Called by
 * hub/graph/instance.c; the core calls the verbs. */
#include "hub/signin/signin_tool.h"

#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "mcp/protocol.h"
#include "wire/json.h"
#include "wire/json_out.h"

#include <stdio.h>

enum { TEN_MINUTES = 10 * 60 * 1000 };

struct signin_tool {
    struct provider core;
    struct router *router;
    struct provider *server;
    struct identity *id; /* the instance's */
    struct identity_watch watch;
    struct list waiting; /* struct waiting_call */
};

/* A call that waits. */
struct waiting_call {
    struct list node;
    struct signin_tool *tool;
    struct call *call;
    bool is_tool; /* it calls sign_in itself */
    bool unknown; /* it calls a name that may be a tool of the server */
    bool asked;   /* an elicitation is open */
    bool done;    /* somebody has signed in; the agent has to call again for its answer */
    char elicitation[ID_UUID_SIZE];
    struct identity_wait wait;
};

static const struct span ask_key = {"sign-in", 7};

static struct signin_tool *of_provider(struct provider *p)
{
    return CONTAINER_OF(p, struct signin_tool, core);
}

/* --- the end of the wait --- */

static struct call *leave(struct waiting_call *v)
{
    struct call *call = v->call;

    identity_leave(&v->wait);
    list_remove(&v->node);
    mem_free(v);
    return call;
}

static void refuse(struct waiting_call *v, enum failure why, struct span text)
{
    call_done(leave(v), &(struct outcome){.kind = OUTCOME_FAILED,
                                          .why = why,
                                          .text = text,
                                          .locked = why == FAIL_UNAVAILABLE});
}

/* Somebody has signed in: the call goes on to the server, or is answered here if it called sign_in
 * or a tool that is not known yet. */
static void go_on(struct waiting_call *v)
{
    struct signin_tool *d = v->tool;
    bool is_tool = v->is_tool, unknown = v->unknown;
    struct call *call = leave(v);
    BUF_SCOPED result = {0}, text = {0};

    if (!is_tool && !unknown) {
        call_move(call, d->server);
        return;
    }
    buf_printf(&text, "Signed in to '%s'. Its tools are listed as soon as it is up%s",
               d->server->alias, unknown ? ": call again, if this is one of them" : ".");
    if (unknown) { /* the server's list is not there yet, which says whether it is a tool */
        call_done(call, &(struct outcome){.kind = OUTCOME_FAILED,
                                          .why = FAIL_UNAVAILABLE,
                                          .text = buf_view(&text),
                                          .retryable = true});
        return;
    }
    buf_str(&result, "{\"content\":[{\"type\":\"text\"");
    json_out_text(&result, "text", buf_view(&text));
    buf_str(&result, "}]}");
    call_done(call, &(struct outcome){.kind = OUTCOME_RESULT, .body = buf_view(&result)});
}

/* --- asking --- */

static void ask(struct waiting_call *v, const char *url, const char *code)
{
    BUF_SCOPED params = {0}, message = {0};

    buf_printf(&message,
               "Server '%s' needs you to sign in. Open the address in your browser%s%s%s.",
               v->tool->server->alias, code ? " and enter the code " : "", code ? code : "",
               code ? "" : "");
    buf_str(&params, "{\"mode\":\"url\"");
    json_out_text(&params, "message", buf_view(&message));
    json_out_str(&params, "url", url);
    json_out_str(&params, "elicitationId", v->elicitation);
    buf_char(&params, '}');
    v->asked = true;
    ask_put(v->call, &(struct ask){.key = ask_key,
                                   .method = SPAN("elicitation/create"),
                                   .params = buf_view(&params),
                                   .needs = ANSWERS_ELICIT_URL});
}

static void on_address(struct identity_wait *w, const char *url, const char *code)
{
    struct waiting_call *v = CONTAINER_OF(w, struct waiting_call, wait);
    const char *alias = v->tool->server->alias;
    BUF_SCOPED text = {0};

    if (v->asked)
        return;
    if (v->call->answers & ANSWERS_ELICIT_URL) {
        ask(v, url, code);
        return;
    }
    buf_printf(&text,
               "server '%s' needs a sign-in. Open %s in a browser%s%s, or run: rialto login %s",
               alias, url, code ? " and enter the code " : "", code ? code : "", alias);
    refuse(v, FAIL_UNAVAILABLE, buf_view(&text));
}

/* Tells the agent that the address is no longer needed. */
static void close_question(struct waiting_call *v)
{
    BUF_SCOPED params = {0};

    ask_take_back(v->call, ask_key);
    buf_char(&params, '{');
    json_out_str(&params, "elicitationId", v->elicitation);
    buf_char(&params, '}');
    call_event(v->call, &(struct event){.kind = EVENT_OTHER,
                                        .method = SPAN(MCP_ELICITATION_COMPLETE),
                                        .params = buf_view(&params),
                                        .from = &v->tool->core});
}

static void on_done(struct identity_wait *w, const struct err *err)
{
    struct waiting_call *v = CONTAINER_OF(w, struct waiting_call, wait);

    if (err) {
        refuse(v, FAIL_UNAVAILABLE, span_str(err->text));
        return;
    }
    v->done = true;
    if (v->asked && (v->call->answers & ANSWERS_BY_RETRY))
        return; /* the agent has the question as a result, and calls again with the answer */
    if (v->asked)
        close_question(v);
    go_on(v);
}

/* --- verbs --- */

static void on_open(struct peer *self, struct call *call, const struct request *request)
{
    struct signin_tool *d = of_provider(CONTAINER_OF(self, struct provider, peer));
    struct waiting_call *v = MEM_NEW(struct waiting_call);

    v->tool = d;
    v->call = call;
    v->is_tool = !call->asked_sign_in && span_is(request->name, "sign_in");
    v->unknown = !call->asked_sign_in && !v->is_tool;
    v->wait.address = on_address;
    v->wait.done = on_done;
    id_uuid(v->elicitation);
    call->provider_data = v;
    list_append(&d->waiting, &v->node);
    if (identity_is_signed_in(d->id) && !provider_needs_sign_in(d->server))
        go_on(v);
    else
        identity_login(d->id, false, &v->wait);
}

static void on_answer(struct peer *self, struct call *call, struct span key,
                      const struct outcome *outcome)
{
    struct waiting_call *v = call->provider_data;
    struct json_slot action =
        outcome->kind == OUTCOME_RESULT ? json_get(outcome->body, "action") : (struct json_slot){0};
    BUF_SCOPED text = {0};

    (void)self, (void)key;
    v->asked = false;
    if (!json_string_is(action.value, SPAN("accept"))) {
        buf_printf(&text, "server '%s' needs a sign-in, which was declined: rialto login %s",
                   v->tool->server->alias, v->tool->server->alias);
        refuse(v, FAIL_REFUSED, buf_view(&text));
    } else if (v->done) {
        go_on(v);
    } /* else the person has not signed in yet: on_done goes on */
}

static void on_cancel(struct peer *self, struct call *call, enum failure why)
{
    (void)self, (void)why;
    leave(call->provider_data);
}

static const struct peer_verbs verbs = {.open = on_open, .answer = on_answer, .cancel = on_cancel};

/* --- the tool --- */

static void publish(struct signin_tool *d)
{
    struct catalog *c = catalog_new();
    BUF_SCOPED raw = {0}, description = {0};
    struct item item = {.name = SPAN("sign_in")};

    buf_printf(&description,
               "Server '%s' needs a person to sign in before its tools can be used. Call this to "
               "get the address where to do that.",
               d->server->alias);
    buf_str(&raw, "{\"name\":");
    item.name_at = (struct cut){raw.n, item.name.n + 2};
    json_quote(&raw, item.name);
    buf_str(&raw, ",\"description\":");
    item.description_at.at = raw.n;
    json_quote(&raw, buf_view(&description));
    item.description_at.n = raw.n - item.description_at.at;
    buf_str(&raw, ",\"inputSchema\":{\"type\":\"object\",\"properties\":{}}}");
    item.raw = buf_view(&raw);
    catalog_add(c, ITEM_TOOL, &item);
    provider_publish(&d->core, c);
}

/* Somebody has signed in or out. */
static void on_changed(struct identity_watch *w)
{
    struct signin_tool *d = CONTAINER_OF(w, struct signin_tool, watch);

    if (!identity_is_signed_in(d->id) && d->server->state == PROVIDER_READY) {
        provider_restart(d->server);
    } else if (identity_is_signed_in(d->id) && provider_needs_sign_in(d->server)) {
        provider_forget_why(d->server); /* it has not failed: nobody had signed in */
        provider_unlock(d->server);
    }
}

/* --- life --- */

static void start(struct provider *p)
{
    publish(of_provider(p));
    provider_up(p);
}

static void stop(struct provider *p)
{
    provider_lost(p, "stopped");
}

static const struct provider_ops life = {.start = start, .stop = stop};

struct signin_tool *signin_tool_new(struct router *r, struct provider *server, struct identity *id)
{
    struct signin_tool *d = MEM_NEW(struct signin_tool);

    d->router = r;
    d->server = server;
    d->id = id;
    d->watch.changed = on_changed;
    list_init(&d->waiting);
    provider_init(&d->core, &verbs, &life, server->alias);
    d->core.built_in = true;
    d->core.tokenless_only = server->tokenless_only;
    d->core.told_as = server->alias; /* in records, its calls count as calls of the server */
    d->core.policy.timeout = d->core.policy.ask_timeout = TEN_MINUTES;
    d->core.policy.start_timeout = 0;
    router_add_provider(r, &d->core);
    server->sign_in = &d->core;
    identity_watch(id, &d->watch);
    provider_want(&d->core);
    return d;
}

void signin_tool_free(struct signin_tool *d)
{
    list_remove(&d->watch.node);
    provider_unwant(&d->core); /* ends its calls, which removes them from `waiting` */
    router_remove_provider(d->router, &d->core);
    provider_fini(&d->core);
    mem_free(d);
}
