/* Counts the router's events for each server, keeps the last error, and logs most of the events.
 * Begun and ended by admin.c; status.c and metrics.c read the counts. */
#include "admin/inside.h"

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>

static struct account *account_of(struct admin *a, struct span alias)
{
    struct account *account = map_get(&a->accounts, alias);

    if (!account) {
        account = MEM_NEW(struct account);
        map_put(&a->accounts, alias, account);
    }
    return account;
}

static void write_down(const struct happening *h)
{
    BUF_SCOPED name = {0}, clean = {0};

    log_redact(&clean, h->error); /* before the cut: half a secret would not be recognised */
    struct span error = span_cut(buf_view(&clean), 0, 200);
    buf_span(&name, h->server);
    if (h->which.n)
        buf_char(&name, '/');
    buf_span(&name, h->which);
    const char *server = buf_cstr(&name);

    switch (h->kind) {
    case HAPPENED_TOOL_CALLED:
        log_debug(server, "call %" PRIu64 " of " SPAN_FMT ": done in %" PRIu64 " ms", h->call,
                  SPAN_ARG(h->tool), h->duration_ms);
        break;
    case HAPPENED_TOOL_FAILED:
        log_info(server, "call %" PRIu64 " of " SPAN_FMT " failed after %" PRIu64 " ms: " SPAN_FMT,
                 h->call, SPAN_ARG(h->tool), h->duration_ms, SPAN_ARG(error));
        break;
    case HAPPENED_SERVERS_RECONNECTED:
        log_info(server, "is back");
        break;
    case HAPPENED_APPROVAL_WANTED:
        log_warn(server,
                 "call %" PRIu64 " of " SPAN_FMT
                 " waits for approval: rialto approvals approve %" PRIu64,
                 h->call, SPAN_ARG(h->tool), h->call);
        break;
    case HAPPENED_SERVER_FAILED: /* core/provider.c logs the states of a provider */
    case HAPPENED_KINDS:
        break;
    }
}

static void on_happened(struct watcher *self, const struct happening *h)
{
    struct admin *a = CONTAINER_OF(self, struct admin, watcher);
    struct account *account = account_of(a, h->server);

    account->happened[h->kind]++;
    account->tool_errors += h->is_error;
    if (h->kind == HAPPENED_SERVER_FAILED) {
        snprintf(account->error, sizeof account->error, SPAN_FMT, SPAN_ARG(h->error));
        account->error_at = router_timers(a->router)->now;
    }
    if (h->kind != HAPPENED_TOOL_CALLED || log_enabled(LOG_DEBUG))
        write_down(h);
}

void accounts_begin(struct admin *a)
{
    a->watcher.happened = on_happened;
    if (!events_watch(router_events(a->router), &a->watcher))
        log_warn("rialto", "too many watchers: events are not counted");
}

void accounts_end(struct admin *a)
{
    size_t at = 0;
    struct span alias;
    void *account;

    events_unwatch(router_events(a->router), &a->watcher);
    while (map_next(&a->accounts, &at, &alias, &account))
        mem_free(account);
    map_fini(&a->accounts);
}

const struct account *accounts_find(const struct admin *a, const char *alias)
{
    static const struct account none;
    const struct account *account = map_get(&a->accounts, span_str(alias));

    return account ? account : &none;
}
