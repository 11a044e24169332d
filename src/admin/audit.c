/* Makes the lines of the audit trail from calls and decisions, and objects to calls that cannot be
 * recorded. Begun by cmd/serve.c and cmd/stdio.c; the router calls the tap, cmd/audit.c asks for
 * the paths. */
#include "admin/audit.h"

#include "admin/audit_file.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "core/principal.h"
#include "core/tap.h"
#include "hub/places.h"
#include "mcp/outcome.h"
#include "wire/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

/* How many bytes of a peer's text go into a line. */
enum { NAME_MAX_BYTES = 256, ARGUMENTS_MAX = 4 * 1024 };

/* The part of a call's lines that is known when the call is opened. */
struct audit_call {
    char *by;   /* who decided, or NULL */
    char *rule; /* the rule that decided, or NULL */
    size_t n;
    char text[]; /* members */
};

struct audit {
    struct tap tap;
    struct audit_file *file;
    struct idmap calls; /* handle -> struct audit_call */
    bool refuses, redacts;
    bool failing;
    char why[256];
    struct buf body, clean; /* used again for each line */
    time_t second;          /* the second for which `stamp` was made */
    char stamp[32];
    void (*forward)(void *arg, struct span body); /* NULL: the trail is ours */
    void *forward_arg;
};

/* --- the line --- */

/* A text of at most `max` bytes, in whole characters, with its secrets hidden. */
static void put_text(struct audit *a, struct buf *out, struct span text, size_t max)
{
    struct buf *clean = &a->clean;

    clean->n = 0;
    log_redact(clean, span_cut(text, 0, 2 * max));
    struct span cut = span_cut(buf_view(clean), 0, max);
    while (cut.n < clean->n && cut.n && utf8_tail((unsigned char)clean->p[cut.n]))
        cut.n--;
    json_quote(out, cut);
}

static void put_text_or_null(struct audit *a, struct buf *out, struct span text)
{
    if (text.n)
        put_text(a, out, text, NAME_MAX_BYTES);
    else
        buf_str(out, "null");
}

/* A name of our own, or of the configuration. */
static void put_name(struct buf *out, const char *name)
{
    if (name)
        json_quote(out, span_str(name));
    else
        buf_str(out, "null");
}

static void put_member_of(struct audit *a, struct buf *out, struct span object, const char *key)
{
    struct json_slot slot = json_get(object, key);
    BUF_SCOPED scratch = {0};

    put_text_or_null(a, out,
                     slot.type == JSON_STRING ? json_text(slot.value, &scratch) : SPAN_EMPTY);
}

static void put_client(struct audit *a, struct buf *out, const struct call *c,
                       const struct request *q)
{
    struct span info = c->caller->client ? span_str(c->caller->client) : mcp_client_of(q->params);

    if (!info.n) {
        buf_str(out, "null");
        return;
    }
    buf_str(out, "{\"name\":");
    put_member_of(a, out, info, "name");
    buf_str(out, ",\"version\":");
    put_member_of(a, out, info, "version");
    buf_char(out, '}');
}

/* The arguments of a tool call; for other operations, all params. */
static void put_arguments(struct audit *a, struct buf *out, const struct request *q)
{
    struct span given =
        q->op == OP_CALL_TOOL && q->params.n ? json_get(q->params, "arguments").value : q->params;
    char hash[AUDIT_HASH_SIZE];

    if (!given.n) {
        buf_str(out, "null");
    } else if (a->redacts) {
        put_text(a, out, given, ARGUMENTS_MAX);
    } else {
        audit_file_hash(given, hash);
        buf_str(out, "\"blake2b:");
        buf_bytes(out, hash, AUDIT_HASH_SIZE - 1);
        buf_char(out, '"');
    }
}

static struct audit_call *call_of(struct audit *a, const struct call *c, const struct request *q)
{
    const struct provider *p = c->provider;
    struct buf *text = &a->body;

    text->n = 0;
    buf_str(text, "\"token\":");
    put_name(text, c->principal ? c->principal->name : NULL);
    buf_str(text, ",\"client\":");
    put_client(a, text, c, q);
    buf_str(text, ",\"session\":");
    put_name(text, c->caller->session);
    buf_str(text, ",\"endpoint\":");
    put_name(text, c->caller->endpoint);
    buf_str(text, ",\"server\":");
    put_name(text, p ? (p->told_as ? p->told_as : p->alias) : NULL);
    buf_str(text, ",\"tool\":");
    if (p && c->op == OP_CALL_TOOL && q->name.n <= NAME_MAX_BYTES)
        json_quote(text, q->name); /* listed by the server, so it needs no redacting */
    else
        put_text_or_null(a, text, q->name);
    buf_str(text, ",\"arguments\":");
    put_arguments(a, text, q);
    struct audit_call *kept = mem_alloc(sizeof *kept + text->n);
    kept->by = kept->rule = NULL;
    kept->n = text->n;
    memcpy(kept->text, text->p, text->n);
    return kept;
}

/* "2026-02-18T06:30:24.017Z"; the part before the dot is made once a second. */
static void put_time(struct audit *a, struct buf *out)
{
    struct timespec now;
    struct tm parts;

    clock_gettime(CLOCK_REALTIME, &now);
    if (now.tv_sec != a->second) {
        a->second = now.tv_sec;
        gmtime_r(&a->second, &parts);
        strftime(a->stamp, sizeof a->stamp, "%Y-%m-%dT%H:%M:%S.", &parts);
    }
    unsigned ms = (unsigned)(now.tv_nsec / 1000000);
    char rest[] = {(char)('0' + ms / 100), (char)('0' + ms / 10 % 10), (char)('0' + ms % 10), 'Z'};
    buf_str(out, a->stamp);
    buf_bytes(out, rest, sizeof rest);
}

static const char *write_line(struct audit *a, const struct audit_call *kept, const char *outcome)
{
    struct buf *body = &a->body;

    body->n = 0;
    buf_str(body, "\"time\":\"");
    put_time(a, body);
    buf_str(body, "\",");
    buf_bytes(body, kept->text, kept->n);
    buf_str(body, ",\"outcome\":\"");
    buf_str(body, outcome);
    buf_str(body, "\",\"rule\":");
    put_text_or_null(a, body, span_str(kept->rule));
    buf_str(body, ",\"approved_by\":");
    put_text_or_null(a, body, span_str(kept->by));
    if (a->forward) {
        a->forward(a->forward_arg, buf_view(body));
        return NULL;
    }
    int code = audit_file_add(a->file, buf_view(body));
    if (!code && a->failing)
        log_warn("audit", "the audit trail is written again");
    if (code && !a->failing)
        log_error("audit", "the audit trail cannot be written: %s%s", err_name(code),
                  a->refuses ? "; calls are refused until it can" : "; calls go on unrecorded");
    a->failing = code != 0;
    if (!code || !a->refuses)
        return NULL;
    snprintf(a->why, sizeof a->why,
             "the audit trail cannot be written (%s), and no call goes "
             "unrecorded here",
             err_name(code));
    return a->why;
}

/* --- the tap --- */

static void forget(struct audit_call *kept)
{
    mem_free(kept->by);
    mem_free(kept->rule);
    mem_free(kept);
}

static const char *outcome_word(const struct outcome *outcome)
{
    if (outcome->kind == OUTCOME_FAILED)
        return mcp_outcome_failure_word(outcome->why);
    return outcome->kind == OUTCOME_ERROR || outcome->is_error ? "error" : "ok";
}

static const char *on_opened(struct tap *self, const struct call *c, const struct request *q)
{
    struct audit *a = CONTAINER_OF(self, struct audit, tap);

    if (!call_concerns_people(c))
        return NULL;
    idmap_put(&a->calls, c->handle, call_of(a, c, q));
    if (!a->failing || !a->refuses)
        return NULL;
    return a->file && audit_file_try(a->file) ? a->why : NULL;
}

static const char *on_ended(struct tap *self, const struct call *c, const struct outcome *outcome)
{
    struct audit *a = CONTAINER_OF(self, struct audit, tap);
    struct audit_call *kept = idmap_take(&a->calls, c->handle);

    if (!kept)
        return NULL;
    const char *why = write_line(a, kept, outcome_word(outcome));
    forget(kept);
    return why;
}

static const char *on_decided(struct tap *self, const struct call *c, bool allowed, struct span by)
{
    struct audit *a = CONTAINER_OF(self, struct audit, tap);
    struct audit_call *kept = idmap_get(&a->calls, c->handle);

    if (!kept)
        return NULL;
    if (c->state != CALL_HELD) {
        kept->rule = mem_span(by); /* goes into the line of the call */
        return NULL;
    }
    if (c->rule && !kept->rule) {
        char name[32];
        snprintf(name, sizeof name, "rule %u", c->rule);
        kept->rule = mem_str(name);
    }
    mem_free(kept->by);
    kept->by = mem_span(by);
    return write_line(a, kept, allowed ? "approved" : "rejected");
}

/* --- life --- */

bool audit_put_paths(const struct config *c, struct buf *file, struct buf *head)
{
    char *own = c->audit.file ? mem_str(c->audit.file) : place_path(PLACE_STATE, "audit.jsonl");

    if (own && !c->audit.syslog)
        buf_str(file, own);
    if (own)
        audit_file_put_head(head, own);
    mem_free(own);
    return own != NULL;
}

static struct audit_file *open_trail(const struct config *c, struct err *err)
{
    BUF_SCOPED file = {0}, head = {0};

    if (!audit_put_paths(c, &file, &head)) {
        err_set(err, -1, "there is no home folder to keep the audit trail in: set audit.file");
        return NULL;
    }
    return audit_file_open(&(struct audit_place){.file = file.n ? buf_cstr(&file) : NULL,
                                                 .syslog = c->audit.syslog,
                                                 .head = buf_cstr(&head),
                                                 .size = c->audit.size,
                                                 .keep = c->audit.keep},
                           err);
}

struct audit *audit_begin(const struct config *c, struct router *router, int *code, struct err *err)
{
    *code = 0;
    if (!c->audit.on)
        return NULL;
    *code = -1;
    struct audit_file *trail = open_trail(c, err);
    if (!trail)
        return NULL;
    *code = 0;
    struct audit *a = MEM_NEW(struct audit);
    *a = (struct audit){.tap = {.opened = on_opened, .ended = on_ended, .decided = on_decided},
                        .file = trail,
                        .refuses = c->audit.on_failure == AUDIT_REFUSE,
                        .redacts = c->audit.arguments == AUDIT_REDACTED};
    tap_add(router, &a->tap);
    return a;
}

void audit_end(struct audit *a)
{
    uint64_t handle;
    size_t at = 0;
    void *value;

    if (!a)
        return;
    tap_remove(&a->tap);
    while (idmap_next(&a->calls, &at, &handle, &value)) {
        forget(value);
    }
    idmap_fini(&a->calls);
    if (a->file)
        audit_file_close(a->file);
    buf_fini(&a->body);
    buf_fini(&a->clean);
    mem_free(a);
}

/* --- another daemon --- */

void audit_leave(struct audit *a, void (*forward)(void *arg, struct span body), void *arg)
{
    if (!a)
        return;
    audit_file_close(a->file);
    a->file = NULL;
    a->forward = forward;
    a->forward_arg = arg;
}

int audit_return(struct audit *a, const struct config *c, struct err *err)
{
    if (!a)
        return 0;
    a->forward = NULL;
    a->file = open_trail(c, err);
    return a->file ? 0 : ERR_CONFIG;
}

void audit_append(struct audit *a, struct span body)
{
    if (a && audit_file_add(a->file, body))
        log_error("audit", "a line of the daemon before this one cannot be written");
}
