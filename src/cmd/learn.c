/* From lines of strace to a proposed sandbox: files that were opened, made or removed, and ports.
 * Called by sandbox.c. */
#include "cmd/learn.h"

#include "base/ascii.h"
#include "base/mem.h"
#include "wire/json.h"

const char *const learn_strace[] = {"strace", "-ff", "-qq",         "-yy", "-s",
                                    "4096",   "-e",  "signal=none", "-e",  "trace=%file,%network",
                                    "-o",     NULL};

enum { FOUND_MAX = 4096 };

/* --- one line --- */

static struct span between(struct span text, const char *before, const char *ends)
{
    const char *at = text.n ? memmem(text.p, text.n, before, strlen(before)) : NULL;
    size_t n = 0;

    if (!at)
        return SPAN_EMPTY;
    struct span rest = span_from(text, (size_t)(at - text.p) + strlen(before));
    while (n < rest.n && !strchr(ends, rest.p[n]))
        n++;
    return span_cut(rest, 0, n);
}

static bool has(struct span text, const char *part)
{
    return text.n && memmem(text.p, text.n, part, strlen(part));
}

static bool is_one_of(struct span name, const char *const *names)
{
    for (; *names; names++)
        if (span_is(name, *names))
            return true;
    return false;
}

/*
 * The rule for a file that was used covers its folder, and for a file in node_modules all of that:
 * the next start may use other files there. A file directly in the root, in the home folder or in a
 * parent of the home folder is covered alone.
 */
static struct span widen(const struct learn *l, struct span path, bool write)
{
    static const char packages[] = "/node_modules";
    const char *at = memmem(path.p, path.n, packages, strlen(packages));
    struct span folder = path;

    if (at && !write)
        return span_cut(path, 0, (size_t)(at - path.p) + strlen(packages));
    while (folder.n && folder.p[folder.n - 1] != '/')
        folder.n--;
    folder.n -= folder.n > 0;
    bool wide = !folder.n || (l->rules->home && cage_path_in(span_str(l->rules->home), folder));
    return wide ? path : folder;
}

static void find(struct learn *l, struct span path, bool write)
{
    unsigned may = write ? CAGE_READ | CAGE_WRITE : CAGE_READ | CAGE_RUN;

    bool temporary = span_starts(path, SPAN("/tmp/")) &&
                     !(l->rules->home && cage_path_in(path, span_str(l->rules->home)));

    /* In a sandbox the server has its own TMPDIR, so temporary files need no rule. */
    if (!path.n || path.p[0] != '/' || temporary ||
        cage_allows(l->rules, path, write ? CAGE_WRITE : CAGE_READ) || l->found.n == FOUND_MAX)
        return;
    for (size_t i = 0; i < l->files.n && !write; i++)
        if (span_is(path, l->files.items[i].path))
            return;
    struct span wider = widen(l, path, write);
    for (size_t i = 0; i < l->found.n; i++)
        if (cage_path_in(wider, span_str(l->found.items[i].path)) &&
            (l->found.items[i].may & may) == may)
            return;
    char *text = mem_span(wider);
    cage_list_add(&l->found, text, may);
    mem_free(text);
}

/* The same for a path from an argument, which may be relative. */
static void find_given(struct learn *l, struct span path, bool write)
{
    BUF_SCOPED whole = {0};

    if (path.n && path.p[0] != '/')
        buf_printf(&whole, "%s/", l->cwd);
    buf_span(&whole, path);
    find(l, buf_view(&whole), write);
}

static void find_socket(struct learn *l, struct span line, struct span name)
{
    struct span digits = between(line, "_port=htons(", ")");
    uint64_t port = 0;

    l->unix_sockets |= span_is(name, "connect") && has(line, "AF_UNIX") && !has(line, "ENOENT");
    if (!digits.n || !ascii_number(digits, &port) || port > UINT16_MAX)
        return;
    if (!span_is(name, "connect") || !has(line, "<TCP")) {
        l->whole_network = true; /* a bind, or a send without a connection */
        return;
    }
    for (size_t i = 0; i < l->ports.n; i++)
        if (l->ports.items[i] == port)
            return;
    if (l->ports.n < COUNT_OF(l->ports.items))
        l->ports.items[l->ports.n++] = (uint16_t)port;
    else
        l->whole_network = true;
}

void learn_line(struct learn *l, struct span line)
{
    static const char *const opens[] = {"open", "openat", "openat2", "creat", NULL};
    static const char *const changes[] = {
        "mkdir",   "mkdirat",   "unlink", "unlinkat", "rename", "renameat", "renameat2", "rmdir",
        "symlink", "symlinkat", "link",   "linkat",   "mknod",  "mknodat",  "truncate",  NULL};
    static const char *const sockets[] = {"connect", "bind", "sendto", "sendmsg", NULL};
    struct span name = span_cut(line, 0, span_find(line, '('));

    if (is_one_of(name, sockets))
        find_socket(l, line, name);
    else if (has(line, ") = -1 ") || has(line, " = -1 E"))
        return;
    else if (is_one_of(name, opens)) {
        /* strace shows the returned descriptor with its path, symbolic links resolved. */
        const char *end = line.n ? memrchr(line.p, '=', line.n) : NULL;
        bool write = span_is(name, "creat") || has(line, "O_WRONLY") || has(line, "O_RDWR") ||
                     has(line, "O_CREAT");
        if (end)
            find(l, between(span_from(line, (size_t)(end - line.p)), "<", "<>"), write);
    } else if (span_is(name, "execve")) {
        find_given(l, between(line, "\"", "\""), false);
    } else if (is_one_of(name, changes)) {
        find_given(l, between(line, "\"", "\""), true);
    }
}

/* --- the proposal --- */

static void put_paths(struct buf *out, const struct learn *l, const char *key, bool write,
                      int indent)
{
    size_t n = 0;

    for (size_t i = 0; i < l->found.n; i++) {
        struct span path = span_str(l->found.items[i].path);
        bool covered = !!(l->found.items[i].may & CAGE_WRITE) != write;
        for (size_t k = 0; k < l->found.n && !covered; k++)
            covered = k != i && l->found.items[k].may == l->found.items[i].may &&
                      cage_path_in(path, span_str(l->found.items[k].path)) &&
                      (path.n > strlen(l->found.items[k].path) || k < i);
        if (covered)
            continue;
        if (!n++)
            buf_printf(out, "%*s%s:\n", indent, "", key);
        buf_printf(out, "%*s- ", indent + 2, "");
        json_quote(out, path);
        buf_char(out, '\n');
    }
}

void learn_put(struct buf *out, const struct learn *l, int indent)
{
    size_t before = out->n;

    put_paths(out, l, "read", false, indent);
    put_paths(out, l, "write", true, indent);
    if (l->whole_network) {
        buf_printf(out, "%*snetwork: all\n", indent, "");
    } else if (l->ports.n) {
        buf_printf(out, "%*snetwork: [", indent, "");
        for (size_t i = 0; i < l->ports.n; i++)
            buf_printf(out, "%s%u", i ? ", " : "", l->ports.items[i]);
        buf_str(out, "]\n");
    }
    if (out->n == before)
        buf_printf(out, "%*snetwork: none\n", indent, "");
}

void learn_fini(struct learn *l)
{
    cage_list_fini(&l->found);
    cage_list_fini(&l->files);
}
