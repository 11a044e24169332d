/* The list of checks that were made, and its output as text or JSON. The other files of the doctor
 * add to the list; doctor.c prints it. */
#include "base/log.h"
#include "base/mem.h"
#include "cmd/doctor/doctor.h"
#include "wire/json_out.h"

static const struct {
    const char *shown, *word;
} levels[DOCTOR_LEVELS] = {{"ok", "ok"}, {"warn", "warn"}, {"FAIL", "fail"}};

const char *doctor_plural(size_t n)
{
    return n == 1 ? "" : "s";
}

/* The node after which a check of this group is inserted, so that groups stay together: the last
 * check of the group, or of the list. */
static struct list *place_of(struct doctor *d, const char *group)
{
    struct list *behind = d->checks.prev;

    LIST_EACH (&d->checks, it)
        if (strcmp(LIST_ENTRY(it, struct doctor_check, node)->group, group) == 0)
            behind = it;
    return behind;
}

struct doctor_check *doctor_add(struct doctor *d, enum doctor_level level, const char *group,
                                const char *server, const char *fmt, ...)
{
    struct doctor_check *c = MEM_NEW(struct doctor_check);
    va_list ap;

    c->level = level;
    c->group = mem_str(group);
    c->server = server ? mem_str(server) : NULL;
    va_start(ap, fmt);
    buf_vprintf(&c->text, fmt, ap);
    va_end(ap);
    list_append(place_of(d, group)->next, &c->node);
    d->count[level]++;
    return c;
}

void doctor_hint(struct doctor_check *c, const char *fmt, ...)
{
    va_list ap;

    if (c->hint.n)
        buf_str(&c->hint, "; ");
    va_start(ap, fmt);
    buf_vprintf(&c->hint, fmt, ap);
    va_end(ap);
}

void doctor_line(struct doctor_check *c, struct span line)
{
    buf_span(&c->lines, line);
    buf_char(&c->lines, '\n');
}

/* --- as text --- */

static void put_shown(struct buf *out, struct span text)
{
    BUF_SCOPED clean = {0};

    log_redact(&clean, text);
    cmd_put_plain(out, buf_view(&clean));
    buf_char(out, '\n');
}

static void put_check(struct buf *out, const struct doctor_check *c)
{
    buf_printf(out, "  %-4s  ", levels[c->level].shown);
    put_shown(out, buf_view(&c->text));
    for (struct span rest = buf_view(&c->lines); rest.n;) {
        struct span line = span_cut(rest, 0, span_find(rest, '\n'));
        buf_str(out, "        | ");
        put_shown(out, line);
        rest = span_from(rest, line.n + 1);
    }
    if (c->hint.n) {
        buf_str(out, "        hint: ");
        put_shown(out, buf_view(&c->hint));
    }
}

static void put_text(struct buf *out, const struct doctor *d)
{
    bool quiet = d->args->quiet;
    const char *group = "";

    LIST_EACH (&d->checks, it) {
        const struct doctor_check *c = LIST_ENTRY(it, struct doctor_check, node);
        if (quiet && c->level == DOCTOR_OK)
            continue;
        if (strcmp(group, c->group) != 0)
            buf_printf(out, "%s%s\n", *group ? "\n" : "", c->group);
        group = c->group;
        put_check(out, c);
    }
    size_t fails = d->count[DOCTOR_FAIL], warnings = d->count[DOCTOR_WARN];
    size_t all = fails + warnings + d->count[DOCTOR_OK];
    buf_printf(out, "%s%zu check%s: ", *group ? "\n" : "", all, doctor_plural(all));
    if (!fails && !warnings)
        buf_str(out, "nothing is wrong\n");
    else
        buf_printf(out, "%zu failed, %zu warning%s\n", fails, warnings, doctor_plural(warnings));
}

/* --- as JSON --- */

static void put_lines(struct buf *out, struct span rest)
{
    json_out_open(out, "lines", '[');
    while (rest.n) {
        BUF_SCOPED clean = {0};
        struct span line = span_cut(rest, 0, span_find(rest, '\n'));
        log_redact(&clean, line);
        json_out_text(out, NULL, buf_view(&clean));
        rest = span_from(rest, line.n + 1);
    }
    buf_char(out, ']');
}

static void put_json(struct buf *out, const struct doctor *d)
{
    buf_char(out, '{');
    json_out_bool(out, "ok", !d->count[DOCTOR_FAIL]);
    json_out_number(out, "passed", d->count[DOCTOR_OK]);
    json_out_number(out, "warnings", d->count[DOCTOR_WARN]);
    json_out_number(out, "failed", d->count[DOCTOR_FAIL]);
    json_out_redacted(out, "config", span_str(d->file));
    json_out_open(out, "checks", '[');
    LIST_EACH (&d->checks, it) {
        const struct doctor_check *c = LIST_ENTRY(it, struct doctor_check, node);
        json_out_open(out, NULL, '{');
        json_out_str(out, "level", levels[c->level].word);
        json_out_redacted(out, "group", span_str(c->group));
        json_out_redacted(out, "server", span_str(c->server));
        json_out_redacted(out, "text", buf_view(&c->text));
        json_out_redacted(out, "hint", buf_view(&c->hint));
        if (c->lines.n)
            put_lines(out, buf_view(&c->lines));
        if (c->data.n)
            json_out_raw(out, NULL, buf_view(&c->data));
        buf_char(out, '}');
    }
    buf_str(out, "]}\n");
}

void doctor_put(struct buf *out, const struct doctor *d, bool json)
{
    if (json)
        put_json(out, d);
    else
        put_text(out, d);
}

void doctor_fini(struct doctor *d)
{
    LIST_EACH_SAFE (&d->checks, it) {
        struct doctor_check *c = LIST_ENTRY(it, struct doctor_check, node);
        list_remove(&c->node);
        mem_free(c->group);
        mem_free(c->server);
        buf_fini(&c->text);
        buf_fini(&c->hint);
        buf_fini(&c->lines);
        buf_fini(&c->data);
        mem_free(c);
    }
    config_free(d->config);
    mem_free(d->file);
}
