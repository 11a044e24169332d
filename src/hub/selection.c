/* A view of the bridge, or of one server, narrowed by a configured view, and the mcp_host for
 * agents that see it. Called by entrances.c when it opens an entrance for a configured view. */
#include "hub/selection.h"

#include "base/mem.h"
#include "hub/lease.h"

struct selection {
    struct bridge *bridge;
    struct showcase_style style;
    struct showcase *showcase;
};

struct selection *selection_new(struct bridge *b, const struct bridge_server *server,
                                const struct narrowing *narrowing)
{
    struct selection *s = MEM_NEW(struct selection);
    struct view *whole = server ? bridge_server_own_view(server) : bridge_full_view(b);

    s->bridge = b;
    s->style = (struct showcase_style){.name = view_name(whole),
                                       .pattern = view_pattern(whole),
                                       .described = view_is_described(whole),
                                       .search = !server && bridge_view(b) != bridge_full_view(b),
                                       .narrowing = narrowing};
    s->showcase = showcase_new(bridge_router(b), &s->style);
    showcase_follow(s->showcase, whole);
    showcase_open(s->showcase);
    return s;
}

void selection_free(struct selection *s)
{
    if (!s)
        return;
    showcase_free(s->showcase);
    mem_free(s);
}

static void wake(void *arg)
{
    const struct selection *s = arg;

    bridge_wake(s->bridge);
}

static struct view *enter(void *arg, struct view *shared, unsigned answers, void **lease)
{
    const struct selection *s = arg;

    return bridge_enter(s->bridge, shared, &s->style, answers, lease);
}

static void leave(void *arg, void *lease)
{
    (void)arg;
    lease_end(lease);
}

struct mcp_host selection_host(struct selection *s)
{
    struct mcp_host host = bridge_host(s->bridge, showcase_view(s->showcase));

    host.arg = s;
    host.wake = wake;
    host.enter = enter;
    host.leave = leave;
    return host;
}
