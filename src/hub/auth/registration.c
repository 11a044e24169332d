/* OAuth clients: reading what they say about themselves (JSON), and comparing redirect addresses.
 * Called by issuer_authorize.c, issuer_register.c, consent_page.c, permits.c and permit_file.c. */
#include "hub/auth/registration.h"

#include "base/ascii.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "wire/json.h"
#include "wire/url.h"

#include <errno.h>

enum { NAME_MAX_CHARS = 100, URI_MAX = 1024, DEPTH_MAX = 8 };

/* --- redirect addresses --- */

static bool is_loopback(struct span host)
{
    return span_is(host, "localhost") || span_is(host, "127.0.0.1") || span_is(host, "[::1]");
}

static struct span scheme_of(struct span uri)
{
    return span_cut(uri, 0, span_find(uri, ':'));
}

/* Is it an app's own scheme? A scheme that browsers or other programs handle is not. */
static bool is_app_scheme(struct span uri)
{
    static const char *const taken[] = {
        "javascript", "data", "file",   "blob",        "vbscript", "about", "http",     "https",
        "ws",         "wss",  "ftp",    "view-source", "chrome",   "jar",   "mailto",   "tel",
        "sms",        "ssh",  "telnet", "filesystem",  "intent",   "edge",  "resource", "smb",
    };
    struct span scheme = scheme_of(uri);

    if (scheme.n < 2 || scheme.n >= uri.n || !ascii_is_letter(scheme.p[0]) ||
        !ascii_is_words(scheme, "+-."))
        return false;
    for (size_t i = 0; i < COUNT_OF(taken); i++)
        if (span_eq_nocase(scheme, span_str(taken[i])))
            return false;
    for (size_t i = 0; i < uri.n; i++)
        if (uri.p[i] <= ' ' || uri.p[i] > '~' || strchr("#@\\\"<>^`{|}*", uri.p[i]))
            return false;
    return true;
}

static bool is_redirect(struct span uri)
{
    struct url_parts u;

    if (!uri.n || uri.n > URI_MAX || span_find(uri, '*') < uri.n)
        return false;
    if (url_read(&u, uri))
        return u.secure || is_loopback(u.host);
    return is_app_scheme(uri);
}

/* Are both loopback addresses that differ at most in the port? A program on the agent's machine
 * cannot know its port in advance. */
static bool differs_in_port(struct span a, struct span b)
{
    struct url_parts one, two;

    return url_read(&one, a) && url_read(&two, b) && !one.secure && !two.secure &&
           is_loopback(one.host) && span_eq(one.host, two.host) && span_eq(one.path, two.path) &&
           span_eq(one.query, two.query);
}

bool registration_has_redirect(const struct registration *r, struct span redirect)
{
    for (size_t i = 0; i < r->n_redirects; i++)
        if (span_is(redirect, r->redirects[i]) ||
            differs_in_port(redirect, span_str(r->redirects[i])))
            return true;
    return false;
}

void registration_put_redirect_host(struct buf *out, struct span redirect)
{
    struct url_parts u;

    if (url_read(&u, redirect)) {
        buf_span(out, u.host);
    } else {
        buf_span(out, scheme_of(redirect));
        buf_str(out, ":");
    }
}

bool registration_is_local(struct span redirect)
{
    struct url_parts u;

    return !url_read(&u, redirect) || is_loopback(u.host);
}

/* --- documents --- */

enum { R_NONE, R_ID, R_NAME, R_REDIRECTS, R_METHOD, R_GRANTS, R_RESPONSES, R_SLOTS };

static const struct json_shape_row rows[] = {
    {"client_id", R_ID, NULL},
    {"client_name", R_NAME, NULL},
    {"redirect_uris", R_REDIRECTS, NULL},
    {"token_endpoint_auth_method", R_METHOD, NULL},
    {"grant_types", R_GRANTS, NULL},
    {"response_types", R_RESPONSES, NULL},
};
static const struct json_shape shape = JSON_SHAPE(rows);

static const char *const methods[] = {"none", "client_secret_basic", "client_secret_post"};

const char *registration_method_name(enum registration_method m)
{
    return methods[m];
}

static int read_redirects(struct registration *r, const struct json_slot *slot, struct err *err)
{
    struct json_iter it = json_iter(slot->value);

    while (slot->type == JSON_ARRAY && json_next(&it)) {
        BUF_SCOPED scratch = {0};
        struct span uri = it.type == JSON_STRING ? json_text(it.value, &scratch) : SPAN_EMPTY;
        if (r->n_redirects == REGISTRATION_REDIRECTS)
            return err_set(err, -EINVAL, "there are more than %d redirect_uris",
                           REGISTRATION_REDIRECTS);
        if (!is_redirect(uri))
            return err_set(err, -EINVAL,
                           "redirect_uris must be https, http on localhost, 127.0.0.1 or [::1], or "
                           "an app's own scheme, without user, fragment and wildcard");
        r->redirects[r->n_redirects++] = mem_span(uri);
    }
    return r->n_redirects ? 0 : err_set(err, -EINVAL, "there are no redirect_uris");
}

/* Is a list given that does not contain the only value that is supported here? */
static bool lacks(const struct json_slot *slot, struct span wanted)
{
    struct json_iter it = json_iter(slot->value);

    if (slot->type == JSON_NONE || slot->type == JSON_NULL)
        return false;
    while (slot->type == JSON_ARRAY && json_next(&it))
        if (json_string_is(it.value, wanted))
            return false;
    return true;
}

static int read_method(struct registration *r, const struct json_slot *slot, struct err *err)
{
    /* RFC 7591 2: client_secret_basic is the default. */
    r->method = REGISTRATION_BASIC;
    if (slot->type == JSON_NONE || slot->type == JSON_NULL)
        return 0;
    for (size_t i = 0; i < COUNT_OF(methods); i++) {
        if (json_string_is(slot->value, span_str(methods[i]))) {
            r->method = (enum registration_method)i;
            return 0;
        }
    }
    return err_set(err, ERR_PROTOCOL,
                   "token_endpoint_auth_method must be none, client_secret_basic or "
                   "client_secret_post");
}

/* The name, of which at most the first NAME_MAX_CHARS characters are kept; NULL: none. */
static char *read_name(const struct json_slot *slot)
{
    BUF_SCOPED text = {0};
    size_t n = 0, chars = 0;

    if (slot->type == JSON_STRING)
        json_unescape(&text, slot->value);
    while (n < text.n && chars < NAME_MAX_CHARS) {
        n++;
        while (n < text.n && ((unsigned char)text.p[n] & 0xc0) == 0x80)
            n++;
        chars++;
    }
    return n ? mem_span(span_cut(buf_view(&text), 0, n)) : NULL;
}

int registration_read(struct registration *r, struct span json, struct err *err)
{
    struct json_slot slots[R_SLOTS] = {{0}};
    enum json_type type;
    BUF_SCOPED scratch = {0};

    *r = (struct registration){0};
    list_init(&r->node);
    if (json.n > REGISTRATION_MAX || json_skim(json, &shape, slots, &type, NULL) ||
        type != JSON_OBJECT || json_depth(json) > DEPTH_MAX)
        return err_set(err, ERR_SYNTAX, "expected a JSON object, with no member twice");
    int code = read_redirects(r, &slots[R_REDIRECTS], err);
    if (!code)
        code = read_method(r, &slots[R_METHOD], err);
    if (!code && (lacks(&slots[R_GRANTS], SPAN("authorization_code")) ||
                  lacks(&slots[R_RESPONSES], SPAN("code"))))
        code = err_set(err, ERR_PROTOCOL,
                       "only the grant authorization_code and the response code are known here");
    r->name = read_name(&slots[R_NAME]);
    if (slots[R_ID].type == JSON_STRING)
        r->id = mem_span(json_text(slots[R_ID].value, &scratch));
    return code;
}

void registration_free(struct registration *r)
{
    for (size_t i = 0; i < r->n_redirects; i++)
        mem_free(r->redirects[i]);
    mem_free(r->id);
    mem_free(r->name);
    mem_free(r);
}
