/* The table of BTCP methods with a handler for each, and the replies. Called by routes.c, pipe.c
 * and relay.c for messages of pages and agents, and by join.c for responses of servers. */
#include "browser/sender.h"

#include "base/log.h"
#include "base/mem.h"
#include "browser/agent.h"
#include "browser/grants.h"
#include "browser/page_request.h"
#include "browser/pipe.h"
#include "wire/json_out.h"
#include "wire/rpc.h"

#include <inttypes.h>
#include <time.h>

/* --- replies --- */

static void put_id(struct buf *out, struct span id)
{
    buf_str(out, "{\"jsonrpc\":\"2.0\",\"id\":");
    buf_span(out, id.n ? id : SPAN("null"));
}

static void reply_result(struct sender *s, struct span id, struct span result)
{
    if (!id.n)
        return; /* a notification gets no response */
    put_id(&s->reply, id);
    json_out_raw(&s->reply, "result", result);
    buf_char(&s->reply, '}');
}

static void reply_error(struct sender *s, struct span id, int code, const char *fmt, ...)
{
    BUF_SCOPED text = {0};
    va_list ap;

    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    s->refused = true;
    put_id(&s->reply, id);
    buf_printf(&s->reply, ",\"error\":{\"code\":%d,\"message\":", code);
    json_quote(&s->reply, buf_view(&text));
    buf_str(&s->reply, "}}");
}

/* The text of a member of params; empty when it is absent or no text. */
static struct span text_of(struct span params, const char *key, struct buf *scratch)
{
    struct json_slot slot = params.n ? json_get(params, key) : (struct json_slot){0};

    return slot.type == JSON_STRING ? json_text(slot.value, scratch) : SPAN_EMPTY;
}

/* --- page or agent --- */

bool sender_become_page(struct sender *s, struct browser_session *session)
{
    struct page *p = session ? page_enter(session, SPAN_EMPTY, s->origin, s->pipe->dialect) : NULL;

    if (!p)
        return false;
    page_attach(p, s->pipe);
    s->session = session;
    s->page = p;
    return true;
}

static struct agent *become_agent(struct sender *s)
{
    if (!s->agent && s->pipe && !s->page)
        s->agent = agent_new(s->browser, s->pipe);
    return s->agent;
}

static void refuse_session(struct sender *s, const struct page_message *m)
{
    reply_error(s, m->id, RPC_INVALID_REQUEST,
                "No session: its name must be 1 to 128 of letters, digits and . _ : -, and there "
                "must not be too many");
}

static void refuse_agent(struct sender *s, const struct page_message *m)
{
    reply_error(s, m->id, RPC_INVALID_REQUEST,
                "Pages of this site may offer tools, and use nobody's");
}

/* --- sessions --- */

/* "session-" and a time, as the first BTCP server named sessions; empty when that name is taken. */
static struct span free_name(struct browser *b, uint64_t at, struct buf *out)
{
    out->n = 0;
    buf_printf(out, "session-%" PRIu64, at);
    return browser_session(b, buf_view(out), false) ? SPAN_EMPTY : buf_view(out);
}

static void do_hello(struct sender *s, const struct page_message *m)
{
    BUF_SCOPED type = {0}, id = {0}, result = {0};
    struct span session = text_of(m->params, "sessionId", &id);
    bool is_agent = span_is(text_of(m->params, "clientType", &type), "agent");

    if (s->pipe && s->pipe->dialect->after_hello)
        s->pipe->dialect = s->pipe->dialect->after_hello;
    if (is_agent && s->offers_only) {
        refuse_agent(s, m);
    } else if (is_agent) {
        become_agent(s);
        buf_str(&result, "{\"message\":\"Welcome to BTCP server\",\"availableSessions\":");
        browser_put_sessions(&result, s->browser, SESSION_IDS);
        buf_char(&result, '}');
        reply_result(s, m->id, buf_view(&result));
    } else {
        for (uint64_t at = browser_wall_ms(); !session.n; at++)
            session = free_name(s->browser, at, &id);
        if (!s->page && s->pipe && !s->agent)
            sender_become_page(s, browser_make_session(s->browser, session));
        if (s->page) {
            page_introduce(s->page, m->params);
            buf_printf(&result, "{\"sessionId\":\"%s\",\"message\":\"Welcome to BTCP server\"}",
                       s->page->session->id);
            reply_result(s, m->id, buf_view(&result));
        } else {
            refuse_session(s, m);
        }
    }
}

static void do_create(struct sender *s, const struct page_message *m)
{
    BUF_SCOPED result = {0};

    if (!s->page && s->pipe && !s->agent)
        sender_become_page(s, browser_make_session(s->browser, SPAN_EMPTY));
    if (!s->page) {
        refuse_session(s, m);
        return;
    }
    buf_printf(&result, "{\"sessionId\":\"%s\",\"expiresAt\":%" PRIu64 "}", s->page->session->id,
               browser_wall_ms() + s->browser->options.session_ttl);
    reply_result(s, m->id, buf_view(&result));
}

static void do_join(struct sender *s, const struct page_message *m)
{
    BUF_SCOPED id = {0}, result = {0};
    struct span name = text_of(m->params, "sessionId", &id);
    struct browser_session *session = browser_session(s->browser, name, false);

    if (!session) {
        reply_error(s, m->id, dialect_number(s->dialect, SPAN("SESSION_NOT_FOUND")),
                    "Session not found: " SPAN_FMT, SPAN_ARG(name));
    } else {
        struct agent *a = become_agent(s);
        if (a)
            agent_join(a, session);
        s->session = session;
        buf_printf(&result, "{%s\"sessionId\":\"%s\",\"tools\":",
                   s->dialect->reply_has_success ? "\"success\":true," : "", session->id);
        buf_span(&result, view_list(session->view, ITEM_TOOL));
        buf_char(&result, '}');
        reply_result(s, m->id, buf_view(&result));
    }
}

static void do_leave(struct sender *s, const struct page_message *m)
{
    struct page *p = s->page;

    if (s->agent)
        agent_join(s->agent, NULL);
    if (p) {
        struct browser_session *session = p->session;
        LIST_EACH (&p->pipes, it) { /* an event stream cannot be used for another page */
            struct pipe *pipe = LIST_ENTRY(it, struct pipe, in_owner);
            if (pipe->is_events)
                pipe_close(pipe, 1000, "the page left");
        }
        page_free(p); /* its other connections stay open, without a page */
        s->page = NULL;
        session_changed(session);
        browser_sweep_later(s->browser, session);
    }
    reply_result(s, m->id, SPAN("{\"success\":true}"));
}

/* --- tools --- */

static void do_register(struct sender *s, const struct page_message *m)
{
    struct json_slot tools = m->params.n ? json_get(m->params, "tools") : (struct json_slot){0};
    BUF_SCOPED id = {0}, result = {0};
    struct err err;

    if (!s->page && s->session_id.n && s->key.n) { /* without a key, it could never connect */
        s->session = browser_make_session(s->browser, s->session_id);
        s->page = s->session ? page_enter(s->session, s->key, s->origin, s->dialect) : NULL;
    }
    struct json_slot about = m->params.n ? json_get(m->params, "page") : (struct json_slot){0};
    if (s->page && about.type == JSON_OBJECT)
        page_introduce(s->page, about.value);
    if (!s->page) {
        reply_error(s, m->id, RPC_INVALID_REQUEST, "Not in a session");
    } else if (tools.type != JSON_ARRAY) {
        reply_error(s, m->id, RPC_INVALID_PARAMS, "tools/register needs params.tools, a list");
    } else if (page_register(s->page, tools.value, &err)) {
        reply_error(s, m->id, RPC_INVALID_PARAMS, "%s", err.text);
    } else {
        buf_char(&result, '{');
        if (s->dialect->reply_has_success)
            json_out_bool(&result, "success", true);
        if (!s->dialect->reply_omits_count)
            json_out_number(&result, "registered", s->page->n_tools);
        buf_char(&result, '}');
        reply_result(s, m->id, buf_view(&result));
    }
}

static void do_list(struct sender *s, const struct page_message *m)
{
    BUF_SCOPED result = {0};

    if (!s->session && !s->dialect->lists_nothing) {
        reply_error(s, m->id, RPC_INVALID_REQUEST, "Not in a session");
        return;
    }
    struct span tools = s->session ? view_list(s->session->view, ITEM_TOOL) : SPAN("[]");
    buf_str(&result, "{\"tools\":");
    buf_span(&result, tools);
    buf_char(&result, '}');
    reply_result(s, m->id, s->dialect->list_is_array ? tools : buf_view(&result));
}

static void post_gone(void *owner)
{
    struct agent *a = owner;

    a->x = NULL;
    agent_free(a);
}

/* An agent for one call: the POST gets its response when the call ends. */
static struct agent *post_agent(struct sender *s)
{
    struct agent *a = agent_new(s->browser, NULL);

    a->peer.principal = principal_hold(s->principal);
    a->x = s->x;
    a->dialect = s->dialect;
    s->held = true;
    http_exchange_on_gone(s->x, post_gone, a);
    list_append(&s->browser->posts, &a->node);
    return a;
}

static void do_call(struct sender *s, const struct page_message *m)
{
    struct json_slot name = m->params.n ? json_get(m->params, "name") : (struct json_slot){0};
    struct agent *a = s->agent;

    if (name.type != JSON_STRING) {
        reply_error(s, m->id, RPC_INVALID_PARAMS, "tools/call needs params.name, a text");
    } else if (!s->session || (s->page && !s->x) || !m->id.n) {
        reply_error(s, m->id, RPC_INVALID_REQUEST, "Not in a session");
    } else if (!session_is_connected(s->session)) {
        reply_error(s, m->id, dialect_number(s->dialect, SPAN("CONNECTION_ERROR")),
                    "No browser client connected to this session");
    } else {
        if (!a)
            a = s->x ? post_agent(s) : become_agent(s);
        if (a->pipe && !a->session)
            agent_join(a, s->session); /* an agent that calls into a session has joined it */
        agent_call(a, s->session->view, m->id, m->params);
    }
}

/* --- capabilities --- */

static void answer_granted(struct sender *s, const struct page_message *m)
{
    BUF_SCOPED result = {0};

    buf_str(&result, "{\"granted\":[");
    LIST_EACH (&s->page->session->grants, it) {
        const struct grant *g = LIST_ENTRY(it, struct grant, node);
        if (grants_concern(g, s->page))
            json_out_str(&result, NULL, g->name);
    }
    buf_str(&result, "]}");
    reply_result(s, m->id, buf_view(&result));
}

/* A page that grants capabilities can also refuse them, so from now on they are enforced. */
static void change_grants(struct sender *s, const struct page_message *m, bool grant)
{
    struct json_slot list =
        m->params.n ? json_get(m->params, "capabilities") : (struct json_slot){0};

    if (!s->page) {
        reply_error(s, m->id, RPC_INVALID_REQUEST, "Not in a session");
    } else if (s->browser->options.listed_only) {
        reply_error(s, m->id, RPC_INVALID_REQUEST,
                    "The configuration of the bridge decides on capabilities");
    } else if (list.type != JSON_ARRAY) {
        reply_error(s, m->id, RPC_INVALID_PARAMS, "params.capabilities must be a list");
    } else {
        s->page->session->enforces = true;
        if (grant)
            grants_add(s->page->session, s->page, list.value, grants_kind(m->params));
        else
            grants_revoke(s->page->session, s->page, list.value);
        answer_granted(s, m);
        if (grant)
            grants_settle(s->page);
    }
}

static void do_grant(struct sender *s, const struct page_message *m)
{
    change_grants(s, m, true);
}

static void do_revoke(struct sender *s, const struct page_message *m)
{
    change_grants(s, m, false);
}

/* --- the rest --- */

static void do_ping(struct sender *s, const struct page_message *m)
{
    BUF_SCOPED result = {0};

    buf_str(&result, "{\"pong\":true");
    if (s->dialect->pong_has_time)
        buf_printf(&result, ",\"timestamp\":%" PRIu64, browser_wall_ms());
    buf_char(&result, '}');
    reply_result(s, m->id, buf_view(&result));
}

static const struct {
    const char *method;
    void (*handle)(struct sender *s, const struct page_message *m);
    bool of_agents;
} methods[] = {
    {"hello", do_hello, false},
    {"ping", do_ping, false},
    {"session/create", do_create, false},
    {"session/join", do_join, true},
    {"session/leave", do_leave, false},
    {"tools/register", do_register, false},
    {"tools/list", do_list, true},
    {"tools/call", do_call, true},
    {"capabilities/grant", do_grant, false},
    {"capabilities/revoke", do_revoke, false},
};

static void dispatch(struct sender *s, const struct page_message *m)
{
    BUF_SCOPED scratch = {0};
    struct span method = json_text(m->method, &scratch);
    size_t i;

    for (i = 0; i < COUNT_OF(methods); i++)
        if (span_is(method, methods[i].method))
            break;
    if (i < COUNT_OF(methods) && methods[i].of_agents && s->offers_only)
        refuse_agent(s, m);
    else if (i < COUNT_OF(methods))
        methods[i].handle(s, m);
    else if (m->id.n)
        reply_error(s, m->id, RPC_METHOD_NOT_FOUND, "Method not found: " SPAN_FMT,
                    SPAN_ARG(span_cut(method, 0, 100)));
}

bool sender_receive(struct sender *s, struct span text)
{
    enum { ID, METHOD, PARAMS, RESULT, ERROR, SLOTS };
    static const struct json_shape_row rows[] = {{"id", ID, NULL},
                                                 {"method", METHOD, NULL},
                                                 {"params", PARAMS, NULL},
                                                 {"result", RESULT, NULL},
                                                 {"error", ERROR, NULL}};
    static const struct json_shape shape = JSON_SHAPE(rows);
    struct json_slot slots[SLOTS] = {0};
    struct page_message m = {0};

    if (s->dialect->receive)
        return s->dialect->receive(s, text);
    int code = json_skim(text, &shape, slots, NULL, NULL);
    if (code) {
        reply_error(s, SPAN_EMPTY, RPC_PARSE_ERROR, "Parse error: %s", err_name(code));
        return false;
    }
    if (slots[ID].type == JSON_STRING || slots[ID].type == JSON_NUMBER)
        m.id = slots[ID].value;
    if (slots[METHOD].type == JSON_STRING)
        m.method = slots[METHOD].value;
    if (slots[PARAMS].type == JSON_OBJECT)
        m.params = slots[PARAMS].value;
    m.result = slots[RESULT].value;
    if (slots[ERROR].type == JSON_OBJECT)
        m.error = slots[ERROR].value;
    if (m.method.n) {
        dispatch(s, &m);
        return true;
    }
    bool answers = m.result.n || m.error.n;
    /* JSON.stringify omits a result that is undefined; the call must end in that case too. */
    if (!answers)
        m.error = SPAN("{\"code\":\"EXECUTION_ERROR\",\"message\":"
                       "\"The page's answer has neither a result nor an error object\"}");
    bool awaited = m.id.n && page_request_answer(s, &m);
    if (!answers && !awaited)
        reply_error(s, m.id, RPC_INVALID_REQUEST, "Invalid request: neither method nor result");
    else if (!awaited)
        log_debug("browser", "an answer that nobody waits for was dropped");
    return answers || awaited;
}
