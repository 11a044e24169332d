/* Metadata documents, registrations and token answers of OAuth read into structs, and sets of
 * scopes. Called by the files of hub/ that sign in, and by the fuzzer. */
#include "wire/oauth.h"

#include "base/ascii.h"
#include "base/mem.h"
#include "wire/json.h"

enum {
    TOKEN_MAX = 16 * 1024, /* bytes of a token or secret */
    NAME_MAX_N = 2048,     /* bytes of an id */
    SCOPE_MAX = 4096,
    ERROR_MAX = 200,                 /* bytes of an error that are shown */
    LIFE_MAX = 10 * 365 * 24 * 3600, /* seconds; a longer life is cut to this */
};

/* --- what a text may be --- */

/* A token as a header takes it (b64token of RFC 6750). */
static bool is_token(struct span text)
{
    while (text.n && text.p[text.n - 1] == '=')
        text.n--;
    return text.n && text.n <= TOKEN_MAX && ascii_is_words(text, "-._~+/");
}

static bool is_visible(struct span text)
{
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] < 0x20 || text.p[i] > 0x7e)
            return false;
    return text.n > 0;
}

static bool is_id(struct span text)
{
    return is_visible(text) && text.n <= NAME_MAX_N;
}

static bool is_secret(struct span text)
{
    return is_visible(text) && text.n <= TOKEN_MAX;
}

/* An address to which we may send requests or a person. */
static bool is_endpoint(struct span text)
{
    struct url_parts u;

    return url_read(&u, text) && url_is_safe(&u);
}

bool oauth_is_scope(struct span text)
{
    if (!text.n || text.n > SCOPE_MAX || text.p[0] == ' ' || text.p[text.n - 1] == ' ')
        return false;
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] < 0x20 || text.p[i] > 0x7e || text.p[i] == '"' || text.p[i] == '\\' ||
            (text.p[i] == ' ' && text.p[i - 1] == ' '))
            return false;
    return true;
}

/* --- members of a document --- */

/* A member that becomes a text of the result. */
struct text_row {
    const char *key;
    bool (*is)(struct span text); /* checks the form of the text */
    bool needed;
    size_t at; /* offset of the const char * in the result */
};

struct oauth_document {
    const char *what; /* for people */
    struct span text;
    struct arena *arena;
    struct err *err;
};

/* Is the text one JSON object in which no member of the shape occurs twice? */
static int open_document(const struct oauth_document *d, const struct json_shape *shape)
{
    struct json_slot slots[JSON_MAX_ROWS] = {{0}};
    enum json_type type;

    if (d->text.n > OAUTH_DOCUMENT_MAX)
        return err_set(d->err, ERR_SIZE, "%s has more than %d KiB", d->what,
                       OAUTH_DOCUMENT_MAX / 1024);
    int code = json_skim(d->text, shape, slots, &type, NULL);
    if (code == ERR_DUPLICATE)
        return err_set(d->err, code, "%s has a member twice", d->what);
    if (code || type != JSON_OBJECT)
        return err_set(d->err, ERR_SYNTAX, "%s is not a JSON object", d->what);
    return 0;
}

static struct json_slot member(const struct oauth_document *d, const char *key)
{
    struct json_slot slot = json_get(d->text, key);

    if (slot.type == JSON_NULL)
        slot.type = JSON_NONE;
    return slot;
}

static int read_texts(const struct oauth_document *d, const struct text_row *rows, size_t n,
                      void *out)
{
    for (size_t i = 0; i < n; i++) {
        struct json_slot slot = member(d, rows[i].key);
        BUF_SCOPED scratch = {0};
        const char **to = (const char **)(void *)((char *)out + rows[i].at);
        if (slot.type == JSON_NONE && !rows[i].needed)
            continue;
        if (slot.type == JSON_NONE)
            return err_set(d->err, ERR_PROTOCOL, "%s has no '%s'", d->what, rows[i].key);
        struct span text = slot.type == JSON_STRING ? json_text(slot.value, &scratch) : SPAN_EMPTY;
        if (slot.type != JSON_STRING || !rows[i].is(text))
            return err_set(d->err, ERR_PROTOCOL, "%s has a '%s' that cannot be used", d->what,
                           rows[i].key);
        *to = arena_span(d->arena, text).p;
    }
    return 0;
}

/* A whole number that is not negative; `missing` when the member is absent. Some servers write
 * numbers as texts. */
static int read_seconds(const struct oauth_document *d, const char *key, int64_t missing,
                        int64_t *out)
{
    struct json_slot slot = member(d, key);
    BUF_SCOPED scratch = {0};
    struct span raw = slot.type == JSON_STRING ? json_text(slot.value, &scratch) : slot.value;

    *out = missing;
    if (slot.type == JSON_NONE)
        return 0;
    if ((slot.type != JSON_NUMBER && slot.type != JSON_STRING) || !json_int(raw, out) || *out < 0)
        return err_set(d->err, ERR_PROTOCOL, "%s has a '%s' that is not a number of seconds",
                       d->what, key);
    return 0;
}

static bool list_has(struct json_slot list, const char *word)
{
    struct json_iter it = json_iter(list.value);

    while (list.type == JSON_ARRAY && json_next(&it))
        if (json_string_is(it.value, span_str(word)))
            return true;
    return false;
}

/* The words of a list that `is` lets through, with blanks between; NULL without the list. */
static const char *join_list(const struct oauth_document *d, const char *key,
                             bool (*is)(struct span text))
{
    struct json_slot list = member(d, key);
    struct json_iter it = json_iter(list.value);
    BUF_SCOPED joined = {0};

    if (list.type != JSON_ARRAY)
        return NULL;
    while (json_next(&it)) {
        BUF_SCOPED scratch = {0};
        struct span word = it.type == JSON_STRING ? json_text(it.value, &scratch) : SPAN_EMPTY;
        if (!is(word) || joined.n + word.n > SCOPE_MAX)
            continue;
        buf_str(&joined, joined.n ? " " : "");
        buf_span(&joined, word);
    }
    return joined.n ? arena_span(d->arena, buf_view(&joined)).p : NULL;
}

static bool is_word(struct span text)
{
    return oauth_is_scope(text) && span_find(text, ' ') == text.n;
}

/* --- the resource --- */

int oauth_read_resource(struct oauth_resource *out, struct span text, struct arena *arena,
                        struct err *err)
{
    static const struct json_shape_row keys[] = {
        {"resource", 0, NULL}, {"authorization_servers", 1, NULL}, {"scopes_supported", 2, NULL}};
    static const struct json_shape shape = JSON_SHAPE(keys);
    static const struct text_row rows[] = {
        {"resource", is_id, true, offsetof(struct oauth_resource, resource)}};
    struct oauth_document d = {"the resource metadata", text, arena, err};

    *out = (struct oauth_resource){0};
    int code = open_document(&d, &shape);
    if (!code)
        code = read_texts(&d, rows, COUNT_OF(rows), out);
    if (code)
        return code;
    struct json_slot servers = member(&d, "authorization_servers");
    struct json_iter it = json_iter(servers.value);
    while (servers.type == JSON_ARRAY && out->n_servers < OAUTH_SERVERS_MAX && json_next(&it)) {
        BUF_SCOPED scratch = {0};
        struct span issuer = it.type == JSON_STRING ? json_text(it.value, &scratch) : SPAN_EMPTY;
        if (is_endpoint(issuer))
            out->servers[out->n_servers++] = arena_span(arena, issuer).p;
    }
    out->scopes = join_list(&d, "scopes_supported", is_word);
    if (!out->n_servers)
        return err_set(
            err, ERR_PROTOCOL,
            "%s names no authorization server that can be used ('authorization_servers')", d.what);
    return 0;
}

/* The resource's path must be that of the URL, or a part of it that ends between two segments. */
bool oauth_resource_covers(const char *resource, const struct url_parts *url)
{
    struct url_parts r;

    if (!url_read(&r, span_str(resource)) || !url_same_origin(&r, url))
        return false;
    if (r.query.n)
        return span_eq(r.path, url->path) && span_eq(r.query, url->query);
    while (r.path.n && r.path.p[r.path.n - 1] == '/')
        r.path.n--;
    return span_starts(url->path, r.path) &&
           (url->path.n == r.path.n || url->path.p[r.path.n] == '/');
}

/* --- the authorization server --- */

static const char *const methods[OAUTH_METHODS] = {[OAUTH_NONE] = "none",
                                                   [OAUTH_BASIC] = "client_secret_basic",
                                                   [OAUTH_POST] = "client_secret_post",
                                                   [OAUTH_JWT] = "private_key_jwt"};

const char *oauth_method_name(enum oauth_method m)
{
    return methods[m];
}

/* "https://a" and "https://a/" have one metadata document, and servers mix them up. */
static bool same_issuer(const char *one, const char *two)
{
    struct url_parts a, b;
    struct span first = span_str(one), second = span_str(two);

    if (span_eq(first, second))
        return true;
    bool bare = url_read(&a, first) && url_read(&b, second) && a.path.n <= 1 && b.path.n <= 1 &&
                !a.query.n && !b.query.n;
    return bare && span_eq(a.origin, b.origin);
}

#define ALGS       "token_endpoint_auth_signing_alg_values_supported"
#define SAYS_ISS   "authorization_response_iss_parameter_supported"
#define TAKES_URLS "client_id_metadata_document_supported"

int oauth_read_server(struct oauth_server *out, struct span text, const char *issuer,
                      struct arena *arena, struct err *err)
{
    static const struct json_shape_row keys[] = {{"issuer", 0, NULL},
                                                 {"authorization_endpoint", 1, NULL},
                                                 {"token_endpoint", 2, NULL},
                                                 {"registration_endpoint", 3, NULL},
                                                 {"revocation_endpoint", 4, NULL},
                                                 {"device_authorization_endpoint", 5, NULL},
                                                 {"response_types_supported", 6, NULL},
                                                 {"code_challenge_methods_supported", 7, NULL},
                                                 {"token_endpoint_auth_methods_supported", 8, NULL},
                                                 {"scopes_supported", 9, NULL},
                                                 {ALGS, 10, NULL},
                                                 {SAYS_ISS, 11, NULL},
                                                 {TAKES_URLS, 12, NULL}};
    static const struct json_shape shape = JSON_SHAPE(keys);
    static const struct text_row rows[] = {
        {"issuer", is_id, true, offsetof(struct oauth_server, issuer)},
        {"authorization_endpoint", is_endpoint, false, offsetof(struct oauth_server, authorize)},
        {"token_endpoint", is_endpoint, true, offsetof(struct oauth_server, token)},
        {"registration_endpoint", is_endpoint, false, offsetof(struct oauth_server, registration)},
        {"revocation_endpoint", is_endpoint, false, offsetof(struct oauth_server, revocation)},
        {"device_authorization_endpoint", is_endpoint, false,
         offsetof(struct oauth_server, device)}};
    struct oauth_document d = {"the metadata of the authorization server", text, arena, err};

    *out = (struct oauth_server){0};
    int code = open_document(&d, &shape);
    if (!code)
        code = read_texts(&d, rows, COUNT_OF(rows), out);
    if (code)
        return code;
    if (!same_issuer(out->issuer, issuer))
        return err_set(err, ERR_PROTOCOL,
                       "the authorization server '%.150s' calls itself '%.150s' in its metadata",
                       issuer, out->issuer);
    struct json_slot listed = member(&d, "token_endpoint_auth_methods_supported");
    for (int m = 0; m < OAUTH_METHODS; m++)
        out->methods |= list_has(listed, methods[m]) ? 1u << m : 0u;
    if (listed.type != JSON_ARRAY)
        out->methods = 1u << OAUTH_BASIC;
    out->algs = join_list(&d, ALGS, is_word);
    struct json_slot types = member(&d, "response_types_supported");
    out->has_code = types.type == JSON_NONE || list_has(types, "code");
    out->has_s256 = list_has(member(&d, "code_challenge_methods_supported"), "S256");
    out->offers_offline = list_has(member(&d, "scopes_supported"), "offline_access");
    out->says_iss = member(&d, SAYS_ISS).type == JSON_TRUE;
    out->takes_urls = member(&d, TAKES_URLS).type == JSON_TRUE;
    return 0;
}

/* --- clients, devices, tokens --- */

int oauth_read_client(struct oauth_client *out, struct span text, struct arena *arena,
                      struct err *err)
{
    static const struct json_shape_row keys[] = {{"client_id", 0, NULL},
                                                 {"client_secret", 1, NULL},
                                                 {"client_secret_expires_at", 2, NULL},
                                                 {"token_endpoint_auth_method", 3, NULL}};
    static const struct json_shape shape = JSON_SHAPE(keys);
    static const struct text_row rows[] = {
        {"client_id", is_id, true, offsetof(struct oauth_client, id)},
        {"client_secret", is_secret, false, offsetof(struct oauth_client, secret)}};
    struct oauth_document d = {"the answer to the registration", text, arena, err};

    *out = (struct oauth_client){.method = -1};
    int code = open_document(&d, &shape);
    if (!code)
        code = read_texts(&d, rows, COUNT_OF(rows), out);
    if (!code)
        code = read_seconds(&d, "client_secret_expires_at", 0, &out->expires);
    if (code)
        return code;
    struct json_slot method = member(&d, "token_endpoint_auth_method");
    for (int m = 0; m < OAUTH_METHODS; m++)
        if (method.type == JSON_STRING && json_string_is(method.value, span_str(methods[m])))
            out->method = m;
    return 0;
}

int oauth_read_device(struct oauth_device *out, struct span text, struct arena *arena,
                      struct err *err)
{
    static const struct json_shape_row keys[] = {
        {"device_code", 0, NULL},      {"user_code", 1, NULL},
        {"verification_uri", 2, NULL}, {"verification_uri_complete", 3, NULL},
        {"expires_in", 4, NULL},       {"interval", 5, NULL}};
    static const struct json_shape shape = JSON_SHAPE(keys);
    static const struct text_row rows[] = {
        {"device_code", is_secret, true, offsetof(struct oauth_device, device_code)},
        {"user_code", is_id, true, offsetof(struct oauth_device, user_code)},
        {"verification_uri", is_endpoint, true, offsetof(struct oauth_device, uri)},
        {"verification_uri_complete", is_endpoint, false,
         offsetof(struct oauth_device, uri_complete)}};
    enum { USUAL_LIFE = 600, USUAL_INTERVAL = 5, INTERVAL_MAX = 300 };
    struct oauth_document d = {"the answer to the device authorization", text, arena, err};

    *out = (struct oauth_device){0};
    int code = open_document(&d, &shape);
    if (!code)
        code = read_texts(&d, rows, COUNT_OF(rows), out);
    if (!code)
        code = read_seconds(&d, "expires_in", USUAL_LIFE, &out->expires_in);
    if (!code)
        code = read_seconds(&d, "interval", USUAL_INTERVAL, &out->interval);
    if (out->interval < 1)
        out->interval = 1;
    if (out->interval > INTERVAL_MAX)
        out->interval = INTERVAL_MAX;
    return code;
}

int oauth_read_token(struct oauth_token *out, struct span text, bool is_exchange,
                     struct arena *arena, struct err *err)
{
    static const struct json_shape_row keys[] = {
        {"access_token", 0, NULL}, {"token_type", 1, NULL}, {"refresh_token", 2, NULL},
        {"expires_in", 3, NULL},   {"scope", 4, NULL},      {"error", 5, NULL}};
    static const struct json_shape shape = JSON_SHAPE(keys);
    static const struct text_row rows[] = {
        {"access_token", is_token, true, offsetof(struct oauth_token, access)},
        {"refresh_token", is_secret, false, offsetof(struct oauth_token, refresh)}};
    struct oauth_document d = {"the answer to the token request", text, arena, err};
    BUF_SCOPED scratch = {0};

    *out = (struct oauth_token){.expires_in = -1};
    int code = open_document(&d, &shape);
    if (!code && member(&d, "error").type != JSON_NONE)
        code = err_set(err, ERR_PROTOCOL, "%s has an 'error' in it", d.what);
    if (!code)
        code = read_texts(&d, rows, COUNT_OF(rows), out);
    if (!code)
        code = read_seconds(&d, "expires_in", -1, &out->expires_in);
    if (code)
        return code;
    struct json_slot type = member(&d, "token_type"), scope = member(&d, "scope");
    if (!is_exchange && (type.type != JSON_STRING ||
                         !span_eq_nocase(json_text(type.value, &scratch), SPAN("Bearer"))))
        return err_set(err, ERR_PROTOCOL, "%s has a 'token_type' that is not Bearer", d.what);
    struct span scopes = scope.type == JSON_STRING ? json_text(scope.value, &scratch) : SPAN_EMPTY;
    if (oauth_is_scope(scopes))
        out->scope = arena_span(arena, scopes).p;
    if (out->expires_in > LIFE_MAX)
        out->expires_in = LIFE_MAX;
    return 0;
}

/* --- errors --- */

static const char *shown_text(struct span object, const char *key, struct arena *arena)
{
    struct json_slot slot = json_get(object, key);
    BUF_SCOPED scratch = {0}, shown = {0};

    if (slot.type != JSON_STRING)
        return NULL;
    struct span text = span_cut(json_text(slot.value, &scratch), 0, ERROR_MAX);
    for (size_t i = 0; i < text.n; i++)
        buf_char(&shown, text.p[i] < 0x20 || text.p[i] > 0x7e ? '?' : text.p[i]);
    return shown.n ? arena_span(arena, buf_view(&shown)).p : NULL;
}

void oauth_read_error(struct oauth_error *out, struct span text, struct arena *arena)
{
    enum json_type type;

    *out = (struct oauth_error){0};
    if (text.n > OAUTH_DOCUMENT_MAX || json_skim(text, NULL, NULL, &type, NULL) ||
        type != JSON_OBJECT)
        return;
    out->code = shown_text(text, "error", arena);
    out->description = shown_text(text, "error_description", arena);
}

/* --- scopes --- */

static bool next_word(struct span *rest, struct span *word)
{
    while (rest->n && rest->p[0] == ' ')
        *rest = span_from(*rest, 1);
    *word = span_cut(*rest, 0, span_find(*rest, ' '));
    *rest = span_from(*rest, word->n);
    return word->n > 0;
}

static bool has_word(struct span scopes, struct span wanted)
{
    struct span word;

    while (next_word(&scopes, &word))
        if (span_eq(word, wanted))
            return true;
    return false;
}

bool oauth_scope_has(const char *has, const char *wanted)
{
    struct span rest = span_str(wanted), word;

    while (next_word(&rest, &word))
        if (!has_word(span_str(has), word))
            return false;
    return true;
}

void oauth_scope_join(struct buf *out, const char *more)
{
    struct span rest = span_str(more), word;

    while (next_word(&rest, &word)) {
        if (has_word(buf_view(out), word))
            continue;
        if (out->n)
            buf_char(out, ' ');
        buf_span(out, word);
    }
}
