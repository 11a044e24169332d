/* The list of persistent grants, with loading and saving the JSON file. Called by grants.c for each
 * change, and by browser.c at start and end. */
#include "browser/kept.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "browser/capability.h"
#include "wire/json.h"

enum { KEPT_MAX = 1000, FILE_MAX = 1024 * 1024 };

struct kept_grants {
    char *file;
    struct list all;
    size_t n;
};

void kept_add(struct kept_grants *k, struct span origin, struct span name)
{
    LIST_EACH (&k->all, it) {
        struct kept_grant *g = LIST_ENTRY(it, struct kept_grant, node);
        if (span_is(origin, g->origin) && span_is(name, g->name))
            return;
    }
    if (k->n >= KEPT_MAX) {
        log_warn("browser", "more than %d grants for good: " SPAN_FMT " is not kept", KEPT_MAX,
                 SPAN_ARG(name));
        return;
    }
    k->n++;
    struct kept_grant *g = mem_zalloc(sizeof *g + name.n + 1);
    g->origin = mem_span(origin);
    if (name.n)
        memcpy(g->name, name.p, name.n);
    list_append(&k->all, &g->node);
}

static void read_grants(struct kept_grants *k, struct span text)
{
    BUF_SCOPED origin = {0}, name = {0};
    enum json_type type;

    if (json_skim(text, NULL, NULL, &type, NULL) || type != JSON_OBJECT) {
        log_warn("browser", "%s is not a list of grants, and is not read", k->file);
        return;
    }
    struct json_iter origins = json_iter(text);
    while (json_next(&origins)) {
        struct json_iter names = json_iter(origins.value);
        origin.n = 0;
        struct span from = json_text(origins.key, &origin);
        while (origins.type == JSON_ARRAY && json_next(&names)) {
            name.n = 0;
            struct span what =
                names.type == JSON_STRING ? json_text(names.value, &name) : SPAN_EMPTY;
            if (capability_is_valid(what))
                kept_add(k, from, what);
        }
    }
}

struct kept_grants *kept_load(const char *file)
{
    struct kept_grants *k = MEM_NEW(struct kept_grants);
    BUF_SCOPED text = {0};

    list_init(&k->all);
    if (!file)
        return k;
    k->file = mem_str(file);
    int rc = file_read(&text, file, FILE_MAX);
    if (!rc || rc == ERR_SIZE)
        read_grants(k, buf_view(&text));
    return k;
}

void kept_save(const struct kept_grants *k)
{
    BUF_SCOPED text = {0};

    if (!k->file)
        return;
    buf_char(&text, '{');
    LIST_EACH (&k->all, it) {
        const struct kept_grant *g = LIST_ENTRY(it, struct kept_grant, node);
        bool first = true;
        LIST_EACH (&k->all, before) {
            if (before == it)
                break;
            first &= strcmp(LIST_ENTRY(before, struct kept_grant, node)->origin, g->origin) != 0;
        }
        if (!first)
            continue;
        buf_str(&text, text.n > 1 ? ",\n " : "\n ");
        json_quote(&text, span_str(g->origin));
        buf_str(&text, ": [");
        bool head = true;
        LIST_EACH (&k->all, other) {
            const struct kept_grant *o = LIST_ENTRY(other, struct kept_grant, node);
            if (strcmp(o->origin, g->origin) != 0)
                continue;
            buf_str(&text, head ? "" : ", ");
            head = false;
            json_quote(&text, span_str(o->name));
        }
        buf_char(&text, ']');
    }
    buf_str(&text, "\n}\n");
    int rc = file_replace(k->file, buf_view(&text));
    if (rc)
        log_warn("browser", "cannot keep grants in %s: %s", k->file, err_name(rc));
}

const struct kept_grant *kept_next(const struct kept_grants *k, const struct kept_grant *after)
{
    const struct list *next = after ? after->node.next : k->all.next;

    return next == &k->all ? NULL : LIST_ENTRY(next, struct kept_grant, node);
}

static void forget(struct kept_grants *k, struct kept_grant *g)
{
    list_remove(&g->node);
    mem_free(g->origin);
    mem_free(g);
    k->n--;
}

void kept_drop(struct kept_grants *k, const char *origin, const char *name)
{
    LIST_EACH_SAFE (&k->all, it) {
        struct kept_grant *g = LIST_ENTRY(it, struct kept_grant, node);
        if (strcmp(g->origin, origin) == 0 && strcmp(g->name, name) == 0)
            forget(k, g);
    }
}

void kept_free(struct kept_grants *k)
{
    LIST_EACH_SAFE (&k->all, it)
        forget(k, LIST_ENTRY(it, struct kept_grant, node));
    mem_free(k->file);
    mem_free(k);
}
