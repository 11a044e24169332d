/* The cache files with the catalogs of servers: their names (a digest of the entry), reading and
 * writing. Called by instance.c; server.c asks for the path of a server's file. */
#include "hub/graph/memory.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/sha.h"
#include "config/schema.h"
#include "hub/graph/lock.h"
#include "hub/places.h"
#include "mcp/server/catalog_text.h"
#include "wire/json.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DIGEST_BYTES = 16, MAX_BYTES = 16 * 1024 * 1024 };

/* The tools of a catalog depend on what mcp.lock approves, so the digest covers the time and size
 * of that file: once mcp.lock has changed, the old catalog is not used. */
static void put_lock(struct buf *text, const struct config *c)
{
    char *path = c->file ? lock_path(c->file) : NULL;
    struct stat st;

    if (path && stat(path, &st) == 0)
        buf_printf(text, "%lld.%09ld %lld\n", (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec,
                   (long long)st.st_size);
    mem_free(path);
}

/* .../catalogs/ALIAS-DIGEST */
char *memory_path(const struct config *c, const struct config_server *s)
{
    struct arena arena = {0};
    BUF_SCOPED text = {0}, name = {0};
    unsigned char digest[SHA256_N];

    if (!c->remember)
        return NULL;
    buf_printf(&text, "%s\n%s\n", RIALTO_VERSION, c->file ? c->file : "");
    put_lock(&text, c);
    value_put_json(&text, schema_dump_entry(&arena, "servers.*", s), false);
    sha_256(digest, buf_view(&text));
    buf_printf(&name, "catalogs/%s-", s->alias);
    for (size_t i = 0; i < DIGEST_BYTES; i++)
        buf_printf(&name, "%02x", digest[i]);
    char *path = place_path(PLACE_CACHE, buf_cstr(&name));
    arena_fini(&arena);
    return path;
}

static bool read_all(const char *path, struct buf *text)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct stat st;

    if (fd < 0)
        return false;
    /* Only a regular file of our own user. */
    bool fine = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
                !file_read_fd(text, fd, MAX_BYTES) && text->n;
    close(fd);
    return fine;
}

/* The first line is {"traits":N}; the catalog follows. */
struct catalog *memory_recall(const char *path, unsigned *traits)
{
    BUF_SCOPED text = {0};
    int64_t bits = 0;

    if (!read_all(path, &text))
        return NULL;
    struct span line = span_cut(buf_view(&text), 0, span_find(buf_view(&text), '\n'));
    struct catalog *known = catalog_text_read(span_from(buf_view(&text), line.n + 1));
    if (known && json_skim(line, NULL, NULL, NULL, NULL) == 0 &&
        json_int(json_get(line, "traits").value, &bits) && bits >= 0 && bits <= UINT8_MAX)
        *traits = (unsigned)bits;
    return known;
}

void memory_keep(const char *path, const struct catalog *known, unsigned traits)
{
    BUF_SCOPED text = {0}, clean = {0}, before = {0};

    buf_printf(&text, "{\"traits\":%u}\n", traits);
    catalog_text_put(&text, known);
    log_redact(&clean, buf_view(&text));
    if (!span_eq(buf_view(&clean), buf_view(&text)))
        text.n = 0; /* a secret must not be stored: nothing is remembered */
    bool same = read_all(path, &before) && span_eq(buf_view(&before), buf_view(&text));
    int code = !same && text.n <= MAX_BYTES ? file_replace(path, buf_view(&text)) : 0;
    if (code)
        log_debug("rialto", "cannot remember in %s what a server offers: %s", path, err_name(code));
}
