/* Granting, revoking and checking capabilities in a session, and the meta-tool for agents to ask a
 * page's user for more. Called by session.c, guide.c, page.c, page_request.c and sender.c. */
#include "browser/grants.h"

#include "base/log.h"
#include "base/mem.h"
#include "browser/capability.h"
#include "browser/kept.h"
#include "browser/page_request.h"
#include "browser/sender.h"
#include "wire/json_out.h"
#include "wire/rpc.h"

/* Grants of a session, names in one request, and open questions to the user of one page. */
enum { GRANTS_MAX = 256, WANTED_MAX = 64, QUESTIONS_MAX = 8 };

/* --- grants of a session --- */

void grants_drop(struct grant *g)
{
    list_remove(&g->node);
    mem_free(g->origin);
    mem_free(g);
}

static bool same_origin(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

bool grants_concern(const struct grant *g, const struct page *page)
{
    return !g->origin || !page->origin || same_origin(g->origin, page->origin);
}

bool grants_cover(const struct browser_session *s, const struct page *page, struct span capability)
{
    const struct browser_options *o = &s->browser->options;

    for (size_t i = 0; i < o->n_granted; i++)
        if (capability_covers(o->granted[i], capability))
            return true;
    LIST_EACH (&s->grants, it) {
        const struct grant *g = LIST_ENTRY(it, struct grant, node);
        if ((!page || grants_concern(g, page)) && capability_covers(span_str(g->name), capability))
            return true;
    }
    return false;
}

static void add_grant(struct browser_session *s, const char *origin, struct span name,
                      enum grant_kind kind)
{
    size_t n = 0;

    LIST_EACH (&s->grants, it) {
        struct grant *g = LIST_ENTRY(it, struct grant, node);
        n++;
        if (!span_is(name, g->name) || !same_origin(g->origin, origin))
            continue;
        g->kind = kind > g->kind ? kind : g->kind;
        return;
    }
    if (n >= GRANTS_MAX)
        return;
    struct grant *g = mem_zalloc(sizeof *g + name.n + 1);
    g->kind = kind;
    g->origin = origin ? mem_str(origin) : NULL;
    if (name.n)
        memcpy(g->name, name.p, name.n);
    list_append(&s->grants, &g->node);
}

void grants_add(struct browser_session *s, const struct page *page, struct span array,
                enum grant_kind kind)
{
    struct json_iter it = json_iter(array);
    BUF_SCOPED scratch = {0};
    bool kept = kind == GRANT_PERSISTENT && page->origin;

    while (json_next(&it)) {
        scratch.n = 0;
        struct span name = it.type == JSON_STRING ? json_text(it.value, &scratch) : SPAN_EMPTY;
        if (!capability_is_valid(name))
            continue;
        add_grant(s, page->origin, name, kind);
        if (kept)
            kept_add(s->browser->kept, span_str(page->origin), name);
    }
    if (kept)
        kept_save(s->browser->kept);
    session_changed(s);
}

/* Revokes a persistent grant in every session: it was given to the origin, not to one session. */
static void revoke_kept(struct browser_session *s, const char *origin, const char *name)
{
    size_t at = 0;
    void *value;

    kept_drop(s->browser->kept, origin, name);
    while (map_next(&s->browser->sessions, &at, NULL, &value)) {
        struct browser_session *other = value;
        bool any = false;
        LIST_EACH_SAFE (&other->grants, it) {
            struct grant *g = LIST_ENTRY(it, struct grant, node);
            if (g->kind != GRANT_PERSISTENT || !same_origin(g->origin, origin) ||
                strcmp(g->name, name) != 0)
                continue;
            grants_drop(g);
            any = true;
        }
        if (any && other != s)
            session_changed(other);
    }
}

void grants_revoke(struct browser_session *s, const struct page *page, struct span array)
{
    struct json_iter wanted = json_iter(array);
    BUF_SCOPED scratch = {0};

    while (json_next(&wanted)) {
        if (wanted.type != JSON_STRING)
            continue;
        scratch.n = 0;
        struct span name = json_text(wanted.value, &scratch);
        LIST_EACH_SAFE (&s->grants, it) {
            struct grant *g = LIST_ENTRY(it, struct grant, node);
            if (span_is(name, g->name) && grants_concern(g, page))
                grants_drop(g);
        }
        if (page->origin && capability_is_valid(name)) {
            char *text = mem_span(name);
            revoke_kept(s, page->origin, text);
            mem_free(text);
        }
    }
    kept_save(s->browser->kept);
    session_changed(s);
}

void grants_recall(struct browser_session *s, const struct page *page)
{
    const struct kept_grant *g = NULL;

    if (s->browser->options.listed_only || !page->origin)
        return;
    while ((g = kept_next(s->browser->kept, g)))
        if (strcmp(g->origin, page->origin) == 0)
            add_grant(s, g->origin, span_str(g->name), GRANT_PERSISTENT);
}

/* Drops the grants for one call (GRANT_ONCE) that this call uses. */
void grants_use_once(struct browser_session *s, const struct page *page, const struct tool *tool)
{
    struct json_iter it = json_iter(tool->capabilities);
    BUF_SCOPED scratch = {0};
    bool any = false;

    while (s->enforces && tool->capabilities.n && json_next(&it)) {
        scratch.n = 0;
        struct span name = it.type == JSON_STRING ? json_text(it.value, &scratch) : SPAN_EMPTY;
        LIST_EACH_SAFE (&s->grants, at) {
            struct grant *g = LIST_ENTRY(at, struct grant, node);
            if (g->kind != GRANT_ONCE || !grants_concern(g, page) ||
                !capability_covers(span_str(g->name), name))
                continue;
            grants_drop(g);
            any = true;
        }
    }
    if (any)
        session_changed_late(s); /* not at once: a call to this session is on the stack */
}

enum grant_kind grants_kind(struct span params)
{
    struct json_slot type = json_get(params, "type");

    if (json_string_is(type.value, SPAN("persistent")))
        return GRANT_PERSISTENT;
    return json_string_is(type.value, SPAN("once")) ? GRANT_ONCE : GRANT_SESSION;
}

/* --- the meta-tool --- */

static void put_list(struct buf *out, const char *member, struct span items)
{
    json_out_open(out, member, '[');
    buf_span(out, items);
    buf_char(out, ']');
}

/* Ends the call: tells which wanted capabilities are granted to this page (NULL: to any). */
static void answer(struct browser_session *s, const struct page *page, struct call *call,
                   struct span wanted, bool pending)
{
    struct json_iter it = json_iter(wanted);
    BUF_SCOPED granted = {0}, other = {0}, report = {0}, result = {0}, scratch = {0};

    while (json_next(&it)) {
        scratch.n = 0;
        bool has = !s->enforces || grants_cover(s, page, json_text(it.value, &scratch));
        json_out_raw(has ? &granted : &other, NULL, it.value);
    }
    buf_char(&report, '{');
    put_list(&report, "granted", buf_view(&granted));
    put_list(&report, "denied", pending ? SPAN_EMPTY : buf_view(&other));
    put_list(&report, "pending", pending ? buf_view(&other) : SPAN_EMPTY);
    buf_char(&report, '}');
    buf_str(&result, "{\"content\":[{\"type\":\"text\",\"text\":");
    json_quote(&result, buf_view(&report));
    buf_str(&result, "}]}");
    call_done(call, &(struct outcome){.kind = OUTCOME_RESULT, .body = buf_view(&result)});
}

static bool is_list_of_names(struct json_slot list)
{
    struct json_iter it = json_iter(list.value);
    BUF_SCOPED scratch = {0};
    bool fine = list.type == JSON_ARRAY;
    size_t n = 0;

    while (fine && json_next(&it)) {
        scratch.n = 0;
        fine = it.type == JSON_STRING && capability_is_valid(json_text(it.value, &scratch)) &&
               ++n <= WANTED_MAX;
    }
    return fine && n;
}

/* Append the wanted capabilities that are not granted. */
static void put_lacking(struct buf *out, const struct browser_session *s, const struct page *page,
                        struct span wanted)
{
    struct json_iter it = json_iter(wanted);
    BUF_SCOPED scratch = {0};

    while (json_next(&it)) {
        scratch.n = 0;
        if (!grants_cover(s, page, json_text(it.value, &scratch)))
            json_out_raw(out, NULL, it.value);
    }
}

static bool has_hidden_tools(const struct browser_session *s, const struct page *p)
{
    BUF_SCOPED scratch = {0};
    bool hidden = false;

    for (size_t i = 0; !hidden && i < p->n_tools; i++)
        hidden = session_lacks(s, p, &p->tools[i], &scratch).n > 0;
    return hidden;
}

/* The page whose user is asked: of the pages that can ask, the newest with hidden tools, else the
 * newest. NULL: no page can ask, or the configuration alone decides. */
static struct page *consenting_page(const struct browser_session *s)
{
    struct page *found = NULL;
    bool waits = false;

    if (s->browser->options.listed_only)
        return NULL;
    LIST_EACH (&s->pages, it) {
        struct page *p = LIST_ENTRY(it, struct page, node);
        if (!p->dialect->asks_users || p->cannot_ask || !page_is_here(p))
            continue;
        bool hidden = has_hidden_tools(s, p);
        if (hidden || !waits)
            found = p;
        waits |= hidden;
    }
    return found;
}

/* An unanswered question for the same capabilities that no call waits for any more; NULL: none.
 * Counts all unanswered questions of the page in `*n`. */
static struct page_request *open_question(const struct page *p, struct span wanted, size_t *n)
{
    struct page_request *same = NULL;

    LIST_EACH (&p->requests, it) {
        struct page_request *r = LIST_ENTRY(it, struct page_request, in_page);
        if (r->kind != PAGE_REQUEST_CONSENT)
            continue;
        ++*n;
        if (!r->call && span_eq(buf_view(&r->wanted), wanted))
            same = r;
    }
    return same;
}

/* An agent that asks again waits for the question that is already open; NULL: too many are open. */
static struct page_request *ask_user(struct page *p, struct span wanted, struct span lacking)
{
    struct browser *b = p->session->browser;
    size_t n = 0;
    struct page_request *r = open_question(p, wanted, &n);
    BUF_SCOPED params = {0};

    if (r)
        timer_set(loop_timers(b->loop), &r->timer, b->options.consent_timeout);
    if (r || n >= QUESTIONS_MAX)
        return r;
    buf_str(&params, "{\"capabilities\":[");
    buf_span(&params, lacking);
    buf_str(&params, "]}");
    r = page_request_ask(p, PAGE_REQUEST_CONSENT, "capabilities/request", buf_view(&params),
                         b->options.consent_timeout);
    buf_span(&r->wanted, wanted);
    return r;
}

void grants_open(struct browser_session *s, struct call *call, struct span arguments)
{
    struct json_slot wanted = json_get(arguments, "capabilities");
    struct page *p = consenting_page(s);
    BUF_SCOPED lacking = {0};

    if (!is_list_of_names(wanted)) {
        call_done(call, &(struct outcome){
                            .kind = OUTCOME_ERROR,
                            .body = SPAN(
                                "{\"code\":-32602,\"message\":\"capabilities must be a list of 1 "
                                "to 64 names\",\"data\":{\"btcpCode\":\"INVALID_PARAMS\"}}"),
                            .text = SPAN("capabilities must be a list of 1 to 64 names")});
        return;
    }
    put_lacking(&lacking, s, p, wanted.value);
    bool asks = lacking.n && p;
    struct page_request *r = asks ? ask_user(p, wanted.value, buf_view(&lacking)) : NULL;
    if (r) {
        r->call = call;
        call->provider_data = r;
    } else {
        answer(s, p, call, wanted.value, asks);
    }
}

/* The answer is {granted: [...]} or, as in the specification, {granted: true, approved: [...]}. */
static void take_grants(struct page_request *r, struct span result)
{
    struct browser_session *s = r->page->session;
    struct json_slot granted = json_get(result, "granted"), approved = json_get(result, "approved");
    enum grant_kind kind = grants_kind(result);

    if (granted.type == JSON_ARRAY)
        grants_add(s, r->page, granted.value, kind);
    else if (approved.type == JSON_ARRAY)
        grants_add(s, r->page, approved.value, kind);
    else if (granted.type == JSON_TRUE)
        grants_add(s, r->page, buf_view(&r->wanted), kind);
}

void grants_answered(struct page_request *r, const struct page_message *m)
{
    struct page *page = r->page;
    struct call *call = r->call;
    BUF_SCOPED wanted = {0};

    if (m->result.n && json_type_of(m->result) == JSON_OBJECT) {
        page->session->enforces = true; /* a page that can grant can also refuse */
        take_grants(r, m->result);
    } else {
        page->cannot_ask = true; /* an error: the page does not know the request */
    }
    buf_span(&wanted, buf_view(&r->wanted));
    page_request_free(r);
    if (call)
        answer(page->session, page, call, buf_view(&wanted), false);
}

void grants_late(struct page_request *r)
{
    struct call *call = r->call;

    r->call = NULL;
    if (call)
        answer(r->page->session, r->page, call, buf_view(&r->wanted), true);
}

/* A question whose capabilities are all granted by now; NULL: none. */
static struct page_request *settled_question(const struct page *p)
{
    LIST_EACH (&p->requests, it) {
        struct page_request *r = LIST_ENTRY(it, struct page_request, in_page);
        BUF_SCOPED lacking = {0};
        if (r->kind != PAGE_REQUEST_CONSENT)
            continue;
        put_lacking(&lacking, p->session, p, buf_view(&r->wanted));
        if (!lacking.n)
            return r;
    }
    return NULL;
}

void grants_settle(struct page *p)
{
    for (struct page_request *r; (r = settled_question(p));) {
        struct call *call = r->call;
        BUF_SCOPED wanted = {0};
        buf_span(&wanted, buf_view(&r->wanted));
        page_request_call_off(r); /* closes the dialog */
        page_request_free(r);
        if (call)
            answer(p->session, p, call, buf_view(&wanted), false);
    }
}
