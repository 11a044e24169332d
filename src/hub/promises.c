/* Servers on their way from this daemon to its successor, with the calls that are parked at them.
 * Called by upgrade.c. */
#include "hub/promises.h"

#include "base/mem.h"
#include "hub/endpoints.h"
#include "hub/shims.h"
#include "wire/json_out.h"

#include <unistd.h>

/* The server may end, and be freed, at any time, so it is known by what was promised: its key and
 * its process. */
struct promise {
    struct list node;
    char *text; /* members of a JSON object */
    bool runs;  /* the server is still there; valid only inside promises_keep */
};

/* What bridge_show_servers gives each server for. */
struct promising {
    struct promises *promises;
    struct handover *handover;
};

static void make(void *arg, struct mcp_provider *server)
{
    const struct promising *s = arg;
    BUF_SCOPED members = {0};

    if (mcp_provider_core(server)->draining || !mcp_provider_promise(server, &members))
        return;
    struct promise *p = MEM_NEW(struct promise);
    p->text = mem_span(buf_view(&members));
    list_append(&s->promises->all, &p->node);
    handover_tell(s->handover, "promise", &members, SPAN_EMPTY, NULL, 0);
}

void promises_make(struct promises *p, struct handover *b)
{
    bridge_show_servers(hub_bridge(p->hub), make, &(struct promising){p, b});
}

static void forget(struct promise *p)
{
    list_remove(&p->node);
    mem_free(p->text);
    mem_free(p);
}

/* --- parked calls --- */

/* The parked calls at one server. */
struct parked_at {
    const struct mcp_provider *server;
    const struct provider *core;
    size_t n;
    struct buf texts; /* for each call the members of a JSON object and a NUL */
};

static bool note_parked(void *arg, struct call *call, struct span members)
{
    struct parked_at *at = arg;
    BUF_SCOPED all = {0};

    buf_span(&all, members);
    if (call->provider != at->core || !mcp_provider_put_going_on(at->server, call, &all))
        return false;
    at->n++;
    buf_bytes(&at->texts, buf_cstr(&all), all.n + 1);
    return false;
}

static bool is_moved(void *arg, struct call *call, struct span members)
{
    const struct parked_at *at = arg;

    (void)members;
    return call->provider == at->core;
}

static void show_parked(const struct promises *all, struct parked_at *at, modern_parked_fn *show)
{
    endpoints_show_parked(hub_endpoints(all->hub), show, at);
    shims_show_parked(hub_shim_list(all->hub), show, at);
}

/* The server has been handed over, and only these calls were open there. */
static void give_parked(struct promises *all, struct handover *b, struct parked_at *at)
{
    for (size_t i = 0; i < at->texts.n; i += strlen(at->texts.p + i) + 1) {
        BUF_SCOPED members = {0};
        buf_str(&members, at->texts.p + i);
        handover_tell(b, "parked", &members, SPAN_EMPTY, NULL, 0);
        all->moved++;
    }
    show_parked(all, at, is_moved);
}

/* --- going --- */

/* Hands the server over if only parked calls are open there, which go with it. */
static void try_to_keep(struct promises *all, struct handover *b, struct promise *p,
                        struct mcp_provider *server)
{
    BUF_SCOPED members = {0}, early = {0};
    struct parked_at at = {.server = server, .core = mcp_provider_core(server)};
    int fds[HANDOVER_FDS];

    buf_str(&members, p->text);
    show_parked(all, &at, note_parked);
    if (mcp_provider_leave(server, at.n, &members, fds, &early)) {
        give_parked(all, b, &at);
        handover_tell(b, "server", &members, buf_view(&early), fds, COUNT_OF(fds));
        for (size_t i = 0; i < COUNT_OF(fds); i++)
            close(fds[i]);
        forget(p);
    }
    buf_fini(&at.texts);
}

static void keep(void *arg, struct mcp_provider *server)
{
    const struct promising *s = arg;
    BUF_SCOPED members = {0};

    if (!mcp_provider_promise(server, &members))
        return;
    LIST_EACH (&s->promises->all, it) {
        struct promise *p = LIST_ENTRY(it, struct promise, node);
        if (!span_is(buf_view(&members), p->text))
            continue;
        p->runs = true;
        try_to_keep(s->promises, s->handover, p, server);
        return;
    }
}

void promises_keep(struct promises *p, struct handover *b)
{
    if (promises_are_kept(p))
        return;
    bridge_show_servers(hub_bridge(p->hub), keep, &(struct promising){p, b});
    LIST_EACH_SAFE (&p->all, it) {
        struct promise *one = LIST_ENTRY(it, struct promise, node);
        BUF_SCOPED members = {0};
        if (!one->runs) {
            buf_str(&members, one->text);
            handover_tell(b, "lost", &members, SPAN_EMPTY, NULL, 0);
            forget(one);
            continue;
        }
        one->runs = false;
    }
}

bool promises_are_kept(const struct promises *p)
{
    return list_empty(&p->all);
}

void promises_forget(struct promises *p)
{
    while (!list_empty(&p->all))
        forget(LIST_FIRST(&p->all, struct promise, node));
}

void promises_init(struct promises *p, struct hub *hub)
{
    p->hub = hub;
    list_init(&p->all);
}
