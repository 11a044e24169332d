/* The list of watchers and the names of the events they are told of. Published to by call.c,
 * provider.c and approval.c; watched by admin/accounts.c, admin/live.c and rockbot/news.c. */
#include "core/events.h"

static const char *const names[HAPPENED_KINDS] = {
    [HAPPENED_TOOL_CALLED] = "mcp.tool_called",
    [HAPPENED_TOOL_FAILED] = "mcp.tool_failed",
    [HAPPENED_SERVER_FAILED] = "mcp.server_failed",
    [HAPPENED_SERVERS_RECONNECTED] = "mcp.servers_reconnected",
    [HAPPENED_APPROVAL_WANTED] = "mcp.approval_wanted",
};

const char *happening_name(enum happening_kind kind)
{
    return names[kind];
}

void events_init(struct events *e)
{
    list_init(&e->watchers);
    e->n = 0;
}

bool events_watch(struct events *e, struct watcher *w)
{
    if (e->n == EVENTS_MAX_WATCHERS)
        return false;
    list_append(&e->watchers, &w->node);
    e->n++;
    return true;
}

void events_unwatch(struct events *e, struct watcher *w)
{
    if (!w->node.next || list_empty(&w->node))
        return;
    list_remove(&w->node);
    e->n--;
}

void events_publish(struct events *e, const struct happening *h)
{
    LIST_EACH (&e->watchers, it) {
        struct watcher *w = LIST_ENTRY(it, struct watcher, node);
        w->happened(w, h);
    }
}
