/*
 * mcp_dialects: how MCP messages ride on ACP, generation by generation, as a table.
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
    const char *connect; /* NULL: there are no connections */
    const char *request, *notification;
    const char *disconnect;
    bool disconnect_asks;  /* disconnect is a request */
    bool names_session;    /* connect tells the id of the ACP session: worth waiting for */
    bool old_names;        /* ids also go under their older, snake_case names */
    bool nested;           /* params hold a whole message */
    bool path;             /* the method is _mcp/SERVER/METHOD, and params are MCP's own */
    bool carrier;          /* the answer is carried in a result of its own */
    enum mcp_dialect twin; /* same connection, other names for messages */
    enum mcp_dialect next; /* what to try when connect is not known */
};

extern const struct mcp_row mcp_rows[M_COUNT];

/* The dialect to begin with. `old_owner`: the declaring proxy is of P0 or P1. */
enum mcp_dialect mcp_dialect_guess(enum declared_as form, bool old_owner);
/* What to try when the server's component does not know the connect of `d`; M_NONE = give up. */
enum mcp_dialect mcp_dialect_after(enum mcp_dialect d, enum declared_as form);

/* Append the params of a connect. `key` and `session` are raw strings; session may be empty. */
void mcp_dialect_put_connect(struct buf *out, enum mcp_dialect d, struct span key,
                             struct span session);
void mcp_dialect_put_disconnect(struct buf *out, enum mcp_dialect d, struct span connection);

/* A message to be put into an envelope. All raw; `request_id` (M0 and M4: what the server knows the
 * request by) empty for notifications. */
struct mcp_parts {
    struct span method, params;
    struct span key, connection, request_id;
};
/* Append the (quoted) method of the ACP message that carries it. */
void mcp_dialect_put_method(struct buf *out, enum mcp_dialect d, const struct mcp_parts *m,
                            bool request);
/* Append its params; nothing when there are none. */
void mcp_dialect_put_message(struct buf *out, enum mcp_dialect d, const struct mcp_parts *m);

/* --- declarations --- */

struct declaration {
    enum declared_as form;
    struct span key; /* raw string */
};

/* Is this entry of mcpServers (a raw object) a server with ACP as transport? */
bool declaration_read(struct span entry, struct declaration *d);

#endif
