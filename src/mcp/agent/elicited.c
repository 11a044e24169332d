/* The set of elicitation ids that one agent was sent, in requests or in errors. Called by session.c
 * for each ask, each error and each notification that an elicitation is complete. */
#include "mcp/agent/elicited.h"

#include "mcp/protocol.h"

/* Beyond this number ids are not kept, and the agent is not notified when the elicitation is
 * complete. */
enum { REMEMBERED = 1000 };

void elicited_fini(struct elicited *e)
{
    map_fini(&e->ids);
}

static void note(struct elicited *e, struct json_slot id)
{
    BUF_SCOPED text = {0};

    if (id.type != JSON_STRING || e->ids.n >= REMEMBERED)
        return;
    json_unescape(&text, id.value);
    map_put(&e->ids, buf_view(&text), e);
}

void elicited_note_request(struct elicited *e, struct span params)
{
    note(e, json_get(params, "elicitationId"));
}

void elicited_note_error(struct elicited *e, struct span error)
{
    struct rpc_error parts = rpc_error_of(error);

    if (parts.code != MCP_ERROR_VISIT_FIRST)
        return;
    struct json_slot list = json_get(parts.data, "elicitations");
    struct json_iter it = json_iter(list.value);
    while (list.type == JSON_ARRAY && json_next(&it))
        note(e, json_get(it.value, "elicitationId"));
}

bool elicited_knows(const struct elicited *e, struct span params)
{
    struct json_slot id = json_get(params, "elicitationId");
    BUF_SCOPED text = {0};

    if (id.type != JSON_STRING)
        return false;
    json_unescape(&text, id.value);
    return map_get(&e->ids, buf_view(&text)) != NULL;
}
