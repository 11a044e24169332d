/* Writes the files that setup changes, with backups and a journal, and undoes the changes. Called
 * by setup.c.
 *
 * The journal is backups/setup.json in the state folder, a record for each file:
 *
 *   {"host", "path", "made", "backup", "after", "put": [NAME...],
 *    "taken": [{"place", "list", "name", "entry"}...], "servers": {ALIAS: [HOST...]}}
 *
 * `after` is the digest of what setup wrote: as long as the file is unchanged, undo restores its
 * backup. Otherwise undo takes out the entries in `put` and puts back those in `taken` one by one.
 * The record of the user's configuration has the host ""; its `servers` says which hosts the new
 * servers came from. */
#include "base/file.h"
#include "base/mem.h"
#include "base/sha.h"
#include "cmd/host_setup.h"
#include "config/load.h"
#include "hub/places.h"
#include "wire/json_out.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

enum { JOURNAL_MAX = 16 * 1024 * 1024, DIGEST_SIZE = 2 * SHA256_N + 1, LOCK_MS = 10 * 1000 };

static void put_digest(char out[DIGEST_SIZE], struct span text)
{
    unsigned char digest[SHA256_N];

    sha_256(digest, text);
    for (size_t i = 0; i < SHA256_N; i++)
        snprintf(out + 2 * i, 3, "%02x", digest[i]);
}

static char *backup_path(struct span name)
{
    BUF_SCOPED below = {0};

    buf_printf(&below, "backups/" SPAN_FMT, SPAN_ARG(name));
    return place_path(PLACE_STATE, buf_cstr(&below));
}

/* Reads the journal; an empty list when there is no file. */
static int read_journal(struct buf *out, const struct command *self)
{
    char *path = backup_path(SPAN("setup.json"));
    int code = path ? file_read(out, path, JOURNAL_MAX) : -ENOENT;
    enum json_type type;

    if (code == -ENOENT) {
        buf_str(out, "[]");
        code = path ? 0 : code;
    }
    if (!code && (json_skim(buf_view(out), NULL, NULL, &type, NULL) || type != JSON_ARRAY))
        code = ERR_SYNTAX;
    if (code)
        cmd_error(self, "cannot read the journal %s: %s", path ? path : "of setup", err_name(code));
    mem_free(path);
    return code;
}

static int write_journal(struct span text, const struct command *self)
{
    char *path = backup_path(SPAN("setup.json"));
    int code = 0;

    if (span_is(text, "[]")) {
        (void)unlink(path);
    } else {
        code = file_replace(path, text);
    }
    if (code)
        cmd_error(self, "cannot write %s: %s", path, err_name(code));
    mem_free(path);
    return code;
}

/* The record of this file in the journal; empty when there is none. */
static struct span find_record(struct span journal, const char *real)
{
    for (struct json_iter it = json_iter(journal); json_next(&it);)
        if (json_string_is(json_get(it.value, "path").value, span_str(real)))
            return it.value;
    return SPAN_EMPTY;
}

static struct span text_of(struct span record, const char *key, struct buf *scratch)
{
    struct json_slot slot = json_get(record, key);

    scratch->n = 0;
    return slot.type == JSON_STRING ? json_text(slot.value, scratch) : SPAN_EMPTY;
}

/* Does the record have this entry, of the same place in the file? */
static bool took(struct span taken, const struct host_setup_entry *e)
{
    struct json_iter at = json_iter(json_get(taken, "place").value);
    size_t n = 0;

    while (json_next(&at))
        if (!e->place.keys[n] || !json_string_is(at.value, span_str(e->place.keys[n++])))
            return false;
    return !e->place.keys[n] && json_string_is(json_get(taken, "name").value, e->name);
}

/* Append the elements of a member that is an array or an object, without its brackets. */
static void put_inside(struct buf *out, struct span record, const char *key)
{
    struct json_slot slot = {0};

    if (record.n)
        slot = json_get(record, key);
    if (slot.type != JSON_ARRAY && slot.type != JSON_OBJECT)
        return;
    for (struct json_iter it = json_iter(slot.value); json_next(&it);) {
        if (out->p[out->n - 1] != '[' && out->p[out->n - 1] != '{')
            buf_char(out, ',');
        buf_span(out, it.member);
    }
}

/* --- writing records --- */

static void put_taken(struct buf *out, const struct host_setup_entry *e)
{
    if (!e)
        return;
    put_taken(out, e->next); /* the list is in reverse; at most HOST_SETUP_ENTRIES long */
    json_out_open(out, NULL, '{');
    json_out_open(out, "place", '[');
    for (size_t i = 0; e->place.keys[i]; i++)
        json_out_str(out, NULL, e->place.keys[i]);
    buf_char(out, ']');
    json_out_bool(out, "list", e->place.list);
    json_out_text(out, "name", e->name);
    json_out_raw(out, "entry", e->entry);
    buf_char(out, '}');
}

/* Append what earlier runs have taken, without entries that came back into the file and are taken
 * again now. */
static void put_taken_before(struct buf *out, struct span old, const struct host_setup_file *f)
{
    struct json_slot list = old.n ? json_get(old, "taken") : (struct json_slot){0};

    if (list.type != JSON_ARRAY)
        return;
    for (struct json_iter it = json_iter(list.value); json_next(&it);) {
        const struct host_setup_entry *e = f->taken;
        while (e && !took(it.value, e))
            e = e->next;
        if (!e)
            json_out_raw(out, NULL, it.value);
    }
}

/* Is the server `alias` of the user's configuration one that the host has in this file? */
static bool gave(const struct host_setup_file *f, struct span alias)
{
    for (const struct host_setup_entry *e = f->taken; e; e = e->next)
        if (span_eq(e->alias, alias))
            return true;
    return false;
}

static bool is_listed(struct span list, struct span text)
{
    for (struct json_iter it = json_iter(list); json_next(&it);)
        if (json_string_is(it.value, text))
            return true;
    return false;
}

/* The servers that setup put into the configuration, each with the hosts that it came from. */
static void put_servers(struct buf *out, const struct host_setup *s, struct span old)
{
    struct json_slot before = {0};
    size_t at = 0;

    if (old.n)
        before = json_get(old, "servers");
    json_out_open(out, "servers", '{');
    for (const struct value *v = s->servers->first; v; v = v->next, at++) {
        BUF_SCOPED key = {0};
        buf_span(&key, v->key);
        struct json_slot known = {0};
        if (before.type == JSON_OBJECT)
            known = json_get(before.value, buf_cstr(&key));
        if (at < s->before && known.type != JSON_ARRAY)
            continue; /* the user's own */
        json_out_open(out, buf_cstr(&key), '[');
        put_inside(out, before.type == JSON_OBJECT ? before.value : SPAN("{}"), buf_cstr(&key));
        for (size_t i = 0; i < s->n; i++)
            if (gave(&s->files[i], v->key) &&
                !(known.type == JSON_ARRAY &&
                  is_listed(known.value, span_str(s->files[i].host->name))))
                json_out_str(out, NULL, s->files[i].host->name);
        buf_char(out, ']');
    }
    buf_char(out, '}');
}

/* The record of a file that is about to be written, merged with its record of an earlier run. */
static void put_record(struct buf *out, const struct host_setup *s, const struct host_setup_file *f,
                       struct span old)
{
    char before[DIGEST_SIZE], after[DIGEST_SIZE];
    BUF_SCOPED scratch = {0};

    put_digest(before, buf_view(&f->before));
    put_digest(after, buf_view(&f->after));
    /* If the file was changed between two runs of setup, the backup lacks that change. */
    bool whole = !old.n || span_is(text_of(old, "after", &scratch), before);
    json_out_open(out, NULL, '{');
    json_out_str(out, "host", f->host ? f->host->name : "");
    json_out_str(out, "path", f->real);
    json_out_bool(out, "made", old.n ? json_get(old, "made").type == JSON_TRUE : f->made);
    json_out_text(out, "backup", old.n ? text_of(old, "backup", &scratch) : buf_view(&f->backup));
    json_out_str(out, "after", whole ? after : "");
    json_out_open(out, "put", '[');
    put_inside(out, old, "put");
    if (f->put && !(old.n && is_listed(json_get(old, "put").value, span_str(f->put))))
        json_out_str(out, NULL, f->put);
    buf_char(out, ']');
    json_out_open(out, "taken", '[');
    put_taken_before(out, old, f);
    put_taken(out, f->taken);
    buf_char(out, ']');
    if (!f->host)
        put_servers(out, s, old);
    buf_char(out, '}');
}

/* --- writing the files --- */

/* Writes a backup of the file under an unused name. */
static int keep_backup(const struct host_setup *s, struct host_setup_file *f)
{
    const char *base = strrchr(f->real, '/');
    int code = 0;

    for (int i = 1; !f->backup.n; i++) {
        buf_printf(&f->backup, "%s-%s", f->host ? f->host->name : "own", base ? base + 1 : f->real);
        if (i > 1)
            buf_printf(&f->backup, "-%d", i);
        char *path = backup_path(buf_view(&f->backup));
        if (access(path, F_OK) == 0)
            f->backup.n = 0;
        else
            code = file_replace(path, buf_view(&f->before));
        if (code)
            cmd_error(s->args->command, "cannot write %s: %s", path, err_name(code));
        mem_free(path);
    }
    return code;
}

static void drop_backup(struct span name)
{
    char *path = name.n ? backup_path(name) : NULL;

    if (path)
        (void)unlink(path);
    mem_free(path);
}

/* The files that setup changes; with `over`, those that it has written. The user's configuration is
 * the last one: its record says which hosts the servers came from. */
static size_t list_files(struct host_setup *s, bool over, struct host_setup_file **all)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++)
        if (over ? s->files[i].written : host_setup_changes(&s->files[i]))
            all[n++] = &s->files[i];
    if (n || (over ? s->config.written : host_setup_changes(&s->config)))
        all[n++] = &s->config;
    return n;
}

/* Writes the journal: the records of these files instead of their `old` ones, backups first. */
static int write_records(struct host_setup *s, bool over, struct span old)
{
    BUF_SCOPED journal = {0};
    struct host_setup_file *all[HOST_SETUP_FILES + 1];
    size_t n = list_files(s, over, all);
    int code = 0;

    buf_char(&journal, '[');
    for (struct json_iter it = json_iter(old); json_next(&it);) {
        bool again = false;
        for (size_t i = 0; i < n; i++)
            again |= json_string_is(json_get(it.value, "path").value, span_str(all[i]->real));
        if (!again)
            json_out_raw(&journal, NULL, it.value);
    }
    for (size_t i = 0; !code && i < n; i++) {
        struct span record = find_record(old, all[i]->real);
        if (!record.n && !all[i]->made)
            code = keep_backup(s, all[i]);
        if (!code)
            put_record(&journal, s, all[i], record);
    }
    buf_char(&journal, ']');
    return code ? code : write_journal(buf_view(&journal), s->args->command);
}

/* A file that could not be written gets its old record back: undo would take the new one for what
 * was done. */
static void forget_unwritten(struct host_setup *s, struct span old)
{
    struct host_setup_file *written[HOST_SETUP_FILES + 1];
    size_t n = list_files(s, true, written);

    if (write_records(s, true, old))
        return;
    for (size_t i = 0; i < s->n; i++)
        if (!s->files[i].written)
            drop_backup(buf_view(&s->files[i].backup));
    if (!n)
        drop_backup(buf_view(&s->config.backup));
}

static int write_file(const struct host_setup *s, struct host_setup_file *f)
{
    BUF_SCOPED now = {0};
    int code = f->made ? 0 : file_read(&now, f->real, CONFIG_MAX_BYTES);

    if (f->made && access(f->real, F_OK) == 0)
        code = -EEXIST;
    if (!code && !f->made && !span_eq(buf_view(&now), buf_view(&f->before)))
        code = -EBUSY;
    if (!code && f->made)
        file_make_folders(f->real);
    if (!code)
        code = f->made ? file_replace(f->real, buf_view(&f->after))
                       : file_replace_keeping(f->real, buf_view(&f->after), NULL);
    if (code)
        cmd_error(s->args->command, "%s is left as it is: %s", f->path,
                  code == -EBUSY || code == -EEXIST ? "it has just been changed; run setup again"
                                                    : err_name(code));
    f->written = !code;
    return code;
}

/* The user's configuration is written first, so that no server is ever in neither file. */
static int write_files(struct host_setup *s)
{
    int code = host_setup_changes(&s->config) ? write_file(s, &s->config) : 0;

    for (size_t i = 0; !code && i < s->n; i++)
        if (host_setup_changes(&s->files[i]))
            code = write_file(s, &s->files[i]);
    return code;
}

int host_setup_carry_out(struct host_setup *s)
{
    BUF_SCOPED old = {0};
    struct err err = {0};

    if (s->config.made)
        file_make_folders(s->config.real);
    int lock = edit_lock(s->config.real, LOCK_MS, &err);
    if (lock < 0) {
        cmd_error(s->args->command, "%s", err.text);
        return lock;
    }
    int code = read_journal(&old, s->args->command);
    if (!code)
        code = write_records(s, false, buf_view(&old));
    if (!code) {
        code = write_files(s);
        if (code)
            forget_unwritten(s, buf_view(&old));
    }
    close(lock);
    return code;
}

/* --- undoing --- */

/* One file whose changes are being undone. */
struct undoing {
    const struct args *args;
    const struct host_program *host; /* NULL: the user's configuration */
    struct span record;
    const char *path;
    struct buf text; /* the current text of the file, then the new one */
    bool gone;       /* the file is to be removed, or does not exist */
    bool ours;       /* the file is as setup left it */
};

static int take_out(struct undoing *u, const struct edit_place *place, enum edit_format format,
                    struct span name, struct err *err)
{
    struct buf next = {0};
    int code = edit_take(&next, format, place, buf_view(&u->text), name, err);

    if (code == -ENOENT) {
        buf_fini(&next);
        return 0; /* the entry was removed already */
    }
    buf_fini(&u->text);
    u->text = next;
    return code;
}

static int put_back(struct undoing *u, struct span taken, struct err *err)
{
    struct json_slot keys = json_get(taken, "place");
    struct edit_place place = {.list = json_get(taken, "list").type == JSON_TRUE,
                               .keeps_empty = u->host->place.keeps_empty};
    struct buf names[EDIT_DEPTH + 1] = {{0}};
    struct buf next = {0};
    size_t n = 0;

    for (struct json_iter it = json_iter(keys.value); n < EDIT_DEPTH && json_next(&it); n++) {
        json_unescape(&names[n], it.value);
        place.keys[n] = buf_cstr(&names[n]);
    }
    json_unescape(&names[EDIT_DEPTH], json_get(taken, "name").value);
    int code = edit_put(&next, u->host->format, &place, buf_view(&u->text),
                        buf_view(&names[EDIT_DEPTH]), json_get(taken, "entry").value, err);
    buf_fini(&u->text);
    u->text = next;
    for (size_t i = 0; i <= EDIT_DEPTH; i++)
        buf_fini(&names[i]);
    return code;
}

/* Takes our entry out and puts the host's entries back; everything else stays as it is now. */
static int undo_entries(struct undoing *u, struct err *err)
{
    struct json_iter put = json_iter(json_get(u->record, "put").value);
    struct json_iter taken = json_iter(json_get(u->record, "taken").value);
    int code = 0;

    while (!code && json_next(&put)) {
        BUF_SCOPED name = {0};
        json_unescape(&name, put.value);
        code = take_out(u, &u->host->place, u->host->format, buf_view(&name), err);
    }
    while (!code && json_next(&taken))
        code = put_back(u, taken.value, err);
    return code;
}

static int read_current(struct undoing *u, struct err *err)
{
    char digest[DIGEST_SIZE];
    BUF_SCOPED scratch = {0};
    int code = file_read(&u->text, u->path, CONFIG_MAX_BYTES);

    u->gone = code == -ENOENT;
    put_digest(digest, buf_view(&u->text));
    u->ours = !code && span_is(text_of(u->record, "after", &scratch), digest);
    return code && !u->gone ? err_set(err, code, "cannot be read: %s", err_name(code)) : 0;
}

/* Reads what the file was before setup; sets `gone` if setup made the file. */
static int read_backup(struct undoing *u, struct err *err)
{
    BUF_SCOPED scratch = {0};

    if (json_get(u->record, "made").type == JSON_TRUE) {
        u->gone = true;
        return 0;
    }
    char *path = backup_path(text_of(u->record, "backup", &scratch));
    u->text.n = 0;
    int code = file_read(&u->text, path, CONFIG_MAX_BYTES);
    if (code)
        err_set(err, code, "its backup %s cannot be read: %s", path, err_name(code));
    mem_free(path);
    return code;
}

static int write_back(const struct undoing *u, struct err *err)
{
    int code = u->gone ? (unlink(u->path) ? -errno : 0)
                       : file_replace_keeping(u->path, buf_view(&u->text), NULL);

    return code && code != -ENOENT ? err_set(err, code, "cannot be written: %s", err_name(code))
                                   : 0;
}

static void drop_backup_of(struct span record)
{
    BUF_SCOPED scratch = {0};

    drop_backup(text_of(record, "backup", &scratch));
}

/* Undoes the changes of a host's file. True when its record can be dropped. */
static bool undo_host(struct undoing *u, struct buf *said)
{
    struct err err = {0};
    int code = read_current(u, &err);
    bool was_gone = u->gone;

    if (!code && u->ours)
        code = read_backup(u, &err);
    else if (!code && !u->gone)
        code = undo_entries(u, &err);
    if (!code && !was_gone)
        code = write_back(u, &err);
    if (code) {
        cmd_error(u->args->command, "%s was changed since and is left as it is: %s", u->path,
                  err.text);
        return false;
    }
    buf_printf(said, "%s: %s\n", u->path,
               was_gone  ? "is not there any more"
               : u->gone ? "removed"
               : u->ours ? "as it was before"
                         : "its own servers are back; what was changed since stays");
    drop_backup_of(u->record);
    return true;
}

/* --- the user's configuration --- */

/* Is one of the hosts that the server came from still set up? */
static bool is_needed(struct span from, struct span journal)
{
    for (struct json_iter it = json_iter(journal); json_next(&it);) {
        struct json_slot host = json_get(it.value, "host");
        for (struct json_iter h = json_iter(from); json_next(&h);)
            if (span_eq(h.value, host.value))
                return true;
    }
    return false;
}

/* Takes out of the user's configuration the servers that no host needs any more; `journal` has the
 * records of the hosts that are still set up. If servers stay, or on errors, appends the record of
 * the configuration to `journal_out`. */
static int undo_config(struct undoing *u, struct span journal, struct buf *journal_out,
                       struct buf *said)
{
    struct json_slot servers = json_get(u->record, "servers");
    BUF_SCOPED kept = {0}, scratch = {0};
    char digest[DIGEST_SIZE] = "";
    struct err err = {0};
    int code = read_current(u, &err);
    bool was_gone = u->gone;

    buf_char(&kept, '{');
    for (struct json_iter it = json_iter(servers.value); !code && !u->gone && json_next(&it);) {
        BUF_SCOPED alias = {0};
        json_unescape(&alias, it.key);
        struct edit_place place = edit_servers(buf_view(&u->text));
        if (is_needed(it.value, journal))
            json_out_raw(&kept, buf_cstr(&alias), it.value);
        else
            code = take_out(u, &place, edit_format_of(buf_view(&u->text)), buf_view(&alias), &err);
    }
    buf_char(&kept, '}');
    bool all = kept.n == 2;
    if (!code && all && u->ours)
        code = read_backup(u, &err);
    if (!code && !was_gone)
        code = write_back(u, &err);
    if (code) {
        cmd_error(u->args->command, "%s is left as it is: %s", u->path, err.text);
        json_out_raw(journal_out, NULL, u->record);
        return code;
    }
    if (all) {
        drop_backup_of(u->record);
        buf_printf(said, "%s: %s\n", u->path,
                   u->gone   ? "removed"
                   : u->ours ? "as it was before"
                             : "without the servers of the hosts");
        return 0;
    }
    if (u->ours)
        put_digest(digest, buf_view(&u->text));
    json_out_open(journal_out, NULL, '{');
    json_out_str(journal_out, "host", "");
    json_out_str(journal_out, "path", u->path);
    json_out_bool(journal_out, "made", json_get(u->record, "made").type == JSON_TRUE);
    json_out_text(journal_out, "backup", text_of(u->record, "backup", &scratch));
    json_out_str(journal_out, "after", digest);
    buf_str(journal_out, ",\"put\":[],\"taken\":[]");
    json_out_raw(journal_out, "servers", buf_view(&kept));
    buf_char(journal_out, '}');
    return 0;
}

static int undo_config_locked(struct undoing *u, struct span journal, struct buf *journal_out,
                              struct buf *said)
{
    struct err err = {0};
    int lock = edit_lock(u->path, LOCK_MS, &err);

    if (lock < 0 && lock != -ENOENT) { /* without its folder, the file is gone as well */
        cmd_error(u->args->command, "%s is left as it is: %s", u->path, err.text);
        json_out_raw(journal_out, NULL, u->record);
        return lock;
    }
    int code = undo_config(u, journal, journal_out, said);
    if (lock >= 0)
        close(lock);
    return code;
}

static bool is_named(struct span host, char **names, int n)
{
    bool named = !n;

    for (int i = 0; i < n; i++)
        named |= span_is(host, names[i]);
    return named;
}

int host_setup_undo(const struct args *a, char **names, int n)
{
    BUF_SCOPED old = {0}, left = {0};
    struct buf said = {0};
    struct span own = {0};
    int code = read_journal(&old, a->command) ? CMD_FAILED : CMD_FINE;

    if (code == CMD_FINE && span_is(buf_view(&old), "[]"))
        buf_str(&said, "there is nothing to undo\n");
    buf_char(&left, '[');
    for (struct json_iter it = json_iter(buf_view(&old)); !code && json_next(&it);) {
        BUF_SCOPED host = {0}, path = {0};
        json_unescape(&host, json_get(it.value, "host").value);
        json_unescape(&path, json_get(it.value, "path").value);
        struct undoing u = {.args = a,
                            .host = host_program_find(buf_cstr(&host)),
                            .record = it.value,
                            .path = buf_cstr(&path)};
        if (!host.n)
            own = it.value;
        else if (!u.host || !is_named(buf_view(&host), names, n) || !undo_host(&u, &said))
            json_out_raw(&left, NULL, it.value);
        buf_fini(&u.text);
    }
    if (own.n) {
        BUF_SCOPED path = {0}, rest = {0};
        struct undoing u = {.args = a, .record = own};
        json_unescape(&path, json_get(own, "path").value);
        u.path = buf_cstr(&path);
        buf_span(&rest, buf_view(&left));
        buf_char(&rest, ']');
        if (undo_config_locked(&u, buf_view(&rest), &left, &said))
            code = CMD_FAILED;
        buf_fini(&u.text);
    }
    buf_char(&left, ']');
    bool refused = false;
    for (struct json_iter it = json_iter(buf_view(&left)); json_next(&it);) {
        BUF_SCOPED host = {0};
        json_unescape(&host, json_get(it.value, "host").value);
        refused |= host.n && is_named(buf_view(&host), names, n);
    }
    if (own.n || !span_eq(buf_view(&left), buf_view(&old)))
        code |= write_journal(buf_view(&left), a->command) ? CMD_FAILED : 0;
    cmd_print(&said);
    return refused ? CMD_FAILED : code;
}
