/*
 * audit: who called what, and who decided: a line for each call when it ends, and one for each
 * decision about a held call, in a trail that shows when it was changed (admin/audit_file.h).
 *
 * It is a tap of the router. The line is written before the consumer gets the answer. If it cannot
 * be written, `audit.on_failure` decides: calls are refused until lines can be written again, or
 * they go on and the next line says how many are missing. Secrets are never written: arguments are
 * hashed, or pass the redactor of the log.
 */
#ifndef RIALTO_ADMIN_AUDIT_H
#define RIALTO_ADMIN_AUDIT_H

#include "base/err.h"
#include "config/config.h"
#include "core/router.h"

struct audit;

/* NULL and 0 in `*code` when the configuration has no audit; NULL and negative, with a reason, when
 * the trail cannot be opened. Must be the first tap of the router. */
struct audit *audit_begin(const struct config *c, struct router *router, int *code,
                          struct err *err);
/* NULL is fine. */
void audit_end(struct audit *a);
/* Another daemon writes the trail from now on: `forward` gets the lines of the calls that end here.
 * NULL is fine. */
void audit_leave(struct audit *a, void (*forward)(void *arg, struct span body), void *arg);
/* Takes the trail back after audit_leave. */
MUST_CHECK int audit_return(struct audit *a, const struct config *c, struct err *err);
/* A line that was forwarded to us. NULL is fine. */
void audit_append(struct audit *a, struct span body);
/* Append the path of the configured trail, and of its head; `file` stays empty with syslog. False
 * when there is no state folder. */
bool audit_put_paths(const struct config *c, struct buf *file, struct buf *head);

#endif
