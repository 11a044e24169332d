/* Puts the questions of servers to the person at the terminal, and reads the answers line by line.
 * Called by call.c. */
#include "cmd/questionnaire.h"

#include "base/buf.h"
#include "base/list.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "io/poll.h"
#include "wire/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <termios.h>
#include <unistd.h>

/* Bounds of the fields of a question and of a typed line. */
enum { MAX_FIELDS = 64, MAX_LINE = 4096 };

struct posed_question {
    struct list node;
    struct buf key, params;
    struct buf content; /* members of the answer so far */
    bool approval;
    size_t field; /* the one being asked, from 1; 0: whether to answer at all */
};

struct questionnaire {
    struct loop *loop;
    int terminal;
    struct poll *poll;   /* NULL: there is no question, and nothing is read */
    struct list waiting; /* the first one is being asked */
    struct buf typed;    /* a line that is not complete */
    questionnaire_done_fn *done;
    void *owner;
};

static struct posed_question *current(const struct questionnaire *q)
{
    return LIST_FIRST(&q->waiting, struct posed_question, node);
}

static void free_question(struct posed_question *x)
{
    list_remove(&x->node);
    buf_fini(&x->key);
    buf_fini(&x->params);
    buf_fini(&x->content);
    mem_free(x);
}

/* --- fields --- */

static struct span schema_of(const struct posed_question *x)
{
    struct json_slot schema =
        x->params.n ? json_get(buf_view(&x->params), "requestedSchema") : (struct json_slot){0};

    return schema.type == JSON_OBJECT ? schema.value : SPAN("{}");
}

/* The field that is asked now: its raw name and its schema. False: there are no more. */
static bool field_of(const struct posed_question *x, struct span *name, struct span *field)
{
    struct json_slot fields = json_get(schema_of(x), "properties");
    struct json_iter it = json_iter(fields.value);
    size_t n = 0;

    while (fields.type == JSON_OBJECT && n < MAX_FIELDS && json_next(&it))
        if (++n == x->field) {
            *name = it.key;
            *field = it.type == JSON_OBJECT ? it.value : SPAN("{}");
            return true;
        }
    return false;
}

static bool has_fields(const struct posed_question *x)
{
    struct json_slot fields = json_get(schema_of(x), "properties");
    struct json_iter it = json_iter(fields.value);

    return fields.type == JSON_OBJECT && json_next(&it);
}

static bool is_required(const struct posed_question *x, struct span raw_name)
{
    struct json_slot required = json_get(schema_of(x), "required");
    struct json_iter it = json_iter(required.value);
    BUF_SCOPED scratch = {0};
    struct span name = json_text(raw_name, &scratch);

    while (required.type == JSON_ARRAY && json_next(&it))
        if (json_string_is(it.value, name))
            return true;
    return false;
}

/* The values to choose from, as strings or as objects with `const` and `title`. */
static struct json_slot options_of(struct span field)
{
    static const char *const keys[] = {"enum", "oneOf", "anyOf"};
    struct json_slot items = json_get(field, "items");
    struct span of = items.type == JSON_OBJECT ? items.value : field;

    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        struct json_slot options = json_get(of, keys[i]);
        if (options.type == JSON_ARRAY)
            return options;
    }
    return (struct json_slot){0};
}

static struct span option_value(const struct json_iter *it)
{
    return it->type == JSON_OBJECT ? json_get(it->value, "const").value : it->value;
}

static bool is_type(struct span field, const char *type)
{
    return json_string_is(json_get(field, "type").value, span_str(type));
}

/* --- asking --- */

static void put_string(struct buf *out, struct span raw)
{
    BUF_SCOPED scratch = {0};

    if (raw.n && json_type_of(raw) == JSON_STRING)
        cmd_put_plain(out, json_text(raw, &scratch));
    else
        cmd_put_plain(out, raw);
}

static void put_options(struct buf *out, struct span field)
{
    struct json_slot options = options_of(field);
    struct json_iter it = json_iter(options.value);
    size_t n = 0;

    while (options.type == JSON_ARRAY && json_next(&it)) {
        struct json_slot title =
            it.type == JSON_OBJECT ? json_get(it.value, "title") : (struct json_slot){0};
        buf_printf(out, "    %zu  ", ++n);
        put_string(out, option_value(&it));
        if (title.type == JSON_STRING) {
            buf_str(out, "  ");
            put_string(out, title.value);
        }
        buf_char(out, '\n');
    }
}

static const char *expected(struct span field)
{
    if (is_type(field, "array"))
        return "one or several, with commas";
    if (options_of(field).type == JSON_ARRAY)
        return "one of these";
    return is_type(field, "boolean")   ? "y or n"
           : is_type(field, "integer") ? "a whole number"
           : is_type(field, "number")  ? "a number"
                                       : "text";
}

static void put_field(struct buf *out, const struct posed_question *x, struct span name,
                      struct span field)
{
    struct json_slot title = json_get(field, "title"), about = json_get(field, "description");
    struct json_slot preset = json_get(field, "default");

    if (about.type == JSON_STRING) {
        buf_str(out, "  ");
        put_string(out, about.value);
        buf_char(out, '\n');
    }
    put_options(out, field);
    buf_str(out, "  ");
    put_string(out, title.type == JSON_STRING ? title.value : name);
    buf_printf(out, " (%s%s)", expected(field), is_required(x, name) ? "" : ", may be left empty");
    if (preset.type != JSON_NONE) {
        buf_str(out, " [");
        put_string(out, preset.value);
        buf_char(out, ']');
    }
    buf_str(out, ": ");
}

static void put_opening(struct buf *out, const struct posed_question *x)
{
    struct json_slot message = json_get(buf_view(&x->params), "message");
    struct json_slot url = json_get(buf_view(&x->params), "url");

    if (message.type == JSON_STRING)
        put_string(out, message.value);
    if (url.type == JSON_STRING) {
        buf_str(out, "\n  ");
        put_string(out, url.value);
    }
    if (x->approval)
        buf_str(out, " [y/N] ");
    else
        buf_str(out, has_fields(x) ? "\nAnswer it? y, n, or c to cancel: "
                                   : "\nAgree? y, n, or c to cancel: ");
}

static void on_input(void *owner);

/* Keys are read only while there is a question. All others are for the program that gets the
 * terminal next, and would stop a call in the background. Those that were typed before the question
 * are no answer to it. */
static void mind_keys(struct questionnaire *q)
{
    if (current(q) && !q->poll) {
        tcflush(q->terminal, TCIFLUSH);
        q->poll = poll_new(q->loop, fcntl(q->terminal, F_DUPFD_CLOEXEC, 0), on_input, q);
    } else if (!current(q) && q->poll) {
        poll_close(q->poll);
        q->poll = NULL;
        q->typed.n = 0;
    }
}

static void ask_now(struct questionnaire *q)
{
    const struct posed_question *x = current(q);
    BUF_SCOPED out = {0};
    struct span name, field;

    mind_keys(q);
    if (!x)
        return;
    if (!x->field)
        put_opening(&out, x);
    else if (field_of(x, &name, &field))
        put_field(&out, x, name, field);
    fputs(buf_cstr(&out), stderr);
    fflush(stderr);
}

/* --- the answer --- */

static void finish(struct questionnaire *q, const char *action)
{
    struct posed_question *x = current(q);
    BUF_SCOPED answer = {0}, key = {0};

    buf_printf(&answer, "{\"action\":\"%s\"", action);
    if (strcmp(action, "accept") == 0 && has_fields(x))
        buf_printf(&answer, ",\"content\":{%s}", buf_cstr(&x->content));
    buf_char(&answer, '}');
    buf_span(&key, buf_view(&x->key));
    free_question(x);
    ask_now(q);
    q->done(q->owner, buf_view(&key), buf_view(&answer)); /* may free the questionnaire */
}

/* The raw value of the option with this number or of this text; empty: there is none. */
static struct span find_option(struct span field, struct span said)
{
    struct json_iter it = json_iter(options_of(field).value);
    BUF_SCOPED number = {0};

    for (size_t n = 1; json_next(&it); n++) {
        number.n = 0;
        buf_u64(&number, n);
        if (json_string_is(option_value(&it), said) || span_eq(buf_view(&number), said))
            return option_value(&it);
    }
    return SPAN_EMPTY;
}

static bool put_list(struct buf *out, struct span field, struct span said)
{
    const char *comma = "";

    buf_char(out, '[');
    while (said.n) {
        struct span part = span_cut(said, 0, span_find(said, ','));
        struct span value = find_option(field, span_trim(part));
        if (!value.n)
            return false;
        buf_str(out, comma);
        buf_span(out, value);
        comma = ",";
        said = span_from(said, part.n + 1);
    }
    buf_char(out, ']');
    return true;
}

static bool is_yes(struct span said)
{
    return span_eq_nocase(said, SPAN("y")) || span_eq_nocase(said, SPAN("yes"));
}

static bool is_no(struct span said)
{
    return span_eq_nocase(said, SPAN("n")) || span_eq_nocase(said, SPAN("no"));
}

static bool put_number(struct buf *out, struct span field, struct span said)
{
    struct json_slot low = json_get(field, "minimum"), high = json_get(field, "maximum");
    enum json_type type;
    double value, bound;
    int64_t whole;

    if (json_skim(said, NULL, NULL, &type, NULL) || type != JSON_NUMBER ||
        !json_double(said, &value) || (is_type(field, "integer") && !json_int(said, &whole)))
        return false;
    if (low.type == JSON_NUMBER && json_double(low.value, &bound) && value < bound)
        return false;
    if (high.type == JSON_NUMBER && json_double(high.value, &bound) && value > bound)
        return false;
    buf_span(out, said);
    return true;
}

/* Append the typed answer as the field's value; false: it does not fit. */
static bool put_value(struct buf *out, struct span field, struct span said)
{
    if (is_type(field, "array"))
        return put_list(out, field, said);
    if (options_of(field).type == JSON_ARRAY) {
        struct span value = find_option(field, said);
        buf_span(out, value);
        return value.n > 0;
    }
    if (is_type(field, "boolean")) {
        bool yes = is_yes(said) || span_is(said, "true");
        buf_str(out, yes ? "true" : "false");
        return yes || is_no(said) || span_is(said, "false");
    }
    if (is_type(field, "number") || is_type(field, "integer"))
        return put_number(out, field, said);
    json_quote(out, said);
    return true;
}

static void take_value(struct posed_question *x, struct span name, struct span field,
                       struct span said)
{
    struct json_slot preset = json_get(field, "default");
    BUF_SCOPED value = {0};

    if (!said.n && preset.type == JSON_NONE && is_required(x, name)) {
        fputs("  This one is needed; Ctrl-D cancels.\n", stderr);
        return;
    }
    if (!said.n)
        buf_span(&value, preset.value);
    else if (!put_value(&value, field, said)) {
        fprintf(stderr, "  That does not fit: %s is expected.\n", expected(field));
        return;
    }
    x->field++;
    if (!value.n)
        return;
    buf_str(&x->content, x->content.n ? "," : "");
    buf_span(&x->content, name);
    buf_char(&x->content, ':');
    buf_span(&x->content, buf_view(&value));
}

static void take_line(struct questionnaire *q, struct span line)
{
    struct posed_question *x = current(q);
    struct span said = span_trim(line), name, field;

    if (!x)
        return;
    if (x->field) {
        if (field_of(x, &name, &field))
            take_value(x, name, field, said);
    } else if (x->approval || is_no(said)) {
        finish(q, is_yes(said) ? "accept" : "decline");
        return;
    } else if (span_eq_nocase(said, SPAN("c"))) {
        finish(q, "cancel");
        return;
    } else if (is_yes(said)) {
        x->field = 1;
    }
    if (x->field && !field_of(x, &name, &field))
        finish(q, "accept");
    else
        ask_now(q);
}

/* --- the terminal --- */

static void on_input(void *owner)
{
    struct questionnaire *q = owner;
    char bytes[512];
    ssize_t n = read(q->terminal, bytes, sizeof bytes);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) { /* Ctrl-D, or the terminal was closed */
        if (current(q))
            finish(q, current(q)->approval ? "decline" : "cancel");
        return;
    }
    /* One read from a terminal returns one line, or a part of a long one. */
    buf_span(&q->typed, span_of(bytes, (size_t)n));
    if (bytes[n - 1] != '\n' && q->typed.n <= MAX_LINE)
        return;
    BUF_SCOPED line = {0};
    buf_span(&line, span_cut(buf_view(&q->typed), 0, q->typed.n - 1));
    q->typed.n = 0;
    take_line(q, buf_view(&line));
}

struct questionnaire *questionnaire_new(struct loop *l, questionnaire_done_fn *done, void *owner)
{
    /* Opened again, because O_NONBLOCK on the standard input would affect every process that shares
     * it. */
    int fd = open("/dev/tty", O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    if (fd < 0)
        return NULL;
    struct questionnaire *q = MEM_NEW(struct questionnaire);
    list_init(&q->waiting);
    q->loop = l;
    q->terminal = fd;
    q->done = done;
    q->owner = owner;
    return q;
}

void questionnaire_free(struct questionnaire *q)
{
    if (!q)
        return;
    while (current(q))
        free_question(current(q));
    mind_keys(q);
    close(q->terminal);
    buf_fini(&q->typed);
    mem_free(q);
}

void questionnaire_ask(struct questionnaire *q, struct span key, struct span params, bool approval)
{
    struct posed_question *x = MEM_NEW(struct posed_question);
    bool first = !current(q);

    buf_span(&x->key, key);
    buf_span(&x->params, params.n ? params : SPAN("{}"));
    x->approval = approval;
    list_append(&q->waiting, &x->node);
    if (first)
        ask_now(q);
}

void questionnaire_drop(struct questionnaire *q, struct span key)
{
    bool first = true;

    LIST_EACH_SAFE (&q->waiting, it) {
        struct posed_question *x = LIST_ENTRY(it, struct posed_question, node);
        if (span_eq(buf_view(&x->key), key)) {
            free_question(x);
            if (first)
                fputs("\n", stderr);
            if (first)
                ask_now(q);
            return;
        }
        first = false;
    }
}
