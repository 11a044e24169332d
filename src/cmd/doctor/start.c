/* Starts the servers for a moment and reports how each one came up, what it offers, or why it
 * failed. Called by doctor.c. */
#include "base/log.h"
#include "base/mem.h"
#include "cmd/doctor/doctor.h"
#include "cmd/doctor/heard.h"
#include "cmd/query.h"
#include "config/nearest.h"
#include "hub/graph/server.h"
#include "io/http_client.h"
#include "mcp/protocol.h"
#include "wire/json_out.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { LIMIT_MS = 15 * 1000, NAMES_MAX = 8, STDERR_TAIL = 6 };

/* One start of all servers. */
struct trial {
    struct doctor *doctor;
    struct heard *heard;
    uint64_t began; /* ms */
    bool reported;
};

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static struct doctor_check *add(struct trial *t, enum doctor_level level, const char *alias,
                                const char *text)
{
    char group[96];

    snprintf(group, sizeof group, "server %s", alias);
    return doctor_add(t->doctor, level, group, alias, "%s", text);
}

/* --- tools and filters --- */

static struct span own_name(const struct item *item)
{
    return item->own.n ? item->own : item->name;
}

static void hint_names(struct doctor_check *check, const struct catalog *c)
{
    BUF_SCOPED names = {0};

    for (size_t i = 0; i < c->n[ITEM_TOOL] && i < NAMES_MAX; i++)
        buf_printf(&names, "%s" SPAN_FMT, i ? ", " : "",
                   SPAN_ARG(own_name(&c->items[ITEM_TOOL][i])));
    if (names.n)
        doctor_hint(check, "it has %s%s", buf_cstr(&names),
                    c->n[ITEM_TOOL] > NAMES_MAX ? ", ..." : "");
}

/* Warns about a pattern in the configuration that matches none of the server's tools. */
static void check_pattern(struct trial *t, const struct provider *p, const char *key,
                          const char *pattern)
{
    const struct catalog *c = p->catalog;
    struct nearest near = nearest_to(span_str(pattern));

    for (size_t i = 0; i < c->n[ITEM_TOOL]; i++) {
        struct span name = own_name(&c->items[ITEM_TOOL][i]);
        if (span_glob(span_str(pattern), name))
            return;
        nearest_offer(&near, name);
    }
    struct doctor_check *check = add(t, DOCTOR_WARN, p->alias, "");
    buf_printf(&check->text, "%s: '%s' is none of its tools", key, pattern);
    if (near.best.n)
        doctor_hint(check, "did you mean '" SPAN_FMT "'?", SPAN_ARG(near.best));
    else
        hint_names(check, c);
}

static void check_patterns(struct trial *t, const struct provider *p, const struct config_server *s)
{
    const struct {
        const char *key;
        const struct config_strings *list;
    } rows[] = {{"allow", &s->allow}, {"deny", &s->deny}, {"approve", &s->approve}};

    for (size_t i = 0; i < COUNT_OF(rows); i++)
        for (size_t k = 0; k < rows[i].list->n; k++)
            check_pattern(t, p, rows[i].key, rows[i].list->items[k]);
    /* Hidden tools are not in the catalog. */
    for (size_t i = 0; i < s->tools.n; i++)
        if (!s->tools.items[i].hide)
            check_pattern(t, p, "tools", s->tools.items[i].own);
}

static void check_filtered(struct trial *t, const struct provider *p)
{
    struct view *own = bridge_server_view(p);
    const struct catalog *c = p->catalog;
    BUF_SCOPED names = {0};
    size_t n = 0;

    for (size_t i = 0; own && i < c->n[ITEM_TOOL]; i++) {
        const struct item *item = &c->items[ITEM_TOOL][i];
        if (view_find(own, ITEM_TOOL, item->name))
            continue;
        if (n++ < NAMES_MAX)
            buf_printf(&names, "%s" SPAN_FMT, n > 1 ? ", " : "", SPAN_ARG(own_name(item)));
    }
    if (n)
        buf_printf(&add(t, DOCTOR_OK, p->alias, "")->text,
                   "%zu tool%s left out by `allow` or `deny`: %s%s", n, n == 1 ? " is" : "s are",
                   buf_cstr(&names), n > NAMES_MAX ? ", ..." : "");
}

/* --- servers that came up --- */

static uint64_t between(const struct mcp_provider *p, enum mcp_phase from, enum mcp_phase to)
{
    uint64_t a = mcp_provider_phase(p, from), b = mcp_provider_phase(p, to);

    return a && b > a ? b - a : 0;
}

static void put_ms(struct buf *out, uint64_t us)
{
    if (us < 10 * 1000)
        buf_printf(out, "%" PRIu64 ".%" PRIu64 " ms", us / 1000, us % 1000 / 100);
    else
        buf_printf(out, "%" PRIu64 " ms", us / 1000);
}

static void put_counts(struct buf *out, const struct catalog *c)
{
    static const char *const words[ITEM_KINDS] = {"tool", "resource", "resource template",
                                                  "prompt"};

    buf_printf(out, "%zu tool%s", c->n[ITEM_TOOL], doctor_plural(c->n[ITEM_TOOL]));
    for (int i = ITEM_TOOL + 1; i < ITEM_KINDS; i++)
        if (c->n[i])
            buf_printf(out, ", %zu %s%s", c->n[i], words[i], doctor_plural(c->n[i]));
}

static void report_up(struct trial *t, const struct provider *p, const struct mcp_provider *m)
{
    struct doctor_check *c = add(t, DOCTOR_OK, p->alias, "up after ");
    struct provider_facts facts = provider_describe(p);
    uint64_t spawn = between(m, MCP_OPENING, MCP_CONNECTED);
    uint64_t greeting = between(m, MCP_CONNECTED, MCP_GREETED);
    uint64_t lists = between(m, MCP_GREETED, MCP_LISTED);

    put_ms(&c->text, spawn + greeting + lists);
    buf_str(&c->text, " (");
    if (facts.pid) {
        buf_str(&c->text, "program ");
        put_ms(&c->text, spawn);
        buf_str(&c->text, ", ");
    }
    buf_str(&c->text, "greeting ");
    put_ms(&c->text, greeting);
    buf_str(&c->text, ", lists ");
    put_ms(&c->text, lists);
    buf_printf(&c->text, "), speaks %s, ", facts.version);
    put_counts(&c->text, p->catalog);
    json_out_str(&c->data, "protocol", facts.version);
    json_out_str(&c->data, "transport", facts.transport);
    json_out_number(&c->data, "spawn_us", spawn);
    json_out_number(&c->data, "greeting_us", greeting);
    json_out_number(&c->data, "lists_us", lists);
    json_out_number(&c->data, "tools", p->catalog->n[ITEM_TOOL]);
    json_out_number(&c->data, "resources", p->catalog->n[ITEM_RESOURCE]);
    json_out_number(&c->data, "resource_templates", p->catalog->n[ITEM_TEMPLATE]);
    json_out_number(&c->data, "prompts", p->catalog->n[ITEM_PROMPT]);
}

/* Warns about a server that came up only at the second start (see deserves_another). */
static void check_era(struct trial *t, const struct provider *p, const struct mcp_provider *m)
{
    if (p->stats.starts > 1 && strcmp(mcp_provider_version(m), MCP_MODERN) != 0)
        doctor_hint(add(t, DOCTOR_WARN, p->alias,
                        "it ended when it was asked for the newer protocol, and came up the second "
                        "time"),
                    "write `era: legacy` in its entry");
}

static void report_good(struct trial *t, const struct provider *p)
{
    const struct config_server *s = config_server(t->doctor->config, p->alias);
    const struct mcp_provider *m = bridge_mcp_provider(p);
    size_t all = 0;

    report_up(t, p, m);
    check_era(t, p, m);
    for (int i = 0; i < ITEM_KINDS; i++)
        all += p->catalog->n[i];
    if (!all)
        doctor_hint(add(t, DOCTOR_WARN, p->alias, "it offers nothing"),
                    "some servers need arguments or a token before they show their tools");
    check_filtered(t, p);
    if (s)
        check_patterns(t, p, s);
}

/* --- servers that failed --- */

/* The server's last lines, and before them an earlier line for which there is advice. Returns the
 * advice, or NULL. */
static const char *put_stderr_tail(struct trial *t, const char *alias, struct doctor_check *c)
{
    const char *advice = NULL, *line;
    size_t n = 0, telling = 0;

    for (; (line = heard_said(t->heard, alias, n)); n++) {
        if (advice)
            continue;
        advice = doctor_advice(span_str(line));
        telling = n;
    }
    size_t first = n > STDERR_TAIL ? n - STDERR_TAIL : 0;
    if (advice && telling < first)
        doctor_line(c, span_str(heard_said(t->heard, alias, telling)));
    if (first)
        doctor_line(c, SPAN("..."));
    for (size_t i = first; i < n; i++)
        doctor_line(c, span_str(heard_said(t->heard, alias, i)));
    return advice;
}

static void hint_bad(const struct trial *t, const struct provider *p, const struct config_server *s,
                     struct doctor_check *c)
{
    bool late = span_starts(span_str(p->why), SPAN("was not ready"));
    struct span why = span_str(p->why);

    if (s && s->url && span_has_nocase(why, SPAN("HTTP 404"))) {
        char *host = http_url_host(s->url);
        doctor_hint(c, SPAN_FMT "://%s/mcp may be it",
                    SPAN_ARG(span_cut(span_str(s->url), 0, span_find(span_str(s->url), ':'))),
                    host);
        mem_free(host);
    }
    if (s && late && s->start_timeout == LIMIT_MS)
        doctor_hint(c,
                    "the daemon waits for as long as `start_timeout` says, this command no "
                    "longer than %d s",
                    LIMIT_MS / 1000);
    if (t->doctor->daemon_same && s && s->command)
        doctor_hint(c, "the running daemon has a copy of this server, and some cannot run twice: "
                       "'rialto status' tells how that one is");
}

static void report_bad(struct trial *t, const struct provider *p)
{
    struct doctor_check *c = add(t, DOCTOR_FAIL, p->alias, "");
    const struct config_server *s = config_server(t->doctor->config, p->alias);
    bool mute = s && s->url && span_starts(span_str(p->why), SPAN("was not ready"));

    buf_printf(&c->text, "is not available: %s", p->why ? p->why : "it was not ready in time");
    const char *advice = put_stderr_tail(t, p->alias, c);
    if (provider_describe(p).refused.n)
        advice = "'rialto sandbox NAME' shows what it may do, and with --learn what it needs";
    else if (!advice)
        advice = mute ? "somebody listens there, but does not answer: check `url`, and the log of "
                        "that server"
                      : doctor_advice(buf_view(&c->text));
    if (advice)
        doctor_hint(c, "%s", advice);
    hint_bad(t, p, s, c);
}

static void report_complaints(struct trial *t, const struct provider *p)
{
    const char *text;
    bool said = false;

    for (size_t i = 0; (text = heard_complaint(t->heard, p->alias, i)); i++) {
        struct doctor_check *c = add(t, DOCTOR_WARN, p->alias, text);
        if (said || !span_has_nocase(span_str(text), SPAN("not JSON")))
            continue;
        said = true;
        if (p->state == PROVIDER_READY)
            doctor_hint(c, "its stdout is for messages alone: what it prints for people must go to "
                           "stderr");
        else
            doctor_hint(c, "if it is an MCP server, what it prints for people must go to stderr; "
                           "else check `command` and `args`");
    }
}

/* --- the start --- */

/*
 * Some servers exit when the first request is not initialize, and come up when they are started
 * again. True for a server that exited by itself at its first start and whose era is not
 * configured.
 */
static bool deserves_another(const struct trial *t, const struct provider *p)
{
    const struct config_server *s = config_server(t->doctor->config, p->alias);
    struct span why = span_str(p->why);
    bool ended = span_starts(why, SPAN("exited")) || span_starts(why, SPAN("killed"));

    return p->state != PROVIDER_READY && ended && p->backoff.failures == 1 && s &&
           s->era == ERA_AUTO;
}

static void settled(struct query_run *a)
{
    struct trial *t = a->arg;
    uint64_t took = now_ms() - t->began;
    bool wait = false;

    for (const struct provider *p = NULL; (p = bridge_next(a->bridge, p));)
        wait |= deserves_another(t, p);
    if (wait && took < LIMIT_MS) {
        query_again(a, LIMIT_MS - took);
        return;
    }
    (void)view_list(bridge_full_view(a->bridge), ITEM_TOOL); /* logs the tools that it renames */
    for (const struct provider *p = NULL; (p = bridge_next(a->bridge, p));) {
        if (p->state == PROVIDER_READY)
            report_good(t, p);
        else
            report_bad(t, p);
        report_complaints(t, p);
    }
    t->reported = true;
    query_finish(a, CMD_FINE);
}

/* Limits the start to what the doctor needs; this copy of the configuration is the doctor's own. */
static void prepare(struct config *c)
{
    c->remember = false; /* catalogs are neither read from the cache nor written to it */
    for (size_t i = 0; i < c->servers.n; i++) {
        struct config_server *s = &c->servers.items[i];
        if (!s->start_timeout || s->start_timeout > LIMIT_MS)
            s->start_timeout = LIMIT_MS;
        s->restarts = 1; /* see deserves_another */
    }
}

static void start_servers(struct trial *t)
{
    const struct args *args = t->doctor->args;

    if (isatty(STDERR_FILENO) && !args->quiet)
        fprintf(stderr, "starting the servers, which may take %d s ...\n", LIMIT_MS / 1000);
    t->began = now_ms();
    (void)query_run(t->doctor->config, &(struct query_how){.verbose = true}, settled, t);
    if (!t->reported)
        doctor_add(t->doctor, DOCTOR_FAIL, "servers", NULL, "the start was interrupted");
}

/* --- before the start --- */

static void check_before(struct trial *t, struct config_server *s, struct secrets *secrets)
{
    if (!s->enabled) {
        doctor_hint(add(t, DOCTOR_WARN, s->alias, "is switched off"),
                    "`enabled` or `enabled_servers` in the configuration says so");
        return;
    }
    size_t failed = t->doctor->count[DOCTOR_FAIL];
    struct server_plan *plan = server_plan_new(t->doctor->config, s, secrets);
    if (plan)
        doctor_check_program(t->doctor, s, plan);
    const char *error = heard_error(t->heard, s->alias);
    if (error)
        doctor_hint(add(t, DOCTOR_FAIL, s->alias, error),
                    "set it in the environment that rialto is started in, or put a file of that "
                    "name into `secrets.directory`");
    server_plan_drop(plan);
    /* A server that failed a check is not started: it would fail for the same reason. */
    s->enabled = t->doctor->count[DOCTOR_FAIL] == failed;
}

void doctor_check_servers(struct doctor *d, bool start)
{
    struct trial t = {.doctor = d, .heard = heard_new()};
    struct config *c = d->config;
    struct secrets *secrets = secrets_new(c);

    prepare(c);
    if (!d->args->verbose)
        log_set_level(LOG_INFO);
    log_set_muted(!d->args->verbose);
    log_set_listener(heard_line, t.heard);
    for (size_t i = 0; i < c->servers.n; i++) {
        struct config_server *s = &c->servers.items[i];
        bool wanted = !d->only || strcmp(s->alias, d->only) == 0;
        if (wanted)
            check_before(&t, s, secrets);
        s->enabled &= wanted;
    }
    secrets_free(secrets);
    if (start)
        start_servers(&t);
    log_set_listener(NULL, NULL);
    log_set_muted(false);
    heard_free(t.heard);
}
