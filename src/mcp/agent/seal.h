/*
 * seal: the requestState of a parked call, which an agent keeps and returns unchanged.
 *
 * Authenticated encryption under a key of this process: an agent cannot read or change a seal,
 * nor give it to another agent. A restart makes all seals void, as it does the calls they name.
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

/* Every seal starts like this, and no other server's state does by accident. */
#define SEAL_PREFIX "rialto1."

/* Append the text of the seal: visible ASCII, safe in JSON and in headers. */
void seal_put(struct buf *out, const struct seal *s);
/* False when the text is no seal of this process or was changed. */
bool seal_open(struct span text, struct seal *out);

#endif
