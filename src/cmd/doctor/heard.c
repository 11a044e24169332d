/* Collects log lines for each server: its output on stderr, warnings, the last error. Called by
 * start.c of this folder and by cmd/check.c, which set heard_line as the log's listener. */
#include "cmd/doctor/heard.h"

#include "base/map.h"
#include "base/mem.h"

enum { LINES_MAX = 20, LINE_MAX_BYTES = 300, SERVERS_MAX = 1000 };

struct heard_lines {
    char *items[LINES_MAX];
    size_t n;
};

struct one {
    struct heard_lines said, complaints;
    char *error;
};

struct heard {
    struct map servers; /* alias -> struct one */
};

struct heard *heard_new(void)
{
    return MEM_NEW(struct heard);
}

static void lines_clear(struct heard_lines *l)
{
    for (size_t i = 0; i < l->n; i++)
        mem_free(l->items[i]);
    l->n = 0;
}

void heard_free(struct heard *h)
{
    size_t at = 0;
    void *value;

    while (map_next(&h->servers, &at, NULL, &value)) {
        struct one *one = value;
        lines_clear(&one->said);
        lines_clear(&one->complaints);
        mem_free(one->error);
        mem_free(one);
    }
    map_fini(&h->servers);
    mem_free(h);
}

static struct one *find(const struct heard *h, const char *server)
{
    return map_get(&h->servers, span_str(server));
}

static struct one *make(struct heard *h, const char *server)
{
    struct one *one = find(h, server);

    if (one || h->servers.n >= SERVERS_MAX)
        return one;
    one = MEM_NEW(struct one);
    map_put(&h->servers, span_str(server), one);
    return one;
}

/* Each line is kept once: a server that is started again prints the same again. */
static void keep(struct heard_lines *l, struct span text)
{
    text = span_cut(text, 0, LINE_MAX_BYTES);
    for (size_t i = 0; i < l->n; i++)
        if (span_is(text, l->items[i]))
            return;
    if (l->n == LINES_MAX) {
        mem_free(l->items[0]);
        memmove(l->items, l->items + 1, (LINES_MAX - 1) * sizeof l->items[0]);
        l->n--;
    }
    l->items[l->n++] = mem_span(text);
}

/* Is this line our own remark, and not output of the server, although its level is info? */
static bool is_remark(struct span text)
{
    return span_glob(SPAN("tool '*'*: not offered"), text) ||
           span_glob(SPAN("tool '*' has no schema*"), text) ||
           span_starts(text, SPAN("does not answer server/discover")) ||
           span_glob(SPAN("has a tool '*' already*"), text);
}

/* Lines about a failed start are left out: the report has the failure with its reason. */
static bool is_verdict(struct span text)
{
    return span_starts(text, SPAN("could not be started: ")) ||
           span_starts(text, SPAN("ended: ")) || span_starts(text, SPAN("was not ready within "));
}

void heard_line(void *arg, const struct log_record *line)
{
    struct one *one = make(arg, line->who);

    if (!one || is_verdict(line->text))
        return;
    if (line->level == LOG_ERROR) {
        mem_free(one->error);
        one->error = mem_span(span_cut(line->text, 0, LINE_MAX_BYTES));
    } else if (line->level == LOG_WARN || (line->level == LOG_INFO && is_remark(line->text))) {
        keep(&one->complaints, line->text);
    } else if (line->level == LOG_INFO && span_trim(line->text).n) {
        keep(&one->said, line->text);
    }
}

const char *heard_said(const struct heard *h, const char *server, size_t n)
{
    const struct one *one = find(h, server);

    return one && n < one->said.n ? one->said.items[n] : NULL;
}

const char *heard_complaint(const struct heard *h, const char *server, size_t n)
{
    const struct one *one = find(h, server);

    return one && n < one->complaints.n ? one->complaints.items[n] : NULL;
}

const char *heard_error(const struct heard *h, const char *server)
{
    const struct one *one = find(h, server);

    return one ? one->error : NULL;
}
