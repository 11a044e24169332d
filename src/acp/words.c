/* Parses an ACP message, recognises the method, and takes messages out of envelopes. Called by
 * hop.c, conductor.c, channel.c and unnamed.c. */
#include "acp/words.h"

#include "base/mem.h"

static const struct json_shape_row params_rows[] = {
    {"method", ACP_METHOD, NULL},
    {"params", ACP_PARAMS, NULL},
    {"message", ACP_MESSAGE, NULL},
    {"requestId", ACP_REQUEST_ID, NULL},
    {"sessionId", ACP_SESSION_ID, NULL},
    {"connectionId", ACP_CONNECTION_ID, NULL},
    {"connection_id", ACP_CONNECTION_ID_OLD, NULL},
    {"url", ACP_URL, NULL},
    {"serverId", ACP_SERVER_ID, NULL}, /* no code reads the slot: a second one is refused */
    {"protocolVersion", ACP_VERSION, NULL},
};
static const struct json_shape params_shape = JSON_SHAPE(params_rows);

static const struct json_shape_row result_rows[] = {
    {"message", ACP_MESSAGE, NULL},
    {"sessionId", ACP_SESSION_ID, NULL},
    {"connectionId", ACP_CONNECTION_ID, NULL},
    {"connection_id", ACP_CONNECTION_ID_OLD, NULL},
    {"protocolVersion", ACP_VERSION, NULL},
};
static const struct json_shape result_shape = JSON_SHAPE(result_rows);

#define ROW(text, word)                                                                            \
    {                                                                                              \
        "\"" text "\"", sizeof(text) + 1, word                                                     \
    }

static const struct {
    const char *quoted;
    size_t n;
    enum acp_word word;
} words[] = {
    ROW("initialize", WORD_INITIALIZE),
    ROW("proxy/initialize", WORD_PROXY_INITIALIZE),
    ROW("_proxy/initialize", WORD_PROXY_INITIALIZE),
    ROW("$/cancel_request", WORD_CANCEL),
    ROW("session/new", WORD_SETUP_NEW),
    ROW("session/fork", WORD_SETUP_NEW),
    ROW("session/load", WORD_SETUP),
    ROW("session/resume", WORD_SETUP),
    ROW("session/close", WORD_CLOSE),
    ROW("session/delete", WORD_CLOSE),
    ROW("mcp/message", WORD_MCP),
    ROW("_mcp/message", WORD_MCP),
    ROW("_mcp/request", WORD_MCP),
    ROW("_mcp/notification", WORD_MCP),
    ROW("_mcp/client_to_server/request", WORD_MCP),
    ROW("_mcp/client_to_server/notification", WORD_MCP),
    ROW("_mcp/server_to_client/request", WORD_MCP),
    ROW("_mcp/server_to_client/notification", WORD_MCP),
    ROW("mcp/connect", WORD_MCP_OPEN),
    ROW("_mcp/connect", WORD_MCP_OPEN),
    ROW("mcp/disconnect", WORD_MCP_CLOSE),
    ROW("_mcp/disconnect", WORD_MCP_CLOSE),
};

enum { PATH_START = sizeof "\"_mcp/" - 1 };

/* Where SERVER ends in "_mcp/SERVER/METHOD". */
static size_t path_end(struct span method)
{
    return PATH_START + span_find(span_from(method, PATH_START), '/');
}

static enum acp_word word_of_plain(struct span method)
{
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (words[i].n == method.n && memcmp(words[i].quoted, method.p, method.n) == 0)
            return words[i].word;
    return WORD_OTHER;
}

enum acp_word acp_word_of(struct span method)
{
    BUF_SCOPED plain = {0};
    enum acp_word word = WORD_OTHER;

    /* Some peers escape the slash: the same method in another spelling. */
    if (span_find(method, '\\') == method.n) {
        word = word_of_plain(method);
        bool path = word == WORD_OTHER && span_starts(method, SPAN("\"_mcp/")) &&
                    path_end(method) < method.n;
        return path ? WORD_MCP_PATH : word;
    }
    buf_char(&plain, '"');
    json_unescape(&plain, method);
    buf_char(&plain, '"');
    word = word_of_plain(buf_view(&plain));
    return word;
}

int acp_skim(struct span text, struct acp_message *m)
{
    int code = rpc_skim(text, &params_shape, &result_shape, m->slots, ACP_SLOTS, &m->rpc);

    m->envelope = P_UNKNOWN;
    m->word = WORD_OTHER;
    m->method = m->params = m->inner_id = SPAN_EMPTY;
    m->wrapped = m->nested = false;
    m->batch = NULL;
    if (code || (m->rpc.kind != RPC_REQUEST && m->rpc.kind != RPC_NOTIFICATION))
        return code;
    m->method = span_of(m->rpc.method.p - 1, m->rpc.method.n + 2);
    m->params = m->rpc.params;
    m->envelope = proxy_dialect_of_envelope(m->method);
    if (m->envelope == P_UNKNOWN)
        m->word = acp_word_of(m->method);
    return 0;
}

/* Read the members of the message inside the envelope, only for words that need them. */
static bool read_inner(struct acp_message *m)
{
    m->word = acp_word_of(m->method);
    memset(m->slots, 0, sizeof m->slots);
    if (m->word == WORD_OTHER || m->word == WORD_MCP_PATH || !m->params.n)
        return true;
    return json_skim(m->params, &params_shape, m->slots, NULL, NULL) == 0;
}

bool acp_unwrap(struct acp_message *m)
{
    struct json_slot method = m->slots[ACP_METHOD], params = m->slots[ACP_PARAMS];

    m->wrapped = true;
    if (m->slots[ACP_MESSAGE].type == JSON_OBJECT && method.type == JSON_NONE) {
        struct rpc_message inner;
        if (rpc_skim(m->slots[ACP_MESSAGE].value, NULL, NULL, NULL, 0, &inner) ||
            (inner.kind != RPC_REQUEST && inner.kind != RPC_NOTIFICATION))
            return false;
        m->nested = true;
        m->inner_id = inner.id;
        m->method = span_of(inner.method.p - 1, inner.method.n + 2);
        m->params = inner.params;
        return read_inner(m);
    }
    if (method.type != JSON_STRING)
        return false;
    if (params.type != JSON_NONE && params.type != JSON_NULL && params.type != JSON_OBJECT &&
        params.type != JSON_ARRAY)
        return false;
    m->method = method.value;
    m->params = params.type == JSON_OBJECT || params.type == JSON_ARRAY ? params.value : SPAN_EMPTY;
    return read_inner(m);
}

static void carried_in_name(const struct acp_message *m, struct acp_carried *out)
{
    size_t end = path_end(m->method);

    out->server = span_cut(m->method, PATH_START, end - PATH_START);
    buf_char(&out->quoted, '"');
    buf_span(&out->quoted, span_from(m->method, end + 1));
    out->method = buf_view(&out->quoted);
    out->params = m->params;
}

bool acp_carried(const struct acp_message *m, struct acp_carried *out)
{
    const struct json_slot *params = &m->slots[ACP_PARAMS];
    struct rpc_message inner;

    *out = (struct acp_carried){0};
    if (m->word == WORD_MCP_PATH) {
        carried_in_name(m, out);
        return true;
    }
    if (m->slots[ACP_MESSAGE].type == JSON_OBJECT) {
        if (rpc_skim(m->slots[ACP_MESSAGE].value, NULL, NULL, NULL, 0, &inner) || !inner.method.p)
            return false;
        out->method = span_of(inner.method.p - 1, inner.method.n + 2);
        out->params = inner.params;
        out->id = inner.id;
        return true;
    }
    if (m->slots[ACP_METHOD].type != JSON_STRING)
        return false;
    out->method = m->slots[ACP_METHOD].value;
    out->params = params->type == JSON_OBJECT ? params->value : SPAN_EMPTY;
    return true;
}

struct json_slot acp_first(const struct acp_message *m, enum acp_slot a, enum acp_slot b)
{
    const struct json_slot *first = &m->slots[a], *second = &m->slots[b];

    if (first->type == JSON_STRING || first->type == JSON_NUMBER)
        return *first;
    if (second->type == JSON_STRING || second->type == JSON_NUMBER)
        return *second;
    return (struct json_slot){0};
}
