/*
 * words: the ACP messages that a conductor has to understand; all others are relayed as they are.
 *
 * acp_skim reads a message once. acp_unwrap takes a message out of a successor envelope: method and
 * params are then the inner ones, and `wrapped` tells that there was an envelope. The members of
 * the inner params are read only for the few words below.
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
    WORD_SETUP,     /* session/load, session/resume */
    WORD_SETUP_NEW, /* session/new, session/fork: the session's id is in the answer only */
    WORD_CLOSE,     /* session/close, session/delete */
    WORD_MCP,       /* an MCP message, in any dialect */
    WORD_MCP_PATH,  /* the same with server and method in the name: _mcp/SERVER/METHOD */
    WORD_MCP_OPEN,  /* opens a connection to an MCP server */
    WORD_MCP_CLOSE, /* closes such a connection */
};

enum acp_slot {
    /* members of params */
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
    /* members of a result use the same slots */
};

struct acp_message {
    struct rpc_message rpc;
    struct json_slot slots[ACP_SLOTS];

    enum proxy_dialect envelope; /* P_UNKNOWN: not an envelope */

    /* The message itself, taken out of the envelope by acp_unwrap if there was one. */
    enum acp_word word;
    struct span method; /* raw, with quotes; empty in responses */
    struct span params; /* raw; empty when there are none */
    bool wrapped;
    bool nested;          /* the envelope holds a whole message (P0's first form) */
    struct span inner_id; /* of the whole message in the envelope */
    struct batch *batch;  /* the batch that the message came in, NULL when it came alone */
};

/* 0, or a negative ERR_ code when the text is not JSON. */
MUST_CHECK int acp_skim(struct span text, struct acp_message *m);

static inline bool acp_is_request(const struct acp_message *m)
{
    return m->rpc.kind == RPC_REQUEST;
}

/* The word that a raw method (with quotes) stands for. */
enum acp_word acp_word_of(struct span method);

/* Take the message out of its envelope: false when the envelope holds none. */
MUST_CHECK bool acp_unwrap(struct acp_message *m);

/* The MCP message that a WORD_MCP or WORD_MCP_PATH carries, all raw. */
struct acp_carried {
    struct span method, params;
    struct span id;     /* empty unless a whole message is carried */
    struct span server; /* raw text out of the method, empty unless the method names the server */
    struct buf quoted;  /* `method` may point into this; free it */
};
MUST_CHECK bool acp_carried(const struct acp_message *m, struct acp_carried *out);

/* The first of these slots that holds a string or a number; JSON_NONE when none does. */
struct json_slot acp_first(const struct acp_message *m, enum acp_slot a, enum acp_slot b);

/* ACP's own error codes. */
enum { ACP_CANCELLED = -32800, ACP_RESOURCE_NOT_FOUND = -32002 };

#endif
