/* The marks that bridges put into their lists, and finding servers that lead back to us. Called by
 * agent/introduction.c, agent/modern.c and legacy.c for agents that are bridges, by
 * server/handshake.c, server/lists.c and server/provider.c for servers. */
#include "mcp/circle.h"

#include "base/map.h"
#include "core/provider.h"

#include <inttypes.h>

#define KEY "io.rialto/bridges"

/* The most marks that a server may send: more are a mistake. Bytes of a mark, with its quotes. */
enum { MAX_MARKS = 1000, MARK_BYTES = 18 };

bool circle_is_bridge(struct span info)
{
    return info.n && json_string_is(json_get(info, "name").value, SPAN("rialto"));
}

/*
 * The mark of a server, or without a name the mark of this process. A mark changes with a restart
 * and is the same for all instances of a server. map_hash is keyed at random: nobody can guess a
 * mark or read the name from it.
 */
static void put_mark(struct buf *out, const char *alias)
{
    buf_printf(out, "\"%016" PRIx64 "\"", map_hash(span_str(alias)));
}

/* Is this raw value a mark as put_mark writes it? Other values are not passed on. */
static bool is_mark(struct span raw)
{
    for (size_t i = 1; i + 1 < raw.n; i++)
        if (!strchr("0123456789abcdef", raw.p[i]))
            return false;
    return raw.n == MARK_BYTES && raw.p[0] == '"';
}

/* --- as a server --- */

void circle_put_marks(struct buf *out, const struct view *v)
{
    struct map told = {0};
    const struct provider *p;

    buf_str(out, "\"" KEY "\":[");
    put_mark(out, "");
    for (size_t i = 0; (p = view_member(v, i)); i++) {
        /* An instance that was not started yet has no marks: use those of its stand-in. */
        bool known = p->bridges.n || !p->stand_in;
        struct json_iter it = json_iter(known ? p->bridges : p->stand_in->bridges);
        while (json_next(&it)) {
            if (map_put(&told, it.value, &told))
                continue;
            buf_char(out, ',');
            buf_span(out, it.value);
        }
    }
    buf_char(out, ']');
    map_fini(&told);
}

/* --- as a client --- */

static void set_marks(struct mcp_provider *p, struct span told)
{
    struct json_iter it = json_iter(told);

    p->marks.n = 0;
    buf_char(&p->marks, '[');
    put_mark(&p->marks, p->alias);
    while (json_next(&it)) {
        if (!is_mark(it.value))
            continue;
        buf_char(&p->marks, ',');
        buf_span(&p->marks, it.value);
    }
    buf_char(&p->marks, ']');
    p->core.bridges = buf_view(&p->marks);
}

void circle_greeted(struct mcp_provider *p)
{
    p->core.bridges = SPAN_EMPTY;
    if (p->info && circle_is_bridge(span_str(p->info)))
        set_marks(p, SPAN_EMPTY);
}

bool circle_found(struct mcp_provider *p, struct span result)
{
    BUF_SCOPED own = {0}, process = {0};
    size_t n = 0;
    bool back = false;

    if (!p->core.bridges.n)
        return false;
    struct span told = json_get(json_get(result, "_meta").value, KEY).value;
    struct json_iter it = json_iter(told);
    put_mark(&own, p->alias);
    if (p->discreet)
        put_mark(&process, "");
    while (!back && n <= MAX_MARKS && json_next(&it)) {
        back = span_eq(it.value, buf_view(&own)) || span_eq(it.value, buf_view(&process));
        n++;
    }
    bool found = back || n > MAX_MARKS;
    set_marks(p, found ? SPAN_EMPTY : told);
    p->core.retries_late = found;
    if (back)
        handshake_give_up(p,
                          "leads back to this bridge: remove '%.64s' here, or what leads to this "
                          "bridge behind it",
                          p->alias);
    else if (found)
        handshake_give_up(p, "leads to more than %d other bridges: remove '%.64s'", MAX_MARKS,
                          p->alias);
    return found;
}

void circle_fini(struct mcp_provider *p)
{
    buf_fini(&p->marks);
}
