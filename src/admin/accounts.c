/* Counts the router's events for each server, keeps the last error, and logs most of the events.
 * Begun and ended by admin.c; status.c and metrics.c read the counts. */
#include "admin/inside.h"

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>

enum { TOOL_KEPT = 256 }; /* bytes of a tool's name, which a caller may have made up */

static void account_free(struct account *account)
{
    size_t at = 0;
    void *n;

    while (map_next(&account->tools, &at, NULL, &n))
        mem_free(n);
    map_fini(&account->tools);
    mem_free(account);
}

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

/* The series of this tool; beyond ACCOUNT_TOOLS_MAX, further tools of a server share one. */
static struct numbers *series_of(struct admin *a, struct account *account, struct span tool)
{
    struct numbers *n = map_get(&account->tools, tool);

    if (!n && a->n_series >= ACCOUNT_TOOLS_MAX) {
        tool = SPAN("(others)");
        n = map_get(&account->tools, tool);
    }
    if (!n) {
        n = MEM_NEW(struct numbers);
        a->n_series++;
        map_put(&account->tools, tool, n);
    }
    return n;
}

static void count_call(struct admin *a, struct account *account, const struct happening *h)
{
    uint64_t now = router_timers(a->router)->now;
    bool failed = h->kind == HAPPENED_TOOL_FAILED || h->is_error;

    numbers_count(&account->numbers, now, h->duration_ms, failed);
    numbers_count(series_of(a, account, span_cut(h->tool, 0, TOOL_KEPT)), now, h->duration_ms,
                  failed);
}

static void on_happened(struct watcher *self, const struct happening *h)
{
    struct admin *a = CONTAINER_OF(self, struct admin, watcher);
    struct account *account = account_of(a, h->server);

    account->happened[h->kind]++;
    account->tool_errors += h->is_error;
    if (h->kind == HAPPENED_TOOL_CALLED || h->kind == HAPPENED_TOOL_FAILED)
        count_call(a, account, h);
    if (h->kind == HAPPENED_SERVERS_RECONNECTED)
        account->restarts[account->n_restarts++ % ACCOUNT_RESTARTS] = router_timers(a->router)->now;
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
        account_free(account);
    map_fini(&a->accounts);
}

const struct account *accounts_find(const struct admin *a, const char *alias)
{
    static const struct account none;
    const struct account *account = map_get(&a->accounts, span_str(alias));

    return account ? account : &none;
}
