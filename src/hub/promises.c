/* Servers on their way from this daemon to its successor, with the calls that are parked at them.
 * Called by upgrade.c. */
#include "hub/promises.h"

#include "base/mem.h"
#include "hub/endpoints.h"
#include "hub/shims.h"
#include "wire/json.h"
#include "wire/json_out.h"

#include <unistd.h>

struct promise {
    struct list node;
    struct mcp_provider *server;
    char *key;
};

struct making {
    struct promises *promises;
    struct handover *handover;
};

static void make(void *arg, struct mcp_provider *server)
{
    const struct making *m = arg;
    BUF_SCOPED members = {0}, object = {0}, scratch = {0};

    if (!mcp_provider_promise(server, &members))
        return;
    buf_printf(&object, "{%s}", buf_cstr(&members));
    struct promise *p = MEM_NEW(struct promise);
    p->server = server;
    p->key = mem_span(json_text(json_get(buf_view(&object), "key").value, &scratch));
    list_append(&m->promises->all, &p->node);
    handover_tell(m->handover, "promise", &members, SPAN_EMPTY, NULL, 0);
}

void promises_make(struct promises *p, struct handover *b)
{
    bridge_show_servers(hub_bridge(p->hub), make, &(struct making){p, b});
}

static void forget(struct promise *p)
{
    list_remove(&p->node);
    mem_free(p->key);
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

/* Hands the server over if only parked calls are open there, which go with it. If the server has
 * ended, the successor is told so. */
static void try_to_keep(struct promises *all, struct handover *b, struct promise *p)
{
    BUF_SCOPED members = {0}, early = {0}, gone = {0};
    struct parked_at at = {.server = p->server, .core = mcp_provider_core(p->server)};
    int fds[HANDOVER_FDS];

    json_out_str(&members, "key", p->key);
    show_parked(all, &at, note_parked);
    if (mcp_provider_leave(p->server, at.n, &members, fds, &early)) {
        give_parked(all, b, &at);
        handover_tell(b, "server", &members, buf_view(&early), fds, COUNT_OF(fds));
        for (size_t i = 0; i < COUNT_OF(fds); i++)
            close(fds[i]);
        forget(p);
    } else if (!mcp_provider_promise(p->server, &gone)) {
        handover_tell(b, "lost", &members, SPAN_EMPTY, NULL, 0);
        forget(p);
    }
    buf_fini(&at.texts);
}

void promises_keep(struct promises *p, struct handover *b)
{
    LIST_EACH_SAFE (&p->all, it)
        try_to_keep(p, b, LIST_ENTRY(it, struct promise, node));
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
