/* mcp.lock: reading it, comparing it with what servers list, writing it; the tools held back.
 * Called by bridge.c and instance.c, by admin/approvals.c for operators, and by cmd/lock.c. */
#include "hub/graph/lock.h"

#include "base/file.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "hub/places.h"
#include "wire/json.h"

#include <errno.h>
#include <libgen.h>
#include <stdlib.h>

enum { MAX_FILE = 64 * 1024 * 1024, MAX_TEXT = 1024 * 1024, MAX_HELD = 1000 };

/* A tool that was approved, or recorded. */
struct lock_row {
    char *server, *tool;
    char digest[TOOL_TEXT_DIGEST];
    char *text; /* NULL when it was not seen by this process */
};

struct lock {
    char *path, *config; /* NULL without a configuration file */
    enum config_on_change on_change;
    bool exists;     /* the file was there, readable or not */
    bool broken;     /* ... and could never be read */
    struct map rows; /* "SERVER\nTOOL" -> struct lock_row */
    struct list held;
    size_t n_held;
    bool told_full; /* the log says that MAX_HELD was reached */
    uint64_t last_id;
};

/* --- the table --- */

static void put_key(struct buf *key, struct span server, struct span tool)
{
    buf_span(key, server);
    buf_char(key, '\n');
    buf_span(key, tool);
}

static struct lock_row *find_row(const struct map *rows, struct span server, struct span tool)
{
    BUF_SCOPED key = {0};

    put_key(&key, server, tool);
    return map_get(rows, buf_view(&key));
}

static void free_row(struct lock_row *row)
{
    if (!row)
        return;
    mem_free(row->server);
    mem_free(row->tool);
    mem_free(row->text);
    mem_free(row);
}

static void free_rows(struct map *rows)
{
    size_t at = 0;
    struct span key;
    void *row;

    while (map_next(rows, &at, &key, &row))
        free_row(row);
    map_fini(rows);
}

/* `text` may be empty. */
static void set_row(struct map *rows, struct span server, struct span tool, const char *digest,
                    struct span text)
{
    struct lock_row *row = MEM_NEW(struct lock_row);
    BUF_SCOPED key = {0};

    row->server = mem_span(server);
    row->tool = mem_span(tool);
    row->text = text.n ? mem_span(text) : NULL;
    memcpy(row->digest, digest, TOOL_TEXT_DIGEST);
    put_key(&key, server, tool);
    free_row(map_put(rows, buf_view(&key), row));
}

/* --- the file --- */

char *lock_path(const char *config_file)
{
    struct buf path = {0};
    char *copy = mem_str(config_file);

    buf_printf(&path, "%s/mcp.lock", dirname(copy));
    mem_free(copy);
    return buf_take(&path);
}

static bool is_digest(struct span text)
{
    for (size_t i = 0; i < text.n; i++)
        if (!strchr("0123456789abcdef", text.p[i]))
            return false;
    return text.n == TOOL_TEXT_DIGEST - 1;
}

/* One element of "tools". NULL, or what is wrong with it. */
static const char *read_row(struct map *rows, struct span object)
{
    static const struct json_shape_row members[] = {
        {"server", 0, NULL}, {"tool", 1, NULL}, {"sha256", 2, NULL}};
    static const struct json_shape shape = JSON_SHAPE(members);
    struct json_slot in[3] = {0};
    BUF_SCOPED server = {0}, tool = {0}, digest = {0};

    if (json_skim(object, &shape, in, NULL, NULL))
        return "a member occurs twice";
    if (in[0].type != JSON_STRING || in[1].type != JSON_STRING || in[2].type != JSON_STRING)
        return "a tool needs \"server\", \"tool\" and \"sha256\"";
    json_unescape(&server, in[0].value);
    json_unescape(&tool, in[1].value);
    json_unescape(&digest, in[2].value);
    if (!is_digest(buf_view(&digest)))
        return "\"sha256\" is not 64 hexadecimal digits";
    if (find_row(rows, buf_view(&server), buf_view(&tool)))
        return "a tool is listed twice";
    set_row(rows, buf_view(&server), buf_view(&tool), buf_cstr(&digest), SPAN_EMPTY);
    return NULL;
}

static const char *read_rows(struct map *rows, struct span text)
{
    static const struct json_shape_row members[] = {{"version", 0, NULL}, {"tools", 1, NULL}};
    static const struct json_shape shape = JSON_SHAPE(members);
    struct json_slot in[2] = {0};
    const char *wrong = NULL;

    if (json_skim(text, &shape, in, NULL, NULL))
        return "it is not JSON";
    if (!span_eq(in[0].value, SPAN("1")))
        return "\"version\" is not 1";
    if (in[1].type != JSON_ARRAY)
        return "there is no list \"tools\"";
    struct json_iter it = json_iter(in[1].value);
    while (!wrong && json_next(&it))
        wrong = it.type == JSON_OBJECT ? read_row(rows, it.value) : "a tool is not an object";
    return wrong;
}

void lock_read(struct lock *l, const struct config *c)
{
    BUF_SCOPED text = {0};
    struct map rows = {0};

    l->on_change = c->lock.on_change;
    if (!l->path || l->on_change == ON_CHANGE_RECORD)
        return;
    int code = file_read(&text, l->path, MAX_FILE);
    if (code == -ENOENT && !l->exists)
        return;
    const char *wrong = code ? err_name(code) : read_rows(&rows, buf_view(&text));
    if (wrong) {
        l->broken = l->broken || !l->exists;
        l->exists = true;
        free_rows(&rows);
        log_error("lock", "%s cannot be used: %s. %s", l->path, wrong,
                  l->broken ? "No tool is offered until that is mended ('rialto lock' writes it "
                              "anew)"
                            : "What was approved before still holds");
        return;
    }
    l->exists = true;
    l->broken = false;
    free_rows(&l->rows);
    l->rows = rows;
}

static int by_key(const void *left, const void *right)
{
    const struct lock_row *const *a = left, *const *b = right;
    int order = strcmp((*a)->server, (*b)->server);

    return order ? order : strcmp((*a)->tool, (*b)->tool);
}

/* All rows, sorted; the caller frees the array. */
static struct lock_row **sorted_rows(const struct lock *l)
{
    struct lock_row **rows = mem_zalloc((l->rows.n + 1) * sizeof(struct lock_row *));
    size_t at = 0, n = 0;
    struct span key;
    void *row;

    while (map_next(&l->rows, &at, &key, &row))
        rows[n++] = row;
    qsort(rows, n, sizeof(struct lock_row *), by_key);
    return rows;
}

static char *text_path(const char *digest)
{
    BUF_SCOPED name = {0};

    buf_printf(&name, "approved/%s", digest);
    return place_path(PLACE_STATE, buf_cstr(&name));
}

/* Keep what was approved, so that a later difference can be shown. Secrets are redacted: a
 * description may repeat one that its server was given. */
static void keep_text(const struct lock_row *row)
{
    char *path = row->text ? text_path(row->digest) : NULL;
    BUF_SCOPED clean = {0};

    log_redact(&clean, span_str(row->text));
    int code = path ? file_replace(path, buf_view(&clean)) : 0;
    if (code)
        log_warn("lock",
                 "%s cannot be written (%s): a change of '%s' will be seen, but not what "
                 "changed",
                 path, err_name(code), row->tool);
    mem_free(path);
}

int lock_write(struct lock *l, struct err *err)
{
    struct lock_row **rows = sorted_rows(l);
    BUF_SCOPED text = {0};

    buf_str(&text, "{\n\"version\": 1,\n\"tools\": [");
    for (size_t i = 0; i < l->rows.n; i++) {
        buf_str(&text, i ? ",\n{\"server\": " : "\n{\"server\": ");
        json_quote(&text, span_str(rows[i]->server));
        buf_str(&text, ", \"tool\": ");
        json_quote(&text, span_str(rows[i]->tool));
        buf_printf(&text, ", \"sha256\": \"%s\"}", rows[i]->digest);
        keep_text(rows[i]);
    }
    buf_str(&text, "\n]\n}\n");
    mem_free(rows);
    /* It holds digests alone. Who reads the configuration, such as a daemon of another user, must
     * be able to read it. */
    int code = file_replace_like(l->path, buf_view(&text), l->path);
    if (code == -ENOENT)
        code = file_replace_like(l->path, buf_view(&text), l->config);
    return code ? err_set(err, code, "%s cannot be written: %s", l->path, err_name(code)) : 0;
}

/* --- judging --- */

static void free_held(struct lock *l, struct lock_held *h)
{
    list_remove(&h->node);
    l->n_held--;
    l->told_full = false;
    mem_free(h->server);
    mem_free(h->tool);
    mem_free(h->text);
    mem_free(h);
}

static struct lock_held *find_held(const struct lock *l, const char *server, struct span tool)
{
    for (const struct list *it = l->held.next; it != &l->held; it = it->next) {
        struct lock_held *h = CONTAINER_OF((struct list *)(uintptr_t)it, struct lock_held, node);
        if (strcmp(h->server, server) == 0 && span_is(tool, h->tool))
            return h;
    }
    return NULL;
}

static void tell_held(const struct lock *l, const struct lock_held *h)
{
    static const char *const what[] = {
        [ON_CHANGE_BLOCK] = "it is not offered ('rialto lock' approves all tools as they are)",
        [ON_CHANGE_ASK] = "it waits for an operator: rialto approvals",
        [ON_CHANGE_WARN] = "it is offered all the same (lock.on_change)",
    };

    log_warn(h->server, "the tool '%s' %s mcp.lock: %s", h->tool,
             h->known ? "is not the one in" : "is new and not in", what[l->on_change]);
}

/* The tool is not the approved one: remember and log it, once for each version of the tool. */
static void hold(struct lock *l, const char *server, struct span name, const char *digest,
                 struct span text)
{
    struct lock_held *h = find_held(l, server, name);

    if (h && strcmp(h->digest, digest) == 0)
        return;
    if (h)
        free_held(l, h);
    if (l->n_held == MAX_HELD) {
        if (!l->told_full)
            log_warn(server,
                     "lists more tools that are not in mcp.lock: of all servers, only the first "
                     "%d are shown",
                     MAX_HELD);
        l->told_full = true;
        return;
    }
    h = MEM_NEW(struct lock_held);
    h->id = ++l->last_id;
    h->server = mem_str(server);
    h->tool = mem_span(name);
    memcpy(h->digest, digest, TOOL_TEXT_DIGEST);
    h->text = mem_span(text);
    h->known = find_row(&l->rows, span_str(server), name) != NULL;
    list_append(&l->held, &h->node);
    l->n_held++;
    tell_held(l, h);
}

bool lock_admits(void *lock, const char *server, struct span name, struct span tool)
{
    struct lock *l = lock;
    char digest[TOOL_TEXT_DIGEST];
    BUF_SCOPED text = {0};

    if (l->broken)
        return false;
    tool_text_put(&text, tool);
    tool_text_digest(digest, buf_view(&text));
    if (l->on_change == ON_CHANGE_RECORD) {
        set_row(&l->rows, span_str(server), name, digest, buf_view(&text));
        return true;
    }
    const struct lock_row *row = find_row(&l->rows, span_str(server), name);
    bool approved = row && strcmp(row->digest, digest) == 0;
    struct lock_held *h = approved ? find_held(l, server, name) : NULL;
    if (h)
        free_held(l, h);
    if (!approved)
        hold(l, server, name, digest, buf_view(&text));
    return approved || l->on_change == ON_CHANGE_WARN;
}

/* --- operators --- */

const struct lock_held *lock_next(const struct lock *l, const struct lock_held *h)
{
    const struct list *next = h ? h->node.next : l->held.next;

    return next == &l->held ? NULL : CONTAINER_OF(next, const struct lock_held, node);
}

bool lock_withholds(const struct lock *l)
{
    return l->on_change != ON_CHANGE_WARN;
}

bool lock_is_waiting(const struct lock *l, const struct lock_held *h)
{
    return l->on_change == ON_CHANGE_ASK && !h->refused;
}

void lock_put_difference(struct buf *out, const struct lock *l, const struct lock_held *h)
{
    const struct lock_row *row = find_row(&l->rows, span_str(h->server), span_str(h->tool));
    char *path = row ? text_path(row->digest) : NULL;
    BUF_SCOPED was = {0}, is = {0};

    if (path &&
        (file_read(&was, path, MAX_TEXT) || json_skim(buf_view(&was), NULL, NULL, NULL, NULL)))
        was.n = 0;                      /* approved on another machine */
    log_redact(&is, span_str(h->text)); /* the kept text was redacted as well */
    tool_text_put_difference(out, buf_view(&was), buf_view(&is));
    mem_free(path);
}

static struct lock_held *find_waiting(const struct lock *l, uint64_t id)
{
    for (const struct list *it = l->held.next; it != &l->held; it = it->next) {
        struct lock_held *h = CONTAINER_OF((struct list *)(uintptr_t)it, struct lock_held, node);
        if (h->id == id && lock_is_waiting(l, h))
            return h;
    }
    return NULL;
}

int lock_decide(struct lock *l, uint64_t id, bool approved, const char *by, struct err *err)
{
    struct lock_held *h = find_waiting(l, id);

    if (!h)
        return err_set(err, -ENOENT, "no such tool waits");
    log_info(h->server, "the tool '%s' was %s by %s", h->tool, approved ? "approved" : "refused",
             by);
    if (!approved) {
        h->refused = true;
        return 0;
    }
    set_row(&l->rows, span_str(h->server), span_str(h->tool), h->digest, span_str(h->text));
    return lock_write(l, err);
}

/* --- recording and comparing --- */

size_t lock_count(const struct lock *l)
{
    return l->rows.n;
}

void lock_put_comparison(struct buf *out, const struct lock *recorded, const struct lock *approved)
{
    struct lock_row **now = sorted_rows(recorded), **before = sorted_rows(approved);

    for (size_t i = 0; i < recorded->rows.n; i++) {
        const struct lock_row *row =
            find_row(&approved->rows, span_str(now[i]->server), span_str(now[i]->tool));
        if (!row || strcmp(row->digest, now[i]->digest) != 0)
            buf_printf(out, "%s\t%s\t%s\n", row ? "changed" : "new", now[i]->server, now[i]->tool);
    }
    for (size_t i = 0; i < approved->rows.n; i++)
        if (!find_row(&recorded->rows, span_str(before[i]->server), span_str(before[i]->tool)))
            buf_printf(out, "gone\t%s\t%s\n", before[i]->server, before[i]->tool);
    mem_free(now);
    mem_free(before);
}

/* --- life --- */

bool lock_in_force(const struct lock *l)
{
    return l->exists || l->on_change == ON_CHANGE_RECORD;
}

bool lock_is_readable(const struct lock *l)
{
    return !l->broken;
}

struct lock *lock_new(const struct config *c)
{
    struct lock *l = MEM_NEW(struct lock);

    list_init(&l->held);
    l->path = c->file ? lock_path(c->file) : NULL;
    l->config = mem_str(c->file);
    lock_read(l, c);
    return l;
}

void lock_free(struct lock *l)
{
    LIST_EACH_SAFE (&l->held, it)
        free_held(l, LIST_ENTRY(it, struct lock_held, node));
    free_rows(&l->rows);
    mem_free(l->path);
    mem_free(l->config);
    mem_free(l);
}
