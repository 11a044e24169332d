/* A component as a child process: starting, reading stdout and stderr, reporting how the process
 * ended, stopping. Called by greet.c, questions.c and conductor.c; hop.c asks for the component's
 * name. */
#include "acp/inside.h"

#include "base/log.h"
#include "base/mem.h"
#include "wire/json_out.h"

#include <stdio.h>

/* From closing a component's stdin to SIGTERM, and from there to SIGKILL. */
enum { STOP_GRACE_MS = 400 };

void component_put_name(struct buf *out, const struct hop *h)
{
    buf_printf(out, "component %d (", h->index);
    for (size_t i = 0; i < h->line->n_argv; i++)
        buf_printf(out, "%s%s", i ? " " : "", h->line->argv[i]);
    buf_char(out, ')');
}

/* Append {code, message, data}: which component failed, how, and the end of its stderr. */
static void put_death(struct buf *out, const struct hop *h, const char *how, size_t max_words)
{
    BUF_SCOPED text = {0}, clean = {0}, words = {0};
    struct span rest, line;

    component_put_name(&text, h);
    buf_printf(&text, " %s", how);
    log_redact(&clean, buf_view(&text));
    buf_printf(out, "{\"code\":%d", RPC_INTERNAL_ERROR);
    json_out_text(out, "message", buf_view(&clean));
    json_out_open(out, "data", '{');
    json_out_number(out, "component", (uint64_t)h->index);
    json_out_str(out, "label", h->label);
    json_out_str(out, "reason", how);
    json_out_open(out, "stderr", '[');
    stderr_tail_put(&words, &h->stderr_tail, max_words);
    for (rest = buf_view(&words); stderr_tail_line(&rest, &line);)
        json_out_text(out, NULL, line);
    buf_str(out, "]}}");
}

void component_put_end(struct buf *out, const struct hop *h, const char *how)
{
    put_death(out, h, how, STDERR_TAIL_BRIEF);
}

void component_put_failure(struct failure *out, const struct hop *h, const char *how)
{
    put_death(&out->whole, h, how, STDERR_TAIL_WHOLE);
    component_put_end(&out->brief, h, how);
}

static void log_death(const struct hop *h, const char *how)
{
    BUF_SCOPED who = {0}, words = {0};
    struct span rest, line;

    component_put_name(&who, h);
    log_error(h->label, "%s %s", buf_cstr(&who), how);
    /* When level info is logged, each line of stderr has been logged already. */
    if (!log_enabled(LOG_INFO))
        stderr_tail_put(&words, &h->stderr_tail, STDERR_TAIL_WHOLE);
    for (rest = buf_view(&words); stderr_tail_line(&rest, &line);)
        log_error(h->label, SPAN_FMT, SPAN_ARG(line));
}

static void on_data(void *owner, struct span chunk)
{
    hop_feed(owner, chunk);
}

static void on_closed(void *owner, const char *reason)
{
    struct hop *h = owner;

    hop_detach(h);
    h->closed = mem_str(reason);
    hop_feed_end(h);
    /* A component that has closed its stdout cannot answer any more, even if still running. */
    child_stop(h->child, STOP_GRACE_MS);
}

static void on_drained(void *owner)
{
    flow_release(owner);
}

static const struct stream_events stream_events = {
    .data = on_data, .drained = on_drained, .closed = on_closed};

static void on_stderr(void *owner, struct span bytes)
{
    struct hop *h = owner;

    stderr_tail_add(&h->stderr_tail, bytes);
}

static void on_stderr_line(void *owner, struct span line)
{
    struct hop *h = owner;

    acp_trace_line(h->c->options.trace, h->index, TRACE_STDERR, line);
}

/* Append how the process ended and, if we ended the process, why its pipe was closed before. */
static void put_how(struct buf *out, const struct hop *h, const char *how)
{
    buf_str(out, how);
    if (child_signalled(h->child) && h->closed)
        buf_printf(out, "; before that its pipe was closed: %s", h->closed);
}

static void on_exited(void *owner, int status, const char *how)
{
    struct hop *h = owner;
    struct conductor *c = h->c;
    struct failure why = {0};
    BUF_SCOPED story = {0};

    (void)status;
    put_how(&story, h, how);
    h->child = NULL;
    lines_fini(&h->lines);
    lines_init(&h->lines, HOP_MAX_MESSAGE);
    if (c->state != CHAIN_ENDING && !questions_outlive(h, buf_cstr(&story))) {
        log_death(h, buf_cstr(&story));
        component_put_failure(&why, h, buf_cstr(&story));
        conductor_fail_as(c, &why);
        hop_gone(h, why.whole.n ? &why : &c->failure);
        failure_fini(&why);
    }
    if (questions_is_spare(h))
        hop_free(h);
    conductor_check_end(c);
}

static const struct child_events child_events = {
    .exited = on_exited, .stderr_line = on_stderr_line, .stderr_bytes = on_stderr};

int component_start(struct hop *h, struct err *err)
{
    const struct child_spec spec = {.name = h->label,
                                    .argv = (const char *const *)h->line->argv,
                                    .env = (const char *const *)h->line->env,
                                    .inherit_env = true};

    h->child = child_spawn(h->c->loop, &spec, &child_events, h, err);
    if (!h->child)
        return ERR_PROTOCOL;
    stderr_tail_reset(&h->stderr_tail);
    mem_free(h->closed);
    h->closed = NULL;
    hop_attach(h, child_stream(h->child), &stream_events, h);
    return 0;
}

void component_stop(struct hop *h)
{
    if (h->child)
        child_stop(h->child, STOP_GRACE_MS);
}
