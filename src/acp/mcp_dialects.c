/* The table of the dialects M0 to M4, writing connect, disconnect and message envelopes, and
 * reading declarations of servers. Called by channel.c, exchange.c and setup.c. */
#include "acp/mcp_dialects.h"

#include "base/mem.h"

const struct mcp_row mcp_rows[M_COUNT] = {
    [M0] = {.name = "M0",
            .request = "_mcp/client_to_server/request",
            .notification = "_mcp/client_to_server/notification",
            .nested = true,
            .twin = M0B,
            .next = M_NONE},
    [M0B] = {.name = "M0b",
             .request = "_mcp",
             .notification = "_mcp",
             .path = true,
             .twin = M_NONE,
             .next = M_NONE},
    [M1] = {.name = "M1",
            .connect = "_mcp/connect",
            .request = "_mcp/request",
            .notification = "_mcp/notification",
            .disconnect = "_mcp/disconnect",
            .names_session = true,
            .old_names = true,
            .twin = M2,
            .next = M3A},
    [M2] = {.name = "M2",
            .connect = "_mcp/connect",
            .request = "_mcp/message",
            .notification = "_mcp/message",
            .disconnect = "_mcp/disconnect",
            .old_names = true,
            .twin = M1,
            .next = M3A},
    [M3A] = {.name = "M3a",
             .connect = "mcp/connect",
             .request = "mcp/message",
             .notification = "mcp/message",
             .disconnect = "mcp/disconnect",
             .disconnect_asks = true,
             .twin = M_NONE,
             .next = M0},
    [M3] = {.name = "M3",
            .connect = "mcp/connect",
            .request = "mcp/message",
            .notification = "mcp/message",
            .disconnect = "mcp/disconnect",
            .disconnect_asks = true,
            .twin = M_NONE,
            .next = M4},
    [M4] =
        {.name = "M4", .request = "mcp/message", .carrier = true, .twin = M_NONE, .next = M_NONE},
};

enum mcp_dialect mcp_dialect_guess(enum declared_as form, bool old_owner)
{
    if (form == BY_URL)
        return old_owner ? M1 : M2;
    return M3;
}

enum mcp_dialect mcp_dialect_after(enum mcp_dialect d, enum declared_as form)
{
    /* Only servers declared with a serverId were ever stateless. */
    return mcp_rows[d].next == M4 && form != BY_SERVER_ID ? M_NONE : mcp_rows[d].next;
}

/* ,"name":raw (no comma for the first) */
static void put_member(struct buf *out, const char *name, struct span raw)
{
    if (!raw.n)
        return;
    buf_printf(out, "%s\"%s\":", out->n && out->p[out->n - 1] != '{' ? "," : "", name);
    buf_span(out, raw);
}

void mcp_dialect_put_connect(struct buf *out, enum mcp_dialect d, struct span key,
                             struct span session)
{
    buf_char(out, '{');
    if (mcp_rows[d].old_names) {
        /* The key under every name it ever had: components ignore the names they do not know. */
        put_member(out, "acp_url", key);
        put_member(out, "acp_id", key);
        put_member(out, "session_id", session);
    } else if (d == M3A) {
        put_member(out, "acpUrl", key);
    } else {
        put_member(out, "serverId", key);
        put_member(out, "acpId", key);
    }
    buf_char(out, '}');
}

void mcp_dialect_put_disconnect(struct buf *out, enum mcp_dialect d, struct span connection)
{
    buf_char(out, '{');
    if (mcp_rows[d].old_names)
        put_member(out, "connection_id", connection);
    put_member(out, "connectionId", connection);
    buf_char(out, '}');
}

void mcp_dialect_put_method(struct buf *out, enum mcp_dialect d, const struct mcp_parts *m,
                            bool request)
{
    const struct mcp_row *row = &mcp_rows[d];
    const char *name = request ? row->request : row->notification;

    if (!row->path) {
        json_quote(out, span_str(name));
        return;
    }
    /* Both are raw strings: drop the quotes, and the "acp:" of the key. */
    struct span key = span_cut(m->key, 1, m->key.n - 2);
    buf_printf(out, "\"%s/", name);
    buf_span(out, span_from(key, span_find(key, ':') + 1));
    buf_char(out, '/');
    buf_span(out, span_from(m->method, 1));
}

void mcp_dialect_put_message(struct buf *out, enum mcp_dialect d, const struct mcp_parts *m)
{
    const struct mcp_row *row = &mcp_rows[d];

    if (row->path) {
        buf_span(out, m->params);
        return;
    }
    buf_char(out, '{');
    if (row->nested) {
        put_member(out, "url", m->key);
        buf_str(out, ",\"message\":{\"jsonrpc\":\"2.0\"");
        put_member(out, "id", m->request_id);
        put_member(out, "method", m->method);
        put_member(out, "params", m->params);
        buf_char(out, '}');
    } else {
        put_member(out, "serverId", row->carrier ? m->key : SPAN_EMPTY);
        put_member(out, "requestId", row->carrier ? m->request_id : SPAN_EMPTY);
        put_member(out, "connectionId", row->carrier ? SPAN_EMPTY : m->connection);
        put_member(out, "connection_id", row->old_names ? m->connection : SPAN_EMPTY);
        put_member(out, "method", m->method);
        /* Old parsers fail when params are missing. */
        put_member(out, "params", m->params.n || !row->old_names ? m->params : SPAN("null"));
    }
    buf_char(out, '}');
}

/* --- declarations --- */

static bool is_acp_url(struct json_slot url)
{
    return url.type == JSON_STRING && url.value.n > 6 &&
           span_starts(span_from(url.value, 1), SPAN("acp:"));
}

bool declaration_read(struct span entry, struct declaration *d)
{
    struct json_slot url, type, id;

    if (json_type_of(entry) != JSON_OBJECT)
        return false;
    url = json_get(entry, "url");
    if (is_acp_url(url)) {
        *d = (struct declaration){BY_URL, url.value};
        return true;
    }
    type = json_get(entry, "type");
    if (type.type != JSON_STRING)
        type = json_get(entry, "transport");
    if (!json_string_is(type.value, SPAN("acp")))
        return false;
    id = json_get(entry, "serverId");
    d->form = BY_SERVER_ID;
    if (id.type != JSON_STRING) {
        id = json_get(entry, "id");
        d->form = BY_ID;
    }
    d->key = id.value;
    return id.type == JSON_STRING;
}
