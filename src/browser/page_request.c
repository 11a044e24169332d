/* Our requests to a page: calls, lists, consent, pings; from sending to the answer, the timeout or
 * the end of the page. Called by page.c, session.c, grants.c, join.c, browser.c and, for answers,
 * sender.c and relay.c. */
#include "browser/page_request.h"

#include "base/log.h"
#include "base/mem.h"
#include "browser/grants.h"
#include "browser/join.h"
#include "browser/pipe.h"
#include "browser/result.h"
#include "browser/sender.h"
#include "wire/json.h"

#include <inttypes.h>

enum {
    FRESH_MS = 100, /* a page that sent something within this time is there */
    NEW_MS = 1000,  /* nobody leaves a page so soon after it came */
    LIFE_MS = 1500, /* a call waits this long for the answer to a ping */
};

static struct timers *timers_of(const struct page *p)
{
    return loop_timers(p->session->browser->loop);
}

static void fail_request(struct page_request *r, const char *code, struct span why)
{
    struct call *call = r->call;
    BUF_SCOPED body = {0};
    bool consent = r->kind == PAGE_REQUEST_CONSENT;

    if (call && consent) {
        grants_late(r);
        call = NULL;
    }
    page_request_free(r);
    if (!call)
        return;
    result_put_failure(&body, code, why);
    call_done(call, &(struct outcome){.kind = OUTCOME_ERROR, .body = buf_view(&body), .text = why});
}

void page_request_fail_all(struct page *p, const struct pipe *pipe)
{
    for (bool again = true; again;) {
        again = false;
        LIST_EACH (&p->requests, it) {
            struct page_request *r = LIST_ENTRY(it, struct page_request, in_page);
            if (pipe && r->pipe != pipe)
                continue;
            /* Ending a call may begin another one and change the list: start over. */
            fail_request(r, "CONNECTION_ERROR", SPAN("The page left before it answered"));
            again = true;
            break;
        }
    }
}

static struct page_request *next_call(const struct page *p)
{
    LIST_EACH (&p->requests, it)
        if (LIST_ENTRY(it, struct page_request, in_page)->kind == PAGE_REQUEST_CALL)
            return LIST_ENTRY(it, struct page_request, in_page);
    return NULL;
}

/* Was the page sent a call that it has not answered? It may be too busy to answer a ping. */
static bool is_busy(const struct page *p)
{
    LIST_EACH (&p->requests, it) {
        const struct page_request *r = LIST_ENTRY(it, struct page_request, in_page);
        if (r->kind == PAGE_REQUEST_CALL && !r->held.n)
            return true;
    }
    return false;
}

/*
 * The page did not answer a ping in time. If it has answered one before and is not busy, it is not
 * there: its calls fail, and its tools are not listed until it answers. If it never answered any
 * request, its calls fail too, but its tools stay listed: it may not know `ping`. A page that has
 * answered other requests but never a ping is left alone.
 */
static void judge(struct page *p)
{
    if (p->answers_pings ? is_busy(p) : p->has_answered)
        return;
    log_debug("browser", "session %s: a page does not answer", p->session->id);
    bool was_silent = p->silent;
    p->silent = p->answers_pings;
    for (struct page_request *r; (r = next_call(p));)
        fail_request(r, "CONNECTION_ERROR", SPAN(PAGE_SILENT));
    if (p->silent && !was_silent)
        session_changed(p->session);
}

/* Sends the calls that wait for the answer to a ping. */
static void send_held(struct page *p)
{
    LIST_EACH (&p->requests, it) {
        struct page_request *r = LIST_ENTRY(it, struct page_request, in_page);
        if (r->held.n && (r->pipe = page_pipe(p)))
            pipe_send(r->pipe, buf_view(&r->held), true);
        r->held.n = 0;
    }
}

void page_request_start_anew(struct page *p)
{
    bool asks = p->life || p->answers_pings;

    p->silent = p->answers_pings = p->was_called = false;
    if (asks)
        page_request_ask_life(p, 0);
    send_held(p);
}

void page_request_lives(struct page *p, bool pong)
{
    bool was_silent = p->silent;

    p->has_answered = true;
    page_heard(p);
    p->answers_pings |= pong;
    p->silent = false;
    if (p->life)
        page_request_free(p->life);
    send_held(p);
    if (was_silent)
        session_changed(p->session);
}

static void on_late(struct timer *t)
{
    struct page_request *r = CONTAINER_OF(t, struct page_request, timer);

    if (r->kind == PAGE_REQUEST_CONSENT) {
        grants_late(r); /* not the end: the user may still answer */
        return;
    }
    if (r->kind == PAGE_REQUEST_LIFE) {
        judge(r->page);
        return;
    }
    page_request_call_off(r);
    fail_request(r, "TIMEOUT", SPAN("Tool execution timeout"));
}

static void put_request_id(struct buf *out, const struct page_request *r)
{
    buf_str(out, "btcp-");
    buf_u64(out, r->n);
    if (r->secret)
        buf_printf(out, "-%016" PRIx64, r->secret);
}

static struct page_request *request_new(struct page *p, enum page_request_kind kind,
                                        uint64_t timeout)
{
    struct browser *b = p->session->browser;
    struct page_request *r = MEM_NEW(struct page_request);

    r->n = ++b->last_request;
    r->secret = p->dialect->answers_by_id ? id_random_u64() | 1 : 0;
    r->kind = kind;
    r->page = p;
    r->pipe = page_pipe(p);
    r->timer.fire = on_late;
    idmap_put(&b->requests, r->n, r);
    list_append(&p->requests, &r->in_page);
    timer_set(timers_of(p), &r->timer, timeout);
    return r;
}

static void put_request(struct buf *out, const struct page_request *r, const char *method,
                        struct span params)
{
    buf_str(out, "{\"jsonrpc\":\"2.0\",\"id\":\"");
    put_request_id(out, r);
    buf_str(out, "\",\"method\":\"");
    buf_str(out, method);
    buf_str(out, "\",\"params\":");
    buf_span(out, params);
    buf_char(out, '}');
}

struct page_request *page_request_ask(struct page *p, enum page_request_kind kind,
                                      const char *method, struct span params, uint64_t timeout)
{
    BUF_SCOPED text = {0};

    if (!page_pipe(p))
        return NULL;
    struct page_request *r = request_new(p, kind, timeout);
    put_request(&text, r, method, params);
    pipe_send(r->pipe, buf_view(&text), true);
    return r;
}

void page_request_ask_life(struct page *p, uint64_t timeout)
{
    timeout = timeout ? timeout : LIFE_MS;
    /* A ping on a connection that is not the newest any more says nothing about the newest. */
    if (p->life && p->life->pipe != page_pipe(p))
        page_request_free(p->life);
    /* A ping that was not answered in time is still pending: its timer is set again. */
    if (p->life && !timer_is_set(&p->life->timer))
        timer_set(timers_of(p), &p->life->timer, timeout);
    if (p->life || !page_pipe(p) || !p->dialect->answers_ping)
        return;
    if (!p->dialect->ping) {
        p->life = page_request_ask(p, PAGE_REQUEST_LIFE, "ping", SPAN("{}"), timeout);
    } else {
        p->life = request_new(p, PAGE_REQUEST_LIFE, timeout);
        pipe_send(p->life->pipe, span_str(p->dialect->ping), true);
    }
}

/* A call may be what makes the user, or the page itself, go on to another page: that a page is new
 * counts for its first call only. */
static bool is_surely_there(const struct page *p)
{
    uint64_t now = loop_now(p->session->browser->loop);

    if (p->answers_pings && !p->was_called && now - p->came_at <= NEW_MS)
        return true;
    return p->has_answered && now - p->heard_at <= FRESH_MS;
}

struct page_request *page_request_call(struct page *p, struct span params, uint64_t timeout)
{
    BUF_SCOPED text = {0};

    /* The ping is sent before the call, even if the call does not wait for the answer: a page that
     * works on a call may be too busy to answer a ping. */
    if (!is_surely_there(p)) {
        if (p->life && !p->was_called)
            page_request_free(p->life); /* a page may not listen yet when it registers */
        page_request_ask_life(p, 0);
    }
    p->was_called = true;
    /* The ping that is not answered may be an older one, which has more time than a call. */
    if (p->life && !next_call(p))
        timer_set(timers_of(p), &p->life->timer, LIFE_MS);
    struct page_request *r = request_new(p, PAGE_REQUEST_CALL, timeout);
    if (p->dialect->put_call)
        p->dialect->put_call(&text, r->n, params);
    else
        put_request(&text, r, "tools/call", params);
    /* A page that is known to answer pings gets the call after its answer: a frozen page would run
     * the call when it wakes up, long after the agent was told that the call failed. */
    if (p->life && p->answers_pings)
        buf_span(&r->held, buf_view(&text));
    else
        pipe_send(r->pipe, buf_view(&text), true);
    return r;
}

/* Only our own scripts know notifications/cancelled. */
void page_request_call_off(const struct page_request *r)
{
    struct pipe *pipe = page_pipe(r->page);
    BUF_SCOPED text = {0};

    if (!r->page->ours || !pipe)
        return;
    buf_printf(&text,
               "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":"
               "{\"requestId\":\"btcp-%" PRIu64 "\"}}",
               r->n);
    pipe_send(pipe, buf_view(&text), true);
}

void page_request_free(struct page_request *r)
{
    struct page *p = r->page;

    timer_clear(timers_of(p), &r->timer);
    list_remove(&r->in_page);
    if (p->life == r)
        p->life = NULL;
    else if (p->life && !timer_is_set(&p->life->timer) && r->kind == PAGE_REQUEST_CALL)
        page_request_ask_life(p, 0); /* the page may not be busy any more */
    idmap_take(&p->session->browser->requests, r->n);
    buf_fini(&r->wanted);
    buf_fini(&r->held);
    mem_free(r);
}

static void finish_call(struct page_request *r, const struct page_message *m)
{
    struct call *call = r->call;
    BUF_SCOPED body = {0}, scratch = {0};
    struct outcome outcome = {.kind = OUTCOME_RESULT};

    page_request_free(r);
    if (m->result.n) {
        outcome.is_error = result_put(&body, m->result, call && call->takes_structured);
    } else {
        struct json_slot message = json_get(m->error, "message");
        outcome.kind = OUTCOME_ERROR;
        result_put_error(&body, m->error);
        if (message.type == JSON_STRING)
            outcome.text = json_text(message.value, &scratch);
    }
    outcome.body = buf_view(&body);
    if (call)
        call_done(call, &outcome);
}

/* The answer is {tools: [...]}; some pages send the bare array. */
static void take_list(struct page_request *r, const struct page_message *m)
{
    struct page *p = r->page;
    struct span tools = m->result;
    struct err err;

    struct pipe *pipe = r->pipe;
    page_request_free(r);
    if (m->error.n && pipe && pipe->join) {
        pipe_close(pipe, 1000, "the server does not have this session"); /* join.c tries again */
        return;
    }
    if (pipe && pipe->join)
        join_entered(pipe->join);
    if (json_type_of(tools) == JSON_OBJECT)
        tools = json_get(m->result, "tools").value;
    if (!p->registered && tools.n && json_type_of(tools) == JSON_ARRAY &&
        page_register(p, tools, &err))
        log_warn("browser", "tools of a page in session %s are not taken: %s", p->session->id,
                 err.text);
}

static struct page_request *request_of(const struct browser *b, struct span raw_id)
{
    BUF_SCOPED scratch = {0}, wanted = {0};
    struct page_request *r = NULL;

    if (json_type_of(raw_id) == JSON_STRING) {
        struct span id = json_text(raw_id, &scratch), number = span_from(id, 5);
        int64_t n;
        number = span_cut(number, 0, span_find(number, '-'));
        if (span_starts(id, SPAN("btcp-")) && json_int(number, &n) && n > 0)
            r = idmap_get(&b->requests, (uint64_t)n);
        if (r)
            put_request_id(&wanted, r);
        if (r && !span_eq(id, buf_view(&wanted)))
            r = NULL;
    }
    return r;
}

bool page_request_answer(const struct sender *from, const struct page_message *m)
{
    struct page_request *r = request_of(from->browser, m->id);

    if (!r)
        return false;
    bool by_id = from->dialect->answers_by_id && r->page->dialect->answers_by_id;
    if (!by_id && r->page != from->page) {
        log_warn("browser", "a page of session %s answered a call that was not sent to it",
                 from->session ? from->session->id : "-");
        return false;
    }
    session_touch(r->page->session);
    /* Answers to our requests do not count towards the limit of messages in a second. */
    if (r->pipe && r->pipe->in_window)
        r->pipe->in_window--;
    enum page_request_kind kind = r->kind;
    if (kind == PAGE_REQUEST_LIFE && r->pipe && r->pipe->ws && !next_call(r->page))
        ws_acknowledge(r->pipe->ws);
    page_request_lives(r->page, kind == PAGE_REQUEST_LIFE);
    if (kind == PAGE_REQUEST_LIFE)
        return true;
    if (kind == PAGE_REQUEST_LIST)
        take_list(r, m);
    else if (kind == PAGE_REQUEST_CONSENT)
        grants_answered(r, m);
    else
        finish_call(r, m);
    return true;
}
