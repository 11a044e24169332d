/* Opens the files of --trace and --debug, writes the traffic and the conductor's log lines into
 * them, and hands events to the viewer. Called by cmd/conductor.c. */
#include "cmd/conductor_trace.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "cmd/conductor_viewer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct conductor_trace {
    int events, text; /* descriptors, -1 = none */
    struct conductor_viewer *viewer;
    struct acp_trace *acp;
};

/* Writes the line at once, so that a reader of the file never sees half a line. */
static void write_line(int fd, struct span line)
{
    BUF_SCOPED out = {0};

    if (fd < 0)
        return;
    buf_span(&out, line);
    buf_char(&out, '\n');
    int code = file_write_fd(fd, buf_view(&out));
    if (code)
        log_debug("trace", "cannot write: %s", strerror(-code));
}

static void on_event(void *arg, struct span line)
{
    struct conductor_trace *t = arg;

    write_line(t->events, line);
    if (t->viewer)
        conductor_viewer_add(t->viewer, line);
}

static void on_text(void *arg, struct span line)
{
    struct conductor_trace *t = arg;

    write_line(t->text, line);
}

/* The conductor's own log lines. Lines that components print are logged too, as information under
 * the component's label, but are in the trace already. */
static void on_log(void *arg, const struct log_record *line)
{
    const struct conductor_trace *t = arg;
    struct span who = span_str(line->who);
    bool of_component = span_starts(who, SPAN("Proxy(")) || span_is(who, "Agent");
    BUF_SCOPED text = {0};

    if (line->level == LOG_INFO && of_component)
        return;
    buf_printf(&text, "%s " SPAN_FMT ": " SPAN_FMT, log_level_name(line->level), SPAN_ARG(who),
               SPAN_ARG(line->text));
    acp_trace_line(t->acp, -1, TRACE_STDERR, buf_view(&text));
}

static int open_file(const char *path, struct err *err)
{
    /* Conversations with agents are private: only the owner may read them. */
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);

    if (fd < 0)
        err_set(err, -errno, "cannot write '%s': %s", path, strerror(errno));
    return fd;
}

/* The command lines of the components, with the names of variables but not their values. */
static void put_head(struct buf *out, const struct conductor_trace_options *o)
{
    for (size_t i = 0; i < o->n_components; i++) {
        const struct command_line *line = &o->components[i];
        buf_printf(out, "component %zu:", i);
        for (size_t k = 0; k < line->n_env && !o->metadata; k++) {
            struct span pair = span_str(line->env[k]);
            buf_printf(out, " " SPAN_FMT "=***", SPAN_ARG(span_cut(pair, 0, span_find(pair, '='))));
        }
        for (size_t k = 0; k < (o->metadata ? 1 : line->n_argv); k++)
            buf_printf(out, " %s", line->argv[k]);
        buf_char(out, '\n');
    }
}

/* DIR/20260131-235959.log */
static int open_text(const struct conductor_trace_options *o, struct err *err)
{
    BUF_SCOPED path = {0}, head = {0}, clean = {0};
    char stamp[32];
    time_t now = time(NULL);
    struct tm tm;

    localtime_r(&now, &tm);
    strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &tm);
    buf_printf(&path, "%s/%s.log", o->debug_dir, stamp);
    file_make_folders(buf_cstr(&path));
    int fd = open_file(buf_cstr(&path), err);
    if (fd >= 0) {
        fprintf(stderr, "conductor: logging to %s\n", buf_cstr(&path));
        buf_printf(&head, "started %s\n", stamp);
        put_head(&head, o);
        log_redact(&clean, buf_view(&head));
        write_line(fd, buf_view(&clean));
    }
    return fd;
}

struct conductor_trace *conductor_trace_new(struct loop *loop,
                                            const struct conductor_trace_options *options,
                                            struct err *err)
{
    struct conductor_trace *t = MEM_NEW(struct conductor_trace);
    struct acp_trace_sinks sinks = {.arg = t, .metadata = options->metadata};

    t->events = options->file ? open_file(options->file, err) : -1;
    t->text = options->debug_dir ? open_text(options, err) : -1;
    bool fine = (!options->file || t->events >= 0) && (!options->debug_dir || t->text >= 0);
    if (fine && options->serve) {
        t->viewer = conductor_viewer_new(loop, err);
        fine = t->viewer != NULL;
    }
    if (!fine) {
        conductor_trace_free(t);
        return NULL;
    }
    if (t->events >= 0 || t->viewer)
        sinks.event = on_event;
    if (t->text >= 0)
        sinks.text = on_text;
    if (sinks.event || sinks.text)
        t->acp = acp_trace_new(&sinks);
    if (sinks.text)
        log_set_listener(on_log, t);
    return t;
}

struct acp_trace *conductor_trace_acp(struct conductor_trace *t)
{
    return t->acp;
}

void conductor_trace_close(struct conductor_trace *t, void (*done)(void *arg), void *arg)
{
    if (t->viewer)
        conductor_viewer_close(t->viewer, done, arg);
    else
        done(arg);
}

void conductor_trace_free(struct conductor_trace *t)
{
    if (t->events >= 0)
        close(t->events);
    if (t->text >= 0) {
        log_set_listener(NULL, NULL);
        close(t->text);
    }
    if (t->viewer)
        conductor_viewer_free(t->viewer);
    acp_trace_free(t->acp);
    mem_free(t);
}
