#include "admin/inside.h"

#include "base/log.h"
#include "wire/json.h"

enum server_health health_of(const struct provider *p)
{
    if (p->halted)
        return SERVER_STOPPED;
    if (p->state == PROVIDER_READY)
        return SERVER_UP;
    if (p->why[0])
        return SERVER_FAILING; /* also while it is being tried again */
    if (p->state == PROVIDER_STARTING || p->wanted_again)
        return SERVER_STARTING;
    return p->rests || !p->policy.eager ? SERVER_IDLE : SERVER_STOPPED;
}

const char *health_word(enum server_health h)
{
    static const char *const words[] = {
        [SERVER_UP] = "up",           [SERVER_IDLE] = "idle",       [SERVER_STARTING] = "starting",
        [SERVER_FAILING] = "failing", [SERVER_STOPPED] = "stopped",
    };

    return words[h];
}

static bool is_missing(const struct provider *p)
{
    enum server_health h = health_of(p);

    return h == SERVER_STARTING || h == SERVER_FAILING;
}

enum overall health_overall(const struct admin *a, bool strict)
{
    size_t usable = 0, missing = 0;
    const struct provider *p;

    for (size_t i = 0; (p = a->host.server(a->host.arg, i)); i++) {
        missing += is_missing(p);
        usable += health_of(p) == SERVER_UP || health_of(p) == SERVER_IDLE;
    }
    if (!missing)
        return OVERALL_OK;
    return strict || !usable ? OVERALL_DOWN : OVERALL_DEGRADED;
}

const char *overall_word(enum overall o)
{
    static const char *const words[] = {
        [OVERALL_OK] = "ok", [OVERALL_DEGRADED] = "degraded", [OVERALL_DOWN] = "down"};

    return words[o];
}

void health_put_members(struct buf *out, const struct admin *a, bool strict, bool with_reasons)
{
    const struct provider *p;
    const char *comma = "";

    buf_printf(out, "\"status\":\"%s\",\"reasons\":[", overall_word(health_overall(a, strict)));
    for (size_t i = 0; (p = a->host.server(a->host.arg, i)); i++) {
        if (!is_missing(p))
            continue;
        struct buf why = {0};
        log_redact(&why, span_str(p->why[0] ? p->why : "it has not come up yet"));
        buf_printf(out, "%s{\"server\":", comma);
        json_quote(out, span_str(p->alias));
        buf_printf(out, ",\"state\":\"%s\"", health_word(health_of(p)));
        if (with_reasons) {
            buf_str(out, ",\"reason\":");
            json_quote(out, buf_view(&why));
        }
        buf_char(out, '}');
        buf_fini(&why);
        comma = ",";
    }
    buf_char(out, ']');
}
