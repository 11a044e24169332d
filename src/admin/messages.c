/* GET /api/servers/NAME/messages: the last messages of the connection to a server, secrets
 * redacted. Called by servers.c. */
#include "admin/inside.h"
#include "base/log.h"
#include "mcp/server/traffic.h"
#include "wire/json.h"
#include "wire/json_out.h"

/* Of a message that was cut, only its beginning can be shown, as text. */
static void put_message(struct buf *out, const struct admin *a, const struct traffic_message *m)
{
    BUF_SCOPED shown = {0};
    struct json_slot method = {0}, id = {0};

    log_redact(&shown, span_of(m->bytes, m->n));
    bool whole = m->whole == m->n && json_skim(buf_view(&shown), NULL, NULL, NULL, NULL) == 0;
    if (whole) {
        method = json_get(buf_view(&shown), "method");
        id = json_get(buf_view(&shown), "id");
    }
    json_out_open(out, NULL, '{');
    json_out_number(out, "n", m->number);
    json_out_open(out, "at", '"');
    status_put_stamp(out, status_unix(a, m->at));
    buf_char(out, '"');
    json_out_str(out, "way", m->in ? "in" : "out");
    json_out_str(out, "kind",
                 method.type != JSON_STRING ? "response"
                 : id.type == JSON_NONE     ? "notification"
                                            : "request");
    json_out_raw(out, "method", method.type == JSON_STRING ? method.value : SPAN("null"));
    json_out_raw(out, "id", id.type == JSON_NONE ? SPAN("null") : id.value);
    if (whole)
        json_out_raw(out, "body", buf_view(&shown));
    else
        json_out_text(out, "body", buf_view(&shown));
    json_out_bool(out, "cut", m->whole > m->n);
    buf_char(out, '}');
}

void messages_handle(struct admin *a, struct http_exchange *x, const struct http_request *req,
                     const struct provider *p)
{
    const struct mcp_provider *server = bridge_mcp_provider(p);
    const struct traffic *t = server ? mcp_provider_traffic(server) : NULL;
    const struct traffic_message *m = NULL;
    uint64_t limit = TRAFFIC_MOST;

    if (!admin_wants_get(x, req))
        return;
    if (!api_read_number(req, "limit", &limit)) {
        http_refuse(x, 400, "bad query", "limit takes a number");
        return;
    }
    struct buf *out = http_respond_begin(x, 200, "application/json", SPAN_EMPTY);
    buf_char(out, '[');
    for (uint64_t n = 0; t && n < limit && (m = traffic_before(t, m)); n++)
        put_message(out, a, m);
    buf_str(out, "]\n");
    http_respond_end(x);
}
