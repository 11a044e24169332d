/*
 * shims: the agents whose hosts run a shim ('rialto stdio'), which brings their lines to the
 * control socket (docs/decisions/021-one-daemon.md).
 *
 * A shim asks for `GET /attach?view=&server=&wait=` with `Upgrade: rialto-shim`. All lines after
 * the answer, a 101, are messages of MCP, of either era, and belong to one session that ends with
 * the connection.
 *
 * If the configuration has variables, the answer names them (SHIMS_HEADER), and the shim's first
 * line is a notification SHIMS_METHOD whose params are an object with the variables that the shim
 * has. A later notification replaces them (docs/decisions/022-callers-variables.md). Owned by the
 * hub, which routes the requests.
 */
#ifndef RIALTO_HUB_SHIMS_H
#define RIALTO_HUB_SHIMS_H

#include "core/caller.h"
#include "hub/graph/bridge.h"
#include "io/http_server.h"
#include "mcp/agent/inherited.h"
#include "mcp/agent/modern.h"

struct shims;

#define SHIMS_HEADER "Rialto-Variables"
#define SHIMS_METHOD "rialto/variables"

/* `inherited` is borrowed. */
struct shims *shims_new(struct loop *loop, struct bridge *bridge, const struct config *c,
                        struct inherited *inherited);
/* A shim wants to attach, and to see what the narrowing leaves (NULL: everything). */
void shims_handle(struct shims *ss, const struct caller *caller, struct http_exchange *x,
                  const struct http_request *req, const struct narrowing *narrowing);
size_t shims_count(const struct shims *ss);
/* Close the shims for which `stays` returns false, because their view has changed: they attach
 * again. */
void shims_review(struct shims *ss, bool (*stays)(void *arg, const struct narrowing *narrowing),
                  void *arg);
/* Another daemon takes over: `give` gets each shim's socket when the last answer to the shim is
 * sent, with a JSON object about the shim and the bytes that the other daemon is to read first. */
typedef void shims_give_fn(void *arg, struct span text, int fd, struct span early);
void shims_leave(struct shims *ss, shims_give_fn *give, void *arg);
void shims_show_parked(const struct shims *ss, modern_parked_fn *show, void *arg);
/* Take over a shim that another daemon has given (shims_leave), with its socket. False, and the
 * socket is not taken: its server is gone, and the shim has to attach again. */
MUST_CHECK bool shims_adopt(struct shims *ss, struct span text, int fd, struct span early,
                            const struct narrowing *narrowing);
/* The daemon is to end: close the shims with no open request, which then look for the next
 * daemon. */
void shims_let_idle_go(struct shims *ss);
/* `closed` is called from the loop when all are gone; the struct is freed then. */
void shims_close(struct shims *ss, void (*closed)(void *arg), void *arg);

#endif
