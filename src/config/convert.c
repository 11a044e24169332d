/* Writing a document as YAML with our keys, and the problems with the document as comments before
 * it. Called by config.c for the command import, and by import.c for one entry. */
#include "config/convert.h"

#include "config/schema.h"

#include <stdio.h>

enum { PATH_SIZE = 64 };

static struct value *convert_map(struct arena *a, const struct value *map, const char *parent);

static struct value *copy(struct arena *a, const struct value *v)
{
    size_t budget = VALUE_MAX_NODES;

    return value_copy(a, v, &budget);
}

/* Converts the maps in a map or list; an entry that is no map is a shorthand and is kept. */
static struct value *convert_entries(struct arena *a, const struct value *v, const char *path)
{
    struct value *all = value_new(a, v->type, v->at);
    char entry_path[PATH_SIZE];

    snprintf(entry_path, sizeof entry_path, "%s.*", path);
    for (const struct value *child = v->first; child; child = child->next) {
        struct value *entry =
            child->type == VALUE_MAP ? convert_map(a, child, entry_path) : copy(a, child);
        entry->key = value_key(child);
        entry->as = SPAN_EMPTY;
        value_append(all, entry);
    }
    return all;
}

static struct value *convert_value(struct arena *a, const struct schema_row *row,
                                   const struct value *v)
{
    bool container = v->type == VALUE_MAP || v->type == VALUE_LIST;

    if (row->type == SCHEMA_SECTION && v->type == VALUE_MAP)
        return convert_map(a, v, row->path);
    if ((row->type == SCHEMA_ENTRIES || row->type == SCHEMA_LIST) && container)
        return convert_entries(a, v, row->path);
    return copy(a, v);
}

/* The members that the schema knows, by the schema's names. */
static struct value *convert_map(struct arena *a, const struct value *map, const char *parent)
{
    struct value *all = value_new(a, VALUE_MAP, map->at);

    for (const struct value *v = map->first; v; v = v->next) {
        for (size_t i = 0; v->type != VALUE_NULL && i < schema_rows_n; i++) {
            const char *name = schema_child(&schema_rows[i], parent);
            if (!name || !span_is(value_key(v), name))
                continue;
            struct value *member = convert_value(a, &schema_rows[i], v);
            member->key = span_str(name);
            member->as = SPAN_EMPTY;
            value_append(all, member);
        }
    }
    return all;
}

struct value *convert_entry(struct arena *a, const struct value *server)
{
    struct value *entry = convert_map(a, server, "servers.*");

    entry->key = value_key(server);
    return entry;
}

void convert_put(struct buf *out, const struct value *root, const char *source,
                 const struct problems *problems)
{
    struct arena scratch = {0};
    BUF_SCOPED line = {0};

    buf_printf(&line, "Made from %s.%s", source,
               problems->n ? " What could not be carried over as it was:" : "");
    value_put_comment(out, buf_view(&line));
    for (size_t i = 0; i < problems->n; i++) {
        const struct problem *p = &problems->items[i];
        line.n = 0;
        buf_printf(&line, "- line %u, %s: %s", p->at.line, p->key, p->text);
        value_put_comment(out, buf_view(&line));
    }
    struct value *ours = convert_map(&scratch, root, "");
    if (ours->n)
        value_put_yaml(out, ours);
    arena_fini(&scratch);
}
