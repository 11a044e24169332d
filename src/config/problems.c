#include "config/problems.h"

#include "base/log.h"
#include "base/mem.h"
#include "wire/json.h"

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

/* Bytes of the file end up on a terminal: no control characters among them. */
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
    /* They quote the file. */
    if (*p->key)
        log_redact(out, span_str(p->key));
    buf_str(out, *p->key ? ": " : "");
    log_redact(out, span_str(p->text));
}

static void put_member(struct buf *out, const char *name, const char *text)
{
    BUF_SCOPED clean = {0};

    buf_printf(out, ",\"%s\":", name);
    log_redact(&clean, span_str(text));
    json_quote(out, buf_view(&clean));
}

void problem_put_json(struct buf *out, const struct problem *p)
{
    buf_printf(out, "{\"level\":\"%s\"", p->level == PROBLEM_ERROR ? "error" : "warning");
    if (p->file)
        put_member(out, "file", p->file);
    if (p->at.line)
        buf_printf(out, ",\"line\":%u,\"column\":%u", p->at.line, p->at.column);
    if (*p->key)
        put_member(out, "key", p->key);
    put_member(out, "message", p->text);
    buf_char(out, '}');
}
