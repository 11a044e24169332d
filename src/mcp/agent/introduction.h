/*
 * introduction: what an agent of the initialize era has said of itself, and how its session is
 * known.
 *
 * Embedded in the session (session.c). An upgrade hands it to the new daemon, so it is the same in
 * both daemons.
 */
#ifndef RIALTO_MCP_AGENT_INTRODUCTION_H
#define RIALTO_MCP_AGENT_INTRODUCTION_H

#include "mcp/protocol.h"

struct introduction {
    char version[16]; /* agreed on; empty before initialize */
    char label[16];   /* names the session in records; no secret, unlike Mcp-Session-Id */
    char *client;     /* clientInfo, raw; may be NULL */
    bool bridge;      /* the agent is another bridge (circle.h) */
    unsigned answers; /* ANSWERS_ bits: what the agent can be asked */
    uint64_t number;  /* random, unique; the session's tasks and calls are found by it */
    int level;        /* least log level wanted, index of mcp_levels; -1 = never said */
};

void introduction_init(struct introduction *i);
void introduction_fini(struct introduction *i);
/* Read version and capabilities from an initialize whose protocolVersion is a string. */
void introduction_read(struct introduction *i, const struct mcp_message *m);
void introduction_set_client(struct introduction *i, const struct json_slot *info);
/* Append members of an object for the next daemon, and read them there. The client is not read: the
 * new daemon calls introduction_set_client. */
void introduction_put(struct buf *out, const struct introduction *i);
void introduction_take(struct introduction *i, struct span state);

#endif
