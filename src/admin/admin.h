/*
 * admin: the daemon as the people see it who look after it.
 *
 * It answers what is asked about health, numbers and state, starts and stops servers, and is the
 * operator's door for calls that wait for approval. Everything is HTTP, at the paths of a table
 * that the daemon puts behind its front door; commands use the same paths through the control
 * socket (admin/control.h).
 */
#ifndef RIALTO_ADMIN_ADMIN_H
#define RIALTO_ADMIN_ADMIN_H

#include "browser/browser.h"
#include "config/config.h"
#include "core/router.h"
#include "hub/front.h"
#include "io/http_server.h"
#include "rockbot/report.h"

struct admin;

/* What there is to look after. */
struct admin_host {
    struct router *router;
    /* The configuration that holds now: a reload puts another in its place. */
    const struct config *(*config)(void *arg);
    /* The n-th server and the view that shows it alone; NULL past the end. */
    struct provider *(*server)(void *arg, size_t n);
    struct view *(*view)(void *arg, size_t n);
    size_t (*sessions)(void *arg);
    /* Read the configuration anew: 0 with what changed as a JSON object, or negative. */
    int (*reload)(void *arg, struct buf *report, struct err *err);
    void (*pages)(void *arg, struct browser_numbers *out); /* web pages; NULL: there are none */
    bool (*bus)(void *arg, struct bus_report *out);        /* false, or NULL: there is none */
    void *arg;
};

struct admin *admin_new(const struct admin_host *host);
/* While the router still lives. */
void admin_free(struct admin *a);

struct admin_path {
    const char *path;
    bool below;               /* and everything under it */
    bool local;               /* only for callers on this machine */
    front_handler_fn *handle; /* `owner` is the struct admin */
};
extern const struct admin_path admin_paths[];
extern const size_t admin_paths_n;

#endif
