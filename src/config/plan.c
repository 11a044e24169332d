/* The comparison of two configurations server by server, and the names of other keys that differ.
 * Called by hub/graph/bridge.c, and by hub/graph/follow.c to report a reload. */
#include "config/plan.h"

#include "base/mem.h"
#include "config/schema.h"

static const struct config_server *find(const struct config *c, const char *alias)
{
    const struct config_server *s = c ? config_server(c, alias) : NULL;

    return s && s->enabled ? s : NULL;
}

/* Do both differ only in settings that can be changed while the server runs? */
static bool only_adjusted(const struct config_server *from, const struct config_server *to)
{
    struct config_server adjusted = *from;

    adjusted.allow = to->allow;
    adjusted.deny = to->deny;
    adjusted.approve = to->approve;
    adjusted.approve_by = to->approve_by;
    adjusted.approve_timeout = to->approve_timeout;
    adjusted.timeout = to->timeout;
    adjusted.timeout_on_progress = to->timeout_on_progress;
    adjusted.timeout_max = to->timeout_max;
    adjusted.ask_timeout = to->ask_timeout;
    adjusted.elicitation = to->elicitation;
    adjusted.attachments = to->attachments;
    adjusted.concurrency = to->concurrency;
    adjusted.queue = to->queue;
    adjusted.start_timeout = to->start_timeout;
    adjusted.idle_stop = to->idle_stop;
    adjusted.restarts = to->restarts;
    return config_server_equal(&adjusted, to);
}

static enum plan_act compare(const struct config_server *from, const struct config_server *to)
{
    if (!from)
        return PLAN_ADD;
    if (config_server_equal(from, to))
        return PLAN_KEEP;
    return only_adjusted(from, to) ? PLAN_ADJUST : PLAN_REPLACE;
}

void plan_make(struct plan *p, const struct config *from, const struct config *to)
{
    size_t old = from ? from->servers.n : 0;

    *p = (struct plan){.steps = MEM_ARRAY(struct plan_step, to->servers.n + old + 1)};
    for (size_t i = 0; i < to->servers.n; i++) {
        const struct config_server *s = &to->servers.items[i];
        const struct config_server *before = find(from, s->alias);
        if (s->enabled)
            p->steps[p->n++] = (struct plan_step){compare(before, s), before, s};
    }
    for (size_t i = 0; i < old; i++) {
        const struct config_server *s = &from->servers.items[i];
        if (s->enabled && !find(to, s->alias))
            p->steps[p->n++] = (struct plan_step){PLAN_REMOVE, s, NULL};
    }
}

void plan_fini(struct plan *p)
{
    mem_free(p->steps);
}

const char *plan_act_name(enum plan_act act)
{
    static const char *const names[PLAN_ACTS] = {
        [PLAN_KEEP] = "kept", [PLAN_ADJUST] = "adjusted", [PLAN_REPLACE] = "replaced",
        [PLAN_ADD] = "added", [PLAN_REMOVE] = "removed",
    };

    return names[act];
}

/* Does a reload carry out changes of this key? */
static bool is_followed(const char *key)
{
    static const char *const followed[] = {
        "servers",         "views",           "auth",    "lock",    "rules",
        "public_url",      "enabled_servers", "secrets", "sandbox", "resources_as_tools",
        "prompts_as_tools"};

    for (size_t i = 0; i < COUNT_OF(followed); i++)
        if (strcmp(key, followed[i]) == 0)
            return true;
    return false;
}

void plan_put_other_keys(struct buf *out, const struct config *from, const struct config *to)
{
    size_t before = out->n;

    for (size_t i = 0; i < schema_rows_n; i++) {
        const char *key = schema_child(&schema_rows[i], "");
        if (key && !is_followed(key) && !schema_equal_row(&schema_rows[i], from, to))
            buf_printf(out, "%s%s", out->n > before ? ", " : "", key);
    }
}
