/* The table of our open requests to one agent, by id, and the notification that cancels one. Called
 * by session.c and passage.c. */
#include "mcp/agent/agent_asks.h"

#include "base/mem.h"
#include "wire/json.h"

void agent_asks_init(struct agent_asks *as)
{
    *as = (struct agent_asks){0};
    list_init(&as->all);
}

void agent_asks_fini(struct agent_asks *as)
{
    LIST_EACH_SAFE (&as->all, it) {
        list_remove(it);
        mem_free(LIST_ENTRY(it, struct agent_ask, node));
    }
    idmap_fini(&as->by_id);
}

uint64_t agent_asks_add(struct agent_asks *as, uint64_t call, struct span key)
{
    struct agent_ask *ask = mem_zalloc(sizeof *ask + key.n);

    ask->id = ++as->last_id;
    ask->call = call;
    ask->key_n = key.n;
    memcpy(ask->key, key.p, key.n);
    idmap_put(&as->by_id, ask->id, ask);
    list_append(&as->all, &ask->node);
    return ask->id;
}

struct agent_ask *agent_asks_take(struct agent_asks *as, struct span raw_id)
{
    int64_t id;
    struct agent_ask *ask =
        json_int(raw_id, &id) && id > 0 ? idmap_take(&as->by_id, (uint64_t)id) : NULL;

    if (ask)
        list_remove(&ask->node);
    return ask;
}

bool agent_asks_knows(const struct agent_asks *as, struct span raw_id)
{
    int64_t id;

    return json_int(raw_id, &id) && id > 0 && idmap_get(&as->by_id, (uint64_t)id);
}

static uint64_t drop(struct agent_asks *as, struct agent_ask *ask)
{
    uint64_t id = ask->id;

    idmap_take(&as->by_id, id);
    list_remove(&ask->node);
    mem_free(ask);
    return id;
}

uint64_t agent_asks_drop(struct agent_asks *as, uint64_t call)
{
    LIST_EACH (&as->all, it) {
        struct agent_ask *ask = LIST_ENTRY(it, struct agent_ask, node);
        if (ask->call == call)
            return drop(as, ask);
    }
    return 0;
}

uint64_t agent_asks_forget(struct agent_asks *as, uint64_t call, struct span key)
{
    LIST_EACH (&as->all, it) {
        struct agent_ask *ask = LIST_ENTRY(it, struct agent_ask, node);
        if (ask->call == call && span_eq(span_of(ask->key, ask->key_n), key))
            return drop(as, ask);
    }
    return 0;
}

void agent_asks_put_cancelled(struct buf *out, uint64_t id)
{
    agent_asks_pass_cancelled(out, id, SPAN("{\"requestId\":0}"), (struct cut){13, 1});
}

void agent_asks_pass_cancelled(struct buf *out, uint64_t id, struct span params, struct cut id_at)
{
    buf_str(out, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":");
    buf_span(out, span_cut(params, 0, id_at.at));
    buf_u64(out, id);
    buf_span(out, span_from(params, id_at.at + id_at.n));
    buf_char(out, '}');
}
