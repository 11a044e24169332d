/* Our requests to a page: calls, lists, consent, pings; from sending to the answer, the timeout or
 * the end of the page. Called by page.c, session.c, grants.c, join.c, browser.c and, for answers,
 * sender.c and relay.c. */
#include "browser/page_errand.h"

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
    LIFE_MS = 1500, /* a call waits this long for the answer to a ping */
};

static struct timers *timers_of(const struct page *p)
{
    return loop_timers(p->session->browser->loop);
}

static void fail_errand(struct page_errand *e, const char *code, struct span why)
{
    struct call *call = e->call;
    BUF_SCOPED body = {0};
    bool consent = e->kind == ERRAND_CONSENT;

    if (call && consent) {
        grants_late(e);
        call = NULL;
    }
    page_errand_free(e);
    if (!call)
        return;
    result_put_failure(&body, code, why);
    call_done(call, &(struct outcome){.kind = OUTCOME_ERROR, .body = buf_view(&body), .text = why});
}

void page_errand_fail_all(struct page *p, const struct pipe *pipe)
{
    for (bool again = true; again;) {
        again = false;
        LIST_EACH (&p->errands, it) {
            struct page_errand *e = LIST_ENTRY(it, struct page_errand, in_page);
            if (pipe && e->pipe != pipe)
                continue;
            /* Ending a call may begin another one and change the list: start over. */
            fail_errand(e, "CONNECTION_ERROR", SPAN("The page left before it answered"));
            again = true;
            break;
        }
    }
}

static struct page_errand *next_call(const struct page *p)
{
    LIST_EACH (&p->errands, it)
        if (LIST_ENTRY(it, struct page_errand, in_page)->kind == ERRAND_CALL)
            return LIST_ENTRY(it, struct page_errand, in_page);
    return NULL;
}

/* Was the page sent a call that it has not answered? It may be too busy to answer a ping. */
static bool is_busy(const struct page *p)
{
    LIST_EACH (&p->errands, it) {
        const struct page_errand *e = LIST_ENTRY(it, struct page_errand, in_page);
        if (e->kind == ERRAND_CALL && !e->held.n)
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
    for (struct page_errand *e; (e = next_call(p));)
        fail_errand(e, "CONNECTION_ERROR", SPAN(PAGE_SILENT));
    if (p->silent && !was_silent)
        session_changed(p->session);
}

void page_errand_lives(struct page *p, bool pong)
{
    bool was_silent = p->silent;

    p->has_answered = true;
    page_heard(p);
    p->answers_pings |= pong;
    p->silent = false;
    if (p->life)
        page_errand_free(p->life);
    LIST_EACH (&p->errands, it) {
        struct page_errand *e = LIST_ENTRY(it, struct page_errand, in_page);
        if (e->held.n && page_pipe(p))
            pipe_send(page_pipe(p), buf_view(&e->held), true);
        e->held.n = 0;
    }
    if (was_silent)
        session_changed(p->session);
}

static void on_late(struct timer *t)
{
    struct page_errand *e = CONTAINER_OF(t, struct page_errand, timer);

    if (e->kind == ERRAND_CONSENT) {
        grants_late(e); /* not the end: the user may still answer */
        return;
    }
    if (e->kind == ERRAND_LIFE) {
        judge(e->page);
        return;
    }
    page_errand_call_off(e);
    fail_errand(e, "TIMEOUT", SPAN("Tool execution timeout"));
}

static void put_errand_id(struct buf *out, const struct page_errand *e)
{
    buf_str(out, "btcp-");
    buf_u64(out, e->n);
    if (e->secret)
        buf_printf(out, "-%016" PRIx64, e->secret);
}

static struct page_errand *errand_new(struct page *p, enum errand_kind kind, uint64_t timeout)
{
    struct browser *b = p->session->browser;
    struct page_errand *e = MEM_NEW(struct page_errand);

    e->n = ++b->last_errand;
    e->secret = p->dialect->answers_by_id ? id_random_u64() | 1 : 0;
    e->kind = kind;
    e->page = p;
    e->pipe = page_pipe(p);
    e->timer.fire = on_late;
    idmap_put(&b->errands, e->n, e);
    list_append(&p->errands, &e->in_page);
    timer_set(timers_of(p), &e->timer, timeout);
    return e;
}

static void put_request(struct buf *out, const struct page_errand *e, const char *method,
                        struct span params)
{
    buf_str(out, "{\"jsonrpc\":\"2.0\",\"id\":\"");
    put_errand_id(out, e);
    buf_str(out, "\",\"method\":\"");
    buf_str(out, method);
    buf_str(out, "\",\"params\":");
    buf_span(out, params);
    buf_char(out, '}');
}

struct page_errand *page_errand_ask(struct page *p, enum errand_kind kind, const char *method,
                                    struct span params, uint64_t timeout)
{
    BUF_SCOPED text = {0};

    if (!page_pipe(p))
        return NULL;
    struct page_errand *e = errand_new(p, kind, timeout);
    put_request(&text, e, method, params);
    pipe_send(e->pipe, buf_view(&text), true);
    return e;
}

void page_errand_ask_life(struct page *p, uint64_t timeout)
{
    timeout = timeout ? timeout : LIFE_MS;
    /* A ping that was not answered in time is still pending: its timer is set again. */
    if (p->life && !timer_is_set(&p->life->timer))
        timer_set(timers_of(p), &p->life->timer, timeout);
    if (p->life || !page_pipe(p) || !p->dialect->answers_ping)
        return;
    if (!p->dialect->ping) {
        p->life = page_errand_ask(p, ERRAND_LIFE, "ping", SPAN("{}"), timeout);
    } else {
        p->life = errand_new(p, ERRAND_LIFE, timeout);
        pipe_send(p->life->pipe, span_str(p->dialect->ping), true);
    }
}

struct page_errand *page_errand_call(struct page *p, struct span params, uint64_t timeout)
{
    uint64_t now = loop_now(p->session->browser->loop);
    BUF_SCOPED text = {0};

    /* The ping is sent before the call, even if the call does not wait for the answer: a page that
     * works on a call may be too busy to answer a ping. */
    if (!p->has_answered || now - p->heard_at > FRESH_MS)
        page_errand_ask_life(p, 0);
    /* The ping that is not answered may be an older one, which has more time than a call. */
    if (p->life && !next_call(p))
        timer_set(timers_of(p), &p->life->timer, LIFE_MS);
    struct page_errand *e = errand_new(p, ERRAND_CALL, timeout);
    if (p->dialect->put_call)
        p->dialect->put_call(&text, e->n, params);
    else
        put_request(&text, e, "tools/call", params);
    /* A page that is known to answer pings gets the call after its answer: a frozen page would run
     * the call when it wakes up, long after the agent was told that the call failed. */
    if (p->life && p->answers_pings)
        buf_span(&e->held, buf_view(&text));
    else
        pipe_send(e->pipe, buf_view(&text), true);
    return e;
}

/* Only our own scripts know notifications/cancelled. */
void page_errand_call_off(const struct page_errand *e)
{
    struct pipe *pipe = page_pipe(e->page);
    BUF_SCOPED text = {0};

    if (!e->page->ours || !pipe)
        return;
    buf_printf(&text,
               "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":"
               "{\"requestId\":\"btcp-%" PRIu64 "\"}}",
               e->n);
    pipe_send(pipe, buf_view(&text), true);
}

void page_errand_free(struct page_errand *e)
{
    struct page *p = e->page;

    timer_clear(timers_of(p), &e->timer);
    list_remove(&e->in_page);
    if (p->life == e)
        p->life = NULL;
    else if (p->life && !timer_is_set(&p->life->timer) && e->kind == ERRAND_CALL)
        page_errand_ask_life(p, 0); /* the page may not be busy any more */
    idmap_take(&p->session->browser->errands, e->n);
    buf_fini(&e->wanted);
    buf_fini(&e->held);
    mem_free(e);
}

static void finish_call(struct page_errand *e, const struct page_message *m)
{
    struct call *call = e->call;
    BUF_SCOPED body = {0}, scratch = {0};
    struct outcome outcome = {.kind = OUTCOME_RESULT};

    page_errand_free(e);
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
static void take_list(struct page_errand *e, const struct page_message *m)
{
    struct page *p = e->page;
    struct span tools = m->result;
    struct err err;

    struct pipe *pipe = e->pipe;
    page_errand_free(e);
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

static struct page_errand *errand_of(const struct browser *b, struct span raw_id)
{
    BUF_SCOPED scratch = {0}, wanted = {0};
    struct page_errand *e = NULL;

    if (json_type_of(raw_id) == JSON_STRING) {
        struct span id = json_text(raw_id, &scratch), number = span_from(id, 5);
        int64_t n;
        number = span_cut(number, 0, span_find(number, '-'));
        if (span_starts(id, SPAN("btcp-")) && json_int(number, &n) && n > 0)
            e = idmap_get(&b->errands, (uint64_t)n);
        if (e)
            put_errand_id(&wanted, e);
        if (e && !span_eq(id, buf_view(&wanted)))
            e = NULL;
    }
    return e;
}

bool page_errand_answer(const struct sender *from, const struct page_message *m)
{
    struct page_errand *e = errand_of(from->browser, m->id);

    if (!e)
        return false;
    bool by_id = from->dialect->answers_by_id && e->page->dialect->answers_by_id;
    if (!by_id && e->page != from->page) {
        log_warn("browser", "a page of session %s answered a call that was not sent to it",
                 from->session ? from->session->id : "-");
        return false;
    }
    session_touch(e->page->session);
    /* Answers to our requests do not count towards the limit of messages in a second. */
    if (e->pipe && e->pipe->in_window)
        e->pipe->in_window--;
    enum errand_kind kind = e->kind;
    page_errand_lives(e->page, kind == ERRAND_LIFE);
    if (kind == ERRAND_LIFE)
        return true;
    if (kind == ERRAND_LIST)
        take_list(e, m);
    else if (kind == ERRAND_CONSENT)
        grants_answered(e, m);
    else
        finish_call(e, m);
    return true;
}
