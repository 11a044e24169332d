/*
 * secrets: the parts of messages that people must not see: in traces, in the viewer, in the log.
 *
 * Clients and proxies send the environment, headers, arguments and addresses of MCP servers in
 * session/new and similar requests; agents send those of terminals. Whatever the form (a list or a
 * map, in an envelope or a batch), config/credentials decides which of the values are secrets. The
 * log's redactor is told of these secrets, and hides them in everything that is shown later.
 *
 * Nouns: acp_secrets_.
 */
#ifndef RIALTO_ACP_SECRETS_H
#define RIALTO_ACP_SECRETS_H

#include "base/buf.h"

/* Tell the redactor of the secrets in a message, or in a part of one. */
void acp_secrets_learn(struct span message);
/*
 * The same, and append the message without any value of env and headers, whatever the names are.
 * The rest of the message must still pass the redactor. For a text that is not JSON, only the
 * length is written.
 */
void acp_secrets_put(struct buf *out, struct span message);

#endif
