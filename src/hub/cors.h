/*
 * cors: what a page of another origin that is let in may send and read (Cross-Origin Resource
 * Sharing). Who is let in is decided elsewhere (front.c).
 */
#ifndef RIALTO_HUB_CORS_H
#define RIALTO_HUB_CORS_H

#include "io/http_server.h"

/* The page of this origin may read the answer. */
void cors_allow_origin(struct http_exchange *x, struct span origin);
/* Does a browser ask whether a page may send a request? */
bool cors_is_preflight(const struct http_request *req);
void cors_answer_preflight(struct http_exchange *x, const struct http_request *req);

#endif
