/* The readers of /api/events, what is marked as changed for them, and the timer that tells them.
 * Called by api.c for the path, by admin.c, and by news.c and servers.c, which mark changes. */
#include "admin/live.h"

#include "admin/inside.h"
#include "admin/throttle.h"
#include "bus/broker.h"
#include "wire/json_out.h"

#include <unistd.h>

enum {
    READERS_MAX = 64,
    READER_MAX = 1 << 20, /* bytes that wait for one reader */
    GAP = 250,            /* ms between two messages of one kind, unless `gaps` has another */
    BEAT = 25 * 1000,     /* ms between two signs of life */
};

static const uint64_t gaps[LIVE_KINDS] = {
    [LIVE_SESSIONS] = 2 * 1000, /* each call changes them, and pages fetch the whole list */
    [LIVE_NUMBERS] = 60 * 1000,
};

struct live {
    struct admin *admin;
    struct news *news;
    struct list readers;
    size_t n_readers;
    struct throttle throttle;
    struct timer tell, beat;
    struct observer observer;
    struct watcher watcher;
    struct tap tap;
};

struct live_reader {
    struct list node;
    struct live *live;
    struct http_exchange *x;
    struct principal *principal; /* held; or NULL */
    char *view;                  /* that a viewer is limited to; or NULL */
    bool by_socket;
};

static struct timers *clock_of(const struct live *l)
{
    return router_timers(l->admin->router);
}

/* --- marks --- */

static void set_timer(struct live *l)
{
    uint64_t next = throttle_next(&l->throttle), now = clock_of(l)->now;

    if (next != UINT64_MAX)
        timer_set(clock_of(l), &l->tell, next > now ? next - now : 0);
}

void live_mark(struct live *l, enum live_kind kind)
{
    if (!l || !l->n_readers)
        return;
    if (throttle_mark(&l->throttle, kind, gaps[kind] ? gaps[kind] : GAP, clock_of(l)->now))
        set_timer(l);
}

static void mark_call(struct live *l, uint64_t id)
{
    news_add_call(l->news, id);
    live_mark(l, LIVE_CALLS);
    live_mark(l, LIVE_SERVERS); /* their counts change */
    live_mark(l, LIVE_SESSIONS);
}

static const char *on_opened(struct tap *self, const struct call *c, const struct request *q)
{
    struct live *l = CONTAINER_OF(self, struct live, tap);

    (void)q;
    if (!call_concerns_people(c))
        return NULL;
    mark_call(l, c->handle);
    return NULL;
}

static const char *on_ended(struct tap *self, const struct call *c, const struct outcome *outcome)
{
    struct live *l = CONTAINER_OF(self, struct live, tap);

    (void)outcome;
    if (!call_concerns_people(c))
        return NULL;
    mark_call(l, c->handle);
    live_mark(l, LIVE_NUMBERS);
    live_mark(l, LIVE_APPROVALS); /* it may have been held */
    live_mark(l, LIVE_TASKS);     /* or be about a task */
    return NULL;
}

static const char *on_decided(struct tap *self, const struct call *c, bool allowed, struct span by)
{
    struct live *l = CONTAINER_OF(self, struct live, tap);

    (void)allowed, (void)by;
    mark_call(l, c->handle);
    live_mark(l, LIVE_APPROVALS);
    return NULL;
}

/* One more leg in the story of a call. */
static void on_stepped(struct tap *self, const struct call *c, const struct step *step)
{
    struct live *l = CONTAINER_OF(self, struct live, tap);

    (void)step;
    if (!call_concerns_people(c))
        return;
    news_add_call(l->news, c->handle);
    live_mark(l, LIVE_CALLS);
}

static void on_happened(struct watcher *self, const struct happening *h)
{
    struct live *l = CONTAINER_OF(self, struct live, watcher);

    if (h->kind == HAPPENED_APPROVAL_WANTED)
        live_mark(l, LIVE_APPROVALS);
    if (h->kind == HAPPENED_SERVER_FAILED)
        live_mark(l, LIVE_NUMBERS); /* the charts show restarts */
}

/* Some provider has another state or other items. */
static void on_changed(struct observer *o)
{
    static const enum live_kind kinds[] = {LIVE_SERVERS, LIVE_TOOLS, LIVE_PAGES, LIVE_APPROVALS,
                                           LIVE_BUS};
    struct live *l = CONTAINER_OF(o, struct live, observer);

    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        live_mark(l, kinds[i]);
}

/* The configuration was read again; the rows of servers and the tools depend on it. */
static void on_config(void *arg)
{
    live_mark(arg, LIVE_CONFIG);
    live_mark(arg, LIVE_SERVERS);
    live_mark(arg, LIVE_TOOLS);
}

static void on_session(void *arg)
{
    live_mark(arg, LIVE_SESSIONS);
}

/* --- readers --- */

static void on_bus(void *arg)
{
    live_mark(arg, LIVE_BUS);
}

static void watch_bus(struct live *l, void (*changed)(void *arg))
{
    struct bus_report r = {0};

    if (hub_look_at_bus(l->admin->hub, &r) && r.broker)
        broker_watch(r.broker, changed, l);
}

static void listen_to_router(struct live *l)
{
    struct router *r = l->admin->router;

    tap_add(r, &l->tap);
    events_watch(router_events(r), &l->watcher);
    observers_add(router_observers(r), &l->observer);
    timer_set(clock_of(l), &l->beat, BEAT);
    watch_bus(l, on_bus);
    news_begin(l->news);
}

static void stop_listening(struct live *l)
{
    tap_remove(&l->tap);
    watch_bus(l, NULL);
    events_unwatch(router_events(l->admin->router), &l->watcher);
    observer_remove(&l->observer);
    timer_clear(clock_of(l), &l->beat);
    timer_clear(clock_of(l), &l->tell);
    l->throttle = (struct throttle){0};
    news_forget(l->news, ~0U);
}

static void reader_free(struct live_reader *r)
{
    struct live *l = r->live;

    list_remove(&r->node);
    principal_release(r->principal);
    mem_free(r->view);
    mem_free(r);
    if (--l->n_readers == 0)
        stop_listening(l);
}

static void on_gone(void *owner)
{
    reader_free(owner);
}

/* False when the reader's token has ended, or when it has none and tokens are required by now. */
static bool may_read(const struct live_reader *r)
{
    if (r->principal)
        return !r->principal->ended;
    return r->by_socket || !front_asks_tokens(hub_front(r->live->admin->hub));
}

/* Writes to the reader, or ends its stream. */
static void tell_reader(struct live_reader *r, struct span text)
{
    if (!may_read(r)) {
        http_stream_end(r->x);
        reader_free(r);
        return;
    }
    if (text.n)
        http_stream_write(r->x, text);
    if (http_exchange_queued(r->x) > READER_MAX + text.n) {
        http_exchange_abort(r->x, "a page reads what is new too slowly");
        reader_free(r);
    }
}

static void put_message(struct buf *out, const char *name, struct span data)
{
    buf_printf(out, "event: %s\ndata: ", name);
    buf_span(out, data);
    buf_str(out, "\n\n");
}

static void put_messages(struct buf *out, const struct live_reader *r, unsigned kinds)
{
    static const char *const names[LIVE_KINDS] = {"servers",  "calls",  "log",  "approvals",
                                                  "sessions", "pages",  "bus",  "tools",
                                                  "numbers",  "config", "tasks"};
    const struct live *l = r->live;
    struct sight sight = sight_by_view(l->admin->hub, r->view);

    for (unsigned i = 0; i < LIVE_KINDS; i++) {
        BUF_SCOPED data = {0};
        if (kinds & 1U << i && news_put(&data, l->news, i, &sight))
            put_message(out, names[i], buf_view(&data));
    }
}

static void on_tell(struct timer *t)
{
    struct live *l = CONTAINER_OF(t, struct live, tell);
    unsigned due = throttle_take(&l->throttle, clock_of(l)->now);

    status_mind_clock(l->admin);
    unsigned kinds = news_gather(l->news, due);

    LIST_EACH_SAFE (&l->readers, it) {
        struct live_reader *r = LIST_ENTRY(it, struct live_reader, node);
        BUF_SCOPED out = {0};
        put_messages(&out, r, kinds);
        tell_reader(r, buf_view(&out));
    }
    news_forget(l->news, due);
    set_timer(l);
}

static void on_beat(struct timer *t)
{
    struct live *l = CONTAINER_OF(t, struct live, beat);

    timer_set(clock_of(l), &l->beat, BEAT);
    LIST_EACH_SAFE (&l->readers, it)
        tell_reader(LIST_ENTRY(it, struct live_reader, node), SPAN(": still here\n\n"));
}

/* --- the path --- */

static void put_hello(struct buf *out, const struct live *l, const struct caller *caller)
{
    BUF_SCOPED data = {0};

    json_out_open(&data, NULL, '{');
    json_out_str(&data, "version", RIALTO_VERSION);
    json_out_number(&data, "pid", (uint64_t)getpid());
    json_out_str(&data, "role", caller->viewer ? "viewer" : "operator");
    json_out_text_or_null(&data, "name", span_str(principal_name(caller->principal)));
    json_out_bool(&data, "anonymous", !front_asks_tokens(hub_front(l->admin->hub)));
    json_out_text_or_null(&data, "view", span_str(caller->viewer ? caller->view : NULL));
    buf_char(&data, '}');
    put_message(out, "hello", buf_view(&data));
}

static void add_reader(struct live *l, struct http_exchange *x, const struct caller *caller)
{
    struct live_reader *r = MEM_NEW(struct live_reader);
    BUF_SCOPED hello = {0};

    if (l->n_readers++ == 0)
        listen_to_router(l);
    *r = (struct live_reader){.live = l,
                              .x = x,
                              .principal = principal_hold(caller->principal),
                              .view = caller->viewer ? mem_str(caller->view) : NULL,
                              .by_socket = caller->way == CALLER_SOCKET};
    list_append(&l->readers, &r->node);
    put_hello(&hello, l, caller);
    http_stream_begin(x, 200, "text/event-stream", SPAN_EMPTY);
    http_exchange_on_gone(x, on_gone, r);
    http_stream_write(x, buf_view(&hello));
}

void live_handle(struct admin *a, struct http_exchange *x, const struct http_request *req,
                 const struct api_path *path)
{
    if (path->name.n)
        api_no_such_path(x);
    else if (!admin_wants_get(x, req))
        ;
    else if (span_is(req->method, "HEAD"))
        http_respond(x, 200, "text/event-stream", SPAN_EMPTY, SPAN_EMPTY);
    else if (a->live->n_readers >= READERS_MAX)
        http_refuse(x, 503, "too many pages are open", "close some of them");
    else
        add_reader(a->live, x, path->caller);
}

struct live *live_new(struct admin *a)
{
    struct live *l = MEM_NEW(struct live);

    *l = (struct live){
        .admin = a,
        .news = news_new(a),
        .tell = {.fire = on_tell},
        .beat = {.fire = on_beat},
        .observer = {.changed = on_changed},
        .watcher = {.happened = on_happened},
        .tap = {
            .opened = on_opened, .ended = on_ended, .decided = on_decided, .stepped = on_stepped}};
    list_init(&l->readers);
    hub_on_config(a->hub, on_config, l);
    bridge_sessions(a->bridge)->changed = on_session;
    bridge_sessions(a->bridge)->arg = l;
    return l;
}

void live_free(struct live *l)
{
    hub_on_config(l->admin->hub, NULL, NULL);
    bridge_sessions(l->admin->bridge)->changed = NULL;
    news_free(l->news); /* the front has closed, so there are no readers any more */
    mem_free(l);
}
