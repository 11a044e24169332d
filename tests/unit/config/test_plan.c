/* What must change to get from one configuration to the next. */
#include "config_test.h"

#include "config/load.h"
#include "config/plan.h"

static struct config *parse(const char *yaml)
{
    struct problems problems = {0};
    struct config *c = config_parse(span_str(yaml), CONFIG_YAML, &problems);

    assert_non_null(c);
    problems_fini(&problems);
    return c;
}

/* "kept a, added b" */
static void check(const char *from, const char *to, const char *expected)
{
    struct config *a = from ? parse(from) : NULL, *b = parse(to);
    struct plan plan;
    struct buf said = {0};

    plan_make(&plan, a, b);
    for (size_t i = 0; i < plan.n; i++) {
        const struct plan_step *s = &plan.steps[i];
        buf_printf(&said, "%s%s %s", i ? ", " : "", plan_act_name(s->act),
                   s->to ? s->to->alias : s->from->alias);
    }
    assert_string_equal(buf_cstr(&said), expected);
    plan_fini(&plan);
    buf_fini(&said);
    config_free(a);
    config_free(b);
}

static void boot_adds_all_that_is_enabled(void **state)
{
    (void)state;
    check(NULL,
          "servers: {a: {command: x}, b: {command: y, enabled: false}, c: {url: 'http://h/'}}",
          "added a, added c");
}

static void the_same_is_kept_in_whatever_order(void **state)
{
    (void)state;
    check("servers: {a: {command: x}, b: {command: y}}",
          "servers: {b: {command: y}, a: {command: x, timeout: 60s}}", "kept b, kept a");
}

static void what_is_gone_or_switched_off_is_removed(void **state)
{
    (void)state;
    check("servers: {a: {command: x}, b: {command: y}, c: {command: z}}",
          "servers: {b: {command: y, enabled: false}, c: {command: z}}",
          "kept c, removed a, removed b");
    check("servers: {a: {command: x, enabled: false}}", "servers: {a: {command: x}}", "added a");
}

static void filters_and_limits_do_not_need_another_server(void **state)
{
    static const char *const changes[] = {
        "allow: [t]",        "deny: [t]",           "approve: [t]",
        "timeout: 1s",       "concurrency: 3",      "queue: 7",
        "idle_stop: 1m",     "restarts: 2",         "ask_timeout: 9s",
        "start_timeout: 3s", "approve_timeout: 5s", "timeout_on_progress: ignore"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(changes); i++) {
        struct buf to = {0};
        buf_printf(&to, "servers: {a: {command: x, %s}}", changes[i]);
        check("servers: {a: {command: x}}", buf_cstr(&to), "adjusted a");
        buf_fini(&to);
    }
}

static void whatever_makes_it_another_server_replaces_it(void **state)
{
    static const char *const changes[] = {
        "command: y",
        "command: x, args: [a]",
        "command: x, env: {A: b}",
        "command: x, cwd: /",
        "url: 'http://h/'",
        "command: x, era: legacy",
        "command: x, instances: per-session",
        "command: x, tools: {t: {hide: true}}",
        "command: x, allow: [t], args: [a]",
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(changes); i++) {
        struct buf to = {0};
        buf_printf(&to, "servers: {a: {%s}}", changes[i]);
        check("servers: {a: {command: x}}", buf_cstr(&to), "replaced a");
        buf_fini(&to);
    }
}

static void other_keys_are_named(void **state)
{
    struct config *a = parse("names: bare\nlog: {level: info}\nservers: {a: {command: x}}");
    struct config *b = parse("names: '{server}_{tool}'\nlog: {level: debug}\nservers: {}");
    struct buf keys = {0};

    (void)state;
    plan_put_other_keys(&keys, a, b);
    assert_string_equal(buf_cstr(&keys), "names, log");
    buf_reset(&keys, 0);
    plan_put_other_keys(&keys, a, a);
    assert_int_equal(keys.n, 0);
    buf_fini(&keys);
    config_free(a);
    config_free(b);
}

/* A reload said that changes of these keys wait for the next start, although it carries them out:
 * they are settings of servers, written elsewhere. */
static void keys_that_a_reload_carries_out_are_not_named(void **state)
{
    struct config *a = parse("servers: {a: {command: x}, b: {command: y}}");
    struct config *b =
        parse("servers: {a: {command: x}, b: {command: y}}\n"
              "enabled_servers: [a]\nsecrets: {directory: /nowhere}\n"
              "resources_as_tools: true\nprompts_as_tools: true\nsandbox: {missing: warn}");
    struct buf keys = {0};

    (void)state;
    plan_put_other_keys(&keys, a, b);
    assert_int_equal(keys.n, 0);
    config_free(a);
    config_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boot_adds_all_that_is_enabled),
        cmocka_unit_test(the_same_is_kept_in_whatever_order),
        cmocka_unit_test(what_is_gone_or_switched_off_is_removed),
        cmocka_unit_test(filters_and_limits_do_not_need_another_server),
        cmocka_unit_test(whatever_makes_it_another_server_replaces_it),
        cmocka_unit_test(other_keys_are_named),
        cmocka_unit_test(keys_that_a_reload_carries_out_are_not_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
