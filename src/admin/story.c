/* A recorded call as a story: the parties, and each message that went from one to the next. Called
 * by calls.c. */
#include "admin/story.h"
#include "mcp/protocol.h"
#include "wire/json_merge.h"
#include "wire/json_out.h"

#include <inttypes.h>

enum { WHAT_SHOWN = 500, PATH_MAX_PARTIES = 5 };

/* Where a message begins or ends. */
enum party { AGENT, RIALTO, SERVER, PARTIES };

struct story {
    struct buf *out;
    const struct admin *a;
    const struct record *rec;
    const char *path[PATH_MAX_PARTIES]; /* the ids of the parties, from the agent to the server */
    size_t n;
    size_t place[PARTIES]; /* in `path` */
};

/* What a message says. */
struct story_message {
    uint64_t at;
    const char *kind;
    struct span what;
    struct record_body body;
};

/* --- the parties --- */

/* Does a bus lie between us and the server? */
static bool goes_by_bus(const struct admin *a, const struct record *rec)
{
    const struct provider *p = rec->server.n ? router_provider(a->router, rec->server) : NULL;
    const char *transport = p ? provider_describe(p).transport : NULL;

    return transport && strcmp(transport, "bus") == 0;
}

static void find_path(struct story *s)
{
    const struct record *rec = s->rec;

    s->path[s->n++] = "agent";
    if (span_is(rec->way, "bus"))
        s->path[s->n++] = "bus";
    s->place[RIALTO] = s->n;
    s->path[s->n++] = "rialto";
    if (goes_by_bus(s->a, rec))
        s->path[s->n++] = "bus";
    if (rec->server.n)
        s->path[s->n++] = rec->page.n ? "page" : "server";
    s->place[SERVER] = s->n - 1;
}

/* "claude-code 2.1"; for an agent that gives no name, its token or the endpoint that it used. */
static void put_agent(struct buf *out, const struct story *s)
{
    struct span info = calls_client(s->a, s->rec);
    BUF_SCOPED scratch = {0};

    if (info.n) {
        buf_span(out, json_text(json_get(info, "name").value, &scratch));
        struct json_slot version = json_get(info, "version");
        if (version.type == JSON_STRING) {
            buf_reset(&scratch, 0);
            buf_char(out, ' ');
            buf_span(out, json_text(version.value, &scratch));
        }
        return;
    }
    buf_str(out, "agent");
    struct span more = s->rec->token.n ? s->rec->token : s->rec->way;
    if (more.n)
        buf_printf(out, " (" SPAN_FMT ")", SPAN_ARG(more));
}

static void put_parties(const struct story *s)
{
    const struct record *rec = s->rec;
    bool bus = false;

    json_out_open(s->out, "parties", '[');
    for (size_t i = 0; i < s->n; i++) {
        BUF_SCOPED label = {0};
        const char *id = s->path[i];
        if (strcmp(id, "bus") == 0 && bus)
            continue; /* the agent and the server are on the same bus */
        if (i == s->place[AGENT])
            put_agent(&label, s);
        else if (i == s->place[RIALTO])
            buf_str(&label, "Rialto");
        else if (i == s->place[SERVER])
            buf_span(&label, rec->page.n ? rec->page : rec->server);
        else
            buf_str(&label, "message bus");
        bus |= strcmp(id, "bus") == 0;
        json_out_open(s->out, NULL, '{');
        json_out_str(s->out, "id", id);
        calls_put_text(s->out, "label", buf_view(&label), WHAT_SHOWN);
        buf_char(s->out, '}');
    }
    buf_char(s->out, ']');
}

/* --- messages --- */

static void put_leg(const struct story *s, size_t from, size_t to, const struct story_message *m)
{
    struct buf *out = s->out;

    json_out_open(out, NULL, '{');
    json_out_number(out, "ms", m->at > s->rec->opened_at ? m->at - s->rec->opened_at : 0);
    json_out_str(out, "from", s->path[from]);
    json_out_str(out, "to", s->path[to]);
    json_out_str(out, "kind", m->kind);
    calls_put_text(out, "what", m->what, WHAT_SHOWN);
    json_out_bool(out, "cut", !calls_put_body(out, "body", s->a, &m->body));
    buf_char(out, '}');
}

/* A message passes every party on its way: one leg for each hop. */
static void put_message(const struct story *s, enum party from, enum party to,
                        const struct story_message *m)
{
    size_t at = s->place[from], end = s->place[to];

    if (at == end)
        put_leg(s, at, end, m);
    while (at != end) {
        size_t next = at < end ? at + 1 : at - 1;
        put_leg(s, at, next, m);
        at = next;
    }
}

/* The params as the server gets them: with its own name of the item and the pinned arguments, and
 * without the agent's _meta. */
static void put_sent_params(struct buf *out, const struct record *rec)
{
    struct json_iter it = json_iter(rec->params.kept);
    struct span given = SPAN_EMPTY;

    buf_char(out, '{');
    while (json_next(&it)) {
        if (json_string_is(it.key, SPAN("_meta")))
            continue;
        if (rec->pinned.whole && json_string_is(it.key, SPAN("arguments"))) {
            given = it.value;
            continue;
        }
        if (out->n > 1)
            buf_char(out, ',');
        bool name = json_string_is(it.key, SPAN("name")) || json_string_is(it.key, SPAN("uri"));
        if (!name || rec->op == OP_OTHER) {
            buf_span(out, it.member);
            continue;
        }
        buf_span(out, it.key);
        buf_char(out, ':');
        json_quote(out, rec->name);
    }
    if (rec->pinned.whole) {
        json_out(out, "arguments");
        json_merge_put(out, given, rec->pinned.kept);
    }
    buf_char(out, '}');
}

static bool has_members(const struct story *s)
{
    const struct record_body *params = &s->rec->params, *pinned = &s->rec->pinned;

    return params->whole && params->kept.n == params->whole && pinned->kept.n == pinned->whole &&
           json_type_of(params->kept) == JSON_OBJECT;
}

/* "tools/call add" */
static void put_request_name(struct buf *out, const struct story *s, struct span name)
{
    const char *method = mcp_operations[s->rec->op].method;

    if (method)
        buf_printf(out, "%s ", method);
    buf_span(out, name);
}

static void put_request(const struct story *s)
{
    BUF_SCOPED what = {0}, scratch = {0};
    struct json_slot name = {0};

    if (s->rec->op != OP_OTHER && has_members(s))
        name = json_get(s->rec->params.kept, "name");
    put_request_name(&what, s,
                     name.type == JSON_STRING ? json_text(name.value, &scratch) : s->rec->name);
    if (s->rec->resumes)
        buf_str(&what, " (goes on, with answers)");
    put_message(s, AGENT, RIALTO,
                &(struct story_message){.at = s->rec->opened_at,
                                        .kind = "request",
                                        .what = buf_view(&what),
                                        .body = s->rec->params});
}

static void put_sent(const struct story *s, uint64_t at)
{
    BUF_SCOPED what = {0}, params = {0};
    struct story_message m = {.at = at, .kind = "request", .body = s->rec->params};

    put_request_name(&what, s, s->rec->name);
    m.what = buf_view(&what);
    m.body.whole += s->rec->pinned.whole; /* never shown as whole without the pinned arguments */
    if (has_members(s)) {
        put_sent_params(&params, s->rec);
        m.body = (struct record_body){buf_view(&params), params.n};
    }
    put_message(s, RIALTO, SERVER, &m);
}

static bool is_input_required(const struct record *rec)
{
    return rec->kind == OUTCOME_RESULT && rec->result.kept.n == rec->result.whole &&
           rec->result.whole && json_type_of(rec->result.kept) == JSON_OBJECT &&
           json_string_is(json_get(rec->result.kept, "resultType").value, SPAN("input_required"));
}

static void put_end(const struct story *s)
{
    const struct record *rec = s->rec;
    struct story_message m = {.at = rec->opened_at + rec->took, .body = rec->result};

    if (rec->kind == OUTCOME_FAILED && rec->why == FAIL_CANCELLED)
        return; /* the agent cancelled the call, and gets no answer */
    if (rec->kind == OUTCOME_FAILED) {
        m.kind = "error";
        m.what = rec->error;
        put_message(s, RIALTO, AGENT, &m);
        return;
    }
    bool wrong = rec->kind == OUTCOME_ERROR || rec->is_error, asks = is_input_required(rec);
    m.kind = wrong ? "error" : asks ? "question" : "result";
    m.what = rec->kind == OUTCOME_ERROR ? SPAN("error")
             : wrong                    ? SPAN("result, which says that the tool failed")
             : asks                     ? SPAN("wants input: the call goes on in another one")
                                        : SPAN("result");
    put_message(s, SERVER, AGENT, &m);
}

/* --- what happened in between --- */

static const struct {
    enum party from, to;
    const char *kind;
    bool early;                 /* comes before the request if both have the same time */
    const char *before, *alone; /* words before the leg's text; words of a leg without a text */
} leg_rows[] = {
    [LEG_WAITS] = {RIALTO, RIALTO, "notice", true, "waits for the server: ", NULL},
    [LEG_EVENT] = {SERVER, AGENT, "notice", false, "", NULL},
    [LEG_ASK] = {SERVER, AGENT, "question", false, "", NULL},
    [LEG_OWN_ASK] = {RIALTO, AGENT, "question", true, "", NULL},
    [LEG_ANSWER] = {AGENT, SERVER, "answer", false, "", "answer"},
    [LEG_OWN_ANSWER] = {AGENT, RIALTO, "answer", true, "no answer: ", "answer"},
    [LEG_REFUSED_ANSWER] = {RIALTO, SERVER, "answer", false, "no answer: ", "no answer"},
    [LEG_UNASK] = {SERVER, AGENT, "notice", false, "", "the question is taken back"},
    [LEG_OWN_UNASK] = {RIALTO, AGENT, "notice", true, "", "the question is taken back"},
    [LEG_HELD] = {RIALTO, RIALTO, "notice", true, "", "held until somebody approves the call"},
    [LEG_ALLOWED] = {RIALTO, RIALTO, "decision", true, "approved by ", NULL},
    [LEG_REFUSED] = {RIALTO, RIALTO, "decision", true, "refused by ", NULL},
    [LEG_RETRY] = {RIALTO, RIALTO, "retry", false, "the request is repeated: ", NULL},
    [LEG_CANCEL] = {AGENT, RIALTO, "cancel", false, "", "cancelled by the agent"},
    [LEG_CALLED_OFF] = {RIALTO, SERVER, "cancel", false, "cancelled: ", NULL},
};

/* The methods of the events that have one of their own. */
static const char *const event_methods[] = {
    [EVENT_PROGRESS] = "notifications/progress",
    [EVENT_LOG] = "notifications/message",
    [EVENT_UPDATED] = "notifications/resources/updated",
    [EVENT_OTHER] = NULL,
};

static void put_leg_of(const struct story *s, const struct record_leg *leg)
{
    BUF_SCOPED what = {0};

    if (leg->kind == LEG_SENT) {
        put_sent(s, leg->at);
        return;
    }
    if (leg->kind == LEG_EVENT && leg->event < COUNT_OF(event_methods) && event_methods[leg->event])
        buf_str(&what, event_methods[leg->event]);
    else if (leg->what.n || !leg_rows[leg->kind].alone)
        buf_printf(&what, "%s" SPAN_FMT, leg_rows[leg->kind].before, SPAN_ARG(leg->what));
    else
        buf_str(&what, leg_rows[leg->kind].alone);
    put_message(s, leg_rows[leg->kind].from, leg_rows[leg->kind].to,
                &(struct story_message){.at = leg->at,
                                        .kind = leg_rows[leg->kind].kind,
                                        .what = buf_view(&what),
                                        .body = leg->body});
}

static void put_left_out(const struct story *s)
{
    BUF_SCOPED what = {0};

    buf_printf(&what, "and %" PRIu64 " more", s->rec->left_out);
    put_leg(s, s->place[SERVER], s->place[RIALTO],
            &(struct story_message){
                .at = s->rec->left_out_at, .kind = "notice", .what = buf_view(&what)});
}

/* Was the request sent before this leg, or (NULL) before the end? */
static bool was_sent_before(const struct record_leg *leg, uint64_t sent_at)
{
    return !leg || leg->at > sent_at || leg->kind == LEG_SENT || !leg_rows[leg->kind].early;
}

void story_put(struct buf *out, const struct admin *a, const struct record *rec)
{
    struct story s = {.out = out, .a = a, .rec = rec};
    const struct call *c = rec->ended ? NULL : router_find(a->router, rec->id);
    bool sent = c ? c->tries > 0 : rec->sent, left_out = rec->left_out > 0;
    uint64_t sent_at = c ? c->sent_at : rec->sent_at;

    find_path(&s);
    put_parties(&s);
    json_out_open(out, "story", '[');
    put_request(&s);
    if (rec->by_rule)
        put_leg_of(&s, &(struct record_leg){.kind = rec->allowed ? LEG_ALLOWED : LEG_REFUSED,
                                            .at = rec->opened_at,
                                            .what = rec->decided_by});
    for (const struct record_leg *leg = rec->legs;; leg = leg->next) {
        if (sent && was_sent_before(leg, sent_at)) {
            put_sent(&s, sent_at);
            sent = false;
        }
        if (left_out && (!leg || leg->at > rec->left_out_at)) {
            put_left_out(&s);
            left_out = false;
        }
        if (!leg)
            break;
        put_leg_of(&s, leg);
    }
    if (rec->ended)
        put_end(&s);
    buf_char(out, ']');
}
