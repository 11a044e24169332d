/* Pairs of an outer and an inner call, and what passes between them. Used by the providers of
 * our own that call tools for agents: mcp/search_provider.c and browser/guide.c. */
#include "core/forward.h"

#include "base/mem.h"

struct forward {
    struct call *outer; /* NULL once the outer call was cancelled */
    struct call *inner; /* NULL until the inner call is open */
    char *name;         /* of the tool */
};

/* All inner calls have the same consumer, so the party must tell the agents apart. */
static uint64_t party_of(const struct call *outer)
{
    const uint64_t who[] = {(uint64_t)(uintptr_t)outer->consumer, outer->party};

    return map_hash(span_of((const char *)who, sizeof who));
}

void forward_open(struct provider *p, struct call *outer, struct view *v, struct request *inner)
{
    struct forward *f = MEM_NEW(struct forward);

    inner->party = party_of(outer);
    inner->behalf = outer;
    inner->anybody = outer->anybody;
    f->outer = outer;
    f->name = mem_span(inner->name);
    outer->provider_data = f;
    struct call *opened = call_open(p->router, &p->peer, v, inner, f);
    if (!opened)
        return; /* the inner call has ended, and the forward with it */
    f->inner = opened;
    if (!f->outer)
        call_cancel(opened, FAIL_CANCELLED); /* the outer call was cancelled meanwhile */
}

void forward_answer(struct peer *self, struct call *outer, struct span key,
                    const struct outcome *outcome)
{
    const struct forward *f = outer->provider_data;

    (void)self;
    ask_answer(f->inner, key, outcome);
}

void forward_cancel(struct peer *self, struct call *outer, enum failure why)
{
    struct forward *f = outer->provider_data;

    (void)self;
    f->outer = NULL;
    if (f->inner)
        call_cancel(f->inner, why); /* the provider's `done` frees the forward */
}

void forward_event(struct peer *self, struct call *inner, const struct event *event)
{
    struct forward *f = inner->consumer_data;

    (void)self;
    f->inner = inner;
    if (f->outer && event->kind == EVENT_UNASKED)
        ask_take_back(f->outer, event->name);
    else if (f->outer)
        call_event(f->outer, event);
}

void forward_ask(struct peer *self, struct call *inner, const struct ask *ask)
{
    struct forward *f = inner->consumer_data;

    (void)self;
    f->inner = inner;
    if (f->outer)
        ask_put(f->outer, ask);
}

struct call *forward_end(const struct call *inner, struct buf *name)
{
    struct forward *f = inner->consumer_data;
    struct call *outer = f->outer;

    if (outer)
        outer->lacks |= inner->lacks;
    buf_str(name, f->name);
    mem_free(f->name);
    mem_free(f);
    return outer;
}
