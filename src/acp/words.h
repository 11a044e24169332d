/*
 * words: the ACP messages a conductor has to understand; everything else passes by name.
 *
 * acp_skim reads a message once. What came inside a successor envelope is then looked at as if it
 * had come plain: method and params are the inner ones, `wrapped` remembers the envelope. Only for
 * the few words below are the members of params looked into.
 *
 * Nouns: acp_.
 */
#ifndef RIALTO_ACP_WORDS_H
#define RIALTO_ACP_WORDS_H

#include "acp/proxy_dialects.h"
#include "wire/rpc.h"

struct batch;

enum acp_word {
    WORD_OTHER,
    WORD_INITIALIZE,
    WORD_PROXY_INITIALIZE, /* of any dialect */
    WORD_CANCEL,
    WORD_SETUP,     /* session/new, load, resume, fork */
    WORD_SETUP_NEW, /* those of them whose session id stands in the answer only */
    WORD_CLOSE,     /* session/close, session/delete */
    WORD_MCP,       /* a message of an MCP server to its client, in any dialect */
    WORD_MCP_PATH,  /* the same where method and server stand in the name: _mcp/SERVER/METHOD */
    WORD_MCP_OPEN,  /* a connection to an MCP server is asked for */
    WORD_MCP_CLOSE, /* ... is ended */
};

enum acp_slot {
    /* of params */
    ACP_METHOD,
    ACP_PARAMS,
    ACP_MESSAGE,
    ACP_REQUEST_ID,
    ACP_SESSION_ID,
    ACP_CONNECTION_ID,
    ACP_CONNECTION_ID_OLD,
    ACP_URL,
    ACP_SERVER_ID,
    ACP_VERSION,
    ACP_SLOTS,
    /* of a result: the same members by the same slots */
};

struct acp_message {
    struct rpc_message rpc;
    struct json_slot slots[ACP_SLOTS];

    enum proxy_dialect envelope; /* P_UNKNOWN: it is none */

    /* What it says, taken out of its envelope by acp_unwrap if it had one. */
    enum acp_word word;
    struct span method; /* raw, with quotes; empty in responses */
    struct span params; /* raw; empty when there are none */
    bool wrapped;
    bool nested;          /* the envelope holds a whole message (P0's first form) */
    struct span inner_id; /* of such a message */
    struct batch *batch;  /* what it came in, NULL when it came alone */
};

/* 0, or a negative ERR_ code when the text is no JSON. */
MUST_CHECK int acp_skim(struct span text, struct acp_message *m);

static inline bool acp_is_request(const struct acp_message *m)
{
    return m->rpc.kind == RPC_REQUEST;
}

/* Which word a raw method (with quotes) is. */
enum acp_word acp_word_of(struct span method);

/* Take the message out of its envelope: false when the envelope holds none. */
MUST_CHECK bool acp_unwrap(struct acp_message *m);

/* The MCP message that a WORD_MCP or WORD_MCP_PATH carries, all raw. */
struct acp_carried {
    struct span method, params;
    struct span id;     /* empty unless it is a whole message */
    struct span server; /* raw text out of the name, empty unless it stands there */
    struct buf quoted;  /* what `method` may stand in; free it */
};
MUST_CHECK bool acp_carried(const struct acp_message *m, struct acp_carried *out);

/* The first of these slots that holds a string or a number; JSON_NONE when none does. */
struct json_slot acp_first(const struct acp_message *m, enum acp_slot a, enum acp_slot b);

/* ACP's own error codes. */
enum { ACP_CANCELLED = -32800, ACP_RESOURCE_NOT_FOUND = -32002 };

#endif
