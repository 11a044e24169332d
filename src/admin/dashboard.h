/*
 * dashboard: the page that a browser gets at the daemon's address.
 *
 * The files are those of web/dashboard.*; those of web/page/ are one script, which tools/bundle
 * makes. They are the same for everybody: nothing in them is secret. The page asks the API for what
 * it shows, and the API decides whom it answers.
 */
#ifndef RIALTO_ADMIN_DASHBOARD_H
#define RIALTO_ADMIN_DASHBOARD_H

#include "hub/front.h"

/* Where the page's files are; ends with NULL. */
extern const char *const dashboard_paths[];
/* Is this a request for one of the page's files? At "/" only for requests that accept HTML. */
bool dashboard_is_wanted(const struct http_request *req);
/* Answers the request; uses no argument but the exchange and the request. */
front_handler_fn dashboard_handle;

#endif
