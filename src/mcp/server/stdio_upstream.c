/* The link to a server that is a child process: started, lines in and out, its last line of stderr,
 * stopped. Made by hub/server.c; the provider calls its link functions. */
#include "mcp/server/stdio_upstream.h"

#include "base/log.h"
#include "base/mem.h"
#include "io/cage.h"
#include "wire/lines.h"

#include <stdio.h>

struct stdio_upstream {
    struct loop *loop;
    struct stdio_upstream_options options;
    struct mcp_provider *provider;
    struct child *child;   /* NULL when none runs */
    struct stream *stream; /* NULL when closed */
    struct lines lines;
    struct buf discard;    /* takes messages that are sent after the pipe broke */
    struct timer report;   /* tells of a failed start from the loop, not from inside `open` */
    char why[256];         /* the reason of that failure */
    char last_stderr[160]; /* often says why a server ended */
    uint64_t stderr_at;    /* when it came */
    bool before;           /* the child is not the server, but the step before it */
    bool closing;          /* nothing is to be started any more */
    struct buf denied;     /* the last line of stderr about something refused; only with a cage */
    uint64_t denied_at;    /* when it came */
    struct buf refused, remedy; /* what the cage refused to the server that ended last */
};

/* A line of stderr says why the server ended only if it came within this time before the end; one
 * from the start, such as a greeting, does not. */
enum { LAST_WORDS_MS = 1000 };

static void on_line(void *owner, struct span line)
{
    struct stdio_upstream *u = owner;

    mcp_provider_receive(u->provider, line, 0);
}

static void on_too_long(void *owner, struct span head)
{
    struct stdio_upstream *u = owner;

    mcp_provider_too_long(u->provider, head, u->options.max_message);
}

static const struct lines_events line_events = {on_line, on_too_long};

static void on_data(void *owner, struct span chunk)
{
    struct stdio_upstream *u = owner;

    lines_feed(&u->lines, chunk, &line_events, u);
}

static void on_stream_closed(void *owner, const char *reason)
{
    struct stdio_upstream *u = owner;

    (void)reason;
    u->stream = NULL;
    /* A server that closed its stdout is of no more use, even if the process still runs. */
    child_stop(u->child, u->options.stop_grace);
}

static const struct stream_events stream_events = {.data = on_data, .closed = on_stream_closed};

/* Name the cage, if `line` says that something was refused: what, and what would allow it. */
static void blame_cage(struct stdio_upstream *u, struct span line, struct buf *why)
{
    const struct cage_rules *cage = u->options.cage;

    u->refused.n = u->remedy.n = 0;
    if (!cage || !cage_is_refusal(line))
        return;
    cage_blame(cage, line, &u->refused, &u->remedy);
    if (u->refused.n)
        buf_printf(why, "; its sandbox (%s) refuses %s, which `%s` would open", cage->level,
                   buf_cstr(&u->refused), buf_cstr(&u->remedy));
    else
        buf_printf(why, "; its sandbox (%s) may have refused that: see 'rialto sandbox %s'",
                   cage->level, u->options.alias);
}

static void start(struct stdio_upstream *u);

static void on_exited(void *owner, int status, const char *how)
{
    struct stdio_upstream *u = owner;
    BUF_SCOPED why = {0};

    u->child = NULL;
    lines_fini(&u->lines);
    if (u->before && status == 0 && !u->closing) {
        start(u);
        return;
    }
    buf_printf(&why, "%s%s", u->before ? "the step that installs it " : "", how);
    uint64_t now = loop_timers(u->loop)->now;
    bool denied = now - u->denied_at <= LAST_WORDS_MS;
    blame_cage(u, denied ? buf_view(&u->denied) : SPAN_EMPTY, &why);
    if (u->last_stderr[0] && now - u->stderr_at <= LAST_WORDS_MS)
        buf_printf(&why, "; its last words: %s", u->last_stderr);
    mcp_provider_closed(u->provider, buf_cstr(&why));
}

static void on_stderr(void *owner, struct span line)
{
    struct stdio_upstream *u = owner;
    struct buf clean = {0};

    line = span_trim(line);
    if (!line.n)
        return;
    /* Before the line is cut: half a secret would not be recognised. */
    log_redact(&clean, line);
    u->stderr_at = loop_timers(u->loop)->now;
    snprintf(u->last_stderr, sizeof u->last_stderr, "%.150s", buf_cstr(&clean));
    if (u->options.cage && cage_is_refusal(buf_view(&clean))) {
        BUF_SCOPED refused = {0}, remedy = {0};
        cage_blame(u->options.cage, buf_view(&clean), &refused, &remedy);
        /* A line that names something tells more than a later one that does not. */
        if (refused.n || !u->denied.n) {
            u->denied.n = 0;
            buf_span(&u->denied, buf_view(&clean));
            u->denied_at = u->stderr_at;
        }
    }
    buf_fini(&clean);
}

static const struct child_events child_events = {.exited = on_exited, .stderr_line = on_stderr};

static void report_failure(struct timer *t)
{
    struct stdio_upstream *u = CONTAINER_OF(t, struct stdio_upstream, report);

    mcp_provider_closed(u->provider, u->why);
}

static void on_step_data(void *owner, struct span chunk)
{
    (void)owner, (void)chunk;
}

static void on_step_closed(void *owner, const char *reason)
{
    struct stdio_upstream *u = owner;

    (void)reason;
    u->stream = NULL;
}

static const struct stream_events step_events = {.data = on_step_data, .closed = on_step_closed};

/* Why the program was not started, for people. */
static void explain_failure(struct stdio_upstream *u, const struct err *err)
{
    BUF_SCOPED why = {0};

    buf_str(&why, err->text);
    blame_cage(u, span_str(strstr(err->text, SPAWN_REFUSED) ? err->text : ""), &why);
    if (u->options.cage && !u->refused.n && err->hint[0])
        buf_printf(&why, " (%s)", err->hint);
    snprintf(u->why, sizeof u->why, "%s", buf_cstr(&why));
    timer_set(loop_timers(u->loop), &u->report, 0);
}

static void start(struct stdio_upstream *u)
{
    const struct stdio_upstream_step *before = u->options.before;
    const char *const *argv = before ? before->ready(before->arg) : u->options.argv;
    bool was_before = u->before;

    u->before = !argv;
    const struct child_spec spec = {.name = u->options.alias,
                                    .argv = u->before ? before->argv : argv,
                                    .env = u->before ? before->env : u->options.env,
                                    .cwd = u->before ? NULL : u->options.cwd,
                                    .cage = u->before ? before->cage : u->options.cage};
    struct err err = {0};

    u->last_stderr[0] = '\0';
    u->denied.n = 0;
    if (was_before && u->before)
        err_set(&err, 0, "what was installed for it has no program to start");
    else
        u->child = child_spawn(u->loop, &spec, &child_events, u, &err);
    if (!u->child) {
        explain_failure(u, &err);
        return;
    }
    if (u->before) {
        log_info(u->options.alias, "is being installed");
        lines_init(&u->lines, 0);
        u->stream = child_stream(u->child);
        stream_start(u->stream, &step_events, u);
        return;
    }
    lines_init(&u->lines, u->options.max_message);
    u->stream = child_stream(u->child);
    /* For a server that does not read its input, at most one message more is kept in memory. */
    stream_set_limit(u->stream, u->options.max_message + STREAM_LIMIT);
    stream_start(u->stream, &stream_events, u);
    mcp_provider_connected(u->provider);
}

static void link_open(void *link)
{
    struct stdio_upstream *u = link;

    u->closing = u->before = false;
    start(u);
}

static struct buf *link_begin(void *link)
{
    struct stdio_upstream *u = link;

    if (u->stream)
        return stream_out(u->stream);
    u->discard.n = 0;
    return &u->discard;
}

static void link_end(void *link, const struct mcp_parcel *parcel)
{
    struct stdio_upstream *u = link;

    (void)parcel;
    if (!u->stream)
        return;
    buf_char(stream_out(u->stream), '\n');
    stream_wrote(u->stream);
}

static void link_close(void *link)
{
    struct stdio_upstream *u = link;

    u->closing = true;
    if (u->child)
        child_stop(u->child, u->options.stop_grace);
}

static void link_free(void *link)
{
    struct stdio_upstream *u = link;

    timer_clear(loop_timers(u->loop), &u->report);
    buf_fini(&u->discard);
    buf_fini(&u->denied);
    buf_fini(&u->refused);
    buf_fini(&u->remedy);
    mem_free(u);
}

static void link_describe(const void *link, struct provider_facts *facts)
{
    const struct stdio_upstream *u = link;

    facts->transport = "stdio";
    facts->pid = u->child ? child_pid(u->child) : 0;
    if (u->options.cage) {
        facts->sandbox = u->options.cage->level;
        facts->refused = buf_view(&u->refused);
        facts->remedy = buf_view(&u->remedy);
    }
}

static const struct mcp_link_ops link_ops = {
    .open = link_open,
    .begin = link_begin,
    .end = link_end,
    .close = link_close,
    .free = link_free,
    .describe = link_describe,
};

struct mcp_provider *stdio_upstream_new(struct loop *loop,
                                        const struct stdio_upstream_options *options)
{
    struct stdio_upstream *u = MEM_NEW(struct stdio_upstream);

    u->loop = loop;
    u->options = *options;
    u->report.fire = report_failure;
    u->provider = mcp_provider_new(options->alias, &link_ops, u);
    return u->provider;
}
