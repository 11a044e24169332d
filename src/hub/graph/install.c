/* Packages installed for caged servers: the words of npx and uvx, the step that installs, and the
 * program found in what was installed. Called by server.c. */
#include "hub/graph/install.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/sha.h"
#include "wire/json.h"

#include <unistd.h>

enum { JSON_MAX = 1 << 20, DIGEST_BYTES = 8, ENV_MORE = 4, ARGS_MORE = 9 };

/* What stdio_upstream_step.ready needs. */
struct installed {
    struct arena *arena;
    struct install_words words;
    const char *folder;
    const char **argv; /* the program, once it is there */
};

/* --- words --- */

static bool is_program(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');

    return strcmp(slash ? slash + 1 : path, name) == 0;
}

static bool is_any(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(text, *words) == 0)
            return true;
    return false;
}

bool install_read(const char *const *argv, struct install_words *words)
{
    static const char *const without_meaning[] = {"-y", "--yes", "-q", "--quiet", NULL};
    const char *const *at = argv + 1;

    *words = (struct install_words){.uv = is_program(argv[0], "uvx")};
    if (!words->uv && !is_program(argv[0], "npx"))
        return false;
    while (*at && is_any(*at, without_meaning))
        at++;
    if (words->uv && at[0] && at[1] && at[2] && strcmp(at[0], "--from") == 0) {
        words->package = at[1];
        words->program = at[2];
        at += 2;
    } else {
        words->package = at[0];
    }
    if (!*at || at[0][0] == '-' || words->package[0] == '-')
        return false;
    words->rest = at + 1;
    return true;
}

void install_put_folder(struct buf *out, const char *alias, const struct install_words *words)
{
    unsigned char digest[SHA256_N];
    BUF_SCOPED text = {0};

    buf_printf(&text, "%d %s %s", words->uv, words->package, words->program ? words->program : "");
    sha_256(digest, buf_view(&text));
    buf_printf(out, "installed/%s-", alias);
    for (size_t i = 0; i < DIGEST_BYTES; i++)
        buf_printf(out, "%02x", digest[i]);
}

/* --- the program that was installed --- */

static bool read_json(const char *path, struct buf *text)
{
    return !file_read(text, path, JSON_MAX) &&
           json_skim(buf_view(text), NULL, NULL, NULL, NULL) == 0;
}

/* The program that npx would run: the only one of the package, or the one with its name. */
static struct span find_bin(struct span package, struct span name, struct buf *scratch)
{
    struct json_slot bin = json_get(package, "bin");
    struct json_iter it = json_iter(bin.value);
    BUF_SCOPED key = {0};
    struct span only = SPAN_EMPTY;
    size_t n = 0, slash = span_find(name, '/');

    if (bin.type == JSON_STRING)
        return json_text(bin.value, scratch);
    struct span plain = slash < name.n ? span_from(name, slash + 1) : name;
    while (json_next(&it)) {
        if (span_eq(json_text(it.key, &key), plain))
            return json_text(it.value, scratch);
        only = it.value;
        n++;
    }
    return n == 1 ? json_text(only, scratch) : SPAN_EMPTY;
}

/* npm has written the package's name into package.json, and its files below node_modules. */
static void put_npm_program(struct buf *out, const char *folder)
{
    BUF_SCOPED path = {0}, list = {0}, package = {0}, scratch = {0}, name_text = {0};

    buf_printf(&path, "%s/package.json", folder);
    if (!read_json(buf_cstr(&path), &list))
        return;
    struct json_iter it = json_iter(json_get(buf_view(&list), "dependencies").value);
    if (!json_next(&it))
        return;
    struct span name = json_text(it.key, &name_text);
    path.n = 0;
    buf_printf(&path, "%s/node_modules/" SPAN_FMT, folder, SPAN_ARG(name));
    size_t root = path.n;
    buf_str(&path, "/package.json");
    if (!read_json(buf_cstr(&path), &package))
        return;
    struct span bin = find_bin(buf_view(&package), name, &scratch);
    if (bin.n)
        buf_printf(out, "%.*s/" SPAN_FMT, (int)root, path.p, SPAN_ARG(bin));
}

static void put_uv_program(struct buf *out, const char *folder, const struct install_words *words)
{
    const char *name = words->program ? words->program : words->package;

    buf_printf(out, "%s/bin/%.*s", folder, (int)strcspn(name, words->program ? "" : "@=<>~![ "),
               name);
}

static const char *const *find_installed(void *arg)
{
    struct installed *in = arg;
    BUF_SCOPED program = {0};
    size_t n = 0;

    if (in->words.uv)
        put_uv_program(&program, in->folder, &in->words);
    else
        put_npm_program(&program, in->folder);
    if (!program.n || access(buf_cstr(&program), X_OK) < 0) {
        program.n = 0;
        buf_printf(&program, "%s/", in->folder);
        file_make_folders(buf_cstr(&program));
        return NULL;
    }
    if (in->argv)
        return in->argv;
    while (in->words.rest[n])
        n++;
    in->argv = ARENA_ARRAY(in->arena, const char *, n + 2);
    in->argv[0] = arena_span(in->arena, buf_view(&program)).p;
    memcpy(in->argv + 1, in->words.rest, n * sizeof *in->words.rest);
    return in->argv;
}

/* --- the step --- */

static const char *kept(struct arena *a, const char *before, const char *folder, const char *after)
{
    BUF_SCOPED text = {0};

    buf_printf(&text, "%s%s%s", before, folder, after);
    return arena_span(a, buf_view(&text)).p;
}

/* npm beside npx, uv beside uvx. */
static const char *installer(struct arena *a, const char *command, const char *name)
{
    const char *slash = strrchr(command, '/');
    BUF_SCOPED path = {0};

    buf_span(&path, span_of(command, slash ? (size_t)(slash + 1 - command) : 0));
    buf_str(&path, name);
    return arena_span(a, buf_view(&path)).p;
}

static const char *const *install_argv(struct arena *a, const char *command,
                                       const struct install_words *words, const char *folder)
{
    const char **argv = ARENA_ARRAY(a, const char *, ARGS_MORE);
    const char *npm[] = {installer(a, command, "npm"), "install",  "--no-audit", "--no-fund",
                         "--loglevel=error",           "--prefix", folder,       words->package};
    const char *uv[] = {installer(a, command, "uv"), "tool", "install", "--force", words->package};

    if (words->uv)
        memcpy(argv, uv, sizeof uv);
    else
        memcpy(argv, npm, sizeof npm);
    return argv;
}

static const char *const *install_env(struct arena *a, const char *const *env, bool uv,
                                      const char *folder)
{
    size_t n = 0;

    while (env[n])
        n++;
    const char **longer = ARENA_ARRAY(a, const char *, n + ENV_MORE + 1);
    memcpy(longer, env, n * sizeof *env);
    if (uv) {
        longer[n++] = kept(a, "UV_TOOL_DIR=", folder, "/tools");
        longer[n++] = kept(a, "UV_TOOL_BIN_DIR=", folder, "/bin");
        longer[n++] = kept(a, "UV_CACHE_DIR=", folder, "/cache");
        longer[n++] = kept(a, "UV_PYTHON_INSTALL_DIR=", folder, "/python");
    } else {
        longer[n++] = kept(a, "npm_config_cache=", folder, "/cache");
        longer[n++] = "npm_config_update_notifier=false";
    }
    return longer;
}

const struct stdio_upstream_step *install_step(struct arena *a, const char *const *argv,
                                               const char *const *env,
                                               const struct install_words *words,
                                               const char *folder, const struct cage_rules *cage)
{
    struct stdio_upstream_step *step = ARENA_NEW(a, struct stdio_upstream_step);
    struct installed *in = ARENA_NEW(a, struct installed);

    *in = (struct installed){.arena = a, .words = *words, .folder = kept(a, "", folder, "")};
    *step = (struct stdio_upstream_step){.argv = install_argv(a, argv[0], words, in->folder),
                                         .env = install_env(a, env, words->uv, in->folder),
                                         .cage = cage,
                                         .ready = find_installed,
                                         .arg = in};
    return step;
}
