/* A request of an MCP client to the server behind its channel: sent in the server's dialect, sent
 * again when the dialect was guessed wrong, answered. Called by channel.c, and by unnamed.c for ids
 * and progress tokens. */
#include "acp/channel_inside.h"
#include "acp/json_edit.h"
#include "base/mem.h"

void exchange_free(struct exchange *x)
{
    struct acp_channel *ch = x->channel;

    if (x->sent)
        x->sent->owner = NULL; /* the answer will be ignored */
    if (x->request_id) {
        channel_map(ch, 'r', span_str(x->request_id), false);
        map_del(&ch->requests, span_str(x->request_id));
    }
    if (map_get(&ch->asked, span_str(x->id)) == x)
        map_del(&ch->asked, span_str(x->id));
    list_remove(&x->node);
    mem_free(x->id);
    mem_free(x->request_id);
    mem_free(x->token);
    mem_free(x->own_token);
    mem_free(x->kept);
    mem_free(x);
}

char *exchange_new_name(struct acp_channel *ch)
{
    struct buf name = {0};

    buf_printf(&name, "\"rialto-%s-%llu\"", ch->token, (unsigned long long)++ch->last_exchange);
    buf_cstr(&name);
    return buf_take(&name);
}

struct span exchange_own_names(const struct exchange *x, struct span object, struct buf *scratch)
{
    if (!x || json_type_of(object) != JSON_OBJECT)
        return object;
    const struct {
        const char *const *path;
        const char *theirs, *own;
    } rows[] = {
        {EDIT_PATH("_meta", "io.modelcontextprotocol/subscriptionId"), x->request_id, x->id},
        {EDIT_PATH("requestId"), x->request_id, x->id}, /* of notifications/cancelled */
        {EDIT_PATH("progressToken"), x->token, x->own_token},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (!rows[i].theirs || !span_is(json_edit_get(object, rows[i].path).value, rows[i].theirs))
            continue;
        json_edit_set(scratch, object, rows[i].path, span_str(rows[i].own));
        return buf_view(scratch);
    }
    return object;
}

/* --- the answer --- */

/* Take the MCP answer out of the ACP result, for dialects that put the MCP answer inside. */
static void open_carrier(const struct mcp_row *row, bool *ok, struct span *body)
{
    struct span holder = *body;

    if (!*ok || (!row->carrier && !row->nested))
        return;
    if (row->nested)
        holder = json_get(holder, "message").value;
    struct json_slot result = json_get(holder, "result"), error = json_get(holder, "error");
    if (result.type != JSON_NONE) {
        *body = result.value;
    } else if (error.type == JSON_OBJECT) {
        *ok = false;
        *body = error.value;
    } else {
        *ok = false;
        *body = SPAN("{\"code\":-32603,\"message\":\"the server's component answered with "
                     "neither a result nor an error\"}");
    }
}

static void send_request(struct exchange *x, const struct rpc_message *m);

/* The component does not know this method name for messages: try the other name, once. */
static bool sent_again(struct exchange *x)
{
    struct acp_server *s = x->channel->server;
    char *again = x->kept;
    struct rpc_message inner;

    if (!again || (s->dialect == x->sent_as && s->dialect_sure))
        return false;
    if (s->dialect == x->sent_as) /* else another request has changed it already */
        s->dialect = mcp_rows[x->sent_as].twin;
    s->dialect_sure = true;
    x->kept = NULL;
    bool sent = rpc_skim(span_str(again), NULL, NULL, NULL, 0, &inner) == 0;
    if (sent)
        send_request(x, &inner);
    mem_free(again);
    return sent;
}

static bool request_answered(struct pending *p, const struct acp_message *m)
{
    struct exchange *x = p->owner;

    if (!x)
        return true;
    struct acp_channel *ch = x->channel;
    bool ok = m->rpc.kind == RPC_RESULT;
    struct span body = ok ? m->rpc.result : m->rpc.error;
    x->sent = NULL;
    acp_trace_answer(channel_conductor(ch)->options.trace, p->trace, ok, body);
    if (!ok && rpc_error_of(body).code == RPC_METHOD_NOT_FOUND && sent_again(x))
        return true;
    ch->server->dialect_sure = true;
    BUF_SCOPED scratch = {0};
    open_carrier(channel_row(ch), &ok, &body);
    body = exchange_own_names(x, body, &scratch);
    char *id = mem_str(x->id);
    exchange_free(x);
    channel_answer(ch, span_str(id), ok, body);
    mem_free(id);
    return true;
}

static void request_dropped(struct pending *p)
{
    struct exchange *x = p->owner;

    if (x)
        x->sent = NULL;
}

/* --- the request --- */

static void send_request(struct exchange *x, const struct rpc_message *m)
{
    struct acp_channel *ch = x->channel;
    struct conductor *c = channel_conductor(ch);
    struct hop_place to = channel_way(c);
    BUF_SCOPED carried = {0}, name = {0}, scratch = {0};
    struct span method = span_of(m->method.p - 1, m->method.n + 2);
    struct span params = m->params;

    if (!list_empty(&ch->unnamed))
        params = unnamed_token(x, params, &scratch);
    const struct mcp_parts parts = {.method = method,
                                    .params = params,
                                    .key = span_str(ch->server->key),
                                    .connection = span_str(ch->connection),
                                    .request_id = span_str(x->request_id)};

    mcp_dialect_put_message(&carried, ch->server->dialect, &parts);
    mcp_dialect_put_method(&name, ch->server->dialect, &parts, true);
    x->sent_as = ch->server->dialect;
    x->sent = pending_new(to.hop, NULL, NULL);
    x->sent->answered = request_answered;
    x->sent->dropped = request_dropped;
    x->sent->owner = x;
    x->sent->trace =
        acp_trace_call(c->options.trace, true, true, "Agent", to.hop->label, method, params);
    hop_place_send(to, x->sent, buf_view(&name), buf_view(&carried));
}

void exchange_open(struct acp_channel *ch, const struct rpc_message *m, struct span own_id)
{
    struct exchange *x = MEM_NEW(struct exchange);

    x->channel = ch;
    x->id = mem_span(m->id);
    if (channel_row(ch)->nested)
        x->request_id = unnamed_id(ch, own_id);
    list_append(&ch->exchanges, &x->node);
    map_put(&ch->asked, m->id, x);
    if (channel_row(ch)->carrier) {
        x->request_id = exchange_new_name(ch);
        channel_map(ch, 'r', span_str(x->request_id), true);
        map_put(&ch->requests, span_str(x->request_id), x);
    }
    if (!ch->server->dialect_sure && channel_row(ch)->twin != M_NONE)
        x->kept = mem_span(m->text);
    send_request(x, m);
}
