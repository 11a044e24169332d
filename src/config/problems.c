/* The list of problems: adding, sorting by place, and writing one as text or JSON. Filled by
 * config/, hub/auth/gate.c and hub/tls_files.c; shown by the commands and hub/graph/follow.c. */
#include "config/problems.h"

#include "base/log.h"
#include "base/mem.h"
#include "wire/json_out.h"

void problems_fini(struct problems *ps)
{
    arena_fini(&ps->arena);
    mem_free(ps->items);
    *ps = (struct problems){0};
}

void problems_set_file(struct problems *ps, const char *file)
{
    ps->file = file ? arena_span(&ps->arena, span_str(file)).p : NULL;
}

/* Copies bytes of the file without control characters, for a terminal. */
static const char *keep_text(struct arena *a, struct span s)
{
    struct span copy = arena_span(a, s);
    char *p = (char *)(uintptr_t)copy.p;

    for (size_t i = 0; i < copy.n; i++)
        if ((unsigned char)p[i] < 0x20 || p[i] == 0x7f)
            p[i] = '?';
    return p;
}

void problems_add(struct problems *ps, enum problem_level level, struct place at, const char *key,
                  const char *fmt, ...)
{
    if (level == PROBLEM_ERROR)
        ps->errors++;
    else
        ps->warnings++;
    if (ps->n == PROBLEMS_MAX)
        return;
    if (!ps->items)
        ps->items = MEM_ARRAY(struct problem, PROBLEMS_MAX);

    BUF_SCOPED text = {0};
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    ps->items[ps->n++] = (struct problem){
        .level = level,
        .file = ps->file,
        .at = at,
        .key = keep_text(&ps->arena, span_str(key)),
        .text = keep_text(&ps->arena, buf_view(&text)),
    };
}

static bool stands_before(struct place a, struct place b)
{
    return a.line != b.line ? a.line < b.line : a.column < b.column;
}

void problems_sort(struct problems *ps, size_t from)
{
    for (size_t i = from + 1; i < ps->n; i++) {
        struct problem moved = ps->items[i];
        size_t to = i;
        for (; to > from && stands_before(moved.at, ps->items[to - 1].at); to--)
            ps->items[to] = ps->items[to - 1];
        ps->items[to] = moved;
    }
}

void problem_put(struct buf *out, const struct problem *p)
{
    if (p->file)
        buf_str(out, p->file);
    if (p->file && p->at.line)
        buf_printf(out, ":%u:%u", p->at.line, p->at.column);
    if (p->file)
        buf_str(out, ": ");
    if (p->level == PROBLEM_WARNING)
        buf_str(out, "warning: ");
    /* Key and text may quote secrets of the file. */
    if (*p->key)
        log_redact(out, span_str(p->key));
    buf_str(out, *p->key ? ": " : "");
    log_redact(out, span_str(p->text));
}

void problem_put_json(struct buf *out, const struct problem *p)
{
    json_out_open(out, NULL, '{');
    json_out_str(out, "level", p->level == PROBLEM_ERROR ? "error" : "warning");
    if (p->file)
        json_out_redacted(out, "file", span_str(p->file));
    if (p->at.line) {
        json_out_number(out, "line", p->at.line);
        json_out_number(out, "column", p->at.column);
    }
    if (*p->key)
        json_out_redacted(out, "key", span_str(p->key));
    json_out_redacted(out, "message", span_str(p->text));
    buf_char(out, '}');
}
