/*
 * dashboard: the page that people see who open the daemon's address in a browser.
 *
 * Its files are those of web/dashboard.*, the same for everybody: nothing in them is secret, and
 * what the page shows it asks the API for, which decides whom it answers.
 */
#ifndef RIALTO_ADMIN_DASHBOARD_H
#define RIALTO_ADMIN_DASHBOARD_H

#include "hub/front.h"

/* The n-th path that it is made of; NULL past the end. "/" is among them. */
const char *dashboard_path(size_t n);
/* Is this a request for one of them? At "/" only browsers get the page: who asks for HTML. */
bool dashboard_is_wanted(const struct http_request *req);
/* Answers it; no argument but the exchange and its request is used. */
front_handler_fn dashboard_handle;

#endif
