/* The list of agents that have introduced themselves. Called by session.c; read by
 * admin/sessions.c. */
#include "mcp/agent/roll.h"

static void tell(const struct roll *r)
{
    if (r->changed)
        r->changed(r->arg);
}

void roll_init(struct roll *r)
{
    list_init(&r->entries);
}

void roll_enter(struct roll *r, struct roll_entry *e)
{
    if (!e->roll)
        list_append(&r->entries, &e->node);
    e->roll = r;
    tell(r);
}

void roll_leave(struct roll_entry *e)
{
    struct roll *r = e->roll;

    if (!r)
        return;
    list_remove(&e->node);
    e->roll = NULL;
    tell(r);
}

const struct roll_entry *roll_next(const struct roll *r, const struct roll_entry *e)
{
    const struct list *next = e ? e->node.next : r->entries.next;

    return next == &r->entries ? NULL : LIST_ENTRY(next, struct roll_entry, node);
}
