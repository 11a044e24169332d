/* The ${...} in texts of other programs' servers: inputs and editors' variables rewritten as ours.
 * Called by import.c. */
#include "base/ascii.h"
#include "base/mem.h"
#include "config/host_program.h"
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

/* Variables of editors, and what each becomes; NULL: it has no meaning here. */
static const struct known {
    const char *name;
    const char *becomes;
} known[] = {
    {"workspaceFolder", "${PROJECT}"}, /* the server gets scope: project */
    {"workspaceFolderBasename", NULL}, {"userHome", "${HOME}"}, {"pathSeparator", "/"}, {"/", "/"},
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

    if (k && k->becomes) {
        buf_str(out, k->becomes);
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
        size_t colon = span_find(var->name, ':');
        bool foreign = colon < var->name.n && !span_starts(var->name, SPAN("env:")) &&
                       !span_starts(span_from(var->name, colon), SPAN(":-"));
        if (k || foreign)
            import_say(im, PROBLEM_WARNING, server, member, "'" SPAN_FMT "' has no meaning here",
                       SPAN_ARG(var->whole));
    }
}

/* Files whose content this host puts into a text, {file:PATH}, are not read here. */
static void tell_file(struct importing *im, struct span text, const struct value *server,
                      const struct value *member)
{
    if (im->host && im->host->variables == HOST_ENV_BRACES && span_starts(text, SPAN("{file:")) &&
        span_find(text, '}') < text.n)
        import_say(im, PROBLEM_WARNING, server, member,
                   "{file:PATH} is not read here: put what is in the file into a secret, and its "
                   "${NAME} here");
}

/* The length of a variable in this host's own form ($X, {env:X}, ${{ secrets.X }}) at the start of
 * `text`; 0: none. *name is the variable's name, or empty when "${" is plain text for this host. */
static size_t own_variable(const struct importing *im, struct span text, const struct value *member,
                           struct span *name)
{
    static const char *const in_url[] = {"url", "headers"};
    enum host_variables kind = im->host ? im->host->variables : HOST_DOLLAR_BRACES;
    size_t end = span_find(text, '}'), n = 1;

    *name = SPAN_EMPTY;
    if (kind == HOST_NO_VARIABLES)
        return span_starts(text, SPAN("${")) ? 2 : 0;
    if (kind == HOST_ENV_BRACES && span_starts(text, SPAN("{env:")) && end < text.n) {
        *name = span_cut(text, 5, end - 5);
        return end + 1;
    }
    if (kind == HOST_SECRETS && span_starts(text, SPAN("${{")) && end + 1 < text.n) {
        struct span inside = span_trim(span_cut(text, 3, end - 3));
        *name = span_from(inside, span_find(inside, '.') + 1);
        return name->n && text.p[end + 1] == '}' ? end + 2 : 0;
    }
    bool bare = kind == HOST_BARE;
    for (size_t i = 0; kind == HOST_BARE_IN_URL && i < COUNT_OF(in_url); i++)
        bare |= span_is(value_key(member), in_url[i]);
    while (bare && n < text.n && ascii_is_word(text.p[n], "_"))
        n++;
    if (!bare || text.p[0] != '$' || n == 1 || ascii_is_digit(text.p[1]))
        return 0;
    *name = span_cut(text, 1, n - 1);
    return n;
}

static void rewrite(struct importing *im, struct value *v, const struct value *server,
                    const struct value *member)
{
    BUF_SCOPED out = {0};
    struct variable var;
    struct span name;
    bool changed = false;

    for (size_t at = 0, n; at < v->text.n; at += n) {
        struct span rest = span_from(v->text, at);
        if ((n = own_variable(im, rest, member, &name))) {
            if (name.n)
                buf_printf(&out, "${" SPAN_FMT "}", SPAN_ARG(name));
            else
                buf_str(&out, "$${");
        } else if (span_starts(rest, SPAN("${")) && find_variable(rest, 0, &var) &&
                   var.whole.p == rest.p) {
            put_replacement(im, &out, &var, server, member);
            n = var.whole.n;
        } else {
            tell_file(im, rest, server, member);
            buf_char(&out, rest.p[0]);
            n = 1;
            continue;
        }
        changed = true;
    }
    if (changed)
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

static bool is_mentioned(const struct value *v, const char *text)
{
    if (v->type == VALUE_STRING && strstr(v->text.p, text))
        return true;
    for (const struct value *child = v->first; child; child = child->next)
        if (is_mentioned(child, text))
            return true;
    return false;
}

void import_variables(struct importing *im, struct value *server)
{
    bool project = is_mentioned(server, "${workspaceFolder}") &&
                   !(im->host && im->host->variables == HOST_NO_VARIABLES);

    for (struct value *v = server->first; v; v = v->next)
        rewrite_all(im, v, server, v);
    if (project && !value_get(server, "scope"))
        import_add(server, "scope", value_text(im->arena, VALUE_STRING, SPAN("project")));
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
