/* The ${...} in texts of other programs' servers: inputs and editors' variables rewritten as ours.
 * Called by import.c. */
#include "base/ascii.h"
#include "base/mem.h"
#include "config/import_inside.h"

/* A ${...} in a text. */
struct variable {
    struct span whole, name;
};

static bool find_variable(struct span text, size_t from, struct variable *out)
{
    for (size_t at = from; at + 2 < text.n; at++) {
        struct span rest = span_from(text, at);
        size_t end = span_find(rest, '}');
        if (!span_starts(rest, SPAN("${")) || end == rest.n)
            continue;
        *out = (struct variable){span_cut(rest, 0, end + 1), span_cut(rest, 2, end - 2)};
        return true;
    }
    return false;
}

/* "perplexity-key" becomes PERPLEXITY_KEY: an input that VS Code asks for is a variable here. */
static void put_secret(struct buf *out, struct span id)
{
    buf_str(out, "${");
    for (size_t i = 0; i < id.n; i++)
        buf_char(out, ascii_is_word(id.p[i], "") ? ascii_to_upper(id.p[i]) : '_');
    buf_char(out, '}');
}

/* Variables of editors, and what each becomes. */
static const struct known {
    const char *name;
    const char *becomes;
    const char *warning;
} known[] = {
    {"workspaceFolder", ".", "means the folder in which rialto is started"},
    {"userHome", "${HOME}", NULL},
    {"pathSeparator", "/", NULL},
    {"/", "/", NULL},
};

static const struct known *find_known(struct span name)
{
    for (size_t i = 0; i < COUNT_OF(known); i++)
        if (span_is(name, known[i].name))
            return &known[i];
    return NULL;
}

static bool is_input(struct span name)
{
    return span_starts(name, SPAN("input:")) && name.n > 6;
}

static void put_replacement(struct importing *im, struct buf *out, const struct variable *var,
                            const struct value *server, const struct value *member)
{
    const struct known *k = find_known(var->name);

    if (k) {
        buf_str(out, k->becomes);
        if (k->warning)
            import_say(im, PROBLEM_WARNING, server, member, "'" SPAN_FMT "' %s",
                       SPAN_ARG(var->whole), k->warning);
    } else if (is_input(var->name)) {
        size_t start = out->n;
        put_secret(out, span_from(var->name, 6));
        import_say(im, PROBLEM_WARNING, server, member,
                   "'" SPAN_FMT "' is not asked for here: set the secret or variable " SPAN_FMT,
                   SPAN_ARG(var->whole),
                   SPAN_ARG(span_cut(buf_view(out), start + 2, out->n - start - 3)));
    } else {
        /* ${env:NAME} and ${NAME} are ours as well. */
        buf_span(out, var->whole);
        if (span_find(var->name, ':') < var->name.n && !span_starts(var->name, SPAN("env:")))
            import_say(im, PROBLEM_WARNING, server, member, "'" SPAN_FMT "' has no meaning here",
                       SPAN_ARG(var->whole));
    }
}

static void rewrite(struct importing *im, struct value *v, const struct value *server,
                    const struct value *member)
{
    BUF_SCOPED out = {0};
    struct variable var;
    size_t at = 0;

    while (find_variable(v->text, at, &var)) {
        size_t start = (size_t)(var.whole.p - v->text.p);
        buf_span(&out, span_cut(v->text, at, start - at));
        put_replacement(im, &out, &var, server, member);
        at = start + var.whole.n;
    }
    buf_span(&out, span_from(v->text, at));
    if (at)
        v->text = arena_span(im->arena, buf_view(&out));
}

/* Recursion is bounded: no reader builds a tree deeper than VALUE_MAX_DEPTH. */
static void rewrite_all(struct importing *im, struct value *v, const struct value *server,
                        const struct value *member)
{
    if (v->type == VALUE_STRING)
        rewrite(im, v, server, member);
    for (struct value *child = v->first; child; child = child->next)
        rewrite_all(im, child, server, member);
}

void import_variables(struct importing *im, struct value *server)
{
    for (struct value *v = server->first; v; v = v->next)
        rewrite_all(im, v, server, v);
}

bool import_has_variables(const struct value *v)
{
    struct variable var;

    for (size_t at = 0; v->type == VALUE_STRING && find_variable(v->text, at, &var);) {
        if (is_input(var.name) || find_known(var.name))
            return true;
        at = (size_t)(var.whole.p - v->text.p) + var.whole.n;
    }
    for (const struct value *child = v->first; child; child = child->next)
        if (import_has_variables(child))
            return true;
    return false;
}
