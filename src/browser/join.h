/*
 * join: a BTCP server that runs elsewhere, whose pages' tools we offer.
 *
 * We connect to it as an agent. Each of its sessions becomes a session of ours, with one page whose
 * connection we opened ourselves: its tools are listed and called like those of any page. By ws://
 * one session is joined, as the specification says; by http:// (the published btcp-server) all
 * sessions or one. A lost connection is opened again.
 */
#ifndef RIALTO_BROWSER_JOIN_H
#define RIALTO_BROWSER_JOIN_H

#include "browser/inside.h"

struct join;
struct pipe;

/* NULL with `err` for ws:// without a session. */
struct join *join_new(struct browser *b, const struct browser_join *spec, struct err *err);
/* Leaves every server of the list: closes the connections and frees the joins. */
void join_free_all(struct list *joins);
/* For pipe.c: sends a message of a pipe that has no WebSocket; removes a pipe that is freed. */
void join_send(struct join *j, const struct pipe *p, struct span json);
void join_pipe_gone(struct join *j, struct pipe *p);
/* For page_request.c: the server has let us into a session. By ws:// only this counts as a success,
 * after which a lost connection is soon opened again. */
void join_entered(struct join *j);

#endif
