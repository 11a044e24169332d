/* The counts of the bus worker and the state of the bus, as a member of the status and as metrics.
 * Called by status.c and metrics.c. */
#include "admin/inside.h"
#include "wire/json_out.h"

#include <inttypes.h>
#include <stddef.h>

/* The worker's counts: members of the status by these names, metrics with a prefix. */
static const struct {
    const char *name, *help;
    size_t at;
} counts[] = {
#define COUNT(member, text)                                                                        \
    {                                                                                              \
#member, text, offsetof(struct bus_worker_counts, member)                                  \
    }
    COUNT(invokes, "Tool calls that came over the bus."),
    COUNT(replies, "Replies that the bus has confirmed, errors included."),
    COUNT(errors, "Calls that were answered with a ToolError."),
    COUNT(unsent, "Replies that could not be sent in time."),
    COUNT(foreign, "Messages of agents that this worker does not serve."),
    COUNT(elsewhere, "Calls of servers that other workers have."),
    COUNT(duplicates, "Messages that came again and were not acted on twice."),
    COUNT(stale, "Calls nobody waited for any more."),
    COUNT(dead, "Messages nobody can read."),
    COUNT(managed, "Management requests that were answered."),
    COUNT(announced, "Announcements of servers."),
#undef COUNT
};

static uint64_t count_at(const struct bus_worker_counts *c, size_t i)
{
    uint64_t n;

    memcpy(&n, (const char *)c + counts[i].at, sizeof n);
    return n;
}

static bool look(const struct admin *a, struct bus_report *r)
{
    *r = (struct bus_report){0};
    return hub_look_at_bus(a->hub, r);
}

void bus_numbers_put_status(struct buf *out, const struct admin *a)
{
    struct bus_report r;

    if (!look(a, &r)) {
        json_out_raw(out, "bus", SPAN("null"));
        return;
    }
    json_out_open(out, "bus", '{');
    json_out_str(out, "where", r.where);
    json_out_bool(out, "up", r.up);
    json_out(out, "worker");
    buf_str(out, r.worker ? "{" : "null");
    for (size_t i = 0; r.worker && i < sizeof counts / sizeof counts[0]; i++)
        json_out_number(out, counts[i].name, count_at(r.worker, i));
    buf_str(out, r.worker ? "}" : "");
    json_out(out, "proxy");
    if (r.proxy)
        buf_printf(out, "{\"servers\":%zu}}", r.servers);
    else
        buf_str(out, "null}");
}

static void put_one(struct buf *out, const char *name, const char *type, const char *help,
                    uint64_t n)
{
    buf_printf(out, "# HELP rialto_bus_%s %s\n# TYPE rialto_bus_%s %s\nrialto_bus_%s %" PRIu64 "\n",
               name, help, name, type, name, n);
}

void bus_numbers_put_metrics(struct buf *out, const struct admin *a)
{
    struct bus_report r;
    BUF_SCOPED name = {0};

    if (!look(a, &r))
        return;
    put_one(out, "up", "gauge", "Whether the message bus is connected.", r.up);
    if (r.proxy)
        put_one(out, "remote_servers", "gauge", "Servers elsewhere that the proxy knows.",
                r.servers);
    for (size_t i = 0; r.worker && i < sizeof counts / sizeof counts[0]; i++) {
        name.n = 0;
        buf_printf(&name, "%s_total", counts[i].name);
        put_one(out, buf_cstr(&name), "counter", counts[i].help, count_at(r.worker, i));
    }
}
