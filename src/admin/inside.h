/*
 * inside: the struct and functions that the files of admin/ share: admin.c (start, end, table of
 * paths), health.c (health of servers and daemon), status.c (state as JSON), metrics.c (numbers for
 * Prometheus), bus_numbers.c (numbers of the bus), api.c (paths under /api), approvals.c (what
 * waits for an operator), logins.c (sign-ins to servers), calls.c (recorded calls), story.c (what
 * happened during a call), replay.c (calls made again), record_file.c (calls in a file), logs.c
 * (lines of the log), accounts.c (counts and last error of each server), live.c (what has changed).
 */
#ifndef RIALTO_ADMIN_INSIDE_H
#define RIALTO_ADMIN_INSIDE_H

#include "admin/admin.h"
#include "admin/line_file.h"
#include "admin/live.h"
#include "admin/log_ring.h"
#include "admin/numbers.h"
#include "admin/recorder.h"
#include "base/buf.h"

enum { ACCOUNT_RESTARTS = 16, ACCOUNT_TOOLS_MAX = 200 /* of all servers, with their own series */ };

/* Counts of one server since the daemon started. */
struct account {
    uint64_t happened[HAPPENED_KINDS];
    uint64_t tool_errors; /* results that say isError */
    char error[256];      /* text of the last failure; empty when there was none */
    uint64_t error_at;    /* on the router's clock */
    struct numbers numbers;
    struct map tools;                    /* own name -> struct numbers */
    uint64_t restarts[ACCOUNT_RESTARTS]; /* when it came back, on the router's clock; a ring */
    size_t n_restarts;
};

struct admin {
    struct hub *hub;
    struct bridge *bridge; /* owned by the hub */
    struct router *router; /* owned by the bridge */
    struct watcher watcher;
    struct map accounts; /* alias -> struct account */
    size_t n_series;     /* of tools, in all accounts */
    uint64_t started_at;
    uint64_t epoch; /* Unix time in ms when the router's clock was 0; see status_mind_clock */
    char *config;   /* absolute path of the configuration file, or NULL */
    struct recorder recorder;
    struct line_file record_file; /* of calls that have ended; without a path: none */
    bool record_failing;
    struct list replays;      /* calls that are made again */
    struct list task_cancels; /* tasks that operators cancel */
    struct log_ring log;
    char *log_file; /* where the log goes, if that is a file; or NULL */
    struct live *live;
};

/* --- accounts.c --- */
void accounts_begin(struct admin *a);
void accounts_end(struct admin *a);
/* Never NULL: a server without events has an empty account. */
const struct account *accounts_find(const struct admin *a, const char *alias);

/* --- health.c --- */
enum server_health {
    SERVER_UP,
    SERVER_IDLE,     /* rests; the next call starts it */
    SERVER_STARTING, /* without a failure before */
    SERVER_FAILING,
    SERVER_NEEDS_SIGN_IN,
    SERVER_STOPPED, /* on purpose */
};
enum server_health health_of(const struct provider *p);
const char *health_word(enum server_health h);

enum overall { OVERALL_OK, OVERALL_DEGRADED, OVERALL_DOWN };
/* `strict`: down as soon as one server is; else only when none is left. */
enum overall health_overall(const struct admin *a, bool strict);
const char *health_overall_word(enum overall o);
/* Append "status":...,"reasons":[...] of the servers that are shown; error texts only with
 * `with_reasons`. */
void health_put_members(struct buf *out, const struct admin *a, bool strict, bool with_reasons,
                        const struct sight *s);
/* Append "missing":[...]: the names of the secrets that the server's entry needs and that are not
 * set. */
void health_put_lacks(struct buf *out, const struct admin *a, const char *alias);

/* --- status.c --- */
/* The sum over all instances of a server. */
struct stats status_stats(const struct admin *a, const struct provider *p);
void status_put_server(struct buf *out, const struct admin *a, const struct provider *p);
void status_put_servers(struct buf *out, const struct admin *a, const struct sight *s);
/* The answer of /status. */
void status_put(struct buf *out, const struct admin *a, const struct sight *s);
/* A member with a moment of the router's clock: "2026-02-18T06:30:24Z". */
void status_put_time(struct buf *out, const char *name, const struct admin *a, uint64_t at);

/* The Unix time in ms of a moment on the router's clock. It is the same each time it is shown, so
 * that rows that did not change stay equal. */
uint64_t status_unix(const struct admin *a, uint64_t at);
/* To be called before times are shown: notices when the system's clock was set. */
void status_mind_clock(struct admin *a);
/* `ms` is Unix time; written as "2026-02-18T06:30:24.017Z". */
void status_put_stamp(struct buf *out, uint64_t ms);

/* --- metrics.c --- */
void metrics_put(struct buf *out, const struct admin *a);

/* --- api.c --- */
/* "/servers/files/stop": a list, the name of an entry, and what to do with the entry. */
struct api_path {
    struct span list, name, verb, last;
    const struct caller *caller; /* of the request */
    struct sight sight;          /* what the caller is shown */
};
void api_no_such_path(struct http_exchange *x);
/* Refuses and returns false unless the method is POST. */
bool api_wants_post(struct http_exchange *x, const struct http_request *req);
/* Reads the number of a call. */
bool api_read_id(struct span text, uint64_t *id);
/* Reads a number from the query; `n` stays when it is absent. false: the text is no number. */
bool api_read_number(const struct http_request *req, const char *name, uint64_t *n);
/* Is the name in the query, and neither 0 nor false? */
bool api_has_flag(const struct http_request *req, const char *name);
void api_handle(void *owner, const struct caller *caller, struct http_exchange *x,
                const struct http_request *req, struct span rest);

/* --- approvals.c --- */
/* How many calls and tools wait for a decision. */
size_t approvals_count(const struct admin *a);
void approvals_handle(struct admin *a, struct http_exchange *x, const struct http_request *req,
                      const struct api_path *path);

/* --- logins.c --- */
/* /api/servers/NAME/login, or with `out` /logout. */
void logins_handle(struct http_exchange *x, const struct http_request *req,
                   const struct provider *p, bool out);

/* --- calls.c --- */
/* The recorded calls, those in flight among them. */
void calls_handle(struct admin *a, struct http_exchange *x, const struct http_request *req,
                  const struct api_path *path);

/* A recorded call as an object of the list. */
void calls_put_row(struct buf *out, const struct admin *a, const struct record *rec);

/* --- live.c --- */
void live_handle(struct admin *a, struct http_exchange *x, const struct http_request *req,
                 const struct api_path *path);

/* --- servers.c --- */
void servers_handle(struct admin *a, struct http_exchange *x, const struct http_request *req,
                    const struct api_path *path);
void servers_handle_config(struct admin *a, struct http_exchange *x, const struct http_request *req,
                           const struct api_path *path);
/* The row of a server that the configuration has and the bridge has not: it is disabled, lacks a
 * secret, or would start this same configuration again. */
void servers_put_absent(struct buf *out, const struct admin *a, const struct config_server *s);
/* The next such server after this one; pass NULL for the first. */
const struct config_server *servers_next_absent(const struct admin *a,
                                                const struct config_server *after);

/* --- messages.c --- */
/* /api/servers/NAME/messages */
void messages_handle(struct admin *a, struct http_exchange *x, const struct http_request *req,
                     const struct provider *p);

/* --- sessions.c --- */
void sessions_handle(struct admin *a, struct http_exchange *x, const struct http_request *req,
                     const struct api_path *path);
/* The web pages that offer tools. */
void sessions_handle_pages(struct admin *a, struct http_exchange *x, const struct http_request *req,
                           const struct api_path *path);

/* --- stateless.c --- */
/* Append the callers of the last minutes that have no session: as rows of /api/sessions; as a text
 * that changes with them. */
void stateless_put(struct buf *out, const struct admin *a);
void stateless_put_digest(struct buf *out, const struct admin *a);

/* --- task_rows.c --- */
/* The tasks that servers run. */
void task_rows_handle(struct admin *a, struct http_exchange *x, const struct http_request *req,
                      const struct api_path *path);
void task_rows_end(struct admin *a);

/* --- buses.c --- */
void buses_put_digest(struct buf *out, const struct admin *a);
void buses_handle(struct admin *a, struct http_exchange *x, const struct http_request *req,
                  const struct api_path *path);

/* --- charts.c --- */
void charts_handle(struct admin *a, struct http_exchange *x, const struct http_request *req,
                   const struct api_path *path);

/* --- tools.c --- */
void tools_handle(struct admin *a, struct http_exchange *x, const struct http_request *req,
                  const struct api_path *path);

/* --- logs.c --- */
void logs_handle(struct admin *a, struct http_exchange *x, const struct http_request *req,
                 const struct api_path *path);

/* --- admin.c --- */
/* Refuses and returns false unless the method is GET or HEAD. */
bool admin_wants_get(struct http_exchange *x, const struct http_request *req);
/* Refuses a request for more than the viewer's view shows. */
void admin_refuse_view(struct http_exchange *x);

/* --- bus_numbers.c --- */
/* Append the member of the status, with its comma. */
void bus_numbers_put_status(struct buf *out, const struct admin *a);
void bus_numbers_put_metrics(struct buf *out, const struct admin *a);

#endif
