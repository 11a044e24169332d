/*
 * rpc: the JSON-RPC 2.0 envelope that every JSON-RPC family shares.
 *
 * rpc_skim reads a message once: kind, id as raw text (echoed type-exact, never converted), method,
 * and the raw params, result or error, plus the members inside params and result that the caller's
 * shapes name. The writers below append whole messages around raw spans.
 */
#ifndef RIALTO_WIRE_RPC_H
#define RIALTO_WIRE_RPC_H

#include "wire/json.h"

enum rpc_kind {
    RPC_REQUEST,      /* method and id */
    RPC_NOTIFICATION, /* method, no id */
    RPC_RESULT,       /* id and result */
    RPC_ERROR,        /* error; id may be absent or null */
    RPC_BATCH,        /* an array: walk it with json_next and skim each element */
    RPC_INVALID,      /* JSON, but not JSON-RPC; `why` says what is wrong */
};

/* Error codes of JSON-RPC itself. */
enum {
    RPC_PARSE_ERROR = -32700,
    RPC_INVALID_REQUEST = -32600,
    RPC_METHOD_NOT_FOUND = -32601,
    RPC_INVALID_PARAMS = -32602,
    RPC_INTERNAL_ERROR = -32603,
};

struct rpc_message {
    enum rpc_kind kind;
    bool versioned;          /* "jsonrpc":"2.0" was there */
    bool one_line;           /* the text has no CR and no LF */
    struct span text;        /* the whole message, without white space around it */
    struct span id;          /* raw; empty when absent or not valid as an id */
    struct span method;      /* text without quotes, escapes as they came: see rpc_method_is */
    struct span params;      /* raw object or array; empty when absent */
    struct span result;      /* raw */
    struct span error;       /* raw object */
    const char *why;         /* with RPC_INVALID */
    struct json_slot *slots; /* the caller's array, as passed to rpc_skim */
};

/*
 * Rules checked here: "jsonrpc" is "2.0" (absent is tolerated, `versioned` tells); an id is a
 * string or a number (null only in errors); params is an object or array; an error is an object;
 * a message has exactly one of method, result and error.
 * `params_shape`/`result_shape` (may be NULL) fill `slots` (n_slots, zeroed here) on the same pass.
 * Returns 0 (also for RPC_INVALID) or a negative ERR_ code when the text is not JSON or has a
 * member of the envelope or of a shape twice; `out` then holds nothing but the text.
 */
MUST_CHECK int rpc_skim(struct span text, const struct json_shape *params_shape,
                        const struct json_shape *result_shape, struct json_slot *slots,
                        size_t n_slots, struct rpc_message *out);

/* Messages that a batch may hold where limits.batch of the configuration does not apply. */
enum { RPC_MAX_BATCH = 100 };

/* Does a batch hold at most `max` messages? If not, `why` gets a text for its sender. */
MUST_CHECK bool rpc_batch_fits(const struct rpc_message *batch, size_t max, struct buf *why);

/*
 * Is this the method? Compare with this function and not by hand: some peers escape the slash, and
 * "tools\/call" is the same string as "tools/call".
 */
bool rpc_method_is(const struct rpc_message *m, const char *name);
/* The method as it came, with its quotes; only for a message that has one. */
struct span rpc_method_quoted(const struct rpc_message *m);
/* Would a lenient reader take the method for `name`? See json_string_resembles. */
bool rpc_method_resembles(const struct rpc_message *m, const char *name);
/* The method as plain text, unescaped into `scratch` if it has escapes. */
struct span rpc_method_text(const struct rpc_message *m, struct buf *scratch);

/* Integer code and raw message/data of an error object (validated). */
struct rpc_error {
    int64_t code;        /* RPC_INTERNAL_ERROR when the peer gave none */
    struct span message; /* raw string with quotes; empty when absent */
    struct span data;    /* raw; empty when absent */
};
struct rpc_error rpc_error_of(struct span error);

/* --- writers: append one message, no line end. Empty params are left out. --- */
void rpc_put_request(struct buf *out, uint64_t id, const char *method, struct span params);
void rpc_put_notification(struct buf *out, const char *method, struct span params);
void rpc_put_result(struct buf *out, struct span id, struct span result);
/* `error` is a raw error object. An empty id is left out of the message. */
void rpc_put_error_raw(struct buf *out, struct span id, struct span error);
/* `message` is plain text; `data` raw JSON or empty. */
void rpc_put_error(struct buf *out, struct span id, int64_t code, struct span message,
                   struct span data);

#endif
