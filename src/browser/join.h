/*
 * join: a BTCP server that runs elsewhere, before which we are the bridge.
 *
 * We come to it as an agent. Each of its sessions becomes a session of ours, with one page whose
 * connection we opened ourselves: its tools are listed and called like those of any page. By ws://
 * one session is joined, as the specification has it; by http:// (the published btcp-server) all
 * there are, or one. A connection that is lost is opened again.
 */
#ifndef RIALTO_BROWSER_JOIN_H
#define RIALTO_BROWSER_JOIN_H

#include "browser/inside.h"

struct join;
struct pipe;

/* NULL with `err` when the address is of no use. */
struct join *join_new(struct browser *b, const struct browser_join *spec, struct err *err);
/* Leaves every server of the list: connections are closed, and joins are gone. */
void join_free_all(struct list *joins);
/* What a pipe of the join's would send; and that the pipe is gone. */
void join_send(struct join *j, const struct pipe *p, struct span json);
void join_pipe_gone(struct join *j, struct pipe *p);

#endif
