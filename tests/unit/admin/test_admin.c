/* What the daemon says of itself. bus-and-aggregator §11.2 item 8: overall ok, degraded or down, in
 * both readings; item 11: the events, as the metrics count them. */
#include "../core/stage.h"
#include "admin/inside.h"
#include "base/log.h"
#include "core/approval.h"
#include "wire/json.h"

#include <inttypes.h>

enum { SERVERS = 3 };

struct fixture {
    struct stage stage;
    struct view *views[SERVERS];
    struct fake fakes[SERVERS];
    struct client ann;
    struct config config;
    struct admin *admin;
};

static const struct config *config_of(void *arg)
{
    struct fixture *x = arg;

    return &x->config;
}

static struct provider *server_at(void *arg, size_t n)
{
    struct fixture *x = arg;

    return n < SERVERS ? &x->fakes[n].core : NULL;
}

static struct view *view_at(void *arg, size_t n)
{
    struct fixture *x = arg;

    return x->views[n];
}

static size_t seven(void *arg)
{
    (void)arg;
    return 7;
}

static void begin(struct fixture *x)
{
    static const char *const names[SERVERS] = {"a", "b", "c"};

    *x = (struct fixture){.config = {.file = NULL}};
    stage_init(&x->stage);
    for (size_t i = 0; i < SERVERS; i++) {
        fake_init(&x->fakes[i], &x->stage, names[i]);
        x->views[i] = view_new(names[i], NULL);
        view_add(x->views[i], &x->fakes[i].core, NULL);
        router_add_view(x->stage.router, x->views[i]);
    }
    client_init(&x->ann, &x->stage, "ann", x->views[0]);
    x->admin = admin_new(&(struct admin_host){.router = x->stage.router,
                                              .config = config_of,
                                              .server = server_at,
                                              .view = view_at,
                                              .sessions = seven,
                                              .arg = x});
}

static void end(struct fixture *x)
{
    router_detach(x->stage.router, &x->ann.peer);
    for (size_t i = 0; i < SERVERS; i++)
        fake_fini(&x->fakes[i]);
    admin_free(x->admin);
    for (size_t i = 0; i < SERVERS; i++) {
        router_remove_view(x->stage.router, x->views[i]);
        view_free(x->views[i]);
    }
    stage_fini(&x->stage);
}

static void expect_health(struct fixture *x, const char *lenient, const char *strict)
{
    assert_string_equal(overall_word(health_overall(x->admin, false)), lenient);
    assert_string_equal(overall_word(health_overall(x->admin, true)), strict);
}

static const char *word_of(const struct fixture *x, size_t n)
{
    return health_word(health_of(&x->fakes[n].core));
}

static void test_a_server_from_start_to_end(void **state)
{
    struct fixture x;
    struct provider *p = &x.fakes[0].core;

    (void)state;
    begin(&x);
    provider_want(p);
    assert_string_equal(word_of(&x, 0), "starting");
    provider_up(p);
    assert_string_equal(word_of(&x, 0), "up");
    provider_lost(p, "exited with 1");
    assert_string_equal(word_of(&x, 0), "failing");
    stage_wait(&x.stage, 1000);
    assert_int_equal(p->state, PROVIDER_STARTING);
    assert_string_equal(word_of(&x, 0), "failing"); /* until it is proved otherwise */
    provider_up(p);
    provider_halt(p);
    assert_string_equal(word_of(&x, 0), "stopped");
    provider_resume(p);
    assert_string_equal(word_of(&x, 0), "starting"); /* again, once it has stopped */
    end(&x);
}

static void test_idle_servers_are_fine(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    for (size_t i = 0; i < SERVERS; i++)
        x.fakes[i].core.policy.eager = false;
    assert_string_equal(word_of(&x, 0), "idle");
    expect_health(&x, "ok", "ok");
    x.fakes[1].core.policy.eager = true;
    x.fakes[1].core.policy.idle_stop = 1000;
    fake_ready(&x.fakes[1], "read");
    stage_wait(&x.stage, 1000);
    assert_string_equal(word_of(&x, 1), "idle");
    provider_lost(&x.fakes[1].core, "");
    assert_string_equal(word_of(&x, 1), "idle");
    expect_health(&x, "ok", "ok");
    end(&x);
}

static void test_both_readings_of_overall_health(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    for (size_t i = 0; i < SERVERS; i++)
        provider_want(&x.fakes[i].core);
    expect_health(&x, "down", "down"); /* nothing has come up yet */
    provider_up(&x.fakes[0].core);
    expect_health(&x, "degraded", "down");
    provider_up(&x.fakes[1].core);
    provider_up(&x.fakes[2].core);
    expect_health(&x, "ok", "ok");
    provider_lost(&x.fakes[2].core, "exited with 1");
    expect_health(&x, "degraded", "down");
    /* What was stopped on purpose is not missed. */
    provider_halt(&x.fakes[2].core);
    expect_health(&x, "ok", "ok");
    provider_lost(&x.fakes[0].core, "exited with 1");
    provider_lost(&x.fakes[1].core, "exited with 1");
    expect_health(&x, "down", "down");
    end(&x);
}

static void test_reasons_hide_secrets(void **state)
{
    struct fixture x;
    struct buf out = {0};

    (void)state;
    begin(&x);
    log_add_secret(SPAN("hunter22"));
    provider_want(&x.fakes[0].core);
    provider_lost(&x.fakes[0].core, "exited with 1; its last words: bad key hunter22");
    health_put_members(&out, x.admin, false, true);
    assert_string_equal(buf_cstr(&out), "\"status\":\"down\",\"reasons\":[{\"server\":\"a\","
                                        "\"state\":\"failing\",\"reason\":\"exited with 1; its "
                                        "last words: bad key ***\"}]");
    out.n = 0;
    health_put_members(&out, x.admin, false, false);
    assert_null(strstr(buf_cstr(&out), "exited"));
    log_forget_secrets();
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
    struct buf out = {0};

    (void)state;
    begin(&x);
    fake_ready(&x.fakes[0], "read write p:hello r:file:///x");
    finish_call(client_open(&x.ann, "read"), "fine");
    provider_lost(&x.fakes[0].core, "exited with 3");
    stage_wait(&x.stage, 1000);
    provider_up(&x.fakes[0].core);
    status_put_server(&out, x.admin, 0);
    assert_int_equal(json_skim(buf_view(&out), NULL, NULL, NULL, NULL), 0);
    assert_true(span_is(member(&out, "name"), "\"a\""));
    assert_true(span_is(member(&out, "state"), "\"up\""));
    assert_true(span_is(member(&out, "tools"), "2"));
    assert_true(span_is(member(&out, "resources"), "1"));
    assert_true(span_is(member(&out, "prompts"), "1"));
    assert_true(span_is(member(&out, "calls"), "1"));
    assert_true(span_is(member(&out, "crashes"), "1"));
    assert_true(span_is(member(&out, "pid"), "null"));
    /* It is well again, but one may still want to know. */
    assert_true(span_is(member(&out, "last_error"), "\"exited with 3\""));
    assert_int_equal(member(&out, "last_error_at").n, strlen("\"2026-02-18T06:30:24Z\""));
    buf_fini(&out);
    end(&x);
}

static void test_the_whole_status(void **state)
{
    struct fixture x;
    struct buf out = {0};

    (void)state;
    begin(&x);
    status_put(&out, x.admin);
    assert_int_equal(json_skim(buf_view(&out), NULL, NULL, NULL, NULL), 0);
    assert_true(span_is(member(&out, "sessions"), "7"));
    assert_true(span_is(member(&out, "config"), "null"));
    size_t n = 0;
    for (struct json_iter it = json_iter(member(&out, "servers")); json_next(&it);)
        n++;
    assert_int_equal(n, SERVERS);
    buf_fini(&out);
    end(&x);
}

/* Instances of one server for single sessions count as that server. */
static void test_instances_are_added_up(void **state)
{
    struct fixture x;
    struct fake own;

    (void)state;
    begin(&x);
    fake_ready(&x.fakes[0], "read");
    fake_init(&own, &x.stage, "a");
    fake_ready(&own, "read");
    struct view *v = view_new("own", NULL);
    router_add_view(x.stage.router, v);
    view_add(v, &own.core, NULL);
    finish_call(client_open(&x.ann, "read"), "shared");
    x.ann.view = v;
    client_open(&x.ann, "read");
    struct stats stats = status_stats(x.admin, &x.fakes[0].core);
    assert_int_equal(stats.opened, 2);
    assert_int_equal(stats.in_flight, 1);
    assert_int_equal(stats.starts, 2);
    router_detach(x.stage.router, &x.ann.peer);
    fake_fini(&own);
    router_remove_view(x.stage.router, v);
    view_free(v);
    end(&x);
}

/* --- metrics --- */

/* Every line of Prometheus' text format: a comment, or name{labels} number. */
static void check_format(struct span text)
{
    while (text.n) {
        struct span line = span_cut(text, 0, span_find(text, '\n'));
        assert_true(line.n < text.n); /* the last one ends, too */
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
    begin(&x);
    x.fakes[0].core.policy.concurrency = 1;
    fake_ready(&x.fakes[0], "read");
    struct call *c = client_open(&x.ann, "read");
    client_open(&x.ann, "read");
    stage_wait(&x.stage, 5);
    finish_call(c, "fine");
    client_open(&x.ann, "read");
    expect_metric(&x, "rialto_calls_total{server=\"a\"} 3");
    expect_metric(&x, "rialto_calls_in_flight{server=\"a\"} 1");
    expect_metric(&x, "rialto_calls_queued{server=\"a\"} 1");
    expect_metric(&x, "rialto_call_duration_seconds_bucket{server=\"a\",le=\"0.004\"} 0");
    expect_metric(&x, "rialto_call_duration_seconds_bucket{server=\"a\",le=\"0.008\"} 1");
    expect_metric(&x, "rialto_call_duration_seconds_bucket{server=\"a\",le=\"+Inf\"} 1");
    expect_metric(&x, "rialto_call_duration_seconds_sum{server=\"a\"} 0.005");
    expect_metric(&x, "rialto_call_duration_seconds_count{server=\"a\"} 1");
    expect_metric(&x, "rialto_server_up{server=\"a\"} 1");
    expect_metric(&x, "rialto_server_up{server=\"b\"} 0");
    expect_metric(&x, "rialto_sessions 7");
    end(&x);
}

static void test_failures_by_reason(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    fake_ready(&x.fakes[0], "read");
    router_cancel(client_open(&x.ann, "read"), FAIL_CANCELLED);
    client_open(&x.ann, "read");
    provider_lost(&x.fakes[0].core, "exited with 1");
    client_open(&x.ann, "nothing");
    expect_metric(&x, "rialto_call_failures_total{server=\"a\",reason=\"cancelled\"} 1");
    expect_metric(&x, "rialto_call_failures_total{server=\"a\",reason=\"crashed\"} 1");
    expect_metric(&x, "rialto_call_failures_total{server=\"\",reason=\"unknown\"} 1");
    expect_metric(&x, "rialto_server_crashes_total{server=\"a\"} 1");
    end(&x);
}

static void test_happenings_are_counted(void **state)
{
    static const struct span everything[] = {{"*", 1}};
    struct fixture x;

    (void)state;
    begin(&x);
    fake_ready(&x.fakes[0], "read");
    finish_call(client_open(&x.ann, "read"), "fine");
    router_done(client_open(&x.ann, "read"),
                &(struct outcome){.kind = OUTCOME_RESULT, .body = SPAN("{}"), .is_error = true});
    provider_lost(&x.fakes[0].core, "exited with 1");
    stage_wait(&x.stage, 1000);
    provider_up(&x.fakes[0].core);
    x.fakes[0].core.policy.approve = everything;
    x.fakes[0].core.policy.n_approve = 1;
    client_open(&x.ann, "read"); /* the admin is the operator, so it waits */
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
        cmocka_unit_test(test_a_server_from_start_to_end),
        cmocka_unit_test(test_idle_servers_are_fine),
        cmocka_unit_test(test_both_readings_of_overall_health),
        cmocka_unit_test(test_reasons_hide_secrets),
        cmocka_unit_test(test_status_of_a_server),
        cmocka_unit_test(test_the_whole_status),
        cmocka_unit_test(test_instances_are_added_up),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_failures_by_reason),
        cmocka_unit_test(test_happenings_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
