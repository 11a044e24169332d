/* Params of a request with name and `_meta` replaced and all other members kept byte for byte.
 * Called by upstream_calls.c for calls to the server, by provider.c and notices.c for asks and
 * notifications of the server. */
#include "mcp/server/upstream.h"

static void put_meta(struct buf *out, const struct request *r, struct span own)
{
    buf_char(out, '{');
    buf_span(out, own);
    if (own.n && r->meta_keep.n)
        buf_char(out, ',');
    buf_span(out, r->meta_keep);
    buf_char(out, '}');
}

static void put_piece(struct buf *out, const struct request *r, size_t from, size_t to)
{
    buf_span(out, span_cut(r->params, from, to - from));
}

/* Put new members after the opening brace; returns where the rest of the params begins. */
static size_t put_front(struct buf *out, const struct request *r, struct span own_meta, bool meta,
                        struct span extra)
{
    size_t open = r->params.n ? span_find(r->params, '{') + 1 : 0;
    struct span rest = span_from(r->params, open);

    buf_char(out, '{');
    buf_span(out, extra);
    if (meta) {
        buf_str(out, extra.n ? ",\"_meta\":" : "\"_meta\":");
        put_meta(out, r, own_meta);
    }
    while (rest.n && strchr(" \t\r\n", rest.p[0]))
        rest = span_from(rest, 1);
    if (!rest.n)
        buf_char(out, '}');
    else if (rest.p[0] != '}')
        buf_char(out, ',');
    return open;
}

/* Replaces one member at a time, in the order in which the members occur. */
void params_put(struct buf *out, const struct request *r, struct span own_meta, struct span extra)
{
    bool rename =
        r->name_at.n && !json_string_is(span_cut(r->params, r->name_at.at, r->name_at.n), r->name);
    bool remeta = r->meta_at.n != 0;
    size_t at = 0;

    if (extra.n || (!remeta && own_meta.n))
        at = put_front(out, r, own_meta, !remeta && own_meta.n, extra);
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

/* The object without one of its members. */
static void put_without(struct buf *out, struct span object, struct span member)
{
    struct span before = span_trim(span_of(object.p, (size_t)(member.p - object.p)));
    struct span after = span_trim(span_from(object, (size_t)(member.p - object.p) + member.n));

    if (after.p[0] == ',')
        after = span_from(after, 1);
    else if (before.p[before.n - 1] == ',')
        before.n--;
    buf_span(out, before);
    buf_span(out, after);
}

void params_put_foreign(struct buf *out, const struct mcp_message *m)
{
    const struct json_slot *meta = &m->slots[SLOT_META];
    BUF_SCOPED keep = {0};

    mcp_put_foreign_meta(&keep, meta->value);
    if (!keep.n) {
        put_without(out, m->rpc.params, meta->member);
        return;
    }
    params_put(
        out,
        &(struct request){.params = m->rpc.params,
                          .meta_at = {(size_t)(meta->value.p - m->rpc.params.p), meta->value.n},
                          .meta_keep = buf_view(&keep)},
        SPAN_EMPTY, SPAN_EMPTY);
}
