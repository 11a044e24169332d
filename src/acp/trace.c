/* Writes messages as JSON events, and lines of pipes as text, to the sinks of a trace. Called by
 * the conductor's files for each message; cmd/conductor_trace.c creates the trace. */
#include "acp/trace.h"

#include "acp/secrets.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "wire/json_out.h"
#include "wire/rpc.h"

#include <stdio.h>
#include <time.h>

/* Both ends of a request, for the event of its answer; a process may be gone before that. */
struct traced {
    char from[ACP_LABEL_SIZE], to[ACP_LABEL_SIZE];
};

enum { TRACED_MAX = 65536, METHOD_SHOWN = 80 };

struct acp_trace {
    struct acp_trace_sinks sinks;
    double start;
    uint64_t last;
    struct idmap open;
};

static double now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

struct acp_trace *acp_trace_new(const struct acp_trace_sinks *sinks)
{
    struct acp_trace *t = MEM_NEW(struct acp_trace);

    t->sinks = *sinks;
    t->start = now();
    return t;
}

void acp_trace_free(struct acp_trace *t)
{
    size_t at = 0;
    uint64_t id;
    void *value;

    if (!t)
        return;
    while (idmap_next(&t->open, &at, &id, &value))
        mem_free(value);
    idmap_fini(&t->open);
    mem_free(t);
}

static void tell(struct acp_trace *t, struct buf *event)
{
    BUF_SCOPED masked = {0}, clean = {0};

    acp_secrets_put(&masked, buf_view(event));
    log_redact(&clean, buf_view(&masked));
    t->sinks.event(t->sinks.arg, buf_view(&clean));
    buf_fini(event);
}

static void put_ends(struct buf *out, const char *from, const char *to)
{
    json_out_str(out, "from", from);
    json_out_str(out, "to", to);
}

uint64_t acp_trace_call(struct acp_trace *t, bool request, bool mcp, const char *from,
                        const char *to, struct span method, struct span params)
{
    struct buf out = {0};
    uint64_t id = 0;

    if (!t || !t->sinks.event)
        return 0;
    buf_printf(&out, "{\"type\":\"%s\",\"ts\":%.6f,\"protocol\":\"%s\"",
               request ? "request" : "notification", now() - t->start, mcp ? "mcp" : "acp");
    put_ends(&out, from, to);
    if (request && t->open.n < TRACED_MAX) {
        struct traced *entry = MEM_NEW(struct traced);
        snprintf(entry->from, sizeof entry->from, "%s", from);
        snprintf(entry->to, sizeof entry->to, "%s", to);
        id = ++t->last;
        idmap_put(&t->open, id, entry);
        buf_printf(&out, ",\"id\":\"%llu\"", (unsigned long long)id);
    }
    json_out_raw(&out, "method", method);
    json_out_raw(&out, "params", params.n ? params : SPAN("null"));
    buf_char(&out, '}');
    tell(t, &out);
    return id;
}

void acp_trace_answer(struct acp_trace *t, uint64_t call, bool ok, struct span body)
{
    struct traced *entry = t && call ? idmap_take(&t->open, call) : NULL;
    struct buf out = {0};

    if (!entry)
        return;
    buf_printf(&out, "{\"type\":\"response\",\"ts\":%.6f", now() - t->start);
    put_ends(&out, entry->to, entry->from);
    buf_printf(&out, ",\"id\":\"%llu\"", (unsigned long long)call);
    json_out_bool(&out, "is_error", !ok);
    json_out_raw(&out, "payload", body.n ? body : SPAN("null"));
    buf_char(&out, '}');
    mem_free(entry);
    tell(t, &out);
}

void acp_trace_forget(struct acp_trace *t, uint64_t call)
{
    if (t && call)
        mem_free(idmap_take(&t->open, call));
}

/* Leave out colours and cursor movements, which programs write when they expect a terminal. */
static void put_plain(struct buf *out, struct span line)
{
    for (size_t i = 0; i < line.n; i++) {
        if (line.p[i] == '\033' && i + 1 < line.n && line.p[i + 1] == '[') {
            for (i += 2; i < line.n && (line.p[i] < '@' || line.p[i] > '~'); i++)
                ;
            continue;
        }
        buf_char(out, line.p[i]);
    }
}

/* The kind of message, read from the JSON-RPC members alone. */
static void put_metadata(struct buf *out, enum trace_arrow arrow, struct span line)
{
    static const char *const kinds[] = {
        [RPC_REQUEST] = "request ", [RPC_NOTIFICATION] = "notification ",
        [RPC_RESULT] = "result",    [RPC_ERROR] = "error",
        [RPC_BATCH] = "batch",      [RPC_INVALID] = "no message"};
    struct rpc_message m;

    if (arrow != TRACE_STDERR && rpc_skim(line, NULL, NULL, NULL, 0, &m) == 0)
        buf_printf(out, "%s" SPAN_FMT ", ", kinds[m.kind],
                   SPAN_ARG(span_cut(m.method, 0, METHOD_SHOWN)));
    buf_printf(out, "%zu bytes", line.n);
}

void acp_trace_line(struct acp_trace *t, int index, enum trace_arrow arrow, struct span line)
{
    static const char *const arrows[] = {"→", "←", "!"};
    BUF_SCOPED text = {0}, clean = {0};

    if (!t || !t->sinks.text)
        return;
    if (index < 0)
        buf_char(&text, 'C');
    else
        buf_printf(&text, "%d", index);
    buf_printf(&text, " %s +%.0fms ", arrows[arrow], (now() - t->start) * 1e3);
    if (t->sinks.metadata)
        put_metadata(&text, arrow, line);
    else if (arrow == TRACE_STDERR)
        put_plain(&text, line);
    else
        acp_secrets_put(&text, line);
    log_redact(&clean, buf_view(&text));
    t->sinks.text(t->sinks.arg, buf_view(&clean));
}
