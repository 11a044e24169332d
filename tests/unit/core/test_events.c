/* The events of the core and what is in them. */
#include "stage.h"

#include <inttypes.h>

struct fixture {
    struct stage stage;
    struct view *view;
    struct fake fake;
    struct client ann;
    struct watcher watcher;
    struct buf heard;
};

static void hear(struct watcher *self, const struct happening *h)
{
    struct fixture *x = CONTAINER_OF(self, struct fixture, watcher);

    buf_printf(&x->heard,
               "%s server=" SPAN_FMT " tool=" SPAN_FMT " call=%" PRIu64 " ms=%" PRIu64
               " is_error=%d error=" SPAN_FMT "\n",
               happening_name(h->kind), SPAN_ARG(h->server), SPAN_ARG(h->tool), h->call,
               h->duration_ms, h->is_error, SPAN_ARG(h->error));
}

static void begin(struct fixture *x)
{
    stage_init(&x->stage);
    x->view = view_new("test", "{server}__{tool}");
    fake_init(&x->fake, &x->stage, "f");
    view_add(x->view, &x->fake.core, NULL);
    client_init(&x->ann, &x->stage, "ann", x->view);
    x->heard = (struct buf){0};
    x->watcher = (struct watcher){.happened = hear};
    assert_true(events_watch(router_events(x->stage.router), &x->watcher));
    fake_ready(&x->fake, "read p:hello");
}

static void end(struct fixture *x)
{
    call_cancel_all(&x->ann.peer);
    fake_fini(&x->fake);
    events_unwatch(router_events(x->stage.router), &x->watcher);
    view_free(x->view);
    buf_fini(&x->heard);
    stage_fini(&x->stage);
}

#define assert_heard(x, text)                                                                      \
    do {                                                                                           \
        assert_string_equal(buf_cstr(&(x)->heard), (text));                                        \
        (x)->heard.n = 0;                                                                          \
    } while (0)

static void test_a_tool_was_called(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    struct call *c = client_open(&x.ann, "f__read");
    stage_wait(&x.stage, 12);
    finish_call(c, "fine");
    assert_heard(&x, "mcp.tool_called server=f tool=read call=1 ms=12 is_error=0 error=\n");
    end(&x);
}

static void test_a_tool_failed(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    call_done(client_open(&x.ann, "f__read"), &(struct outcome){.kind = OUTCOME_RESULT,
                                                                .body = SPAN("{...}"),
                                                                .is_error = true,
                                                                .text = SPAN("no such file")});
    assert_heard(&x, "mcp.tool_failed server=f tool=read call=1 ms=0 is_error=1 "
                     "error=no such file\n");
    call_done(client_open(&x.ann, "f__read"),
              &(struct outcome){.kind = OUTCOME_ERROR, .body = SPAN("{\"code\":1}")});
    assert_heard(&x, "mcp.tool_failed server=f tool=read call=2 ms=0 is_error=0 "
                     "error={\"code\":1}\n");
    call_cancel(client_open(&x.ann, "f__read"), FAIL_CANCELLED);
    assert_heard(&x, "mcp.tool_failed server=f tool=read call=3 ms=0 is_error=0 error=cancelled\n");
    end(&x);
}

/* A call that cannot be routed belongs to no server, and a prompt is no tool call: no events. */
static void test_nothing_else_is_a_tool_call(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    client_open(&x.ann, "f__unheard_of");
    finish_call(client_request(&x.ann, OP_GET_PROMPT, "f__hello"), "hello");
    assert_heard(&x, "");
    end(&x);
}

static void test_a_server_failed_and_came_back(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    provider_lost(&x.fake.core, "exited with 1");
    assert_heard(&x, "mcp.server_failed server=f tool= call=0 ms=0 is_error=0 "
                     "error=exited with 1\n");
    stage_wait(&x.stage, 1000);
    provider_lost(&x.fake.core, "exited with 2"); /* before it was up */
    assert_heard(&x, "mcp.server_failed server=f tool= call=0 ms=0 is_error=0 "
                     "error=exited with 2\n");
    stage_wait(&x.stage, 2000);
    provider_up(&x.fake.core);
    assert_heard(&x, "mcp.servers_reconnected server=f tool= call=0 ms=0 is_error=0 error=\n");
    end(&x);
}

static void test_stopping_and_starting_is_no_event(void **state)
{
    struct fixture x;

    (void)state;
    begin(&x);
    provider_unwant(&x.fake.core);
    provider_lost(&x.fake.core, "exited with 0");
    provider_want(&x.fake.core);
    provider_up(&x.fake.core);
    assert_heard(&x, "");
    end(&x);
}

static void ignore(struct watcher *self, const struct happening *h)
{
    (void)self, (void)h;
}

static void test_the_number_of_watchers_is_bounded(void **state)
{
    struct events events;
    struct watcher watchers[EVENTS_MAX_WATCHERS + 1] = {{.happened = NULL}};

    (void)state;
    events_init(&events);
    for (size_t i = 0; i < COUNT_OF(watchers); i++) {
        watchers[i].happened = ignore;
        assert_int_equal(events_watch(&events, &watchers[i]), i < EVENTS_MAX_WATCHERS);
    }
    events_unwatch(&events, &watchers[EVENTS_MAX_WATCHERS]); /* was refused above */
    events_unwatch(&events, &watchers[0]);
    events_unwatch(&events, &watchers[0]);
    assert_true(events_watch(&events, &watchers[0]));
    assert_false(events_watch(&events, &watchers[EVENTS_MAX_WATCHERS]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_tool_was_called),
        cmocka_unit_test(test_a_tool_failed),
        cmocka_unit_test(test_nothing_else_is_a_tool_call),
        cmocka_unit_test(test_a_server_failed_and_came_back),
        cmocka_unit_test(test_stopping_and_starting_is_no_event),
        cmocka_unit_test(test_the_number_of_watchers_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
