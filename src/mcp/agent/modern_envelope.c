/* Whether a message is of the stateless era, what is wrong with its version or capabilities, and
 * the error that says so. Called by duplex.c, modern.c, modern_http.c, http_endpoint.c and
 * hub/conductor_join.c. */
#include "base/mem.h"
#include "mcp/agent/modern.h"

bool modern_claims(const struct mcp_message *m)
{
    return m->slots[SLOT_META_VERSION].type != JSON_NONE;
}

bool modern_check(const struct mcp_message *m, struct modern_fault *fault, struct buf *scratch)
{
    const struct json_slot *version = &m->slots[SLOT_META_VERSION];

    if (version->type != JSON_STRING) {
        *fault = (struct modern_fault){
            400, RPC_INVALID_PARAMS,
            "params._meta needs " MCP_META_PREFIX "protocolVersion, a string", NULL};
        return false;
    }
    if (m->slots[SLOT_META_CAPABILITIES].type != JSON_OBJECT) {
        *fault = (struct modern_fault){
            400, RPC_INVALID_PARAMS,
            "params._meta needs " MCP_META_PREFIX "clientCapabilities, an object", NULL};
        return false;
    }
    if (!json_string_is(version->value, SPAN(MCP_MODERN))) {
        buf_str(scratch, "{\"supported\":[\"" MCP_MODERN "\"],\"requested\":");
        buf_span(scratch, version->value);
        buf_char(scratch, '}');
        *fault = (struct modern_fault){400, MCP_ERROR_VERSION, "Unsupported protocol version",
                                       buf_cstr(scratch)};
        return false;
    }
    return true;
}

void modern_put_fault(struct buf *out, struct span id, const struct modern_fault *fault)
{
    rpc_put_error(out, id, fault->code, span_str(fault->text), span_str(fault->data));
}
