/* Servers that know no connections (M0, M0b): which of several clients such a server means. Called
 * by channel.c for messages of these servers, and by exchange.c for ids and progress tokens. */
#include "acp/channel_inside.h"
#include "acp/json_edit.h"
#include "base/log.h"
#include "base/mem.h"

/* --- which server --- */

void unnamed_put_url(struct buf *url, const struct acp_carried *said)
{
    buf_str(url, "\"acp:");
    buf_span(url, said->server);
    buf_char(url, '"');
}

struct span unnamed_url(const struct acp_message *m, const struct acp_carried *said,
                        struct buf *scratch)
{
    if (m->word != WORD_MCP_PATH)
        return m->slots[ACP_URL].type == JSON_STRING ? m->slots[ACP_URL].value : SPAN_EMPTY;
    unnamed_put_url(scratch, said);
    return buf_view(scratch);
}

bool unnamed_has(const struct conductor *c, struct span url)
{
    LIST_EACH (&c->unnamed, it)
        if (span_is(url, LIST_ENTRY(it, struct acp_channel, unnamed)->server->key))
            return true;
    return false;
}

/* --- ids and progress tokens --- */

static const char *token_of(const struct exchange *x)
{
    return x->token;
}

static const char *id_of(const struct exchange *x)
{
    return x->request_id;
}

/* The request to a server without connections that has this progress token, or this id. */
static struct exchange *holder(struct conductor *c, struct span url, struct span name,
                               const char *(*name_of)(const struct exchange *x))
{
    LIST_EACH (&c->unnamed, i) {
        struct acp_channel *ch = LIST_ENTRY(i, struct acp_channel, unnamed);
        if (!span_is(url, ch->server->key))
            continue;
        LIST_EACH (&ch->exchanges, k) {
            struct exchange *x = LIST_ENTRY(k, struct exchange, node);
            if (name_of(x) && span_is(name, name_of(x)))
                return x;
        }
    }
    return NULL;
}

struct span unnamed_token(struct exchange *x, struct span params, struct buf *scratch)
{
    struct acp_channel *ch = x->channel;
    const char *const *path = EDIT_PATH("_meta", "progressToken");
    struct json_slot token = json_edit_get(params, path);

    if (token.type == JSON_NONE)
        return params;
    const struct exchange *other =
        holder(channel_conductor(ch), span_str(ch->server->key), token.value, token_of);
    mem_free(x->token);
    mem_free(x->own_token);
    x->own_token = mem_span(token.value);
    if (!other || other->channel == ch) {
        x->token = mem_span(token.value);
        return params;
    }
    x->token = exchange_new_name(ch);
    json_edit_set(scratch, params, path, span_str(x->token));
    return buf_view(scratch);
}

char *unnamed_id(struct acp_channel *ch, struct span own_id)
{
    struct span url = span_str(ch->server->key);

    if (!own_id.n || holder(channel_conductor(ch), url, own_id, id_of))
        return exchange_new_name(ch);
    return mem_span(own_id);
}

/* --- which client --- */

/* Notifications about the server itself go to all its clients. */
static bool is_for_all(const struct acp_carried *said)
{
    static const char *const methods[] = {
        "notifications/tools/list_changed", "notifications/resources/list_changed",
        "notifications/prompts/list_changed", "notifications/resources/updated"};

    for (size_t i = 0; i < COUNT_OF(methods); i++)
        if (json_string_is(said->method, span_str(methods[i])))
            return true;
    return false;
}

/*
 * Which client is the message about? Only progress says so, by its token. Any other message goes to
 * the only client there is, or to the only client that waits for an answer. NULL: cannot be told.
 */
static struct acp_channel *channel_meant(struct conductor *c, struct span url,
                                         const struct acp_carried *said, struct exchange **x)
{
    struct acp_channel *client = NULL, *busy = NULL;
    size_t clients = 0, n_busy = 0;

    *x = NULL;
    if (json_string_is(said->method, SPAN("notifications/progress")))
        *x =
            holder(c, url, json_edit_get(said->params, EDIT_PATH("progressToken")).value, token_of);
    if (*x)
        return (*x)->channel;
    LIST_EACH (&c->unnamed, it) {
        struct acp_channel *ch = LIST_ENTRY(it, struct acp_channel, unnamed);
        if (!span_is(url, ch->server->key) || ch->dead)
            continue;
        client = ch;
        clients++;
        if (!list_empty(&ch->exchanges)) {
            busy = ch;
            n_busy++;
        }
    }
    return clients == 1 ? client : n_busy == 1 ? busy : NULL;
}

/* The request to a client that the server sent under this id. */
static struct pending *ask_of(struct conductor *c, struct span url, struct span id)
{
    LIST_EACH (&c->unnamed, i) {
        struct acp_channel *ch = LIST_ENTRY(i, struct acp_channel, unnamed);
        LIST_EACH (&ch->asks, k) {
            struct pending *p = LIST_ENTRY(k, struct pending, node);
            if (span_is(url, ch->server->key) && p->inner_id && span_is(id, p->inner_id))
                return p;
        }
    }
    return NULL;
}

/* Cancel a request to a client if the server asks for that. False: this is no cancellation. */
static bool takes_back(struct conductor *c, struct span url, const struct acp_carried *said)
{
    if (!json_string_is(said->method, SPAN("notifications/cancelled")))
        return false;
    struct json_slot id = json_edit_get(said->params, EDIT_PATH("requestId"));
    struct pending *p = id.type == JSON_NONE ? NULL : ask_of(c, url, id.value);
    if (p)
        channel_withdraw_ask(p, said->params);
    return id.type != JSON_NONE; /* if the id is unknown, the request was answered meanwhile */
}

void unnamed_divert(struct conductor *c, struct hop *from, const struct acp_message *m,
                    const struct acp_carried *said, struct span url)
{
    struct exchange *x;

    if (!acp_is_request(m) && is_for_all(said)) {
        LIST_EACH_SAFE (&c->unnamed, it) {
            struct acp_channel *ch = LIST_ENTRY(it, struct acp_channel, unnamed);
            if (span_is(url, ch->server->key))
                channel_deliver(ch, from, m, said, NULL);
        }
        return;
    }
    if (!acp_is_request(m) && takes_back(c, url, said))
        return;
    struct acp_channel *ch = channel_meant(c, url, said, &x);
    if (ch)
        channel_deliver(ch, from, m, said, x);
    else if (acp_is_request(m))
        hop_error(from, m, RPC_INTERNAL_ERROR, "Internal error",
                  "several sessions use this MCP server at once, and it does not say which of them "
                  "it asks");
    else
        log_debug(from->label, "dropped a notification of an MCP server that does not say which "
                               "session it is about");
}
