/* WWW-Authenticate taken apart: challenges of several schemes with their parameters. Called for
 * answers with status 401 and 403 by hub/signin/discovery.c and hub/signin/signin.c. */
#include "wire/challenge.h"

#include "base/ascii.h"
#include "base/mem.h"

/* What is left to read. */
struct challenge_reader {
    struct span rest;
    struct buf *scratch;
};

static char peek(const struct challenge_reader *r)
{
    return r->rest.n ? r->rest.p[0] : '\0';
}

static void skip(struct challenge_reader *r, const char *chars)
{
    while (r->rest.n && peek(r) && strchr(chars, peek(r)))
        r->rest = span_from(r->rest, 1);
}

/* The longest run of letters, digits and `others`; empty when there is none. */
static struct span take_word(struct challenge_reader *r, const char *others)
{
    size_t n = 0;

    while (n < r->rest.n && ascii_is_word(r->rest.p[n], others))
        n++;
    struct span word = span_cut(r->rest, 0, n);
    r->rest = span_from(r->rest, n);
    return word;
}

static struct span take_token(struct challenge_reader *r)
{
    return take_word(r, "!#$%&'*+-.^_`|~");
}

/* A text in quotes, without its backslashes. False when its end is missing. */
static bool take_quoted(struct challenge_reader *r, struct span *out)
{
    struct buf *to = r->scratch;
    size_t start = to->n;

    for (size_t i = 1; i < r->rest.n; i++) {
        char c = r->rest.p[i];
        if (c == '"') {
            *out = span_of(to->p + start, to->n - start);
            r->rest = span_from(r->rest, i + 1);
            return true;
        }
        if (c == '\\' && ++i == r->rest.n)
            return false;
        buf_char(to, r->rest.p[i]);
    }
    return false;
}

/* A token, or a text in quotes. */
static bool take_value(struct challenge_reader *r, struct span *out)
{
    if (peek(r) == '"')
        return take_quoted(r, out);
    *out = take_token(r);
    return out->n > 0;
}

/* The NAME and = of a parameter. False, with nothing taken, if a scheme or the end follows. */
static bool take_name(struct challenge_reader *r, struct span *name)
{
    struct span before = r->rest;

    *name = take_token(r);
    skip(r, " \t");
    if (name->n && peek(r) == '=') {
        r->rest = span_from(r->rest, 1);
        skip(r, " \t");
        return true;
    }
    r->rest = before;
    return false;
}

/* Credentials without a name may follow a scheme: "Negotiate abc==". */
static void skip_token68(struct challenge_reader *r)
{
    struct span before = r->rest;
    struct span word = take_word(r, "-._~+/");

    skip(r, "=");
    skip(r, " \t");
    if (!word.n || (r->rest.n && peek(r) != ','))
        r->rest = before;
}

/* Keeps a parameter that we know. False when it occurs twice. */
static bool keep(struct challenge *c, struct span name, struct span value)
{
    const struct {
        const char *name;
        struct span *to;
    } rows[] = {
        {"error", &c->error}, {"scope", &c->scope}, {"resource_metadata", &c->resource_metadata}};

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (!span_eq_nocase(name, span_str(rows[i].name)))
            continue;
        if (rows[i].to->p)
            return false;
        *rows[i].to = value;
    }
    return true;
}

/* The parameters of one challenge, up to the next scheme. */
static bool take_parameters(struct challenge_reader *r, struct challenge *c)
{
    struct span name, value;

    skip_token68(r);
    for (;;) {
        skip(r, " \t,");
        if (!take_name(r, &name))
            return true;
        if (!take_value(r, &value) || !keep(c, name, value))
            return false;
        skip(r, " \t");
        if (r->rest.n && peek(r) != ',')
            return false;
    }
}

bool challenge_read(struct span value, struct challenge *out, struct buf *scratch)
{
    struct challenge_reader r = {value, scratch};

    *out = (struct challenge){0};
    if (value.n > CHALLENGE_MAX)
        return false;
    buf_room(scratch, value.n + 1); /* enough for all texts, so that they do not move */
    for (skip(&r, " \t,"); r.rest.n; skip(&r, " \t,")) {
        struct challenge c = {0};
        struct span scheme = take_token(&r);
        if (!scheme.n || (r.rest.n && !strchr(" \t,", peek(&r))))
            return false;
        skip(&r, " \t");
        if (!take_parameters(&r, &c))
            return false;
        if (span_eq_nocase(scheme, SPAN("Bearer"))) {
            *out = c;
            return true;
        }
    }
    return false;
}
