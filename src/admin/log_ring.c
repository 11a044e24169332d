/* Keeps the last lines of the log and writes the requested ones as JSON. Begun and ended by
 * admin.c; logs.c, news.c and servers.c read the lines. */
#include "admin/log_ring.h"

#include "admin/inside.h"
#include "base/utf8.h"
#include "wire/json_out.h"

enum {
    TEXT_MAX = 12 * 1024, /* longer than any line of a server */
    WHO_MAX = 256,
    BOOKKEEPING = 16, /* what the allocator adds to each line */
};

struct kept_line {
    struct list node;
    uint64_t seq, at;
    enum log_level level;
    size_t n_who, n;
    char bytes[]; /* who, text */
};

static struct kept_line *line_at(struct list *node)
{
    return LIST_ENTRY(node, struct kept_line, node);
}

static size_t cost_of(const struct kept_line *line)
{
    return sizeof *line + line->n_who + line->n + BOOKKEEPING;
}

/* The first `max` bytes at most, in whole characters. */
static struct span bounded(struct span text, size_t max)
{
    struct span cut = span_cut(text, 0, max);

    while (cut.n < text.n && cut.n && utf8_tail((unsigned char)text.p[cut.n]))
        cut.n--;
    return cut;
}

static void forget_oldest(struct log_ring *r)
{
    struct kept_line *oldest = line_at(r->lines.next);

    list_remove(&oldest->node);
    r->used -= cost_of(oldest);
    mem_free(oldest);
}

static void on_line(void *arg, const struct log_record *written)
{
    struct log_ring *r = arg;
    struct span who = bounded(span_str(written->who), WHO_MAX);
    struct span text = bounded(written->text, TEXT_MAX);
    struct kept_line *line = mem_alloc(sizeof *line + who.n + text.n);

    *line = (struct kept_line){
        .seq = r->next++, .at = written->at, .level = written->level, .n_who = who.n, .n = text.n};
    if (who.n)
        memcpy(line->bytes, who.p, who.n);
    if (text.n)
        memcpy(line->bytes + who.n, text.p, text.n);
    list_append(&r->lines, &line->node);
    r->used += cost_of(line);
    while (r->used > r->keep)
        forget_oldest(r);
    if (r->news)
        r->news(r->news_arg);
}

void log_ring_begin(struct log_ring *r, size_t keep)
{
    *r = (struct log_ring){.keep = keep, .next = 1};
    list_init(&r->lines);
    id_token(r->run);
    if (keep)
        log_set_listener(on_line, r);
}

void log_ring_end(struct log_ring *r)
{
    if (r->keep)
        log_set_listener(NULL, NULL);
    while (!list_empty(&r->lines))
        forget_oldest(r);
}

/* --- reading --- */

/* The name "files" also stands for "files/3", an instance of that server. */
static bool is_of(const struct kept_line *line, struct span wanted)
{
    struct span who = span_of(line->bytes, line->n_who);

    return span_starts(who, wanted) && (who.n == wanted.n || who.p[wanted.n] == '/');
}

static bool is_wanted(const struct kept_line *line, const struct log_question *q)
{
    return line->level <= q->level && (!q->who.n || is_of(line, q->who));
}

static void put_line(struct buf *out, const struct kept_line *line)
{
    BUF_SCOPED shown = {0};

    json_out_open(out, NULL, '{');
    json_out_number(out, "seq", line->seq);
    json_out_open(out, "at", '"');
    status_put_stamp(out, line->at);
    buf_char(out, '"');
    json_out_str(out, "level", log_level_name(line->level));
    json_out_text(out, "who", span_of(line->bytes, line->n_who));
    /* Redacted again: some secrets became known only after the line was written. */
    log_redact(&shown, span_of(line->bytes + line->n_who, line->n));
    json_out_text(out, "text", buf_view(&shown));
    buf_char(out, '}');
}

/* The number of the first among the last `limit` matching lines. */
static uint64_t find_last(const struct log_ring *r, const struct log_question *q)
{
    uint64_t from = r->next;
    size_t n = 0;

    for (struct list *it = r->lines.prev; it != &r->lines && n < q->limit; it = it->prev) {
        if (!is_wanted(line_at(it), q))
            continue;
        from = line_at(it)->seq;
        n++;
    }
    return from;
}

void log_ring_put(struct buf *out, const struct log_ring *r, const struct log_question *q)
{
    uint64_t first = list_empty(&r->lines) ? r->next : line_at(r->lines.next)->seq;
    uint64_t from = q->has_after && q->after && q->after <= r->next ? q->after : 1;
    uint64_t lost = from < first ? first - from : 0, next = r->next;
    size_t n = 0;

    if (!q->has_after) {
        from = find_last(r, q);
        lost = 0;
    }
    buf_char(out, '{');
    json_out_open(out, "lines", '[');
    LIST_EACH (&r->lines, it) {
        const struct kept_line *line = line_at(it);
        if (line->seq < from || !is_wanted(line, q))
            continue;
        if (n == q->limit) {
            next = line->seq;
            break;
        }
        n++;
        put_line(out, line);
    }
    buf_char(out, ']');
    json_out_number(out, "next", next);
    json_out_number(out, "lost", lost);
    json_out_str(out, "run", r->run);
    buf_char(out, '}');
}

void log_ring_put_from(struct buf *out, const struct log_ring *r, uint64_t from)
{
    json_out_open(out, "lines", '[');
    LIST_EACH (&r->lines, it)
        if (line_at(it)->seq >= from)
            put_line(out, line_at(it));
    buf_char(out, ']');
}

void log_ring_put_texts(struct buf *out, const struct log_ring *r, struct span who, size_t max)
{
    const struct log_question q = {.limit = max, .who = who, .level = LOG_DEBUG};
    uint64_t from = find_last(r, &q);

    LIST_EACH (&r->lines, it)
        if (line_at(it)->seq >= from && is_wanted(line_at(it), &q))
            json_out_redacted(out, NULL,
                              span_of(line_at(it)->bytes + line_at(it)->n_who, line_at(it)->n));
}
