/* A YAML text as a value tree, built from libyaml's events, with aliases and merge keys expanded
 * within a limit. Called by config.c, edit.c, server_edit.c, cmd/servers.c and
 * cmd/host_setup_plan.c. */
#include "base/err.h"
#include "base/library.h"
#include "base/map.h"
#include "base/mem.h"
#include "config/reader.h"

#include <assert.h>
#include <yaml.h>

/*
 * The tree is built from libyaml's events with a stack of open containers. Aliases are expanded by
 * copying, and the copies count like other nodes, so that a small file cannot become a large tree.
 */
struct frame {
    struct value *node;
    bool has_key; /* a map whose next event is the value of `key` */
    struct span key;
    struct place key_at;
};

struct yaml_doc {
    struct arena *arena;
    struct problems *problems;
    struct span text;
    struct value *root;
    struct frame stack[VALUE_MAX_DEPTH];
    size_t depth;
    struct map anchors; /* name -> struct value */
    size_t budget;      /* nodes that may still be made */
};

/* An unquoted "<<" is known by this pointer: a quoted one is an ordinary key. */
static const char merge_key[] = "<<";

static struct place place_of(yaml_mark_t mark)
{
    return (struct place){(unsigned)mark.line + 1, (unsigned)mark.column + 1};
}

static int fail(struct yaml_doc *doc, struct place at, const char *text)
{
    problems_add(doc->problems, PROBLEM_ERROR, at, "", "%s", text);
    return ERR_SYNTAX;
}

static int fail_size(struct yaml_doc *doc, struct place at)
{
    problems_add(doc->problems, PROBLEM_ERROR, at, "",
                 "too large: more than %d values in one file, aliases counted with what they stand "
                 "for",
                 VALUE_MAX_NODES);
    return ERR_SIZE;
}

static bool word_in(struct span text, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (span_is(text, words[i]))
            return true;
    return false;
}

/* YAML's core schema, with the numbers of JSON: yes, on, 0x1f and 1_000 stay text. */
static enum value_type plain_type(struct span text)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};
    static const char *const bools[] = {"true", "True", "TRUE", "false", "False", "FALSE"};

    if (word_in(text, nulls, COUNT_OF(nulls)))
        return VALUE_NULL;
    if (word_in(text, bools, COUNT_OF(bools)))
        return VALUE_BOOL;
    return value_is_number(text) ? VALUE_NUMBER : VALUE_STRING;
}

/* Has the node no tag, or the one of its kind? Other tags ask for types that we do not have. */
static int check_tag(struct yaml_doc *doc, const yaml_char_t *tag, const char *usual,
                     struct place at)
{
    if (!tag || strcmp((const char *)tag, usual) == 0 || strcmp((const char *)tag, "!") == 0)
        return 0;
    problems_add(doc->problems, PROBLEM_ERROR, at, "", "the tag '%s' is not supported; remove it",
                 (const char *)tag);
    return ERR_SYNTAX;
}

/* The innermost open container; NULL outside of all. */
static struct frame *innermost(struct yaml_doc *doc)
{
    if (!doc->depth)
        return NULL;
    struct frame *top = &doc->stack[doc->depth - 1];
    assert(top->node);
    return top;
}

/* Put a finished scalar or a just opened container where it belongs. */
static void place_node(struct yaml_doc *doc, struct value *v)
{
    struct frame *top = innermost(doc);

    if (!top) {
        doc->root = v;
        return;
    }
    if (top->node->type == VALUE_MAP) {
        v->key = top->key;
        v->key_at = top->key_at;
        top->has_key = false;
    }
    value_append(top->node, v);
}

static bool wants_key(struct yaml_doc *doc)
{
    const struct frame *top = innermost(doc);
    return top && top->node->type == VALUE_MAP && !top->has_key;
}

static void take_key(struct yaml_doc *doc, struct span key, struct place at)
{
    struct frame *top = &doc->stack[doc->depth - 1];
    top->has_key = true;
    top->key = key;
    top->key_at = at;
}

static void name_anchor(struct yaml_doc *doc, const yaml_char_t *anchor, struct value *v)
{
    if (anchor)
        map_put(&doc->anchors, span_str((const char *)anchor), v);
}

static int on_scalar(struct yaml_doc *doc, const yaml_event_t *event)
{
    struct span text = span_of((const char *)event->data.scalar.value, event->data.scalar.length);
    struct place at = place_of(event->start_mark);
    bool plain =
        event->data.scalar.plain_implicit && event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    int rc = check_tag(doc, event->data.scalar.tag, YAML_STR_TAG, at);

    if (rc)
        return rc;
    if (!wants_key(doc)) {
        if (!doc->budget)
            return fail_size(doc, at);
        doc->budget--;
    }
    struct value *v = value_new(doc->arena, plain ? plain_type(text) : VALUE_STRING, at);
    v->text = arena_span(doc->arena, text);
    v->truth = v->type == VALUE_BOOL && (text.p[0] | 0x20) == 't';
    name_anchor(doc, event->data.scalar.anchor, v);
    if (!wants_key(doc))
        place_node(doc, v);
    else if (plain && span_is(text, merge_key))
        take_key(doc, span_of(merge_key, sizeof merge_key - 1), at);
    else
        take_key(doc, v->text, at);
    return 0;
}

static int on_open(struct yaml_doc *doc, const yaml_event_t *event, enum value_type type)
{
    struct place at = place_of(event->start_mark);
    bool map = type == VALUE_MAP;
    int rc = check_tag(doc, map ? event->data.mapping_start.tag : event->data.sequence_start.tag,
                       map ? YAML_MAP_TAG : YAML_SEQ_TAG, at);

    if (rc)
        return rc;
    if (wants_key(doc))
        return fail(doc, at, "a key must be plain text, not a list or map");
    if (doc->depth == VALUE_MAX_DEPTH) {
        fail(doc, at, "nested too deeply");
        return ERR_DEPTH;
    }
    if (!doc->budget)
        return fail_size(doc, at);
    doc->budget--;
    struct value *v = value_new(doc->arena, type, at);
    name_anchor(doc, map ? event->data.mapping_start.anchor : event->data.sequence_start.anchor, v);
    place_node(doc, v);
    doc->stack[doc->depth++] = (struct frame){.node = v};
    return 0;
}

/* The number of levels of nodes from `v` down. */
static size_t height(const struct value *v)
{
    size_t most = 0;
    for (const struct value *child = v->first; child; child = child->next) {
        size_t h = height(child);
        most = h > most ? h : most;
    }
    return most + 1;
}

static int on_alias(struct yaml_doc *doc, const yaml_event_t *event)
{
    const char *name = (const char *)event->data.alias.anchor;
    struct place at = place_of(event->start_mark);
    struct value *target = map_get(&doc->anchors, span_str(name));

    if (!target) {
        problems_add(doc->problems, PROBLEM_ERROR, at, "", "there is no '&%s' before this '*%s'",
                     name, name);
        return ERR_SYNTAX;
    }
    for (size_t i = 0; i < doc->depth; i++)
        if (doc->stack[i].node == target)
            return fail(doc, at, "an alias cannot be inside the value it names");
    if (wants_key(doc)) {
        if (target->type == VALUE_LIST || target->type == VALUE_MAP)
            return fail(doc, at, "a key must be plain text, not a list or map");
        take_key(doc, target->text, at);
        return 0;
    }
    struct value *copy = value_copy(doc->arena, target, &doc->budget);
    if (!copy)
        return fail_size(doc, at);
    if (doc->depth + height(copy) > VALUE_MAX_DEPTH) {
        fail(doc, at, "nested too deeply");
        return ERR_DEPTH;
    }
    copy->key = SPAN_EMPTY;
    place_node(doc, copy);
    return 0;
}

/* Copy into `map` those members of `from` whose keys it does not have yet. */
static int merge_map(struct yaml_doc *doc, struct value *map, const struct value *from,
                     struct map *keys)
{
    if (from->type != VALUE_MAP)
        return fail(doc, from->at, "'<<' wants a map or a list of maps");
    for (const struct value *v = from->first; v; v = v->next) {
        if (map_get(keys, v->key))
            continue;
        struct value *copy = value_copy(doc->arena, v, &doc->budget);
        if (!copy)
            return fail_size(doc, v->at);
        value_append(map, copy);
        map_put(keys, copy->key, copy);
    }
    return 0;
}

static int merge(struct yaml_doc *doc, struct value *map, struct value *source)
{
    struct map keys = {0};
    int rc = 0;

    value_remove(map, source);
    for (struct value *v = map->first; v; v = v->next)
        map_put(&keys, v->key, v);
    if (source->type == VALUE_LIST) {
        for (const struct value *v = source->first; v && !rc; v = v->next)
            rc = merge_map(doc, map, v, &keys);
    } else {
        rc = merge_map(doc, map, source, &keys);
    }
    map_fini(&keys);
    return rc;
}

static int on_close(struct yaml_doc *doc)
{
    struct frame *top = innermost(doc);

    assert(top);
    struct value *node = top->node;
    doc->depth--;
    if (node->type != VALUE_MAP)
        return 0;
    value_check_keys(node, doc->problems);
    for (struct value *v = node->first; v; v = v->next)
        if (v->key.p == merge_key)
            return merge(doc, node, v);
    return 0;
}

static int on_event(struct yaml_doc *doc, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return on_scalar(doc, event);
    case YAML_ALIAS_EVENT:
        return on_alias(doc, event);
    case YAML_SEQUENCE_START_EVENT:
        return on_open(doc, event, VALUE_LIST);
    case YAML_MAPPING_START_EVENT:
        return on_open(doc, event, VALUE_MAP);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return on_close(doc);
    case YAML_DOCUMENT_START_EVENT:
        if (doc->root)
            return fail(doc, place_of(event->start_mark), "there is a second document; keep one");
        return 0;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        break;
    }
    return 0;
}

/* The place of an error that libyaml reports by offset alone. */
static struct place place_of_byte(struct span text, size_t offset)
{
    struct place at = {1, 1};

    for (size_t i = 0; i < offset && i < text.n; i++) {
        at.column = text.p[i] == '\n' ? 1 : at.column + 1;
        at.line += text.p[i] == '\n';
    }
    return at;
}

static int report_parser(struct yaml_doc *doc, const yaml_parser_t *parser)
{
    const char *what = parser->problem ? parser->problem : "not readable";
    struct place at = place_of(parser->problem_mark);

    if (parser->error == YAML_READER_ERROR) {
        at = place_of_byte(doc->text, parser->problem_offset);
        problems_add(doc->problems, PROBLEM_ERROR, at, "", "not valid YAML: %s", what);
        return ERR_UTF8;
    }
    bool tab = strstr(what, "cannot start any token") || strstr(what, "tab character");
    problems_add(doc->problems, PROBLEM_ERROR, at, "", "not valid YAML: %s%s%s%s", what,
                 parser->context ? " " : "", parser->context ? parser->context : "",
                 tab ? "; indentation wants spaces, not tabs, and text that starts with one of "
                       "@ ` % needs quotes"
                     : "");
    return ERR_SYNTAX;
}

static int read_events(struct yaml_doc *doc, yaml_parser_t *parser)
{
    int rc = 0;
    bool end = false;

    while (!rc && !end) {
        yaml_event_t event;
        if (!yaml_parser_parse(parser, &event))
            return report_parser(doc, parser);
        end = event.type == YAML_STREAM_END_EVENT;
        rc = on_event(doc, &event);
        yaml_event_delete(&event);
    }
    return rc;
}

struct value *yaml_read(struct arena *a, struct span text, struct problems *problems)
{
    struct yaml_doc doc = {
        .arena = a, .problems = problems, .text = text, .budget = VALUE_MAX_NODES};
    yaml_parser_t parser;
    struct err err;

    if (library_load(LIBRARY_YAML, &err)) {
        fail(&doc, (struct place){0}, err.text);
        return NULL;
    }
    if (!yaml_parser_initialize(&parser)) {
        fail(&doc, (struct place){0}, "out of memory");
        return NULL;
    }
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)(text.p ? text.p : ""), text.n);
    int rc = read_events(&doc, &parser);
    yaml_parser_delete(&parser);
    map_fini(&doc.anchors);
    if (rc)
        return NULL;
    return doc.root ? doc.root : value_new(a, VALUE_NULL, (struct place){1, 1});
}
