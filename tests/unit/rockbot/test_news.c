/* Events of the bridge that are published on the bus, and calls that are approved over the bus. */
#include "worker_rig.h"

#include "core/approval.h"
#include "rockbot/news.h"

#include <stdio.h>

#define RESULTS "tool.result.RockBot"
#define ASKED   "system.mcp.tool_approval_request"

struct watch {
    struct rig rig;
    struct bus_news *news;
    struct bus_news_options options;
    struct span approve;
    struct approver approver;
};

static void put_question(struct buf *out, const struct call *c)
{
    (void)c;
    buf_str(out, "{}");
}

static enum consent read_answer(const struct outcome *answer)
{
    (void)answer;
    return CONSENT_UNASKED;
}

static void begin(struct watch *w)
{
    struct rig *r = &w->rig;

    rig_begin(r);
    struct rig_server *s = rig_server(r, "my.fs", "echo fail");
    w->approve = SPAN("echo");
    s->core.policy.approve = &w->approve;
    s->core.policy.n_approve = 1;
    w->approver = (struct approver){put_question, read_answer, true};
    approval_set_approver(r->router, &w->approver);
    rig_start(r);
    rig_listen(r, "mcp.event.#");
    rig_listen(r, ASKED);
    w->options = (struct bus_news_options){
        .source = "mcp-bridge.RockBot", .events = true, .approvals = true};
    w->news = bus_news_new(r->loop, r->bus, r->router, &w->options);
}

static void end(struct watch *w)
{
    bus_news_free(w->news);
    rig_end(&w->rig);
}

static void test_events(void **state)
{
    struct watch w;

    (void)state;
    begin(&w);
    rig_invoke(&w.rig, "my.fs", "fail", "{\"path\":\"private\"}");
    const struct message *m = rig_next(&w.rig, "mcp.event.tool_failed.my-fs");
    assert_span(m->type, "mcp.tool_failed");
    assert_span(m->source, "mcp-bridge.RockBot");
    assert_span(message_header(m, "rb-content-trust"), "system");
    assert_body_has(m, "{\"event\":\"mcp.tool_failed\",\"server\":\"my.fs\",\"tool\":\"fail\","
                       "\"duration_ms\":");
    assert_body_has(m, "\"is_error\":true,\"error\":");
    char *body = mem_span(m->body);
    assert_null(strstr(body, "private"));
    mem_free(body);
    provider_lost(&w.rig.servers[0].core, "exited\nwith 1");
    assert_body_has(rig_next(&w.rig, "mcp.event.server_failed.my-fs"),
                    "\"server\":\"my.fs\",\"tool\":null,\"duration_ms\":0,\"is_error\":false,"
                    "\"error\":\"exited with 1\"");
    provider_resume(&w.rig.servers[0].core);
    rig_next(&w.rig, "mcp.event.servers_reconnected.my-fs");
    end(&w);
}

/* Answers the question that the next call causes. */
static void decide(struct watch *w, const char *format)
{
    const struct message *m = rig_next(&w->rig, ASKED);
    struct json_slot id = json_get(m->body, "request_id");
    char *request = mem_span(id.value);
    char body[256];

    assert_body_has(m, "\"tool_name\":\"echo\",\"arguments\":{\"path\":\"/a\"},\"server_alias\":"
                       "\"my.fs\",\"channel_id\":null}");
    snprintf(body, sizeof body, "{\"request_id\":%s%s}", request, format);
    rig_send(&w->rig, &(struct rig_request){.topic = "system.mcp.tool_approval_response",
                                            .source = "desk",
                                            .body = body});
    mem_free(request);
}

static void test_approvals(void **state)
{
    struct watch w;

    (void)state;
    begin(&w);
    rig_invoke(&w.rig, "my.fs", "echo", "{\"path\":\"/a\"}");
    decide(&w, ",\"approved\":true,\"reason\":null");
    assert_body_has(rig_next(&w.rig, RESULTS), "\"isError\":false");
    rig_invoke(&w.rig, "my.fs", "echo", "{\"path\":\"/a\"}");
    decide(&w, ",\"approved\":false,\"reason\":\"not\\ntoday\"");
    assert_body_has(
        rig_next(&w.rig, RESULTS),
        "\"code\":\"execution_failed\",\"message\":\"the call of 'echo' on server 'my.fs' "
        "was refused by 'desk' on the bus: not today\"");
    /* Anything except `true` is a refusal. */
    rig_invoke(&w.rig, "my.fs", "echo", "{\"path\":\"/a\"}");
    decide(&w, ",\"approved\":\"true\"");
    assert_body_has(rig_next(&w.rig, RESULTS), "was refused by 'desk' on the bus");
    assert_int_equal(w.rig.servers[0].runs, 1);
    end(&w);
}

static void test_answers_that_are_none(void **state)
{
    static const char *const bodies[] = {
        "no json",
        "[]",
        "{}",
        "{\"request_id\":\"7\",\"approved\":true}",
        "{\"request_id\":\"00000000000000000000000000000000-1\",\"approved\":true}",
        "{\"request_id\":1,\"approved\":true}",
    };
    struct watch w;

    (void)state;
    begin(&w);
    rig_invoke(&w.rig, "my.fs", "echo", "{\"path\":\"/a\"}");
    WAIT(w.rig.loop, rig_count(&w.rig, ASKED) == 1);
    for (size_t i = 0; i < COUNT_OF(bodies); i++)
        rig_send(&w.rig, &(struct rig_request){.topic = "system.mcp.tool_approval_response",
                                               .body = bodies[i]});
    /* Messages are delivered in order, so this one shows that none of the others has decided. */
    decide(&w, ",\"approved\":false,\"reason\":\"this one\"");
    assert_body_has(rig_next(&w.rig, RESULTS), "was refused by 'desk' on the bus: this one");
    assert_int_equal(w.rig.servers[0].runs, 0);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_approvals),
        cmocka_unit_test(test_answers_that_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
