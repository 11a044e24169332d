/* The list of agents that have introduced themselves. Called by session.c; read by
 * admin/sessions.c. */
#include "mcp/agent/session_list.h"

static void tell(const struct session_list *r)
{
    if (r->changed)
        r->changed(r->arg);
}

void session_list_init(struct session_list *r)
{
    list_init(&r->entries);
}

void session_list_enter(struct session_list *r, struct session_list_entry *e)
{
    if (!e->sessions)
        list_append(&r->entries, &e->node);
    e->sessions = r;
    tell(r);
}

void session_list_leave(struct session_list_entry *e)
{
    struct session_list *r = e->sessions;

    if (!r)
        return;
    list_remove(&e->node);
    e->sessions = NULL;
    tell(r);
}

const struct session_list_entry *session_list_next(const struct session_list *r,
                                                   const struct session_list_entry *e)
{
    const struct list *next = e ? e->node.next : r->entries.next;

    return next == &r->entries ? NULL : LIST_ENTRY(next, struct session_list_entry, node);
}
