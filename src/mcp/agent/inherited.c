/* The tables of sessions and parked calls that wait for their clients after an upgrade. Called by
 * http_agent.c and modern_park.c for requests, and by hub/upgrade.c and hub/hub.c. */
#include "mcp/agent/inherited.h"

#include "base/map.h"
#include "base/mem.h"
#include "wire/json.h"

struct inherited_session {
    uint64_t until;
    size_t home_n, state_n;
    char bytes[]; /* the home, the state */
};

/* A parked call. */
struct inherited_call {
    struct list node; /* in `parked`, or in `taken` */
    uint64_t handle, expires;
    struct going_on goes_on;
    char *home, *text;
};

struct inherited {
    struct timers *timers;
    struct list parked, taken;
    struct map sessions; /* id -> struct inherited_session */
    struct timer expiry;
    void (*stray)(void *arg, uint64_t session, struct span message);
    void *stray_arg;
};

enum { LOOK_MS = 15 * 1000 };

static struct span home_of(const struct inherited_session *s)
{
    return span_of(s->bytes, s->home_n);
}

static struct span state_of(const struct inherited_session *s)
{
    return span_of(s->bytes + s->home_n, s->state_n);
}

static void on_expiry(struct timer *t)
{
    struct inherited *in = CONTAINER_OF(t, struct inherited, expiry);
    bool found;

    do {
        size_t at = 0;
        struct span id;
        void *s;
        found = false;
        while (!found && map_next(&in->sessions, &at, &id, &s))
            found = ((struct inherited_session *)s)->until <= in->timers->now;
        if (found)
            mem_free(map_del(&in->sessions, id));
    } while (found);
    if (in->sessions.n)
        timer_set(in->timers, t, LOOK_MS);
}

struct inherited *inherited_new(struct timers *timers)
{
    struct inherited *in = MEM_NEW(struct inherited);

    in->timers = timers;
    in->expiry.fire = on_expiry;
    list_init(&in->parked);
    list_init(&in->taken);
    return in;
}

static void free_call(struct inherited_call *c)
{
    list_remove(&c->node);
    mem_free(c->goes_on.asks);
    mem_free(c->goes_on.responses);
    mem_free(c->home);
    mem_free(c->text);
    mem_free(c);
}

void inherited_free(struct inherited *in)
{
    size_t at = 0;
    void *s;

    timer_clear(in->timers, &in->expiry);
    while (map_next(&in->sessions, &at, NULL, &s))
        mem_free(s);
    map_fini(&in->sessions);
    LIST_EACH_SAFE (&in->parked, it)
        free_call(LIST_ENTRY(it, struct inherited_call, node));
    LIST_EACH_SAFE (&in->taken, it)
        free_call(LIST_ENTRY(it, struct inherited_call, node));
    mem_free(in);
}

/* --- parked calls --- */

void inherited_add_parked(struct inherited *in, struct span text)
{
    struct inherited_call *c = MEM_NEW(struct inherited_call);
    BUF_SCOPED scratch = {0};

    c->handle = json_count(text, "handle");
    c->expires = json_count(text, "expires");
    c->goes_on.id = json_count(text, "id");
    c->goes_on.pid = (int)json_count(text, "pid");
    c->goes_on.asks = mem_span(json_get(text, "asks").value);
    c->home = mem_span(json_text(json_get(text, "home").value, &scratch));
    c->text = mem_span(text);
    list_append(&in->parked, &c->node);
}

void inherited_show_parked(const struct inherited *in, void (*show)(void *arg, struct span text),
                           void *arg)
{
    LIST_EACH (&in->parked, it) {
        const struct inherited_call *c = LIST_ENTRY(it, struct inherited_call, node);
        if (c->expires > in->timers->now)
            show(arg, span_str(c->text));
    }
}

const struct going_on *inherited_take_parked(struct inherited *in, const char *home,
                                             uint64_t handle, struct span responses)
{
    LIST_EACH (&in->parked, it) {
        struct inherited_call *c = LIST_ENTRY(it, struct inherited_call, node);
        if (c->handle != handle || strcmp(c->home, home) != 0)
            continue;
        list_remove(&c->node);
        list_append(&in->taken, &c->node);
        c->goes_on.responses = responses.n ? mem_span(responses) : NULL;
        return &c->goes_on;
    }
    return NULL;
}

/* --- sessions --- */

void inherited_add(struct inherited *in, struct span home, struct span id, struct span state,
                   uint64_t ttl)
{
    struct inherited_session *s = mem_alloc(sizeof *s + home.n + state.n);

    *s = (struct inherited_session){
        .until = in->timers->now + ttl, .home_n = home.n, .state_n = state.n};
    memcpy(s->bytes, home.p, home.n);
    memcpy(s->bytes + home.n, state.p, state.n);
    mem_free(map_del(&in->sessions, id));
    map_put(&in->sessions, id, s);
    if (!timer_is_set(&in->expiry))
        timer_set(in->timers, &in->expiry, LOOK_MS);
}

bool inherited_take(struct inherited *in, const char *home, struct span id, struct buf *state)
{
    struct inherited_session *s = map_get(&in->sessions, id);

    if (!s || !span_is(home_of(s), home))
        return false;
    buf_span(state, state_of(s));
    mem_free(map_del(&in->sessions, id));
    return true;
}

size_t inherited_count(const struct inherited *in)
{
    return in->sessions.n;
}

void inherited_show(const struct inherited *in, inherited_show_fn *show, void *arg)
{
    uint64_t now = in->timers->now;
    size_t at = 0;
    struct span id;
    void *value;

    while (map_next(&in->sessions, &at, &id, &value)) {
        const struct inherited_session *s = value;
        if (s->until > now)
            show(arg, home_of(s), id, state_of(s), s->until - now);
    }
}

void inherited_on_stray(struct inherited *in,
                        void (*stray)(void *arg, uint64_t session, struct span message), void *arg)
{
    in->stray = stray;
    in->stray_arg = arg;
}

void inherited_stray(const struct inherited *in, uint64_t session, struct span message)
{
    if (in->stray)
        in->stray(in->stray_arg, session, message);
}
