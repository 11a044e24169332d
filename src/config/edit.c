/* Edits of a document, whatever its format: the entry is found, the format's editor changes the
 * text, and the result is read again and compared. Called by server_edit.c, cmd/host_setup*.c,
 * cmd/import.c, cmd/token.c, hub/graph/follow.c, and by hub/bus_host.c when agents add or remove
 * servers. */
#include "config/edit_inside.h"

#include "base/file.h"
#include "base/mem.h"
#include "config/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { LOCK_STEP_MS = 10 };

const struct edit_place edit_tokens = {
    .keys = {"auth", "tokens"}, .list = true, .keeps_empty = true};

static struct span bom_of(struct span text)
{
    return span_starts(text, SPAN("\xef\xbb\xbf")) ? span_cut(text, 0, 3) : span_cut(text, 0, 0);
}

bool edit_put_plain(struct buf *out, struct span text)
{
    struct span bom = bom_of(text);
    enum json_type type;

    for (size_t i = 0; i < bom.n; i++)
        buf_char(out, ' ');
    return json_doc_relax(out, span_from(text, bom.n)) &&
           json_skim(buf_view(out), NULL, NULL, &type, NULL) == 0 && type == JSON_OBJECT;
}

enum edit_format edit_format_of(struct span text)
{
    BUF_SCOPED plain = {0};

    return edit_put_plain(&plain, text) ? EDIT_JSON : EDIT_YAML;
}

/* --- a document and the way to the place --- */

/* Are there line ends that YAML knows besides "\n"? The editor counts only "\n". */
static bool has_odd_line_ends(struct span text)
{
    for (size_t i = 0; i < text.n; i++) {
        struct span rest = span_from(text, i);
        if ((rest.p[0] == '\r' && !span_starts(rest, SPAN("\r\n"))) ||
            span_starts(rest, SPAN("\xc2\x85")) || span_starts(rest, SPAN("\xe2\x80\xa8")) ||
            span_starts(rest, SPAN("\xe2\x80\xa9")))
            return true;
    }
    return false;
}

static struct value *read_tree(struct edited *d, enum edit_format format)
{
    struct problems problems = {0};
    struct value *root = NULL;
    struct span text = d->text.n ? d->text : SPAN("");

    if (format == EDIT_YAML && !has_odd_line_ends(text))
        root = yaml_read(&d->arena, text, &problems);
    else if (format == EDIT_TOML)
        root = toml_read(&d->arena, text, &problems);
    else if (format == EDIT_JSON && edit_put_plain(&d->plain, text))
        root = json_doc_read(&d->arena, buf_view(&d->plain), &problems);
    if (problems.errors)
        root = NULL; /* also when a key occurs twice: it is not clear which one counts */
    problems_fini(&problems);
    return root;
}

static void close_document(struct edited *d)
{
    buf_fini(&d->plain);
    arena_fini(&d->arena);
}

/* False when the text cannot be read, or has a value of another type on the way to the place. */
static bool open_document(struct edited *d, enum edit_format format, const struct edit_place *place,
                          struct span text)
{
    *d = (struct edited){.place = place, .text = text};
    while (place->keys[d->wanted])
        d->wanted++;
    d->chain[0] = read_tree(d, format);
    for (; d->chain[0] && d->found < d->wanted; d->found++) {
        d->chain[d->found + 1] = value_get(d->chain[d->found], place->keys[d->found]);
        if (!d->chain[d->found + 1])
            break;
    }
    for (size_t i = 0; d->chain[0] && i <= d->found; i++) {
        bool last = i == d->wanted;
        enum value_type type = d->chain[i]->type;
        if (type != VALUE_NULL && type != (last && place->list ? VALUE_LIST : VALUE_MAP))
            d->chain[0] = NULL;
    }
    if (d->chain[0])
        return true;
    close_document(d);
    return false;
}

static struct span name_of(const struct edited *d, const struct value *v)
{
    const struct value *name = d->place->list ? value_get(v, "name") : NULL;

    return name ? name->text : v->key;
}

static struct value *find_entry(const struct edited *d, struct span name)
{
    const struct value *all = edit_all(d);

    for (struct value *v = all ? all->first : NULL; v; v = v->next)
        if (span_eq(name_of(d, v), name))
            return v;
    return NULL;
}

/* --- text --- */

void edit_splice(struct buf *out, struct span text, const struct edited_cut *cuts, size_t n)
{
    size_t at = 0;

    for (size_t i = 0; i < n; i++) {
        buf_span(out, span_cut(text, at, cuts[i].at - at));
        buf_span(out, cuts[i].with);
        at = cuts[i].at + cuts[i].n;
    }
    buf_span(out, span_from(text, at));
}

struct span edit_newline(struct span text)
{
    size_t at = span_find(text, '\n');

    return at && at < text.n && text.p[at - 1] == '\r' ? SPAN("\r\n") : SPAN("\n");
}

size_t edit_line(struct span text, unsigned line)
{
    size_t at = 0;

    while (line > 1 && at < text.n) {
        at += span_find(span_from(text, at), '\n') + 1;
        line--;
    }
    return at < text.n ? at : text.n;
}

size_t edit_offset(struct span text, struct place at)
{
    size_t offset = edit_line(text, at.line);

    for (unsigned column = 1; column < at.column && offset < text.n; column++)
        do
            offset++;
        while (offset < text.n && ((unsigned char)text.p[offset] & 0xc0) == 0x80);
    return offset;
}

/* --- what a document should have become --- */

/* The document as one line of JSON. Empty maps and lists on the way to the place are left out,
 * unless the place keeps_empty. */
static void put_pruned(struct buf *out, struct edited *d)
{
    for (size_t i = d->found; i > 0 && !d->chain[i]->n && !d->place->keeps_empty; i--)
        value_remove(d->chain[i - 1], d->chain[i]);
    if (d->chain[0]->n)
        value_put_json(out, d->chain[0], false);
}

/* The map or list of the place in the tree, made where it is missing. */
static struct value *make_place(struct edited *d)
{
    for (size_t i = 0; i <= d->wanted; i++) {
        enum value_type type = i == d->wanted && d->place->list ? VALUE_LIST : VALUE_MAP;
        if (i > d->found) {
            d->chain[i] = value_new(&d->arena, type, (struct place){0});
            d->chain[i]->key = span_str(d->place->keys[i - 1]);
            value_append(d->chain[i - 1], d->chain[i]);
        }
        d->chain[i]->type = type;
    }
    d->found = d->wanted;
    return d->chain[d->wanted];
}

static int refuse(struct err *err)
{
    err_set(err, ERR_CONFIG, "the file is of a form that is not edited here");
    err_hint(err, "edit it by hand");
    return ERR_CONFIG;
}

/* Appends `edited` to `out` if reading it gives the changed tree of `d`. */
static int finish(struct buf *out, enum edit_format format, struct edited *d, struct buf *edited,
                  struct err *err)
{
    BUF_SCOPED expected = {0}, got = {0};
    struct edited after;

    if (!open_document(&after, format, d->place, buf_view(edited)))
        return refuse(err);
    put_pruned(&expected, d);
    put_pruned(&got, &after);
    bool same = span_eq(buf_view(&expected), buf_view(&got));
    close_document(&after);
    if (!same)
        return refuse(err);
    buf_span(out, buf_view(edited));
    return 0;
}

static int begin(struct edited *d, enum edit_format format, const struct edit_place *place,
                 struct span text, struct err *err)
{
    if (open_document(d, format, place, text))
        return 0;
    err_set(err, ERR_SYNTAX, "the file cannot be read as %s, or has something else at '%s'",
            format == EDIT_JSON   ? "JSON"
            : format == EDIT_TOML ? "TOML"
                                  : "YAML",
            place->keys[0]);
    err_hint(err, "edit it by hand");
    return ERR_SYNTAX;
}

static int no_entry(struct err *err, struct span name)
{
    return err_set(err, -ENOENT, "there is no '" SPAN_FMT "' in the file", SPAN_ARG(name));
}

/* --- the edits --- */

static int put(struct buf *out, enum edit_format format, const struct edit_place *place,
               struct span text, struct span name, struct span entry, struct err *err)
{
    struct problems problems = {0};
    BUF_SCOPED edited = {0};
    struct edited d;
    int code = begin(&d, format, place, text, err);

    if (code)
        return code;
    struct value *v = json_doc_read(&d.arena, entry, &problems);
    problems_fini(&problems);
    if (find_entry(&d, name) || !v) {
        code = err_set(err, -EEXIST, "there is a '" SPAN_FMT "' already", SPAN_ARG(name));
        close_document(&d);
        return code;
    }
    v->key = arena_span(&d.arena, name);
    if (format == EDIT_JSON)
        edit_json_put(&edited, &d, name, entry);
    else if (format == EDIT_YAML)
        edit_yaml_put(&edited, &d, v);
    else
        edit_toml_put(&edited, &d, name, v);
    if (place->list)
        v->key = SPAN_EMPTY;
    value_append(make_place(&d), v);
    code = finish(out, format, &d, &edited, err);
    close_document(&d);
    return code;
}

int edit_take(struct buf *out, enum edit_format format, const struct edit_place *place,
              struct span text, struct span name, struct err *err)
{
    static void (*const editors[])(struct buf *, const struct edited *, const struct value *) = {
        [EDIT_JSON] = edit_json_take, [EDIT_YAML] = edit_yaml_take, [EDIT_TOML] = edit_toml_take};
    BUF_SCOPED edited = {0};
    struct edited d;
    int code = begin(&d, format, place, text, err);

    if (code)
        return code;
    struct value *v = find_entry(&d, name);
    if (v) {
        editors[format](&edited, &d, v);
        value_remove(edit_all(&d), v);
        code = finish(out, format, &d, &edited, err);
    } else {
        code = no_entry(err, name);
    }
    close_document(&d);
    return code;
}

int edit_put(struct buf *out, enum edit_format format, const struct edit_place *place,
             struct span text, struct span name, struct span entry, struct err *err)
{
    BUF_SCOPED edited = {0}, back = {0};
    int code = put(&edited, format, place, text, name, entry, err);

    if (!code && (edit_take(&back, format, place, buf_view(&edited), name, err) ||
                  (!place->keeps_empty && !span_eq(buf_view(&back), text))))
        code = refuse(err);
    if (!code)
        buf_span(out, buf_view(&edited));
    return code;
}

int edit_rename(struct buf *out, enum edit_format format, const struct edit_place *place,
                struct span text, struct span name, struct span fresh, struct err *err)
{
    BUF_SCOPED edited = {0};
    struct edited d;
    int code = begin(&d, format, place, text, err);

    if (code)
        return code;
    struct value *v = find_entry(&d, name);
    if (!v) {
        code = no_entry(err, name);
    } else if (find_entry(&d, fresh)) {
        code = err_set(err, -EEXIST, "there is a '" SPAN_FMT "' already", SPAN_ARG(fresh));
    } else {
        if (format == EDIT_JSON)
            edit_json_rename(&edited, &d, v, fresh);
        else if (format == EDIT_YAML)
            edit_yaml_rename(&edited, &d, v, fresh);
        v->key = fresh;
        code = finish(out, format, &d, &edited, err);
    }
    close_document(&d);
    return code;
}

int edit_set(struct buf *out, enum edit_format format, const struct edit_place *place,
             struct span text, struct span name, struct span value, struct err *err)
{
    BUF_SCOPED edited = {0};
    struct edited d;
    int code = begin(&d, format, place, text, err);

    if (code)
        return code;
    struct value *v = find_entry(&d, name), *fresh = NULL;
    if (v) {
        struct problems problems = {0};
        fresh = json_doc_read(&d.arena, value, &problems);
        problems_fini(&problems);
        if (format == EDIT_JSON)
            edit_json_set(&edited, &d, v, value);
        else if (format == EDIT_YAML)
            edit_yaml_set(&edited, &d, v, value);
        if (fresh) {
            v->type = fresh->type;
            v->text = fresh->text;
            v->truth = fresh->truth;
        }
        code = finish(out, format, &d, &edited, err);
    }
    close_document(&d);
    return v ? code : edit_put(out, format, place, text, name, value, err);
}

/* --- our own files --- */

struct edit_place edit_servers(struct span text)
{
    static const struct edit_place root = {.keys = {NULL}};
    static const struct edit_place places[] = {{.keys = {"servers"}}, {.keys = {"mcpServers"}}};
    bool theirs = false;
    struct edited d;

    if (open_document(&d, edit_format_of(text), &root, text)) {
        theirs = value_get(d.chain[0], "mcpServers") != NULL;
        close_document(&d);
    }
    return places[theirs];
}

/* The lock is on the folder: each edit replaces the file, and a lock on the old file is useless. */
int edit_lock(const char *path, unsigned ms, struct err *err)
{
    char *real = realpath(path, NULL);
    char *folder = real ? real : mem_str(path), *slash = strrchr(folder, '/');

    if (slash)
        slash[slash == folder] = '\0';
    int fd = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int code = fd < 0 ? -errno : flock(fd, LOCK_EX | LOCK_NB) ? -errno : 0;
    for (unsigned waited = 0; code == -EWOULDBLOCK && waited < ms; waited += LOCK_STEP_MS) {
        (void)poll(NULL, 0, LOCK_STEP_MS);
        code = flock(fd, LOCK_EX | LOCK_NB) ? -errno : 0;
    }
    free(folder);
    if (!code)
        return fd;
    if (fd >= 0)
        close(fd);
    return err_set(err, code, "cannot lock %s: %s", path,
                   code == -EWOULDBLOCK ? "another program edits it" : strerror(-code));
}

int edit_replace_file(const char *path, struct span text, struct err *err)
{
    char *real = realpath(path, NULL); /* a symbolic link stays a link */
    BUF_SCOPED old = {0};

    if (real)
        buf_printf(&old, "%s.bak", real);
    int code = real ? file_replace_keeping(real, text, buf_cstr(&old)) : -errno;
    free(real);
    return code ? err_set(err, code, "cannot write %s: %s", path, strerror(-code)) : 0;
}

int edit_undo_file(const char *path, struct span ours, struct span before, bool made,
                   struct err *err)
{
    BUF_SCOPED now = {0};
    int code = file_read(&now, path, ours.n + 1);

    if (code || !span_eq(buf_view(&now), ours))
        return err_set(err, -EBUSY, "%s was changed by another program meanwhile", path);
    if (!made)
        return edit_replace_file(path, before, err);
    return unlink(path) ? err_set(err, -errno, "cannot remove %s: %s", path, strerror(errno)) : 0;
}
