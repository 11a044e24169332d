/*
 * secrets: what must not show of messages, wherever people look at them: traces, the viewer, the
 * log.
 *
 * Clients and proxies send the environment, headers, arguments and addresses of MCP servers in
 * session/new and its like, agents those of terminals. Whatever they stand in, a list or a map, an
 * envelope or a batch, config/credentials decides which of them are secrets; those are told to the
 * log's redactor, which finds them again in everything that is shown later.
 *
 * Nouns: acp_secrets_.
 */
#ifndef RIALTO_ACP_SECRETS_H
#define RIALTO_ACP_SECRETS_H

#include "base/buf.h"

/* Tell the redactor of the secrets in a message, or in a part of one. */
void acp_secrets_learn(struct span message);
/*
 * The same, and append the message without any value of env and headers, whatever its name says.
 * The rest of it must still pass the redactor. Of a text that is no JSON only the length is told.
 */
void acp_secrets_put(struct buf *out, struct span message);

#endif
