/* The health of each server by the state of its provider, and of the daemon as a whole, with
 * reasons. Called by admin.c for /readyz, by status.c, metrics.c and servers.c. */
#include "admin/inside.h"

#include "base/map.h"
#include "base/mem.h"
#include "wire/json_out.h"

enum server_health health_of(const struct provider *p)
{
    if (p->halted)
        return SERVER_STOPPED;
    if (p->state == PROVIDER_READY)
        return SERVER_UP;
    if (provider_needs_sign_in(p))
        return SERVER_NEEDS_SIGN_IN;
    if (p->why)
        return SERVER_FAILING; /* also while it is being started again */
    if (p->state == PROVIDER_STARTING || p->wanted_again)
        return SERVER_STARTING;
    return p->rests || !p->policy.eager ? SERVER_IDLE : SERVER_STOPPED;
}

const char *health_word(enum server_health h)
{
    static const char *const words[] = {
        [SERVER_UP] = "up",
        [SERVER_IDLE] = "idle",
        [SERVER_STARTING] = "starting",
        [SERVER_FAILING] = "failing",
        [SERVER_NEEDS_SIGN_IN] = "needs_sign_in",
        [SERVER_STOPPED] = "stopped",
    };

    return words[h];
}

static bool is_missing(const struct provider *p)
{
    enum server_health h = health_of(p);

    return h == SERVER_STARTING || h == SERVER_FAILING || h == SERVER_NEEDS_SIGN_IN;
}

/* The enabled servers of the configuration that the bridge did not add, mostly because a secret is
 * missing. The list ends with NULL; the caller frees it. */
static const char **find_left_out(const struct admin *a)
{
    const struct config *c = bridge_config(a->bridge);
    const char **found = MEM_ARRAY(const char *, c->servers.n + 1);
    struct map there = {0};
    size_t n = 0;

    for (struct provider *p = NULL; (p = bridge_next(a->bridge, p));)
        map_put(&there, span_str(p->alias), p);
    for (size_t i = 0; i < c->servers.n; i++) {
        const struct config_server *s = &c->servers.items[i];
        if (s->enabled && !map_get(&there, span_str(s->alias)))
            found[n++] = s->alias;
    }
    map_fini(&there);
    return found;
}

enum overall health_overall(const struct admin *a, bool strict)
{
    const char **left_out = find_left_out(a);
    size_t usable = 0, missing = 0;

    while (left_out[missing])
        missing++;
    mem_free(left_out);
    for (const struct provider *p = NULL; (p = bridge_next(a->bridge, p));) {
        missing += is_missing(p);
        usable += health_of(p) == SERVER_UP || health_of(p) == SERVER_IDLE;
    }
    if (!missing)
        return OVERALL_OK;
    return strict || !usable ? OVERALL_DOWN : OVERALL_DEGRADED;
}

const char *health_overall_word(enum overall o)
{
    static const char *const words[] = {
        [OVERALL_OK] = "ok", [OVERALL_DEGRADED] = "degraded", [OVERALL_DOWN] = "down"};

    return words[o];
}

void health_put_lacks(struct buf *out, const struct admin *a, const char *alias)
{
    struct span rest = span_str(bridge_lacks(a->bridge, alias));

    json_out_open(out, "missing", '[');
    while (rest.n) {
        size_t end = span_find(rest, ',');
        json_out_text(out, NULL, span_cut(rest, 0, end));
        rest = span_from(rest, end + strlen(", "));
    }
    buf_char(out, ']');
}

/* `reason` may be NULL. */
static void put_missing(struct buf *out, const char *alias, const char *state, const char *reason)
{
    json_out_open(out, NULL, '{');
    json_out_str(out, "server", alias);
    json_out_str(out, "state", state);
    if (reason)
        json_out_redacted(out, "reason", span_str(reason));
}

void health_put_members(struct buf *out, const struct admin *a, bool strict, bool with_reasons,
                        const struct sight *s)
{
    const char **left_out = find_left_out(a);

    json_out_str(out, "status", health_overall_word(health_overall(a, strict)));
    json_out_open(out, "reasons", '[');
    for (const struct provider *p = NULL; (p = bridge_next(a->bridge, p));) {
        const char *why = p->why ? p->why : "it has not come up yet";
        if (!is_missing(p) || !sight_shows_server(s, span_str(p->alias)))
            continue;
        put_missing(out, p->alias, health_word(health_of(p)), with_reasons ? why : NULL);
        buf_char(out, '}');
    }
    for (size_t i = 0; left_out[i]; i++) {
        if (!sight_shows_server(s, span_str(left_out[i])))
            continue;
        const char *lacks = bridge_lacks(a->bridge, left_out[i]);
        BUF_SCOPED reason = {0};
        buf_printf(&reason, lacks ? "no value for %s" : "the log says why%s", lacks ? lacks : "");
        put_missing(out, left_out[i], "left out", with_reasons ? buf_cstr(&reason) : NULL);
        if (with_reasons)
            health_put_lacks(out, a, left_out[i]);
        buf_char(out, '}');
    }
    buf_char(out, ']');
    mem_free(left_out);
}
