/* Start and end of the admin part, the table of its paths, and the answers of /healthz, /readyz,
 * /metrics and /status. Called by cmd/serve.c; other files of admin/ check for GET here. */
#include "admin/inside.h"

#include "admin/story.h"
#include "base/mem.h"
#include "mcp/consent.h"
#include "wire/json.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

bool admin_wants_get(struct http_exchange *x, const struct http_request *req)
{
    if (span_is(req->method, "GET") || span_is(req->method, "HEAD"))
        return true;
    http_refuse_with(x, 405, SPAN("Allow: GET, HEAD\r\n"), "method not allowed",
                     "this can only be looked at: GET");
    return false;
}

void admin_refuse_view(struct http_exchange *x)
{
    http_refuse(x, 403, "this token is for a view",
                "this shows more than the view (auth.tokens.*.view): use a token without one");
}

/* A daemon that can answer at all is alive. */
static void on_healthz(void *owner, const struct caller *caller, struct http_exchange *x,
                       const struct http_request *req, struct span rest)
{
    (void)owner, (void)caller, (void)rest;
    if (admin_wants_get(x, req))
        http_respond(x, 200, "application/json", SPAN_EMPTY, SPAN("{\"status\":\"ok\"}\n"));
}

/* Probes may come from other machines; error texts are shown on this machine only. */
static bool is_near(const struct http_exchange *x)
{
    struct span peer = span_str(http_exchange_peer(x));

    return span_starts(peer, SPAN("unix:")) || span_starts(peer, SPAN("127.")) ||
           span_starts(peer, SPAN("[::1]"));
}

static void on_readyz(void *owner, const struct caller *caller, struct http_exchange *x,
                      const struct http_request *req, struct span rest)
{
    struct admin *a = owner;
    bool strict = api_has_flag(req, "strict");
    struct sight sight = sight_of(a->hub, caller);

    (void)rest;
    if (!admin_wants_get(x, req))
        return;
    int status = health_overall(a, strict) == OVERALL_DOWN ? 503 : 200;
    struct buf *out = http_respond_begin(x, status, "application/json", SPAN_EMPTY);
    buf_char(out, '{');
    health_put_members(out, a, strict, is_near(x), &sight);
    buf_str(out, "}\n");
    http_respond_end(x);
}

static void on_metrics(void *owner, const struct caller *caller, struct http_exchange *x,
                       const struct http_request *req, struct span rest)
{
    const struct admin *a = owner;

    (void)rest;
    if (!admin_wants_get(x, req))
        return;
    if (sight_of(a->hub, caller).narrowed) {
        admin_refuse_view(x);
        return;
    }
    metrics_put(http_respond_begin(x, 200, "text/plain; version=0.0.4; charset=utf-8", SPAN_EMPTY),
                a);
    http_respond_end(x);
}

static void on_status(void *owner, const struct caller *caller, struct http_exchange *x,
                      const struct http_request *req, struct span rest)
{
    struct admin *a = owner;
    struct sight sight = sight_of(a->hub, caller);

    (void)rest;
    if (!admin_wants_get(x, req))
        return;
    status_mind_clock(a);
    struct buf *out = http_respond_begin(x, 200, "application/json", SPAN_EMPTY);
    status_put(out, a, &sight);
    buf_char(out, '\n');
    http_respond_end(x);
}

/* Probes and scrapers may come from other machines; paths that show errors or change something are
 * for this machine only. */
const struct admin_path admin_paths[] = {
    {"/healthz", false, false, on_healthz}, {"/readyz", false, false, on_readyz},
    {"/metrics", false, false, on_metrics}, {"/status", false, true, on_status},
    {"/api", true, true, api_handle},
};
const size_t admin_paths_n = COUNT_OF(admin_paths);

/* The file that the standard error goes to; NULL when that is a terminal or a pipe. */
static char *find_log(void)
{
    struct stat st;

    return fstat(STDERR_FILENO, &st) == 0 && S_ISREG(st.st_mode) ? realpath("/proc/self/fd/2", NULL)
                                                                 : NULL;
}

struct admin *admin_new(struct hub *hub)
{
    struct admin *a = MEM_NEW(struct admin);

    a->hub = hub;
    a->bridge = hub_bridge(hub);
    a->router = bridge_router(a->bridge);
    const struct config *c = bridge_config(a->bridge);
    a->started_at = router_timers(a->router)->now;
    status_mind_clock(a);
    a->config = c->file ? realpath(c->file, NULL) : NULL;
    a->log_file = find_log();
    log_ring_begin(&a->log, c->log.keep);
    accounts_begin(a);
    list_init(&a->replays);
    list_init(&a->task_cancels);
    /* Added after the audit's tap, so that it sees the calls to which the audit objects. */
    recorder_begin(&a->recorder, a->router, c->record.size, c->record.body);
    record_file_begin(a, c->record.file, c->record.size);
    approval_set_approver(a->router, &consent_approver_with_operator);
    a->live = live_new(a);
    return a;
}

void admin_free(struct admin *a)
{
    live_free(a->live);
    replay_end_all(a);
    task_rows_end(a);
    recorder_end(&a->recorder);
    record_file_end(a);
    accounts_end(a);
    approval_set_approver(a->router, &consent_approver);
    log_ring_end(&a->log);
    free(a->config); /* allocated by realpath */
    free(a->log_file);
    mem_free(a);
}
