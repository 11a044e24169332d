/*
 * seal: the requestState of a parked call, which an agent keeps and returns unchanged.
 *
 * Authenticated encryption under a key of this process: an agent cannot read or change a seal,
 * nor give it to another agent. A restart makes all seals void, as it does the calls they name; an
 * upgrade hands both on.
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
/* The key, for another daemon that takes over and must open our seals; before it makes its own. */
void seal_put_key(struct buf *out);
void seal_take_key(struct span key);

/* Every seal starts like this, and no other server's state does by accident. */
#define SEAL_PREFIX "rialto1."

/* Append the text of the seal: visible ASCII, safe in JSON and in headers. */
void seal_put(struct buf *out, const struct seal *s);
/* False when the text is no seal of this process or was changed. */
bool seal_open(struct span text, struct seal *out);

#endif
