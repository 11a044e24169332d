/* From `servers.*.sandbox` to the rules of a cage: the folders of each level, and what a map opens.
 * Called by server.c and cmd/sandbox.c. */
#include "hub/graph/sandbox.h"

#include "base/ascii.h"
#include "base/mem.h"

/* How many files each process may have open if the entry does not say. */
enum { FILES_MAX = 4096 };

/* Paths that programs of every kind need, and that contain nothing of the user's. Of other
 * processes, the kernel shows only the names and command lines in /proc. */
static const struct cage_path system_paths[] = {
    {"/usr", CAGE_READ | CAGE_RUN, true},
    {"/bin", CAGE_READ | CAGE_RUN, true},
    {"/sbin", CAGE_READ | CAGE_RUN, true},
    {"/lib", CAGE_READ | CAGE_RUN, true},
    {"/lib32", CAGE_READ | CAGE_RUN, true},
    {"/lib64", CAGE_READ | CAGE_RUN, true},
    {"/opt", CAGE_READ | CAGE_RUN, true},
    {"/nix/store", CAGE_READ | CAGE_RUN, true},
    {"/gnu/store", CAGE_READ | CAGE_RUN, true},
    {"/etc", CAGE_READ, true},
    {"/proc", CAGE_READ, true},
    {"/sys", CAGE_READ, true},
    /* /etc/resolv.conf is often a link to one of these */
    {"/run/systemd/resolve", CAGE_READ, true},
    {"/run/resolvconf", CAGE_READ, true},
    {"/run/NetworkManager/resolv.conf", CAGE_READ, true},
    {"/dev/null", CAGE_READ | CAGE_WRITE, true},
    {"/dev/zero", CAGE_READ | CAGE_WRITE, true},
    {"/dev/full", CAGE_READ | CAGE_WRITE, true},
    {"/dev/random", CAGE_READ, true},
    {"/dev/urandom", CAGE_READ, true},
};

const char *sandbox_word(enum config_cage level)
{
    static const char *const words[] = {[SANDBOX_OFF] = "off",
                                        [SANDBOX_LIGHT] = "light",
                                        [SANDBOX_STRICT] = "strict",
                                        [SANDBOX_MAP] = "map"};

    return words[level];
}

static const char *whole_path(struct arena *a, const char *path, const char *home)
{
    BUF_SCOPED text = {0};

    buf_printf(&text, "%s%s", path[0] == '~' && home ? home : "", path + (path[0] == '~' && home));
    while (text.n > 1 && text.p[text.n - 1] == '/')
        text.n--;
    return arena_span(a, buf_view(&text)).p;
}

static size_t count(const char *const *list)
{
    size_t n = 0;

    while (list && list[n])
        n++;
    return n;
}

static void put_paths(struct arena *a, struct cage_rules *rules, const char *const *read,
                      const char *const *write, const struct sandbox_places *places)
{
    size_t n_read = count(read), n_write = count(write);
    struct cage_path *paths =
        ARENA_ARRAY(a, struct cage_path, COUNT_OF(system_paths) + n_read + n_write + 1);
    size_t n = 0;

    for (size_t i = 0; i < COUNT_OF(system_paths); i++) {
        /* A path that contains the home folder, such as /opt for some services, is not opened. */
        bool holds_home =
            places->home && cage_path_in(span_str(places->home), span_str(system_paths[i].path));
        if (!holds_home)
            paths[n++] = system_paths[i];
    }
    for (size_t i = 0; i < n_read; i++)
        paths[n++] =
            (struct cage_path){whole_path(a, read[i], places->home), CAGE_READ | CAGE_RUN, false};
    for (size_t i = 0; i < n_write; i++)
        paths[n++] = (struct cage_path){whole_path(a, write[i], places->home),
                                        CAGE_READ | CAGE_WRITE, false};
    if (places->installed)
        paths[n++] =
            (struct cage_path){arena_text(a, places->installed), CAGE_READ | CAGE_RUN, true};
    rules->paths = paths;
    rules->n_paths = n;
}

static void put_network(struct arena *a, struct cage_rules *rules,
                        const struct config_strings *list)
{
    uint16_t *ports = ARENA_ARRAY(a, uint16_t, list->n + 1);

    rules->network = list->n ? CAGE_PORTS : CAGE_NO_SOCKET;
    rules->ports = ports;
    for (size_t i = 0; i < list->n; i++) {
        uint64_t port = 0;
        if (strcmp(list->items[i], "*") == 0)
            rules->network = CAGE_NO_UNIX;
        else if (ascii_number(span_str(list->items[i]), &port))
            ports[rules->n_ports++] = (uint16_t)port;
    }
}

const struct cage_rules *sandbox_rules(struct arena *a, const struct config_sandbox *s,
                                       const char *const *read, const char *const *write,
                                       const struct sandbox_places *places)
{
    struct cage_rules *rules = s->level ? ARENA_NEW(a, struct cage_rules) : NULL;

    if (!rules)
        return NULL;
    *rules = (struct cage_rules){.server = arena_text(a, places->server),
                                 .level = sandbox_word(s->level),
                                 .own = arena_text(a, places->own),
                                 .home = arena_text(a, places->home),
                                 .runs_what_it_writes = s->level == SANDBOX_LIGHT,
                                 .warns = s->warns,
                                 .network = CAGE_OPEN,
                                 .memory = s->memory,
                                 .processes = s->processes,
                                 .cpu = s->cpu,
                                 .files = s->files ? s->files : FILES_MAX};
    if (s->level != SANDBOX_LIGHT)
        put_network(a, rules, &s->network);
    put_paths(a, rules, read, write, places);
    return rules;
}

const struct cage_rules *sandbox_rules_to_install(struct arena *a, const struct cage_rules *rules,
                                                  const char *installed)
{
    struct cage_rules *open = ARENA_NEW(a, struct cage_rules);
    struct cage_path *paths = ARENA_ARRAY(a, struct cage_path, rules->n_paths + 1);
    BUF_SCOPED npmrc = {0};

    *open = *rules;
    memcpy(paths, rules->paths, rules->n_paths * sizeof *paths);
    for (size_t i = 0; i < rules->n_paths; i++)
        if (strcmp(paths[i].path, installed) == 0)
            paths[i].may = CAGE_READ | CAGE_RUN | CAGE_WRITE;
    /* npm reads there which registry the user's packages come from. */
    buf_printf(&npmrc, "%s/.npmrc", rules->home ? rules->home : "");
    paths[open->n_paths++] = (struct cage_path){arena_span(a, buf_view(&npmrc)).p, CAGE_READ, true};
    open->paths = paths;
    open->network = CAGE_OPEN;
    open->runs_what_it_writes = true;
    return open;
}
