/* Shows calls, their steps, decisions about them and their ends to the taps. Called by call.c,
 * call_open.c, ask.c and approval.c; admin/ adds taps. */
#include "core/tap.h"

#include "core/inside.h"

void tap_add(struct router *r, struct tap *tap)
{
    list_append(&r->taps, &tap->node);
}

void tap_remove(struct tap *tap)
{
    if (tap->node.next)
        list_remove(&tap->node);
}

const char *tap_show_opened(struct router *r, const struct call *c, const struct request *request)
{
    const char *why = NULL;

    LIST_EACH (&r->taps, it) {
        struct tap *tap = LIST_ENTRY(it, struct tap, node);
        const char *objection = tap->opened(tap, c, request);
        why = why ? why : objection;
    }
    return why;
}

void tap_show(const struct call *c, const struct step *step)
{
    if (!c->provider || c->consumer == &c->router->own)
        return;
    LIST_EACH (&c->router->taps, it) {
        struct tap *tap = LIST_ENTRY(it, struct tap, node);
        if (tap->stepped)
            tap->stepped(tap, c, step);
    }
}

const char *tap_show_decided(const struct call *c, bool allowed, struct span by)
{
    const char *why = NULL;

    LIST_EACH (&c->router->taps, it) {
        struct tap *tap = LIST_ENTRY(it, struct tap, node);
        const char *objection = tap->decided(tap, c, allowed, by);
        why = why ? why : objection;
    }
    return why;
}

const struct outcome *tap_show_end(struct router *r, const struct call *c,
                                   const struct outcome *outcome, struct outcome *instead)
{
    if (c->consumer == &r->own || c->op == OP_STANDING)
        return outcome;
    LIST_EACH (&r->taps, it) {
        struct tap *tap = LIST_ENTRY(it, struct tap, node);
        const char *why = tap->ended(tap, c, outcome);
        if (!why || outcome->kind == OUTCOME_FAILED)
            continue;
        *instead = (struct outcome){
            .kind = OUTCOME_FAILED, .why = FAIL_UNAVAILABLE, .text = span_str(why)};
        outcome = instead;
    }
    return outcome;
}
