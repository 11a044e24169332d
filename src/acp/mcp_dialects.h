/*
 * mcp_dialects: how MCP messages are carried by ACP, in each generation, as a table.
 *
 * M0 names the server in every message and nests whole messages, M0b names it in every method; M1
 * to M3 open a connection first; M4 is stateless again and carries one request and its answer at a
 * time.
 *
 * Nouns: mcp_dialect_, declaration_.
 */
#ifndef RIALTO_ACP_MCP_DIALECTS_H
#define RIALTO_ACP_MCP_DIALECTS_H

#include "wire/json.h"

enum mcp_dialect { M0, M0B, M1, M2, M3A, M3, M4, M_COUNT, M_NONE = M_COUNT };

/* How a server was declared. */
enum declared_as { BY_URL /* "acp:..." */, BY_ID, BY_SERVER_ID };

struct mcp_row {
    const char *name;
    const char *connect; /* NULL: the dialect has no connections */
    const char *request, *notification;
    const char *disconnect;
    bool disconnect_asks;  /* disconnect is a request */
    bool names_session;    /* connect carries the id of the ACP session, so wait for the id */
    bool old_names;        /* ids are also sent under their older, snake_case names */
    bool nested;           /* params hold a whole message */
    bool path;             /* the method is _mcp/SERVER/METHOD, and params are the MCP params */
    bool carrier;          /* the MCP answer is inside the ACP result */
    enum mcp_dialect twin; /* same connection, other method names for messages */
    enum mcp_dialect next; /* the dialect to try when the server does not know connect */
};

extern const struct mcp_row mcp_rows[M_COUNT];

/* The dialect to begin with. `old_owner`: the declaring proxy is of P0 or P1. */
enum mcp_dialect mcp_dialect_guess(enum declared_as form, bool old_owner);
/* The dialect to try when the server's component does not know the connect of `d`; M_NONE = give
 * up. */
enum mcp_dialect mcp_dialect_after(enum mcp_dialect d, enum declared_as form);

/* Append the params of a connect. `key` and `session` are raw strings; session may be empty. */
void mcp_dialect_put_connect(struct buf *out, enum mcp_dialect d, struct span key,
                             struct span session);
void mcp_dialect_put_disconnect(struct buf *out, enum mcp_dialect d, struct span connection);

/* An MCP message to be put into an envelope. All raw; `request_id` (M0 and M4: the id by which the
 * server knows the request) is empty for notifications. */
struct mcp_parts {
    struct span method, params;
    struct span key, connection, request_id;
};
/* Append the (quoted) method of the ACP message that carries the MCP message. */
void mcp_dialect_put_method(struct buf *out, enum mcp_dialect d, const struct mcp_parts *m,
                            bool request);
/* Append the params of the ACP message; nothing when there are none. */
void mcp_dialect_put_message(struct buf *out, enum mcp_dialect d, const struct mcp_parts *m);

/* --- declarations --- */

struct declaration {
    enum declared_as form;
    struct span key; /* raw string */
};

/* Is this entry of mcpServers (a raw object) a server with ACP as transport? */
bool declaration_read(struct span entry, struct declaration *d);

#endif
