/* The link to a server that is a child process: started, lines in and out, its last line of stderr,
 * stopped. Made by hub/server.c; the provider calls its link functions. */
#include "mcp/server/stdio_upstream.h"

#include "base/log.h"
#include "base/mem.h"
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

static void on_exited(void *owner, int status, const char *how)
{
    struct stdio_upstream *u = owner;
    char why[256];

    (void)status;
    u->child = NULL;
    lines_fini(&u->lines);
    if (u->last_stderr[0] && loop_timers(u->loop)->now - u->stderr_at <= LAST_WORDS_MS)
        snprintf(why, sizeof why, "%s; its last words: %s", how, u->last_stderr);
    else
        snprintf(why, sizeof why, "%s", how);
    mcp_provider_closed(u->provider, why);
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
    buf_fini(&clean);
}

static const struct child_events child_events = {.exited = on_exited, .stderr_line = on_stderr};

static void report_failure(struct timer *t)
{
    struct stdio_upstream *u = CONTAINER_OF(t, struct stdio_upstream, report);

    mcp_provider_closed(u->provider, u->why);
}

static void link_open(void *link)
{
    struct stdio_upstream *u = link;
    const struct child_spec spec = {.name = u->options.alias,
                                    .argv = u->options.argv,
                                    .env = u->options.env,
                                    .cwd = u->options.cwd};
    struct err err;

    u->last_stderr[0] = '\0';
    u->child = child_spawn(u->loop, &spec, &child_events, u, &err);
    if (!u->child) {
        snprintf(u->why, sizeof u->why, "%.200s", err.text);
        timer_set(loop_timers(u->loop), &u->report, 0);
        return;
    }
    lines_init(&u->lines, u->options.max_message);
    u->stream = child_stream(u->child);
    /* For a server that does not read its input, at most one message more is kept in memory. */
    stream_set_limit(u->stream, u->options.max_message + STREAM_LIMIT);
    stream_start(u->stream, &stream_events, u);
    mcp_provider_connected(u->provider);
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

    if (u->child)
        child_stop(u->child, u->options.stop_grace);
}

static void link_free(void *link)
{
    struct stdio_upstream *u = link;

    timer_clear(loop_timers(u->loop), &u->report);
    buf_fini(&u->discard);
    mem_free(u);
}

static void link_describe(const void *link, struct provider_facts *facts)
{
    const struct stdio_upstream *u = link;

    facts->transport = "stdio";
    facts->pid = u->child ? child_pid(u->child) : 0;
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
