/* GET /api/logs: reads the query (after, limit, level, server) and answers with lines of the log
 * ring. Called by api.c. */
#include "admin/inside.h"

enum { SHOWN = 200, SHOWN_MAX = 10000 };

static bool read_level(const struct http_request *req, enum log_level *level)
{
    BUF_SCOPED scratch = {0}, word = {0};
    struct span text = http_query(req->query, "level", &scratch);

    buf_span(&word, text);
    return !text.p || log_level_parse(buf_cstr(&word), level);
}

/* The name of the server in `q` points into `scratch`. */
static bool read_question(const struct http_request *req, struct log_question *q,
                          struct buf *scratch)
{
    uint64_t limit = SHOWN, none = UINT64_MAX;

    *q = (struct log_question){.level = LOG_DEBUG, .after = none};
    if (!api_read_number(req, "limit", &limit) || !api_read_number(req, "after", &q->after) ||
        !read_level(req, &q->level) || limit > SHOWN_MAX)
        return false;
    q->has_after = q->after != none;
    q->limit = limit;
    q->who = http_query(req->query, "server", scratch);
    return true;
}

void logs_handle(struct admin *a, struct http_exchange *x, const struct http_request *req,
                 const struct api_path *path)
{
    BUF_SCOPED scratch = {0};
    struct log_question q;

    if (path->name.n) {
        api_no_such_path(x);
    } else if (!admin_wants_get(x, req)) {
        return;
    } else if (!a->log.keep) {
        http_refuse(x, 404, "the log is not kept", "set 'log.keep' in the configuration: 256KiB");
    } else if (!read_question(req, &q, &scratch)) {
        http_refuse(x, 400, "bad query",
                    "limit (at most 10000) and after take numbers; server a name; level is error, "
                    "warn, info or debug");
    } else {
        struct buf *out = http_respond_begin(x, 200, "application/json", SPAN_EMPTY);
        log_ring_put(out, &a->log, &q);
        buf_char(out, '\n');
        http_respond_end(x);
    }
}
