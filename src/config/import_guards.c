/* RockBot's `argGuards` turned into rules on arguments, and its `elicitation`, `auth` and
 * `attachments` into ours. Called by import.c for each server that has them, and at the end of the
 * document. */
#include "base/ascii.h"
#include "base/mem.h"
#include "config/check.h"
#include "config/import_inside.h"

enum {
    NAME_MAX_BYTES = 128,
    DEFAULT_TTL_MINUTES = 30,
    COUNT_MOST = 999999,
    THRESHOLD_MOST = 16 << 20,
};

/* A member by its name in any case, as RockBot reads its files. */
static struct value *member(const struct value *map, const char *key)
{
    for (struct value *v = map->first; v; v = v->next)
        if (span_eq_nocase(v->key, span_str(key)))
            return v;
    return NULL;
}

/* Has the map no member but these? */
static bool has_only(const struct value *map, const char *const *keys, size_t n)
{
    size_t known = 0;

    for (size_t i = 0; i < n; i++)
        known += member(map, keys[i]) != NULL;
    return map->type == VALUE_MAP && known == map->n;
}

/* Is it a list of texts? A missing list counts as an empty one. */
static bool is_texts(const struct value *list)
{
    if (!list || list->type == VALUE_NULL)
        return true;
    for (const struct value *v = list->first; v; v = v->next)
        if (v->type != VALUE_STRING || !v->text.n || v->text.n > NAME_MAX_BYTES ||
            memchr(v->text.p, '\0', v->text.n))
            return false;
    return list->type == VALUE_LIST;
}

static size_t count(const struct value *list)
{
    return list ? list->n : 0;
}

/* NULL, or what is not understood about a guard. */
static const char *wrong_guard(const struct value *guard)
{
    static const char *const guard_keys[] = {"handler", "tools", "options"};
    static const char *const option_keys[] = {"args", "allowedPrefixes", "requireArgs"};

    if (!has_only(guard, guard_keys, COUNT_OF(guard_keys)))
        return "a guard has 'handler', 'tools' and 'options'";
    const struct value *handler = member(guard, "handler"), *options = member(guard, "options");
    if (!handler || handler->type != VALUE_STRING ||
        !span_eq_nocase(handler->text, SPAN("path-prefix")))
        return "the only 'handler' that is known is path-prefix";
    if (!is_texts(member(guard, "tools")))
        return "'tools' is a list of names";
    if (!options || !has_only(options, option_keys, COUNT_OF(option_keys)))
        return "'options' has 'args', 'allowedPrefixes' and 'requireArgs'";
    const struct value *args = member(options, "args"),
                       *folders = member(options, "allowedPrefixes");
    const struct value *required = member(options, "requireArgs");
    if (!is_texts(args) || !count(args))
        return "'args' is a list of the arguments to look at, and must name one";
    if (!is_texts(folders) || !count(folders))
        return "'allowedPrefixes' is a list of folders, and must name one: none does not mean all";
    for (const struct value *v = folders->first; v; v = v->next)
        if (check_folder(v->text))
            return "'allowedPrefixes' must be absolute paths";
    return required && required->type != VALUE_BOOL && required->type != VALUE_NULL
               ? "'requireArgs' is true or false"
               : NULL;
}

/* --- rules --- */

static void add_text(struct importing *im, struct value *rule, const char *key, struct span text)
{
    import_add(rule, key, value_text(im->arena, VALUE_STRING, text));
}

/* A rule that denies calls by this argument; the caller adds the test. */
static struct value *add_rule(struct importing *im, const struct value *server,
                              const struct value *tool, const struct value *argument)
{
    struct value *rule = value_new(im->arena, VALUE_MAP, argument->at);
    BUF_SCOPED pointer = {0};

    buf_char(&pointer, '/');
    for (size_t i = 0; i < argument->text.n; i++) {
        char c = argument->text.p[i];
        if (c == '~' || c == '/')
            buf_str(&pointer, c == '~' ? "~0" : "~1");
        else
            buf_char(&pointer, c);
    }
    add_text(im, rule, "server", value_key(server));
    if (tool)
        add_text(im, rule, "tool", tool->text);
    add_text(im, rule, "argument", arena_span(im->arena, buf_view(&pointer)));
    add_text(im, rule, "then", SPAN("deny"));
    value_append(im->rules, rule);
    return rule;
}

static void add_rules(struct importing *im, const struct value *server, const struct value *tool,
                      const struct value *options)
{
    const struct value *required = member(options, "requireArgs");

    for (const struct value *arg = member(options, "args")->first; arg; arg = arg->next) {
        struct value *outside = value_new(im->arena, VALUE_LIST, arg->at);
        for (const struct value *v = member(options, "allowedPrefixes")->first; v; v = v->next)
            value_append(outside, value_text(im->arena, VALUE_STRING, v->text));
        import_add(add_rule(im, server, tool, arg), "outside", outside);
        if (required && required->truth) {
            struct value *absent = value_text(im->arena, VALUE_BOOL, SPAN("true"));
            absent->truth = true;
            import_add(add_rule(im, server, tool, arg), "absent", absent);
        }
    }
}

const char *import_guards(struct importing *im, struct value *server, struct value *guards)
{
    const char *why = guards->type == VALUE_LIST ? NULL : "a list of guards is expected";

    for (const struct value *v = why ? NULL : guards->first; v && !why; v = v->next)
        why = wrong_guard(v);
    if (why)
        return why;
    if (!im->rules)
        im->rules = value_new(im->arena, VALUE_LIST, guards->at);
    for (const struct value *v = guards->first; v; v = v->next) {
        const struct value *tools = member(v, "tools"), *options = member(v, "options");
        if (!count(tools))
            add_rules(im, server, NULL, options);
        for (const struct value *tool = count(tools) ? tools->first : NULL; tool; tool = tool->next)
            add_rules(im, server, tool, options);
    }
    return NULL;
}

void import_guards_end(struct importing *im, struct value *root)
{
    struct value *own = im->rules ? value_get(root, "rules") : NULL;

    if (!im->rules)
        return;
    /* The rules of the document come behind the guards: they must not let a call past a guard. */
    for (struct value *v = own && own->type == VALUE_LIST ? own->first : NULL, *next; v; v = next) {
        next = v->next;
        value_remove(own, v);
        value_append(im->rules, v);
    }
    if (own && own->type == VALUE_MAP) {
        value_remove(root, own);
        value_append(im->rules, own);
    } else if (own) {
        value_remove(root, own);
    }
    import_add(root, "rules", im->rules);
}

/* --- questions --- */

/* Our word for a mode; NULL when it is not known. In RockBot, `auto` lets a model answer. There is
 * none here, and RockBot declines a question that nobody answers. */
static const char *mode_of(const struct value *mode)
{
    static const char *const words[][2] = {
        {"auto", "decline"}, {"decline", "decline"}, {"off", "off"}, {"handback", "handback"}};

    if (!mode || mode->type == VALUE_NULL)
        return "decline";
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (mode->type == VALUE_STRING && span_eq_nocase(mode->text, span_str(words[i][0])))
            return words[i][1];
    return NULL;
}

/* Is it a whole number up to `most`, or missing? */
static bool is_number(const struct value *v, uint64_t most)
{
    uint64_t n;

    if (!v || v->type == VALUE_NULL)
        return true;
    return v->type == VALUE_NUMBER && ascii_number(v->text, &n) && n <= most;
}

static const char *wrong_elicitation(const struct value *v)
{
    static const char *const keys[] = {
        "mode",      "maxPerCall",         "defaults", "deniedFields", "responderTimeoutMs",
        "responder", "handbackTtlMinutes",
    };
    const struct value *defaults = member(v, "defaults");

    if (!has_only(v, keys, COUNT_OF(keys)))
        return "it has a key that is not known";
    if (!mode_of(member(v, "mode")))
        return "'mode' is auto, decline, off or handback";
    if (!is_number(member(v, "maxPerCall"), COUNT_MOST) ||
        !is_number(member(v, "handbackTtlMinutes"), COUNT_MOST))
        return "'maxPerCall' and 'handbackTtlMinutes' are whole numbers";
    if (!is_texts(member(v, "deniedFields")))
        return "'deniedFields' is a list of names";
    return defaults && !import_is_empty(defaults)
               ? "'defaults' are not answered with here; take them out to have such forms declined"
               : NULL;
}

const char *import_elicitation(struct importing *im, struct value *server, struct value *v)
{
    const char *why = wrong_elicitation(v);

    if (why)
        return why;
    const struct value *minutes = member(v, "handbackTtlMinutes");
    struct value *most = member(v, "maxPerCall"), *denied = member(v, "deniedFields");
    const char *mode = mode_of(member(v, "mode"));
    struct value *ours = value_new(im->arena, VALUE_MAP, v->at);
    BUF_SCOPED ttl = {0};
    uint64_t n = 0;

    add_text(im, ours, "mode", span_str(mode));
    if (most && most->type == VALUE_NUMBER)
        import_add(ours, "max_per_call", value_text(im->arena, VALUE_NUMBER, most->text));
    if (denied && denied->n) {
        value_remove(v, denied);
        import_add(ours, "denied_fields", denied);
    }
    if (minutes && minutes->type == VALUE_NUMBER)
        (void)ascii_number(minutes->text, &n);
    buf_printf(&ttl, "%um", n ? (unsigned)n : DEFAULT_TTL_MINUTES);
    if (strcmp(mode, "handback") == 0)
        add_text(im, server, "ask_timeout", arena_span(im->arena, buf_view(&ttl)));
    import_add(server, "elicitation", ours);
    return NULL;
}

/* --- tokens --- */

const char *import_auth(struct importing *im, struct value *server, struct value *v)
{
    static const char *const keys[] = {"profile"};
    const struct value *url = import_member(im, server, "url");
    struct value *profile = member(v, "profile"), *ours;

    if (!has_only(v, keys, COUNT_OF(keys)) || !profile || profile->type != VALUE_STRING ||
        check_name(profile->text))
        return "it has 'profile', the name of a token, and nothing else";
    if (!url || span_starts(url->text, SPAN("ws")))
        return "it is for servers with an http or https 'url'";
    ours = value_new(im->arena, VALUE_MAP, v->at);
    add_text(im, ours, "profile", profile->text);
    import_add(server, "auth", ours);
    return NULL;
}

/* --- files --- */

static const char *const file_keys[] = {"thresholdBytes", "uploadFieldName", "endpointPath",
                                        "outbound",       "inbound",         "capture"};
static const char *const capture_keys[] = {"tools", "contentField", "nameField", "mimeField",
                                           "encodingField"};

/* Is it a map with no member but these, or missing? */
static bool is_map_of(const struct value *v, const char *const *keys, size_t n)
{
    return !v || v->type == VALUE_NULL || has_only(v, keys, n);
}

static bool is_text(const struct value *v)
{
    return !v || v->type == VALUE_NULL || (v->type == VALUE_STRING && !check_name(v->text));
}

/* "NAME[*]", the one shape that RockBot knows. */
static bool is_list_path(struct span text)
{
    return text.n > 3 && span_is(span_from(text, text.n - 3), "[*]") &&
           !check_name(span_cut(text, 0, text.n - 3));
}

static const char *wrong_capture(const struct value *capture)
{
    static const char *const keys[] = {"enabled", "rules"};
    const struct value *enabled = capture ? member(capture, "enabled") : NULL;
    const struct value *rules = capture ? member(capture, "rules") : NULL;
    bool fine = is_map_of(capture, keys, COUNT_OF(keys)) &&
                (!enabled || enabled->type == VALUE_BOOL || enabled->type == VALUE_NULL) &&
                (!rules || rules->type == VALUE_LIST || rules->type == VALUE_NULL);

    for (const struct value *v = fine && rules ? rules->first : NULL; v && fine; v = v->next) {
        fine = has_only(v, capture_keys, COUNT_OF(capture_keys)) && is_texts(member(v, "tools"));
        for (size_t i = 1; i < COUNT_OF(capture_keys); i++)
            fine = fine && is_text(member(v, capture_keys[i]));
    }
    return fine ? NULL
                : "'capture' has 'enabled' and 'rules', and a rule 'tools', 'contentField', "
                  "'nameField', 'mimeField' and 'encodingField'";
}

/* Adds a missing first slash: RockBot takes paths without it, too. */
static void put_endpoint(struct buf *out, struct span text)
{
    buf_str(out, span_starts(text, SPAN("/")) ? "" : "/");
    buf_span(out, text);
}

static bool is_path(const struct value *v)
{
    BUF_SCOPED path = {0};

    if (!v || import_is_empty(v))
        return true;
    put_endpoint(&path, v->text);
    return v->type == VALUE_STRING && !check_endpoint(buf_view(&path));
}

static const char *wrong_attachments(const struct value *v)
{
    static const char *const outbound_keys[] = {"paramPaths"}, *const inbound_keys[] = {"tools"};

    if (!has_only(v, file_keys, COUNT_OF(file_keys)))
        return "it has a key that is not known";
    const struct value *outbound = member(v, "outbound"), *inbound = member(v, "inbound");
    if (!is_number(member(v, "thresholdBytes"), THRESHOLD_MOST))
        return "'thresholdBytes' is a whole number of up to 16 MiB";
    if (!is_text(member(v, "uploadFieldName")) || !is_path(member(v, "endpointPath")))
        return "'uploadFieldName' is a name, and 'endpointPath' a path";
    if (!is_map_of(outbound, outbound_keys, 1) ||
        (outbound && !is_texts(member(outbound, "paramPaths"))))
        return "'outbound' has 'paramPaths', a list";
    const struct value *paths = outbound ? member(outbound, "paramPaths") : NULL;
    for (const struct value *path = paths ? paths->first : NULL; path; path = path->next)
        if (!is_list_path(path->text))
            return "'paramPaths' are like attachments[*]: an argument that is a list";
    if (!is_map_of(inbound, inbound_keys, 1) || (inbound && !is_texts(member(inbound, "tools"))))
        return "'inbound' has 'tools', a list of names";
    return wrong_capture(member(v, "capture"));
}

/* Moves a member to our map, under our name. */
static void move(struct value *from, const char *theirs, struct value *to, const char *ours)
{
    struct value *v = from ? member(from, theirs) : NULL;

    if (!v || import_is_empty(v))
        return;
    value_remove(from, v);
    import_add(to, ours, v);
}

static void move_capture(struct importing *im, struct value *capture, struct value *ours)
{
    static const char *const names[] = {"tools", "content", "name", "mime", "encoding"};
    struct value *rules = capture ? member(capture, "rules") : NULL;
    struct value *fields = rules ? value_new(im->arena, VALUE_LIST, rules->at) : NULL;

    move(capture, "enabled", ours, "capture");
    for (struct value *v = rules ? rules->first : NULL; v; v = v->next) {
        struct value *field = value_new(im->arena, VALUE_MAP, v->at);
        for (size_t i = 0; i < COUNT_OF(names); i++)
            move(v, capture_keys[i], field, names[i]);
        if (value_get(field, "tools")) /* a rule without tools applies to none */
            value_append(fields, field);
    }
    if (fields && fields->n)
        import_add(ours, "capture_fields", fields);
}

const char *import_attachments(struct importing *im, struct value *server, struct value *v)
{
    const char *why = wrong_attachments(v);

    if (why)
        return why;
    struct value *ours = value_new(im->arena, VALUE_MAP, v->at);
    struct value *outbound = member(v, "outbound"), *threshold = member(v, "thresholdBytes");
    struct value *paths = outbound ? member(outbound, "paramPaths") : NULL;
    struct value *endpoint = member(v, "endpointPath");
    for (struct value *path = paths ? paths->first : NULL; path; path = path->next)
        path->text.n -= 3;
    move(outbound, "paramPaths", ours, "outbound");
    move(member(v, "inbound"), "tools", ours, "inbound");
    if (threshold && threshold->type == VALUE_NUMBER) {
        BUF_SCOPED size = {0};
        buf_printf(&size, SPAN_FMT "B", SPAN_ARG(threshold->text));
        add_text(im, ours, "threshold", arena_span(im->arena, buf_view(&size)));
    }
    move(v, "uploadFieldName", ours, "upload_field");
    if (endpoint && !import_is_empty(endpoint)) {
        BUF_SCOPED path = {0};
        put_endpoint(&path, endpoint->text);
        add_text(im, ours, "endpoint", arena_span(im->arena, buf_view(&path)));
    }
    move_capture(im, member(v, "capture"), ours);
    import_add(server, "attachments", ours);
    return NULL;
}
