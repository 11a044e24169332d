/*
 * trace: the traffic through the chain, written for people who want to see it.
 *
 * Two forms of the same traffic: *events* (requests, notifications and answers between components,
 * taken out of their envelopes, as JSON lines) and *lines* (every line of every pipe, as a text
 * log). Both pass acp/secrets and the redactor before they reach a sink. All functions accept NULL
 * as the trace and then do nothing.
 *
 * Nouns: acp_trace_.
 */
#ifndef RIALTO_ACP_TRACE_H
#define RIALTO_ACP_TRACE_H

#include "base/buf.h"

struct acp_trace;

enum { ACP_LABEL_SIZE = 16 }; /* of "Client", "Proxy(0)", with the byte that ends it */
enum trace_arrow { TRACE_SENT, TRACE_RECEIVED, TRACE_STDERR };

struct acp_trace_sinks {
    void *arg;
    void (*event)(void *arg, struct span line); /* one JSON object, no line end; may be NULL */
    void (*text)(void *arg, struct span line);  /* may be NULL */
    bool metadata; /* write only the kind and the length of lines, no content */
};

struct acp_trace *acp_trace_new(const struct acp_trace_sinks *sinks);
void acp_trace_free(struct acp_trace *t);

/* A message from `from` to `to` ("Client", "Proxy(0)", "Agent"). Returns the number for
 * acp_trace_answer; 0 for notifications. `method` is raw, with quotes. */
uint64_t acp_trace_call(struct acp_trace *t, bool request, bool mcp, const char *from,
                        const char *to, struct span method, struct span params);
void acp_trace_answer(struct acp_trace *t, uint64_t call, bool ok, struct span body);
/* The request will not be answered, or has been. */
void acp_trace_forget(struct acp_trace *t, uint64_t call);
/* A line of a pipe; `index` is that of the component, -1 for our own pipe. */
void acp_trace_line(struct acp_trace *t, int index, enum trace_arrow arrow, struct span line);

#endif
