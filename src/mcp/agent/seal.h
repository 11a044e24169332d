/*
 * seal: the requestState of a parked call, which an agent keeps and returns unchanged.
 *
 * Authenticated encryption under a key of this process: an agent cannot read or change a seal, and
 * no other agent can use it. A restart ends the parked calls and makes all seals invalid; an
 * upgrade hands both to the new daemon.
 */
#ifndef RIALTO_MCP_AGENT_SEAL_H
#define RIALTO_MCP_AGENT_SEAL_H

#include "base/buf.h"

#include <stdint.h>

/* The content of a requestState. */
struct seal {
    uint64_t call;      /* the parked call's handle */
    uint64_t principal; /* digest of the principal that may present the seal */
    uint64_t request;   /* digest of the request that the seal belongs to */
    uint64_t expires;   /* loop time, ms */
};

/* Digest of a text under the key, for the members above. */
uint64_t seal_digest(struct span text);
/* Hand the key to a daemon that takes over and must open our seals. That daemon calls seal_take_key
 * before it makes a seal of its own. */
void seal_put_key(struct buf *out);
void seal_take_key(struct span key);

/* Every seal starts with this, so that the requestState of a server is not taken for a seal. */
#define SEAL_PREFIX "rialto1."

/* Append the text of the seal: visible ASCII, safe in JSON and in headers. */
void seal_put(struct buf *out, const struct seal *s);
/* False when the text is no seal of this process or was changed. */
bool seal_open(struct span text, struct seal *out);

#endif
