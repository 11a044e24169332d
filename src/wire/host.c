/* Names of hosts and their ports in Host and Origin headers. Called by url.c, hub/front.c,
 * hub/hub.c and hub/signin/callback.c, and for addresses in configurations by config/check*.c and
 * cmd/host_setup_plan.c. */
#include "wire/host.h"

#include "base/ascii.h"

struct span host_name(struct span authority)
{
    if (authority.n && authority.p[0] == '[')
        return span_cut(authority, 0, span_find(authority, ']') + 1);
    return span_cut(authority, 0, span_find(authority, ':'));
}

bool host_is_loopback(struct span name)
{
    if (span_eq_nocase(name, SPAN("localhost")) || span_is(name, "[::1]"))
        return true;
    if (!span_starts(name, SPAN("127.")))
        return false;
    /* All of the name must be an address: 127.0.0.1.evil.example is not. */
    for (size_t i = 0; i < name.n; i++)
        if (name.p[i] != '.' && !ascii_is_digit(name.p[i]))
            return false;
    return true;
}

/* The port: the text behind the host name and the colon. */
static struct span port_of(struct span authority)
{
    return span_from(authority, host_name(authority).n + 1);
}

bool host_matches(struct span authority, struct span allowed, struct span usual)
{
    struct span port = port_of(authority), wanted = port_of(allowed);

    return span_eq_nocase(host_name(authority), host_name(allowed)) &&
           (!wanted.n || span_eq(port.n ? port : usual, wanted));
}
