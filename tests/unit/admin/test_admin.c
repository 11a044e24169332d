/* What the daemon reports of itself, with a whole hub without sockets, and servers as processes:
 * the overall health (ok, degraded or down, in both readings), the status, and the metrics with
 * their counts of events. */
#include "../hub/hub_rig.h"

#include "admin/inside.h"
#include "base/log.h"
#include "wire/json.h"

#include <signal.h>
#include <sys/prctl.h>

static const struct sight all; /* an operator's */

struct fixture {
    struct hub_rig rig;
    struct hub *hub;
    struct admin *admin;
    struct rig_agent ann; /* sees all servers */
};

/* Makes the hub without starting it. */
static void begin(struct fixture *x, const char *yaml)
{
    *x = (struct fixture){0};
    rig_prepare(&x->rig, yaml);
    x->hub = hub_new(x->rig.loop, x->rig.config, NULL);
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); /* the leak checker must be able to read this process */
    x->rig.bridge = hub_bridge(x->hub);
    x->admin = admin_new(x->hub);
}

static void start(struct fixture *x)
{
    struct mcp_host host = bridge_host(x->rig.bridge, bridge_all(x->rig.bridge));

    hub_start(x->hub);
    WAIT(x->rig.loop, bridge_settled(x->rig.bridge));
    rig_agent_enter(&x->ann, &host);
}

static void on_stopped(void *arg)
{
    ((struct fixture *)arg)->rig.stopped = true;
}

static void end(struct fixture *x)
{
    if (x->ann.router)
        rig_agent_leave(&x->ann);
    hub_stop(x->hub, on_stopped, x);
    WAIT(x->rig.loop, x->rig.stopped);
    admin_free(x->admin);
    hub_free(x->hub);
    rig_clean(&x->rig);
}

static struct provider *server(struct fixture *x, const char *alias)
{
    return rig_server(&x->rig, alias);
}

static void kill_server(struct fixture *x, const char *alias)
{
    assert_int_equal(kill(rig_pid(server(x, alias)), SIGKILL), 0);
    WAIT(x->rig.loop, server(x, alias)->state != PROVIDER_READY);
}

static void expect_health(struct fixture *x, const char *lenient, const char *strict)
{
    assert_string_equal(health_overall_word(health_overall(x->admin, false)), lenient);
    assert_string_equal(health_overall_word(health_overall(x->admin, true)), strict);
}

static void test_idle_servers_are_fine(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x, "servers: {a: {command: FAKE, start: lazy}, b: {command: FAKE, start: lazy}}");
    hub_start(x.hub);
    assert_string_equal(health_word(health_of(server(&x, "a"))), "idle");
    expect_health(&x, "ok", "ok");
    end(&x);
}

static void test_both_readings_of_overall_health(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x, "servers: {a: {command: FAKE}, b: {command: FAKE}, c: {command: FAKE}}");
    hub_start(x.hub);
    expect_health(&x, "down", "down"); /* no server is up yet */
    start(&x);
    expect_health(&x, "ok", "ok");
    kill_server(&x, "c");
    expect_health(&x, "degraded", "down");
    /* A server that was stopped on purpose does not count as down. */
    provider_halt(server(&x, "c"));
    expect_health(&x, "ok", "ok");
    kill_server(&x, "a");
    expect_health(&x, "degraded", "down");
    kill_server(&x, "b");
    if (server(&x, "a")->state != PROVIDER_READY) /* else the machine is slow: a is up again */
        expect_health(&x, "down", "down");
    end(&x);
}

/* A server that lacks a secret is left out, and counts as down. */
static void test_a_server_that_is_left_out(void **state)
{
    struct fixture x;
    struct buf out = {0};

    (void)state;
    begin(&x, "servers: {a: {command: FAKE}, b: {command: FAKE, env: {K: '${env:NOT_SET_HERE}'}}}");
    start(&x);
    expect_health(&x, "degraded", "down");
    health_put_members(&out, x.admin, false, false, &all);
    assert_string_equal(buf_cstr(&out), "\"status\":\"degraded\",\"reasons\":[{\"server\":\"b\","
                                        "\"state\":\"left out\"}]");
    buf_fini(&out);
    end(&x);
}

static void test_reasons_hide_secrets(void **state)
{
    struct fixture x;
    struct buf out = {0};

    (void)state;
    begin(&x, "servers: {a: {command: sh, args: [-c, 'echo bad key hunter22 >&2; exit 1']}}");
    log_add_secret(SPAN("hunter22"));
    start(&x);
    health_put_members(&out, x.admin, false, true, &all);
    assert_non_null(strstr(buf_cstr(&out), "exited with 1"));
    assert_non_null(strstr(buf_cstr(&out), "bad key ***"));
    assert_null(strstr(buf_cstr(&out), "hunter22"));
    out.n = 0;
    health_put_members(&out, x.admin, false, false, &all);
    assert_null(strstr(buf_cstr(&out), "exited"));
    buf_fini(&out);
    end(&x);
}

/* --- status --- */

static struct span member(const struct buf *object, const char *key)
{
    return json_get(buf_view(object), key).value;
}

static void test_status_of_a_server(void **state)
{
    struct fixture x;
    struct buf out = {0}, pid = {0};

    (void)state;
    begin(&x, "servers: {a: {command: FAKE, allow: [echo, crash]}}");
    start(&x);
    rig_agent_ask(&x.ann, &x.rig, "a__echo", NULL);
    rig_agent_ask(&x.ann, &x.rig, "a__crash", NULL);
    WAIT(x.rig.loop, server(&x, "a")->state == PROVIDER_READY);
    status_put_server(&out, x.admin, server(&x, "a"));
    assert_int_equal(json_skim(buf_view(&out), NULL, NULL, NULL, NULL), 0);
    buf_printf(&pid, "%d", rig_pid(server(&x, "a")));
    assert_true(span_is(member(&out, "name"), "\"a\""));
    assert_true(span_is(member(&out, "state"), "\"up\""));
    assert_true(span_is(member(&out, "transport"), "\"stdio\""));
    assert_true(span_is(member(&out, "tools"), "2"));
    assert_true(span_is(member(&out, "calls"), "2"));
    assert_true(span_is(member(&out, "crashes"), "1"));
    assert_true(span_eq(member(&out, "pid"), buf_view(&pid)));
    /* The server is ready again, but its last error is still shown. */
    assert_true(member(&out, "last_error").n > strlen("\"\""));
    assert_int_equal(member(&out, "last_error_at").n, strlen("\"2026-02-18T06:30:24Z\""));
    buf_fini(&out);
    buf_fini(&pid);
    end(&x);
}

static void test_the_whole_status(void **state)
{
    struct fixture x;
    struct buf out = {0};
    size_t n = 0;

    (void)state;
    begin(&x, "servers: {a: {command: FAKE, start: lazy}, b: {command: FAKE, start: lazy}}");
    status_put(&out, x.admin, &(struct sight){0});
    assert_int_equal(json_skim(buf_view(&out), NULL, NULL, NULL, NULL), 0);
    assert_true(span_is(member(&out, "sessions"), "0"));
    assert_true(span_is(member(&out, "bus"), "null"));
    assert_true(span_starts(member(&out, "config"), SPAN("\"/")));
    for (struct json_iter it = json_iter(member(&out, "servers")); json_next(&it);)
        n++;
    assert_int_equal(n, 2);
    buf_fini(&out);
    end(&x);
}

/* --- metrics --- */

/* Every line of Prometheus' text format: a comment, or name{labels} number. */
static void check_format(struct span text)
{
    while (text.n) {
        struct span line = span_cut(text, 0, span_find(text, '\n'));
        assert_true(line.n < text.n); /* the last line has a newline, too */
        text = span_from(text, line.n + 1);
        if (span_starts(line, SPAN("# HELP ")) || span_starts(line, SPAN("# TYPE ")))
            continue;
        size_t name = 0;
        while (name < line.n && strchr("abcdefghijklmnopqrstuvwxyz_", line.p[name]))
            name++;
        assert_true(name > 0 && name < line.n && (line.p[name] == '{' || line.p[name] == ' '));
        char *number = mem_span(line);
        char *last = strrchr(number, ' '), *rest;
        assert_non_null(last);
        (void)strtod(last + 1, &rest);
        assert_true(rest != last + 1 && !*rest);
        mem_free(number);
    }
}

static void expect_metric(struct fixture *x, const char *line)
{
    struct buf out = {0}, wanted = {0};

    metrics_put(&out, x->admin);
    check_format(buf_view(&out));
    buf_printf(&wanted, "\n%s\n", line);
    if (!strstr(buf_cstr(&out), buf_cstr(&wanted)))
        fail_msg("no line %s in\n%s", line, buf_cstr(&out));
    buf_fini(&wanted);
    buf_fini(&out);
}

static void test_numbers(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x, "servers: {a: {command: FAKE, concurrency: 1}, b: {command: nothing-of-this-name}}");
    start(&x);
    rig_agent_ask(&x.ann, &x.rig, "a__sleep", "{\"ms\":5}");
    rig_agent_call(&x.ann, "a__sleep", "{\"ms\":60000}");
    rig_agent_call(&x.ann, "a__sleep", "{\"ms\":60000}");
    expect_metric(&x, "rialto_calls_total{server=\"a\"} 3");
    expect_metric(&x, "rialto_calls_in_flight{server=\"a\"} 1");
    expect_metric(&x, "rialto_calls_queued{server=\"a\"} 1");
    expect_metric(&x, "rialto_call_duration_seconds_bucket{server=\"a\",le=\"0.004\"} 0");
    expect_metric(&x, "rialto_call_duration_seconds_bucket{server=\"a\",le=\"+Inf\"} 1");
    expect_metric(&x, "rialto_call_duration_seconds_count{server=\"a\"} 1");
    expect_metric(&x, "rialto_server_up{server=\"a\"} 1");
    expect_metric(&x, "rialto_server_up{server=\"b\"} 0");
    expect_metric(&x, "rialto_sessions 0");
    end(&x);
}

static void test_failures_by_reason(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x, "servers: {a: {command: FAKE}}");
    start(&x);
    call_cancel(rig_agent_call(&x.ann, "a__sleep", "{\"ms\":60000}"), FAIL_CANCELLED);
    rig_agent_ask(&x.ann, &x.rig, "a__crash", NULL);
    rig_agent_ask(&x.ann, &x.rig, "a__nothing", NULL);
    expect_metric(&x, "rialto_call_failures_total{server=\"a\",reason=\"cancelled\"} 1");
    expect_metric(&x, "rialto_call_failures_total{server=\"a\",reason=\"crashed\"} 1");
    expect_metric(&x, "rialto_call_failures_total{server=\"\",reason=\"unknown\"} 1");
    expect_metric(&x, "rialto_server_crashes_total{server=\"a\"} 1");
    end(&x);
}

static void test_happenings_are_counted(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x, "servers: {a: {command: FAKE, approve: [add]}}");
    start(&x);
    rig_agent_ask(&x.ann, &x.rig, "a__echo", NULL);
    rig_agent_ask(&x.ann, &x.rig, "a__fail", NULL);
    kill_server(&x, "a");
    WAIT(x.rig.loop, server(&x, "a")->state == PROVIDER_READY);
    rig_agent_call(&x.ann, "a__add", NULL); /* with the admin there is an operator: it is held */
    for (int kind = 0; kind < HAPPENED_KINDS; kind++) {
        char line[128];
        snprintf(line, sizeof line, "rialto_happenings_total{server=\"a\",event=\"%s\"} 1",
                 happening_name((enum happening_kind)kind));
        expect_metric(&x, line);
    }
    expect_metric(&x, "rialto_tool_errors_total{server=\"a\"} 1");
    expect_metric(&x, "rialto_calls_held{server=\"a\"} 1");
    end(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_idle_servers_are_fine),
        cmocka_unit_test(test_both_readings_of_overall_health),
        cmocka_unit_test(test_a_server_that_is_left_out),
        cmocka_unit_test(test_reasons_hide_secrets),
        cmocka_unit_test(test_status_of_a_server),
        cmocka_unit_test(test_the_whole_status),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_failures_by_reason),
        cmocka_unit_test(test_happenings_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
