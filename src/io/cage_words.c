/* A cage in words: what this kernel lacks for it, and what it refused according to the output of a
 * program. Pure. Called by cage.c, hub/graph/sandbox.c, cmd/sandbox.c, cmd/learn.c and
 * mcp/server/stdio_upstream.c. */
#include "io/cage.h"

#include "base/ascii.h"
#include "base/mem.h"

#include <inttypes.h>

/* --- what is lacking --- */

static void put_lack(struct buf *out, const char *what)
{
    buf_printf(out, "%s%s", out->n ? "; " : "", what);
}

void cage_put_lacks(struct buf *out, const struct cage_rules *rules,
                    const struct cage_kernel *kernel)
{
    if (!kernel->landlock)
        put_lack(out, "rules for files (Landlock: Linux 5.13, and landlock in lsm=)");
    else if (kernel->landlock < 3)
        put_lack(out, "against emptying files (Landlock ABI 3: Linux 6.2)");
    if (rules->network == CAGE_PORTS && kernel->landlock < 4)
        put_lack(out, "rules for ports (Landlock ABI 4: Linux 6.7)");
    if (kernel->landlock < 6)
        put_lack(out, rules->network == CAGE_OPEN
                          ? "against signals and abstract sockets (Landlock ABI 6: Linux 6.12)"
                          : "against signals (Landlock ABI 6: Linux 6.12)");
    if (!kernel->filter)
        put_lack(out, "a filter of system calls (seccomp)");
    if (rules->processes && !kernel->group_pids && !kernel->own_count)
        put_lack(out, "a count of one server's processes (user namespaces, or a control group; for "
                      "root only the latter)");
}

/* --- what was refused --- */

bool cage_path_in(struct span path, struct span folder)
{
    if (folder.n == 1)
        return true; /* "/" */
    return span_starts(path, folder) && (path.n == folder.n || path.p[folder.n] == '/');
}

bool cage_allows(const struct cage_rules *rules, struct span path, unsigned may)
{
    unsigned own = CAGE_READ | CAGE_WRITE | (rules->runs_what_it_writes ? CAGE_RUN : 0);
    unsigned got = rules->own && cage_path_in(path, span_str(rules->own)) ? own : 0;

    for (size_t i = 0; i < rules->n_paths; i++)
        if (cage_path_in(path, span_str(rules->paths[i].path)))
            got |= rules->paths[i].may;
    return (got & may) == may;
}

bool cage_is_refusal(struct span line)
{
    static const char *const words[] = {"permission denied", "EACCES", "EPERM",
                                        "operation not permitted"};

    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (span_has_nocase(line, span_str(words[i])))
            return true;
    return false;
}

/* The next path in the line: it begins with a slash after a blank, a quote or a bracket. Empty at
 * the end. `line` is moved behind the path. */
static struct span next_path(struct span *line)
{
    char before = ' ';

    while (line->n) {
        bool begins =
            line->p[0] == '/' && memchr(" '\"`(=[<", before, 8) && line->n > 1 && line->p[1] != '/';
        if (begins) {
            size_t n = 0;
            bool quoted = memchr("'\"`", before, 3) != NULL;
            while (n < line->n &&
                   (quoted ? line->p[n] != before : !memchr(" ,;:)>'\"", line->p[n], 8)))
                n++;
            struct span path = span_cut(*line, 0, n);
            *line = span_from(*line, n);
            return path;
        }
        before = line->p[0];
        *line = span_from(*line, 1);
    }
    return SPAN_EMPTY;
}

/* The port in "connect EACCES 192.0.2.1:443 - Local (...)", as node says it; 0 = none. */
static unsigned port_in(struct span line)
{
    static const char *const words[] = {"connect EACCES ", "connect EPERM "};
    unsigned port = 0;

    for (size_t i = 0; i < COUNT_OF(words); i++) {
        const char *at = memmem(line.p, line.n, words[i], strlen(words[i]));
        if (!at)
            continue;
        struct span address = span_from(line, (size_t)(at - line.p) + strlen(words[i]));
        address = span_cut(address, 0, span_find(address, ' '));
        for (size_t k = 0; k < address.n; k++)
            port = address.p[k] == ':'            ? 0
                   : ascii_is_digit(address.p[k]) ? port * 10 + (unsigned)(address.p[k] - '0')
                                                  : port;
    }
    return port <= UINT16_MAX ? port : 0;
}

/* The remedy for a level ("light", "strict") is a map. A map begins closed, so it must also name
 * the network if the level left that open. */
static void put_remedy(struct buf *out, const struct cage_rules *rules, const char *key,
                       const char *value)
{
    if (strcmp(rules->level, "map") == 0)
        buf_printf(out, "%s: %s", key, value);
    else
        buf_printf(out, "sandbox: {%s%s: %s}", rules->network == CAGE_OPEN ? "network: all, " : "",
                   key, value);
}

void cage_blame(const struct cage_rules *rules, struct span line, struct buf *refused,
                struct buf *remedy)
{
    BUF_SCOPED value = {0};
    unsigned port = rules->network == CAGE_OPEN ? 0 : port_in(line);

    if (port) {
        buf_printf(refused, "connections to port %u", port);
        buf_printf(&value, "[%u]", port);
        put_remedy(remedy, rules, "network", buf_cstr(&value));
        return;
    }
    for (struct span path; (path = next_path(&line)).n;) {
        bool read = cage_allows(rules, path, CAGE_READ);
        if (read && cage_allows(rules, path, CAGE_WRITE))
            continue;
        buf_span(refused, path);
        buf_printf(&value, "[" SPAN_FMT "]", SPAN_ARG(path));
        put_remedy(remedy, rules, read ? "write" : "read", buf_cstr(&value));
        return;
    }
}
