/* The list of what D6 pages registered, with loading and saving the JSON file. Called by routes.c
 * when such a page registers or comes back, and by browser.c at start and end and when a session
 * ends. */
#include "browser/remotes.h"

#include "base/file.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "browser/inside.h"
#include "wire/json.h"
#include "wire/json_out.h"

enum { REMOTES_MAX = 100, FILE_MAX = 8 * 1024 * 1024, TOOLS_BYTES_MAX = 64 * 1024 };

struct remotes {
    char *file;
    struct map all; /* session -> struct remote_page */
};

static void free_remote(struct remote_page *one)
{
    if (!one)
        return;
    mem_free(one->origin);
    mem_free(one->tools);
    mem_free(one);
}

static void put(struct remotes *r, struct span session, struct span origin, struct span tools)
{
    struct remote_page *one = MEM_NEW(struct remote_page);

    one->origin = origin.n ? mem_span(origin) : NULL;
    one->tools = mem_span(tools);
    free_remote(map_get(&r->all, session));
    map_put(&r->all, session, one);
}

static void read_all(struct remotes *r, struct span text)
{
    BUF_SCOPED name = {0}, from = {0};
    enum json_type type;

    if (json_skim(text, NULL, NULL, &type, NULL) || type != JSON_OBJECT) {
        log_warn("browser", "%s is not a list of pages, and is not read", r->file);
        return;
    }
    struct json_iter it = json_iter(text);
    while (json_next(&it) && r->all.n < REMOTES_MAX) {
        if (it.type != JSON_OBJECT)
            continue;
        struct json_slot tools = json_get(it.value, "tools"), origin = json_get(it.value, "origin");
        name.n = from.n = 0;
        if (tools.type == JSON_ARRAY)
            put(r, json_text(it.key, &name),
                origin.type == JSON_STRING ? json_text(origin.value, &from) : SPAN_EMPTY,
                tools.value);
    }
}

struct remotes *remotes_load(const char *file)
{
    struct remotes *r = MEM_NEW(struct remotes);
    BUF_SCOPED text = {0};

    if (!file)
        return r;
    r->file = mem_str(file);
    if (file_read(&text, file, FILE_MAX) == 0)
        read_all(r, buf_view(&text));
    return r;
}

static void save(const struct remotes *r)
{
    BUF_SCOPED text = {0};
    size_t at = 0;
    struct span session;
    void *value;

    if (!r->file)
        return;
    buf_char(&text, '{');
    while (map_next(&r->all, &at, &session, &value)) {
        const struct remote_page *one = value;
        buf_str(&text, text.n > 1 ? ",\n" : "\n");
        json_quote(&text, session);
        buf_str(&text, ": {");
        if (one->origin)
            json_out_str(&text, "origin", one->origin);
        json_out_raw(&text, "tools", span_str(one->tools));
        buf_char(&text, '}');
    }
    buf_str(&text, "\n}\n");
    int rc = file_replace(r->file, buf_view(&text));
    if (rc)
        log_warn("browser", "cannot keep the tools of pages in %s: %s", r->file, err_name(rc));
}

const struct remote_page *remotes_find(const struct remotes *r, struct span session)
{
    return session.n ? map_get(&r->all, session) : NULL;
}

/* Is there room for one more? Drops a page whose session is not there, if need be. */
static bool has_room(struct browser *b)
{
    struct remotes *r = b->remotes;
    struct span session;
    size_t at = 0;
    void *value;

    while (r->all.n >= REMOTES_MAX && map_next(&r->all, &at, &session, &value)) {
        if (browser_session(b, session, false))
            continue;
        map_del(&r->all, session);
        free_remote(value);
        return true;
    }
    return r->all.n < REMOTES_MAX;
}

void remotes_keep(struct browser *b, struct span session, const char *origin, struct span tools)
{
    struct remotes *r = b->remotes;
    const struct remote_page *old = remotes_find(r, session);

    if (old && span_is(tools, old->tools) && span_is(span_str(origin), old->origin))
        return;
    if (tools.n > TOOLS_BYTES_MAX || (!old && !has_room(b))) {
        log_warn("browser", "the tools of session " SPAN_FMT " will not outlive this program",
                 SPAN_ARG(session));
        return;
    }
    put(r, session, span_str(origin), tools);
    save(r);
}

void remotes_drop(struct remotes *r, struct span session)
{
    struct remote_page *one = map_get(&r->all, session);

    if (!one)
        return;
    map_del(&r->all, session);
    free_remote(one);
    save(r);
}

void remotes_free(struct remotes *r)
{
    size_t at = 0;
    void *value;

    while (map_next(&r->all, &at, NULL, &value))
        free_remote(value);
    map_fini(&r->all);
    mem_free(r->file);
    mem_free(r);
}
