/* Comparing two texts by their lines. Called by admin/replay.c. */
#include "base/line_diff.h"

#include "base/mem.h"

/* Lines shown around a difference, and the largest table that put_middle may use. */
enum { AROUND = 3, TABLE_MAX = 1 << 20 };

struct text_lines {
    struct span *line;
    size_t n;
};

static struct text_lines split(struct span text)
{
    struct text_lines all = {0};
    size_t n = 1;

    for (size_t i = 0; i < text.n; i++)
        n += text.p[i] == '\n';
    all.line = MEM_ARRAY(struct span, n);
    while (text.n) {
        size_t end = span_find(text, '\n');
        all.line[all.n++] = span_cut(text, 0, end);
        text = span_from(text, end + 1);
    }
    return all;
}

static void put_lines(struct buf *out, char sign, const struct span *line, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        buf_char(out, sign);
        buf_span(out, line[i]);
        buf_char(out, '\n');
    }
}

/* `run[i * (m + 1) + k]`: the length of the longest common subsequence of the lines of `a` from i
 * on and of `b` from k on. */
static void put_middle(struct buf *out, const struct span *a, size_t n, const struct span *b,
                       size_t m)
{
    size_t wide = m + 1, i = 0, k = 0;
    uint32_t *run = MEM_ARRAY(uint32_t, (n + 1) * wide);

    memset(run, 0, (n + 1) * wide * sizeof *run);
    for (size_t x = n; x-- > 0;)
        for (size_t y = m; y-- > 0;) {
            uint32_t down = run[(x + 1) * wide + y], right = run[x * wide + y + 1];
            run[x * wide + y] = span_eq(a[x], b[y]) ? run[(x + 1) * wide + y + 1] + 1
                                : down > right      ? down
                                                    : right;
        }
    while (i < n || k < m) {
        if (i < n && k < m && span_eq(a[i], b[k])) {
            put_lines(out, ' ', &a[i++], 1);
            k++;
        } else if (i < n && (k == m || run[(i + 1) * wide + k] >= run[i * wide + k + 1])) {
            put_lines(out, '-', &a[i++], 1);
        } else {
            put_lines(out, '+', &b[k++], 1);
        }
    }
    mem_free(run);
}

void line_diff_put(struct buf *out, struct span before, struct span after)
{
    struct text_lines a = split(before), b = split(after);
    size_t head = 0, tail = 0;

    while (head < a.n && head < b.n && span_eq(a.line[head], b.line[head]))
        head++;
    while (head + tail < a.n && head + tail < b.n &&
           span_eq(a.line[a.n - 1 - tail], b.line[b.n - 1 - tail]))
        tail++;
    size_t n = a.n - head - tail, m = b.n - head - tail;
    if (n || m) {
        size_t lead = head < AROUND ? head : AROUND, rest = tail < AROUND ? tail : AROUND;
        put_lines(out, ' ', a.line + head - lead, lead);
        if ((n + 1) <= TABLE_MAX / (m + 1)) {
            put_middle(out, a.line + head, n, b.line + head, m);
        } else {
            put_lines(out, '-', a.line + head, n);
            put_lines(out, '+', b.line + head, m);
        }
        put_lines(out, ' ', a.line + a.n - tail, rest);
    }
    mem_free(a.line);
    mem_free(b.line);
}
