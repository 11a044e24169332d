/*
 * What pages, BTCP agents and MCP-B's pages may send, on a browser family with one of each. A line
 * of the input is a message: its first character names the sender. '!' is a call of the tool that
 * the line names, by an agent of another family; '-' ends the connection that the line names.
 *
 * Whatever comes: what we reply is JSON, the lists that agents see are JSON, and every call that
 * was opened ends exactly once.
 */
#include "base/log.h"
#include "browser/agent.h"
#include "browser/pipe.h"
#include "browser/sender.h"
#include "wire/json.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

static const struct party {
    char letter;
    const struct dialect *dialect;
} parties[] = {
    {'p', &dialect_d3}, /* a page of ours with tools, which can ask its user */
    {'1', &dialect_d1},  {'2', &dialect_d2}, {'a', &dialect_d4a}, {'b', &dialect_d4b},
    {'5', &dialect_d5},  {'6', &dialect_d6}, {'8', &dialect_d8},  {'r', &dialect_relay},
    {'g', &dialect_d4a}, /* a BTCP agent of the page's session */
};
enum { PARTIES = COUNT_OF(parties), LINES_MAX = 64 };

struct stage {
    struct loop *loop;
    struct router *router;
    struct browser *browser;
    struct browser_session *session;
    struct pipe *pipes[PARTIES];
    struct peer agent;
    size_t opened, done;
    bool closed;
};

static bool is_json(struct span text)
{
    return json_skim(text, NULL, NULL, NULL, NULL) == 0;
}

static void on_done(struct peer *self, struct call *call, const struct outcome *outcome)
{
    struct stage *s = CONTAINER_OF(self, struct stage, agent);

    (void)call;
    s->done++;
    CHECK(s->done <= s->opened);
    CHECK(outcome->kind == OUTCOME_FAILED || is_json(outcome->body));
}

static void on_event(struct peer *self, struct call *call, const struct event *event)
{
    (void)self, (void)call, (void)event;
}

static const struct peer_verbs verbs = {.done = on_done, .event = on_event};

static void open_stage(struct stage *s)
{
    static const struct span granted[] = {{"dom:read", 8}};
    static const struct span tools =
        SPAN("[{\"name\":\"free\"},{\"name\":\"needs\",\"capabilities\":"
             "[\"dom:write\"]}]");
    struct err err;

    s->router = router_new(loop_timers(s->loop), 1);
    s->browser = browser_new(s->loop, s->router,
                             &(struct browser_options){.session_ttl = 3600 * 1000,
                                                       .max_sessions = 8,
                                                       .max_message = 1 << 20,
                                                       .consent_timeout = 25 * 1000,
                                                       .granted = granted,
                                                       .n_granted = 1});
    peer_init(&s->agent, &verbs);
    for (size_t i = 0; i < PARTIES; i++)
        s->pipes[i] = pipe_new(s->browser, parties[i].dialect, SPAN("http://localhost"));
    s->session = browser_make_session(s->browser, SPAN("S"));
    struct page *p = page_enter(s->session, SPAN_EMPTY, SPAN("http://localhost"), &dialect_d3);
    p->ours = s->session->enforces = true;
    page_attach(p, s->pipes[0]);
    CHECK(page_register(p, tools, &err) == 0);
    agent_join(agent_new(s->browser, s->pipes[PARTIES - 1]), s->session);
}

static void on_closed(void *arg)
{
    struct stage *s = arg;

    s->closed = true;
}

static void close_stage(struct stage *s)
{
    for (size_t i = 0; i < PARTIES; i++)
        if (s->pipes[i])
            pipe_free(s->pipes[i]);
    call_cancel_all(&s->agent);
    CHECK(s->done == s->opened);
    browser_close(s->browser, on_closed, s);
    while (!s->closed)
        loop_step(s->loop, 0);
    CHECK(router_call_count(s->router) == 0);
    router_free(s->router);
}

static void call_tool(struct stage *s, struct span name)
{
    struct buf params = {0};

    buf_str(&params, "{\"name\":");
    json_quote(&params, name);
    buf_str(&params, ",\"arguments\":{\"capabilities\":[\"dom:write\"]}}");
    s->opened++;
    (void)call_open(s->router, &s->agent, s->session->view,
                    &(struct request){.op = OP_CALL_TOOL,
                                      .name = name,
                                      .params = buf_view(&params),
                                      .name_at = {8, name.n},
                                      .takes_structured = true},
                    NULL);
    buf_fini(&params);
}

/* Like pipe_receive, except that the reply can be checked. */
static void receive(struct stage *s, struct pipe *p, struct span text)
{
    struct sender from = {.browser = s->browser,
                          .pipe = p,
                          .page = p->page,
                          .agent = p->agent,
                          .dialect = p->dialect,
                          .origin = SPAN("http://localhost")};

    from.session = p->page ? p->page->session : p->agent ? p->agent->session : NULL;
    (void)sender_receive(&from, text);
    CHECK(!from.reply.n || is_json(buf_view(&from.reply)));
    buf_fini(&from.reply);
    CHECK(is_json(view_list(s->session->view, ITEM_TOOL)));
}

static void play(struct stage *s, struct span line)
{
    struct span rest = span_from(line, 1);

    if (!line.n)
        return;
    if (line.p[0] == '!')
        call_tool(s, rest);
    for (size_t i = 0; i < PARTIES; i++) {
        if (s->pipes[i] && line.p[0] == parties[i].letter) {
            receive(s, s->pipes[i], rest);
        } else if (s->pipes[i] && line.p[0] == '-' && rest.n && rest.p[0] == parties[i].letter) {
            pipe_free(s->pipes[i]);
            s->pipes[i] = NULL;
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct loop *loop;
    struct span text = span_of((const char *)data, size);

    if (!loop) {
        loop = loop_new();
        log_set_level(LOG_ERROR); /* wrong input causes many warnings */
    }
    struct stage s = {.loop = loop};
    open_stage(&s);
    for (int n = 0; text.n && n < LINES_MAX; n++) {
        size_t end = span_find(text, '\n');
        play(&s, span_cut(text, 0, end));
        text = span_from(text, end < text.n ? end + 1 : end);
        loop_step(loop, 0);
    }
    close_stage(&s);
    return 0;
}
