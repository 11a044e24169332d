/* Reads, checks and writes the traceparent and tracestate headers, and makes new span ids. Called
 * by job.c and remote_calls.c. */
#include "rockbot/trace.h"

#include "base/ascii.h"
#include "base/id.h"
#include "rockbot/rockbot.h"

/* 00-TRACEID-SPANID-FLAGS */
enum { TRACE_AT = 3, TRACE_N = 32, SPAN_AT = 36, SPAN_N = 16, FLAGS_AT = 53, PARENT_N = 55 };

/* Lower-case hexadecimal digits, and not all zero. */
static bool is_id(struct span s)
{
    bool any = false;

    for (size_t i = 0; i < s.n; i++) {
        if (ascii_hex(s.p[i]) < 0 || ascii_is_upper(s.p[i]))
            return false;
        any |= s.p[i] != '0';
    }
    return any;
}

static bool is_parent(struct span s)
{
    struct span flags = span_from(s, FLAGS_AT);

    return s.n == PARENT_N && span_starts(s, SPAN("00-")) && s.p[SPAN_AT - 1] == '-' &&
           s.p[FLAGS_AT - 1] == '-' && is_id(span_cut(s, TRACE_AT, TRACE_N)) &&
           is_id(span_cut(s, SPAN_AT, SPAN_N)) && (is_id(flags) || span_is(flags, "00"));
}

bool trace_extract(struct trace *t, const struct message *m)
{
    struct span parent = message_header(m, ROCKBOT_TRACEPARENT);
    struct span state = message_header(m, ROCKBOT_TRACESTATE);

    *t = (struct trace){0};
    if (!is_parent(parent))
        return false;
    memcpy(t->parent, parent.p, parent.n);
    /* A tracestate that is too long is left out: a part of it would mean something else. */
    if (state.n && state.n <= TRACE_MAX_STATE)
        memcpy(t->state, state.p, state.n);
    return true;
}

void trace_inject(const struct trace *t, struct message *m)
{
    if (t->parent[0])
        (void)message_add_header(m, ROCKBOT_TRACEPARENT, span_str(t->parent));
    if (t->parent[0] && t->state[0])
        (void)message_add_header(m, ROCKBOT_TRACESTATE, span_str(t->state));
}

void trace_descend(struct trace *t)
{
    char random[ID_TOKEN_SIZE];

    if (!t->parent[0])
        return;
    do
        id_token(random);
    while (!is_id(span_of(random, SPAN_N)));
    memcpy(t->parent + SPAN_AT, random, SPAN_N);
}
