/* The table of the proxy dialects P0 to P3, and finding the dialect of a method or a word. Called
 * by words.c, greet.c, questions.c, command_line.c and cmd/conductor.c; hop.c reads the table. */
#include "acp/proxy_dialects.h"

#include "base/mem.h"
#include "wire/json.h"

const struct proxy_row proxy_rows[P_COUNT] = {
    [P0] = {"P0", "initialize", true, "_proxy/successor/send/request",
            "_proxy/successor/send/notification", "_proxy/successor/receive/request",
            "_proxy/successor/receive/notification"},
    [P1] = {"P1", "initialize", true, "_proxy/successor/request", "_proxy/successor/notification",
            "_proxy/successor/request", "_proxy/successor/notification"},
    [P2] = {"P2", "_proxy/initialize", false, "_proxy/successor", "_proxy/successor",
            "_proxy/successor", "_proxy/successor"},
    [P3] = {"P3", "proxy/initialize", false, "proxy/successor", "proxy/successor",
            "proxy/successor", "proxy/successor"},
};

/* P0 is missing: P0 and P1 ask the same question, and the first envelope tells the two apart. */
const enum proxy_dialect proxy_order[3] = {P3, P2, P1};

enum proxy_dialect proxy_dialect_of_envelope(struct span method)
{
    /* Hardly any message is an envelope: compare the beginning of the name first. */
    if (!(span_starts(method, SPAN("\"_proxy")) || span_starts(method, SPAN("\"proxy"))))
        return P_UNKNOWN;
    /* Newest first: most proxies speak the newest one; each name belongs to one dialect only. */
    for (int d = P_COUNT - 1; d >= P0; d--) {
        const char *const names[] = {
            proxy_rows[d].forward_request, proxy_rows[d].forward_notification,
            proxy_rows[d].deliver_request, proxy_rows[d].deliver_notification};
        for (size_t i = 0; i < COUNT_OF(names); i++)
            if (json_string_is(method, span_str(names[i])))
                return d;
    }
    return P_UNKNOWN;
}

enum proxy_dialect proxy_dialect_of_initialize(struct span method)
{
    for (enum proxy_dialect d = P0; d < P_COUNT; d++)
        if (!proxy_rows[d].offers && json_string_is(method, span_str(proxy_rows[d].initialize)))
            return d;
    return P_UNKNOWN;
}

enum proxy_dialect proxy_dialect_parse(struct span word)
{
    for (enum proxy_dialect d = P0; d < P_COUNT; d++)
        if (span_eq_nocase(word, span_str(proxy_rows[d].name)))
            return d;
    return P_UNKNOWN;
}
