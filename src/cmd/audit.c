/* The command `rialto audit`: shows the lines of the audit trail that are asked for, and verifies
 * the chain of its hashes over all its files. Called through the table of commands (cmd/table.c).
 */
#include "admin/audit.h"

#include "admin/audit_file.h"
#include "admin/line_file.h"
#include "base/mem.h"
#include "cmd/args.h"
#include "cmd/commands.h"
#include "config/units.h"
#include "wire/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { OPT_SINCE = ARGS_OWN, OPT_UNTIL, OPT_TOKEN, OPT_SERVER, OPT_TOOL };
/* FILES_MAX: the current file, and as many older ones as `audit.keep` allows. */
enum { FILES_MAX = 10001, TRIES = 100 };

/* Which lines of the trail to show. */
struct audit_options {
    int64_t since, until; /* ms of Unix time; 0: no bound */
    const char *token, *server, *tool;
    bool json;
};

/* --- the files, oldest first --- */

struct trail {
    char *names[FILES_MAX];
    FILE *files[FILES_MAX];
    size_t n;
};

static void trail_close(struct trail *t)
{
    for (size_t i = 0; i < t->n; i++) {
        fclose(t->files[i]);
        mem_free(t->names[i]);
    }
    t->n = 0;
}

static ino_t inode_of(const char *path)
{
    struct stat st;

    return stat(path, &st) ? 0 : st.st_ino;
}

/* The highest number of an older file. One number may be missing, if the program was killed while
 * it renamed the files. */
static uint64_t highest(const char *file)
{
    uint64_t top = 0;
    unsigned free_names = 0;

    for (uint64_t n = 1; n < FILES_MAX && free_names < 2; n++) {
        BUF_SCOPED name = {0};
        line_file_put_name(&name, file, n);
        bool there = access(buf_cstr(&name), F_OK) == 0;
        top = there ? n : top;
        free_names = there ? 0 : free_names + 1;
    }
    return top;
}

/* Opens all files, and begins again if a program has renamed them meanwhile. */
static bool trail_open(struct trail *t, const char *file)
{
    for (int i = 0; i < TRIES; i++) {
        ino_t before = inode_of(file);
        for (uint64_t n = highest(file) + 1; n-- > 0;) {
            BUF_SCOPED name = {0};
            line_file_put_name(&name, file, n);
            FILE *f = fopen(buf_cstr(&name), "re");
            if (!f)
                continue;
            t->names[t->n] = mem_str(buf_cstr(&name));
            t->files[t->n++] = f;
        }
        if (before == inode_of(file))
            return true;
        trail_close(t);
    }
    return false;
}

/* --- verifying --- */

struct audit_check {
    struct audit_end head;
    bool written; /* a program writes to the trail now */
    bool begun;
    bool met; /* the line that the head names was seen */
    uint64_t seq;
    char hash[AUDIT_HASH_SIZE];
    uint64_t lines;
};

/* NULL when the line follows the one before, else what is wrong with it. */
static const char *check_line(struct audit_check *k, struct span line)
{
    int64_t seq = 0, missing = 0;

    if (json_skim(line, NULL, NULL, NULL, NULL) || json_type_of(line) != JSON_OBJECT)
        return "this is not a line of the trail";
    struct json_slot before = json_get(line, "before");
    if (!json_int(json_get(line, "seq").value, &seq) || before.type != JSON_STRING)
        return "the line has no number, or no hash of the line before";
    (void)json_int(json_get(line, "missing").value, &missing);
    if (k->begun && !json_string_is(before.value, span_str(k->hash)))
        return "the line before is not the one that was written: it was changed, or lines were "
               "taken out or put in";
    if (k->begun && (uint64_t)seq != k->seq + 1 + (uint64_t)missing)
        return "the numbers of this line and the one before do not follow";
    k->begun = true;
    k->seq = (uint64_t)seq;
    k->lines++;
    audit_file_hash(line, k->hash);
    if (k->seq == k->head.seq && strcmp(k->hash, k->head.hash) != 0)
        return "this is not the line that the head of the trail names";
    k->met |= k->seq == k->head.seq;
    return NULL;
}

static int complain(const char *file, uint64_t line, const char *why)
{
    struct buf out = {0};

    buf_printf(&out, "%s:%" PRIu64 ": %s\n", file, line, why);
    cmd_print(&out);
    return CMD_FAILED;
}

static int check_file(struct audit_check *k, FILE *f, const char *name, bool last)
{
    char *text = NULL;
    size_t room = 0;
    uint64_t number = 0;
    const char *why = NULL;
    ssize_t n;

    while (!why && (n = getline(&text, &room, f)) > 0) {
        number++;
        bool whole = text[n - 1] == '\n';
        if (!whole && last && k->written)
            break; /* it is being written just now */
        why = whole ? check_line(k, span_of(text, (size_t)n - 1))
                    : "this line was not written whole; the next start of the daemon cuts it off";
    }
    free(text);
    return why ? complain(name, number, why) : CMD_FINE;
}

/* The head is written after the line: a program that is killed in between leaves the head one line
 * behind. */
static int check_head(const struct audit_check *k, const char *file, const char *head)
{
    if (k->head.seq > k->seq || (k->head.seq && !k->met && k->begun))
        return complain(file, k->lines + 1,
                        "the trail was cut: its head names a line that is not there");
    if (k->begun && !k->head.seq)
        return complain(head, 1, "the head of the trail is missing");
    if (!k->written && k->seq > k->head.seq + 1 + k->head.missing)
        return complain(head, 1, "the head is older than the last line but one");
    return CMD_FINE;
}

static int verify(const char *file, const char *head)
{
    struct trail *t = MEM_NEW(struct trail);
    struct audit_check k = {.written = audit_file_is_written(head)};
    int code = CMD_FINE;

    /* The head is read first, so that the files can only be newer than the head. */
    if (audit_file_read_head(head, &k.head))
        code = complain(head, 1, "the head of the trail cannot be read");
    if (code == CMD_FINE && !trail_open(t, file))
        code = complain(file, 0, "the files change all the time");
    for (size_t i = 0; i < t->n && code == CMD_FINE; i++)
        code = check_file(&k, t->files[i], t->names[i], i + 1 == t->n);
    if (code == CMD_FINE)
        code = check_head(&k, file, head);
    if (code == CMD_FINE) {
        struct buf out = {0};
        buf_printf(&out, "%" PRIu64 " lines in %zu files, all as they were written", k.lines, t->n);
        if (k.head.missing)
            buf_printf(&out, "; %" PRIu64 " after them could not be written", k.head.missing);
        buf_str(&out, "\n");
        cmd_print(&out);
    }
    trail_close(t);
    mem_free(t);
    return code;
}

/* --- showing --- */

static bool is_text(struct span object, const char *key, const char *wanted)
{
    struct json_slot slot = json_get(object, key);

    return !wanted || (slot.type == JSON_STRING && json_string_is(slot.value, span_str(wanted)));
}

static bool is_wanted(const struct audit_options *o, struct span line)
{
    struct json_slot time = json_get(line, "time");
    int64_t at = 0;

    if (time.type == JSON_STRING && time.value.n > 2)
        (void)units_read_time(span_cut(time.value, 1, time.value.n - 2), &at);
    return (!o->since || at >= o->since) && (!o->until || at < o->until) &&
           is_text(line, "token", o->token) && is_text(line, "server", o->server) &&
           is_text(line, "tool", o->tool);
}

static void put_field(struct buf *out, struct span line, const char *key, const char *none)
{
    struct json_slot slot = json_get(line, key);
    BUF_SCOPED scratch = {0};

    cmd_put_plain(out, slot.type == JSON_STRING ? json_text(slot.value, &scratch) : span_str(none));
}

/* "2026-...  ann  files read_file  ok" */
static void put_row(struct buf *out, struct span line)
{
    struct json_slot client = json_get(line, "client");

    put_field(out, line, "time", "?");
    buf_str(out, "  ");
    put_field(out, line, "token", "-");
    if (client.type == JSON_OBJECT) {
        buf_str(out, " (");
        put_field(out, client.value, "name", "?");
        buf_char(out, ' ');
        put_field(out, client.value, "version", "?");
        buf_char(out, ')');
    }
    buf_str(out, "  ");
    put_field(out, line, "server", "-");
    buf_char(out, ' ');
    put_field(out, line, "tool", "-");
    buf_str(out, "  ");
    put_field(out, line, "outcome", "?");
    if (json_get(line, "approved_by").type == JSON_STRING) {
        buf_str(out, "  by ");
        put_field(out, line, "approved_by", "");
    }
    buf_char(out, '\n');
}

static void show_file(FILE *f, const struct audit_options *o)
{
    char *text = NULL;
    size_t room = 0;
    ssize_t n;

    while ((n = getline(&text, &room, f)) > 0) {
        struct span line = span_of(text, (size_t)n - (text[n - 1] == '\n'));
        struct buf out = {0};
        if (json_skim(line, NULL, NULL, NULL, NULL) || json_type_of(line) != JSON_OBJECT ||
            !is_wanted(o, line))
            continue;
        if (o->json)
            buf_printf(&out, SPAN_FMT "\n", SPAN_ARG(line));
        else
            put_row(&out, line);
        cmd_print(&out);
    }
    free(text);
}

static int show(const char *file, const struct audit_options *o)
{
    struct trail *t = MEM_NEW(struct trail);

    (void)trail_open(t, file);
    for (size_t i = 0; i < t->n; i++)
        show_file(t->files[i], o);
    trail_close(t);
    mem_free(t);
    return CMD_FINE;
}

/* --- the command line --- */

/* A time, or a duration before now. */
static bool read_moment(const char *text, int64_t *at)
{
    struct timespec now;
    uint64_t ms;

    if (!units_read_time(span_str(text), at))
        return true;
    if (units_read_duration(span_str(text), &ms))
        return false;
    clock_gettime(CLOCK_REALTIME, &now);
    *at = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 - (int64_t)ms;
    return true;
}

static bool read_option(const struct args *a, int id, struct audit_options *o)
{
    bool fine = true;

    if (id == OPT_TOKEN)
        o->token = a->value;
    else if (id == OPT_SERVER)
        o->server = a->value;
    else if (id == OPT_TOOL)
        o->tool = a->value;
    else
        fine = read_moment(a->value, id == OPT_SINCE ? &o->since : &o->until);
    if (!fine)
        cmd_error(a->command,
                  "'%s' is not a time: give 2026-12-31T23:59:59Z, or 2h for two hours ago",
                  a->value);
    return fine;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct args a = args_begin(self, argc, argv);
    struct audit_options o = {0};
    BUF_SCOPED file = {0}, head = {0};
    bool fine = true;
    int id;

    while ((id = args_next(&a)) > 0)
        fine = read_option(&a, id, &o) && fine;
    if (id < 0)
        return a.exit_code;
    bool verifies = a.rest_n && strcmp(a.rest[0], "verify") == 0;
    if (!fine || args_expect(&a, verifies ? 1 : 0))
        return CMD_USAGE;
    struct config *c = args_load_config(&a);
    if (!c)
        return CMD_USAGE;
    bool placed = audit_put_paths(c, &file, &head);
    if (!placed || !file.n || (!c->audit.on && access(buf_cstr(&file), F_OK))) {
        cmd_error(self, c->audit.syslog ? "the trail goes to syslog" : "there is no audit trail");
        cmd_hint("'audit: {}' in the configuration starts one");
        config_free(c);
        return CMD_FAILED;
    }
    config_free(c);
    o.json = a.json;
    return verifies ? verify(buf_cstr(&file), buf_cstr(&head)) : show(buf_cstr(&file), &o);
}

static const struct cmd_option options[] = {
    ARGS_OPTION_CONFIG,
    {"since", OPT_SINCE, "WHEN", "from this time on, or for so long: 2h"},
    {"until", OPT_UNTIL, "WHEN", "before this time"},
    {"token", OPT_TOKEN, "NAME", "calls of the owner of this token"},
    {"server", OPT_SERVER, "NAME", "calls to this server"},
    {"tool", OPT_TOOL, "NAME", "calls of this tool, prompt or resource"},
    ARGS_OPTION_JSON,
    {NULL},
};

const struct command command_audit = {
    .name = "audit",
    .summary = "Show the audit trail: who called what; or verify that nobody has changed it",
    .usage = "[verify]",
    .about = "'verify' follows the hashes of all lines over all files, up to the head that the\n"
             "daemon keeps beside them. It exits with 0, or with 1 and FILE:LINE: REASON. The key\n"
             "'audit' of the configuration begins a trail.",
    .options = options,
    .run = run,
};
