#include "mcp/upstream.h"

static void put_meta(struct buf *out, const struct request *r, struct span own)
{
    buf_char(out, '{');
    buf_span(out, own);
    if (own.n && r->meta_keep.n)
        buf_char(out, ',');
    mcp_put_raw(out, r->meta_keep);
    buf_char(out, '}');
}

static void put_piece(struct buf *out, const struct request *r, size_t from, size_t to)
{
    mcp_put_raw(out, span_cut(r->params, from, to - from));
}

/* No `_meta` in the params, but one is needed: it goes to the front. */
static size_t put_new_meta(struct buf *out, const struct request *r, struct span own)
{
    size_t open = span_find(r->params, '{') + 1;
    struct span rest = span_from(r->params, open);

    buf_str(out, "{\"_meta\":");
    put_meta(out, r, own);
    while (rest.n && strchr(" \t\r\n", rest.p[0]))
        rest = span_from(rest, 1);
    if (rest.n && rest.p[0] != '}')
        buf_char(out, ',');
    return open;
}

/* One replaced member at a time, in the order in which they stand. */
void upstream_put_params(struct buf *out, const struct request *r, struct span own_meta)
{
    bool rename =
        r->name_at.n && !json_string_is(span_cut(r->params, r->name_at.at, r->name_at.n), r->name);
    bool remeta = r->meta_at.n != 0;
    size_t at = 0;

    if (!remeta && own_meta.n)
        at = put_new_meta(out, r, own_meta);
    for (int pass = 0; pass < 2; pass++) {
        bool name_first = !remeta || (rename && r->name_at.at < r->meta_at.at);
        if (rename && name_first) {
            put_piece(out, r, at, r->name_at.at);
            json_quote(out, r->name);
            at = r->name_at.at + r->name_at.n;
            rename = false;
        } else if (remeta) {
            put_piece(out, r, at, r->meta_at.at);
            put_meta(out, r, own_meta);
            at = r->meta_at.at + r->meta_at.n;
            remeta = false;
        }
    }
    put_piece(out, r, at, r->params.n);
}
