/* /api/bus: the message bus; for a bus that we host, also its queues and its dead letters, which
 * can be sent again. Called by api.c; news.c asks for the digest. */
#include "admin/inside.h"
#include "base/log.h"
#include "bus/broker.h"
#include "wire/json_out.h"

#include <errno.h>

static void put_queues(struct buf *out, const struct broker *b)
{
    struct broker_queue q;
    size_t at = 0;

    json_out_open(out, "queues", '[');
    while (b && broker_next_queue(b, &at, &q)) {
        BUF_SCOPED name = {0};
        buf_printf(&name, SPAN_FMT " " SPAN_FMT, SPAN_ARG(q.group), SPAN_ARG(q.pattern));
        json_out_open(out, NULL, '{');
        json_out_redacted(out, "name", buf_view(&name));
        json_out_number(out, "waiting", q.messages);
        json_out_number(out, "bytes", q.bytes);
        json_out_number(out, "subscribers", q.subscribers);
        buf_char(out, '}');
    }
    buf_char(out, ']');
}

static void put_letters(struct buf *out, const struct broker *b)
{
    struct dead_letter d = {0};

    json_out_open(out, "dead_letters", '[');
    while (b && broker_dead_letter(b, d.number, &d)) {
        BUF_SCOPED id = {0};
        buf_u64(&id, d.number);
        json_out_open(out, NULL, '{');
        json_out_text(out, "id", buf_view(&id));
        json_out_open(out, "at", '"');
        status_put_stamp(out, d.at_ms);
        buf_char(out, '"');
        json_out_redacted(out, "topic", d.topic);
        json_out_redacted(out, "queue", d.group);
        json_out_redacted(out, "type", d.message.type);
        json_out_str(out, "reason", d.why);
        json_out_number(out, "bytes", d.message.body.n);
        buf_char(out, '}');
    }
    buf_char(out, ']');
}

/* The worker of `first`: its servers, the number of their tools, and when it was last heard of. */
static void put_worker(struct buf *out, const struct admin *a, const struct bus_proxy *x,
                       const struct bus_proxy_server *first)
{
    struct bus_proxy_server s;
    size_t at = 0, tools = 0;
    uint64_t last = 0;

    json_out_open(out, NULL, '{');
    json_out_redacted(out, "name", span_str(first->worker));
    json_out_open(out, "servers", '[');
    while (bus_proxy_next(x, &at, &s)) {
        if (strcmp(s.worker, first->worker) != 0)
            continue;
        json_out_redacted(out, NULL, span_str(s.alias));
        tools += s.tools;
        last = s.heard_at > last ? s.heard_at : last;
    }
    buf_char(out, ']');
    json_out_number(out, "tools", tools);
    status_put_time(out, "last_seen", a, last);
    buf_char(out, '}');
}

/* The workers whose announcements the proxy has heard. */
static void put_workers(struct buf *out, const struct admin *a, const struct bus_proxy *x)
{
    struct bus_proxy_server s;
    struct map seen = {0};
    size_t at = 0;

    json_out_open(out, "workers", '[');
    while (x && bus_proxy_next(x, &at, &s))
        if (!map_put(&seen, span_str(s.worker), &seen))
            put_worker(out, a, x, &s);
    buf_char(out, ']');
    map_fini(&seen);
}

/* A text that changes when /api/bus does: pages are told to fetch it again. */
void buses_put_digest(struct buf *out, const struct admin *a)
{
    struct bus_report r = {0};
    struct bus_proxy_server s;
    size_t at = 0;

    if (!hub_look_at_bus(a->hub, &r))
        return;
    buf_printf(out, "%d", r.up);
    while (r.proxy && bus_proxy_next(r.proxy, &at, &s))
        buf_printf(out, " %s %s %zu", s.worker, s.alias, s.tools);
    put_queues(out, r.broker);
    put_letters(out, r.broker);
}

static void show(struct http_exchange *x, const struct admin *a, const struct bus_report *r)
{
    struct buf *out = http_respond_begin(x, 200, "application/json", SPAN_EMPTY);

    buf_char(out, '{');
    json_out_redacted(out, "url", span_str(r->where));
    json_out_str(out, "role", r->worker && r->proxy ? "both" : r->worker ? "worker" : "proxy");
    json_out_str(out, "state", r->up ? "up" : "down");
    json_out_bool(out, "hosted", r->broker != NULL);
    json_out_number(out, "remote_servers", r->servers);
    put_workers(out, a, r->proxy);
    put_queues(out, r->broker);
    put_letters(out, r->broker);
    buf_str(out, "}\n");
    http_respond_end(x);
}

static void resend(struct http_exchange *x, const struct bus_report *r, const struct api_path *path)
{
    uint64_t number = 0;

    if (!r->broker) {
        http_refuse(x, 409, "this Rialto does not host the bus",
                    "dead letters of other brokers are sent again with their own tools");
        return;
    }
    int code = api_read_id(path->verb, &number) ? broker_resend(r->broker, number) : -ENOENT;
    if (code == -ENOENT) {
        http_refuse(x, 404, "no such dead letter, or not any more", "/api/bus lists them");
    } else if (code) {
        http_refuse(x, 409, "a queue is full", "try again later");
    } else {
        log_info("bus", "dead letter " SPAN_FMT " sent again, by %s", SPAN_ARG(path->verb),
                 path->caller->principal ? path->caller->principal->name : http_exchange_peer(x));
        http_respond(x, 200, "application/json", SPAN_EMPTY, SPAN("{}\n"));
    }
}

void buses_handle(struct admin *a, struct http_exchange *x, const struct http_request *req,
                  const struct api_path *path)
{
    struct bus_report r = {0};
    bool letters = span_is(path->name, "dead-letters") && span_is(path->last, "resend");

    if (path->name.n && !letters)
        api_no_such_path(x);
    else if (!hub_look_at_bus(a->hub, &r))
        http_refuse(x, 404, "there is no bus", "set 'bus' in the configuration");
    else if (letters && api_wants_post(x, req))
        resend(x, &r, path);
    else if (!letters && admin_wants_get(x, req))
        show(x, a, &r);
}
