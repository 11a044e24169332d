/* Changes of single servers in a configuration file. Called by cmd/servers.c and
 * hub/graph/follow.c; the entries as they stand in the file are shown by admin/servers.c. */
#include "config/server_edit.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/edit.h"
#include "config/load.h"
#include "config/reader.h"
#include "config/value.h"

#include <errno.h>
#include <unistd.h>

/* --- entries as they stand in the file --- */

static struct value *read_text(struct arena *a, struct span text)
{
    struct problems problems = {0};
    BUF_SCOPED plain = {0};
    struct value *root = edit_put_plain(&plain, text)
                             ? json_doc_read(a, buf_view(&plain), &problems)
                             : yaml_read(a, text, &problems);

    problems_fini(&problems);
    return root;
}

static struct value *find_entry(struct arena *a, struct span text, const char *name)
{
    struct value *root = read_text(a, text);
    const struct value *servers = root ? value_get(root, edit_servers(text).keys[0]) : NULL;

    return servers ? value_get(servers, name) : NULL;
}

bool server_edit_put_entry(struct buf *out, const char *path, const char *name)
{
    BUF_SCOPED text = {0};
    struct arena arena = {0};
    const struct value *entry = NULL;

    if (file_read(&text, path, CONFIG_MAX_BYTES) == 0)
        entry = find_entry(&arena, buf_view(&text), name);
    if (entry)
        value_put_json(out, entry, false);
    arena_fini(&arena);
    return entry != NULL;
}

/* --- members that are shown as hidden --- */

static const struct value *member_of(const struct value *map, const struct value *member)
{
    const struct value *it = map->first;

    while (it && !span_eq(value_key(it), value_key(member)))
        it = it->next;
    return it;
}

static bool is_shown_as(const struct value *old, struct span shown)
{
    BUF_SCOPED text = {0};

    if (old->type == VALUE_STRING)
        log_redact(&text, old->text);
    return text.n && span_eq(buf_view(&text), shown);
}

/* The old item that an item of a list stands for: the only one that is shown like it; else the one
 * at its place, if the list is as long as before and the item before it is the same. */
static const struct value *item_of(const struct value *list, const struct value *fresh,
                                   const struct value *item)
{
    const struct value *found = NULL, *old = list->first;
    bool same = list->n == fresh->n;
    size_t n = 0;

    for (const struct value *it = list->first; it; it = it->next)
        if (is_shown_as(it, item->text) && ++n)
            found = it;
    if (n == 1)
        return found;
    for (const struct value *it = fresh->first; it != item && old; it = it->next, old = old->next)
        same = list->n == fresh->n && it->type == old->type && span_eq(it->text, old->text);
    return same ? old : NULL;
}

static bool hides(const struct value *v)
{
    return v->type == VALUE_STRING && memmem(v->text.p, v->text.n, "***", 3);
}

/* Replaces each text that equals the redacted old text by the old text. False: another text has
 * *** in it, or it is not clear which value it stands for. */
static bool restore_hidden(struct value *fresh, const struct value *old)
{
    if (hides(fresh)) {
        bool same = old && is_shown_as(old, fresh->text);
        fresh->text = same ? old->text : fresh->text;
        return same;
    }
    bool alike = old && old->type == fresh->type;
    for (struct value *it = fresh->first; it; it = it->next) {
        if (it->type == VALUE_STRING && !hides(it))
            continue; /* most items of long lists */
        const struct value *twin = !alike                   ? NULL
                                   : old->type == VALUE_MAP ? member_of(old, it)
                                                            : item_of(old, fresh, it);
        if (!restore_hidden(it, twin))
            return false;
    }
    return true;
}

/* --- the edits; each appends the changed text --- */

static int add_entry(const struct server_edit *e, struct buf *out, struct span text,
                     struct err *err)
{
    struct edit_place place = edit_servers(text);

    return edit_put(out, edit_format_of(text), &place, text, span_str(e->name), e->entry, err);
}

static int remove_entry(const struct server_edit *e, struct buf *out, struct span text,
                        struct err *err)
{
    struct edit_place place = edit_servers(text);
    int code = edit_take(out, edit_format_of(text), &place, text, span_str(e->name), err);

    /* A daemon takes a blank file for one that is just being written. */
    if (!code && !span_trim(buf_view(out)).n)
        buf_str(out, "servers: {}\n");
    return code;
}

static int rename_entry(const struct server_edit *e, struct buf *out, struct span text,
                        struct err *err)
{
    struct edit_place place = edit_servers(text);

    return edit_rename(out, edit_format_of(text), &place, text, span_str(e->name),
                       span_str(e->fresh), err);
}

/* The keys by which other programs switch a server. */
static const struct switch_key {
    const char *key;
    bool off; /* true means disabled */
} switch_keys[] = {{"disabled", true}, {"isActive", false}};

/* The key `enabled` of the server, taken out or set to false; another key that its entry has is set
 * to the word that is meant. */
static int switch_entry(const struct server_edit *e, struct buf *out, struct span text,
                        struct err *err)
{
    enum edit_format format = edit_format_of(text);
    struct edit_place all = edit_servers(text), own = {.keys = {all.keys[0], e->name}};
    bool enable = e->act == SERVER_EDIT_ENABLE;
    BUF_SCOPED without = {0};
    struct arena arena = {0};
    const struct switch_key *theirs = NULL;
    int code = edit_take(&without, format, &all, text, span_str(e->name), err);

    if (code == -ENOENT)
        return code;
    const struct value *entry = find_entry(&arena, text, e->name);
    for (size_t i = 0; i < COUNT_OF(switch_keys); i++)
        if (entry && value_get(entry, switch_keys[i].key))
            theirs = &switch_keys[i];
    arena_fini(&arena);
    if (theirs)
        return edit_set(out, format, &own, text, span_str(theirs->key),
                        enable == theirs->off ? SPAN("false") : SPAN("true"), err);
    if (!enable)
        return edit_set(out, format, &own, text, SPAN("enabled"), SPAN("false"), err);
    code = edit_take(out, format, &own, text, SPAN("enabled"), err);
    if (code != -ENOENT)
        return code;
    buf_span(out, text); /* it is enabled already */
    return 0;
}

/* Does the member stand in both maps, with the same value? */
static bool is_kept(const struct value *member, const struct value *other)
{
    BUF_SCOPED one = {0}, two = {0};
    const struct value *twin = member_of(other, member);

    if (!twin)
        return false;
    value_put_json(&one, member, false);
    value_put_json(&two, twin, false);
    return span_eq(buf_view(&one), buf_view(&two));
}

/* `text` becomes the text without this member, or with it. */
static int edit_member(struct buf *text, const struct edit_place *own, const struct value *member,
                       bool put, struct err *err)
{
    BUF_SCOPED out = {0}, json = {0};
    enum edit_format format = edit_format_of(buf_view(text));

    value_put_json(&json, member, false);
    int code =
        put ? edit_put(&out, format, own, buf_view(text), value_key(member), buf_view(&json), err)
            : edit_take(&out, format, own, buf_view(text), value_key(member), err);
    text->n = 0;
    buf_span(text, buf_view(&out));
    return code;
}

/* Members that differ are taken out and put in again; all others stay, byte for byte. */
static int change_entry(const struct server_edit *e, struct buf *out, struct span text,
                        struct err *err)
{
    struct edit_place own = {.keys = {edit_servers(text).keys[0], e->name}, .keeps_empty = true};
    struct arena arena = {0};
    const struct value *old = find_entry(&arena, text, e->name);
    struct value *fresh = read_text(&arena, e->entry);
    int code = 0;

    if (!old)
        code = err_set(err, -ENOENT, "there is no server '%s' in the file", e->name);
    else if (!fresh || fresh->type != VALUE_MAP)
        code = err_set(err, ERR_CONFIG, "the entry is not a JSON object");
    else if (!restore_hidden(fresh, old))
        code = err_set(err, ERR_CONFIG,
                       "a value that is shown as *** was changed or moved: leave it as it is "
                       "shown, or write the whole value");
    buf_span(out, text);
    for (const struct value *it = code ? NULL : old->first; it && !code; it = it->next)
        if (!is_kept(it, fresh))
            code = edit_member(out, &own, it, false, err);
    for (const struct value *it = code ? NULL : fresh->first; it && !code; it = it->next)
        if (!is_kept(it, old))
            code = edit_member(out, &own, it, true, err);
    arena_fini(&arena);
    return code;
}

/* --- the file --- */

/* A server must not get away from a rule by a new name. */
static int check_rules(const struct server_edit *e, const struct config *config, struct err *err)
{
    for (size_t i = 0; e->act == SERVER_EDIT_RENAME && i < config->rules.n; i++) {
        struct span server = span_str(config->rules.items[i].server);
        if (!server.n || !span_glob(server, span_str(e->name)) ||
            span_glob(server, span_str(e->fresh)))
            continue;
        err_set(err, -ENOTSUP, "rule %zu is about '%s', and would not be about '%s'", i + 1,
                e->name, e->fresh);
        err_hint(err, "change the 'server' of this rule first, to the new name or a pattern");
        return -ENOTSUP;
    }
    return 0;
}

static int not_edited(const char *path, struct err *err)
{
    err_set(err, -ENOTSUP, "%s has the servers of another program, which are not edited here",
            path);
    err_hint(err, "edit them with that program, or make a file of ours of it: rialto import %s",
             path);
    return -ENOTSUP;
}

/* Does the edited file mean what was wanted? Other programs have their servers elsewhere, and more
 * keys than one may disable a server. */
static int check_effect(const char *path, const struct server_edit *e, const struct config *config,
                        struct err *err)
{
    bool switches = e->act == SERVER_EDIT_ENABLE || e->act == SERVER_EDIT_DISABLE;
    const struct config_server *s =
        config_server(config, e->act == SERVER_EDIT_RENAME ? e->fresh : e->name);

    if (!s != (e->act == SERVER_EDIT_REMOVE))
        return not_edited(path, err);
    if (!switches || s->enabled == (e->act == SERVER_EDIT_ENABLE))
        return check_rules(e, config, err);
    err_set(err, -ENOTSUP, "'%s' would still be %s", e->name, s->enabled ? "enabled" : "disabled");
    err_hint(err, "another key says so; look at enabled_servers, and at the whole entry");
    return -ENOTSUP;
}

/* Is the new text of the file a valid configuration that means what was wanted? */
static int check_text(const char *path, const struct server_edit *e, struct span text,
                      struct err *err)
{
    struct problems problems = {0};
    struct config *config = config_parse(text, config_format_of(path, text), &problems);
    int code = config ? check_effect(path, e, config, err) : ERR_CONFIG;

    for (size_t i = 0; !config && i < problems.n; i++)
        if (problems.items[i].level == PROBLEM_ERROR) {
            err_set(err, code, "%s would not be valid: line %u, %s: %s", path,
                    problems.items[i].at.line, problems.items[i].key, problems.items[i].text);
            break;
        }
    problems_fini(&problems);
    config_free(config);
    return code;
}

/* Has the file a server of this name, although the edit did not find it? */
static bool is_elsewhere(const char *path, const struct server_edit *e, struct span text)
{
    struct problems problems = {0};
    struct config *config = config_parse(text, config_format_of(path, text), &problems);
    bool there = config && config_server(config, e->name);

    problems_fini(&problems);
    config_free(config);
    return there;
}

static int edit_locked(const char *path, const struct server_edit *e, struct server_edit_done *done,
                       struct err *err)
{
    static int (*const edits[])(const struct server_edit *e, struct buf *out, struct span text,
                                struct err *err) = {
        [SERVER_EDIT_ADD] = add_entry,       [SERVER_EDIT_CHANGE] = change_entry,
        [SERVER_EDIT_REMOVE] = remove_entry, [SERVER_EDIT_RENAME] = rename_entry,
        [SERVER_EDIT_ENABLE] = switch_entry, [SERVER_EDIT_DISABLE] = switch_entry};
    int code = file_read(&done->before, path, CONFIG_MAX_BYTES);
    struct span before = buf_view(&done->before);

    done->made = code == -ENOENT;
    if (code && !done->made)
        return err_set(err, code, "cannot read %s: %s", path, err_name(code));
    if (done->made && e->act != SERVER_EDIT_ADD)
        return err_set(err, code, "there is no %s", path);
    code = edits[e->act](e, &done->after, before, err);
    if (code == -ENOENT && is_elsewhere(path, e, before))
        code = not_edited(path, err);
    struct span after = buf_view(&done->after);
    if (!code)
        code = check_text(path, e, after, err);
    if (code || span_eq(before, after))
        return code;
    if (!done->made)
        return edit_replace_file(path, after, err);
    code = file_replace(path, after);
    return code ? err_set(err, code, "cannot write %s: %s", path, err_name(code)) : 0;
}

int server_edit_file(const char *path, const struct server_edit *e, unsigned ms,
                     struct server_edit_done *done, struct err *err)
{
    *done = (struct server_edit_done){0};
    if (e->act == SERVER_EDIT_ADD)
        file_make_folders(path);
    done->lock = edit_lock(path, ms, err);
    int code = done->lock < 0 ? done->lock : edit_locked(path, e, done, err);

    if (code)
        server_edit_end(done);
    return code;
}

void server_edit_end(struct server_edit_done *done)
{
    if (done->lock >= 0)
        close(done->lock);
    buf_fini(&done->before);
    buf_fini(&done->after);
}
