/* The callers that have no session, found in the records of their last calls: agents of the
 * stateless era, of BTCP and of the bus. Called by sessions.c and news.c. */
#include "admin/inside.h"
#include "admin/story.h"
#include "base/log.h"
#include "mcp/protocol.h"
#include "wire/json.h"
#include "wire/json_out.h"

#include <inttypes.h>

enum { LOOK_BACK = 10 * 60 * 1000 /* ms */, RECORDS_MAX = 2000, CALLERS_MAX = 100 };

/* Calls with the same client, token and way. */
struct stateless {
    uint64_t id;               /* digest of these three */
    const struct record *last; /* its newest call */
    uint64_t since, calls, open;
};

static uint64_t id_of(const struct record *rec, struct span client)
{
    BUF_SCOPED key = {0};

    buf_span(&key, client);
    buf_char(&key, '\0');
    buf_span(&key, rec->token);
    buf_char(&key, '\0');
    buf_span(&key, rec->way);
    return map_hash(buf_view(&key));
}

static void count(struct stateless *found, size_t *n, const struct record *rec, uint64_t id)
{
    size_t i = 0;

    while (i < *n && found[i].id != id)
        i++;
    if (i == CALLERS_MAX)
        return;
    if (i == *n)
        found[(*n)++] = (struct stateless){.id = id, .last = rec};
    found[i].since = rec->opened_at;
    found[i].calls++;
    found[i].open += !rec->ended;
}

/* Newest first. Calls that operators made again (replay.c) are left out. */
static size_t find(struct stateless *found, const struct admin *a)
{
    uint64_t now = router_timers(a->router)->now;
    const struct record *rec = NULL;
    size_t n = 0;

    for (size_t seen = 0; (rec = recorder_next(&a->recorder, rec)) && seen < RECORDS_MAX; seen++) {
        if (now - rec->opened_at > LOOK_BACK)
            break;
        if (!rec->session.n && rec->way.n && !span_is(rec->way, "replay"))
            count(found, &n, rec, id_of(rec, calls_client(a, rec)));
    }
    return n;
}

static void put(struct buf *out, const struct admin *a, const struct stateless *s)
{
    struct span way = s->last->way;
    bool http = way.p[0] == '/', mcp = http || span_is(way, "stdio");
    BUF_SCOPED id = {0};

    buf_printf(&id, "stateless-%016" PRIx64, s->id);
    json_out_open(out, NULL, '{');
    json_out_text(out, "id", buf_view(&id));
    calls_put_client(out, a, s->last);
    json_out_str(out, "era", "stateless");
    json_out_text_or_null(out, "protocol", mcp ? SPAN(MCP_MODERN) : SPAN_EMPTY);
    json_out_text(out, "way", http ? SPAN("http") : way);
    json_out_text_or_null(out, "token", s->last->token);
    json_out_raw(out, "view", SPAN("null"));
    json_out_text_or_null(out, "endpoint", http ? way : SPAN_EMPTY);
    status_put_time(out, "since", a, s->since);
    status_put_time(out, "last", a, s->last->opened_at);
    json_out_number(out, "calls", s->calls);
    json_out_number(out, "open", s->open);
    buf_char(out, '}');
}

void stateless_put(struct buf *out, const struct admin *a)
{
    struct stateless found[CALLERS_MAX];
    size_t n = find(found, a);

    for (size_t i = 0; i < n; i++)
        put(out, a, &found[i]);
}

void stateless_put_digest(struct buf *out, const struct admin *a)
{
    struct stateless found[CALLERS_MAX];
    size_t n = find(found, a);

    for (size_t i = 0; i < n; i++)
        buf_printf(out, "%016" PRIx64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " ", found[i].id,
                   found[i].last->id, found[i].calls, found[i].open);
}
