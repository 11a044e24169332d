/* The last messages of a connection to a server. Owned by provider.c, filled by upstream_calls.c
 * (upstream_note), read by admin/messages.c. */
#include "mcp/server/traffic.h"

static struct traffic_message *message_at(const struct list *node)
{
    return LIST_ENTRY((struct list *)(uintptr_t)node, struct traffic_message, node);
}

static void forget_oldest(struct traffic *t)
{
    struct traffic_message *m = message_at(t->messages.next);

    t->n--;
    t->bytes -= m->n;
    list_remove(&m->node);
    mem_free(m);
}

void traffic_init(struct traffic *t)
{
    *t = (struct traffic){0};
    list_init(&t->messages);
}

void traffic_fini(struct traffic *t)
{
    while (t->n)
        forget_oldest(t);
}

void traffic_add(struct traffic *t, uint64_t now, bool in, struct span message)
{
    struct span kept = span_cut(message, 0, TRAFFIC_BODY);
    struct traffic_message *m = mem_alloc(sizeof *m + kept.n);

    *m = (struct traffic_message){
        .number = ++t->last, .at = now, .in = in, .whole = message.n, .n = kept.n};
    if (kept.n)
        memcpy(m->bytes, kept.p, kept.n);
    list_append(&t->messages, &m->node);
    t->n++;
    t->bytes += m->n;
    while (t->n > TRAFFIC_MOST || t->bytes > TRAFFIC_BYTES)
        forget_oldest(t);
}

const struct traffic_message *traffic_before(const struct traffic *t,
                                             const struct traffic_message *m)
{
    const struct list *node = m ? m->node.prev : t->messages.prev;

    return node == &t->messages ? NULL : message_at(node);
}
