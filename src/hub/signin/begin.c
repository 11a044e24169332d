/* The page where a browser starts a sign-in, and the cookie by which the callback recognizes the
 * browser. Called by hub/hub.c for the route, by login.c and signin.c, and by callback.c. */
#include "hub/signin/begin.h"

#include "hub/auth/consent_page.h"
#include "hub/signin/login.h"
#include "hub/signin/signin.h"
#include "wire/url.h"
#include "wire/webform.h"

enum { COOKIE_S = 10 * 60 }; /* as long as a login */

/* --- an address and its browser --- */

void begin_init(struct begin *b, const char *page)
{
    b->page = page;
    id_token(b->tag);
    b->used = true; /* there is no address yet */
    begin_renew(b);
}

void begin_fini(struct begin *b)
{
    buf_fini(&b->address);
}

void begin_renew(struct begin *b)
{
    if (!b->used)
        return;
    b->used = false;
    id_token(b->id);
    buf_reset(&b->address, 0);
    buf_printf(&b->address, "%s?login=%s", b->page, b->id);
    (void)buf_cstr(&b->address);
}

bool begin_is(const struct begin *b, struct span id)
{
    return span_eq_secret(id, span_str(b->id));
}

static bool is_secure(const struct begin *b)
{
    return span_starts(span_str(b->page), SPAN("https:"));
}

/* With https the name has the prefix __Host-: no other host of the domain can set this cookie. */
static void put_cookie(struct buf *out, const struct begin *b)
{
    enum { TAG_N = 8 };

    buf_printf(out, "%srialto-login-%.*s=%s", is_secure(b) ? "__Host-" : "", TAG_N, b->tag,
               b->value);
}

bool begin_knows(const struct begin *b, const struct http_request *req)
{
    struct span rest = http_header(req, "cookie");
    BUF_SCOPED ours = {0};
    bool knows = false;

    put_cookie(&ours, b);
    while (b->value[0] && rest.n) {
        size_t end = span_find(rest, ';');
        knows |= span_eq_secret(span_trim(span_cut(rest, 0, end)), buf_view(&ours));
        rest = span_from(rest, end + 1);
    }
    return knows;
}

/* --- the page --- */

/* Browsers send the origin of a form: a page of another site must not submit ours. */
static bool is_from_page(const struct begin *b, const struct http_request *req)
{
    struct url_parts own, from;

    return url_read(&own, span_str(b->page)) && url_read(&from, http_header(req, "origin")) &&
           !from.path.n && url_same_origin(&own, &from);
}

static void show(const struct login *l, const struct begin *b, struct http_exchange *x)
{
    const struct login_spec *spec = login_spec(l);
    struct span address = span_str(login_authorize(l));
    struct url_parts to = {0};

    (void)url_read(&to, span_cut(address, 0, span_find(address, '?'))); /* known to be valid */
    consent_page_begin(x, &(struct consent_sign_in){.server = spec->settings->alias,
                                                    .user = spec->user,
                                                    .to = to.origin,
                                                    .login = b->id});
}

/* Send the browser to the authorization server, and set the cookie. */
static void send_on(const struct login *l, struct begin *b, struct http_exchange *x)
{
    BUF_SCOPED headers = {0};

    b->used = true;
    id_token(b->value);
    http_put_header(&headers, "Location", span_str(login_authorize(l)));
    buf_str(&headers, "Set-Cookie: ");
    put_cookie(&headers, b);
    buf_printf(&headers, "; Path=/; Max-Age=%d; HttpOnly; SameSite=Lax%s\r\n", COOKIE_S,
               is_secure(b) ? "; Secure" : "");
    buf_str(&headers, "Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n"
                      "X-Frame-Options: DENY\r\nContent-Security-Policy: default-src 'none'; "
                      "frame-ancestors 'none'\r\n");
    http_respond(x, 303, NULL, buf_view(&headers), SPAN_EMPTY);
}

void begin_answer(struct signin *s, struct http_exchange *x, const struct http_request *req)
{
    static const char *const names[] = {"login"};
    bool pressed = span_is(req->method, "POST");
    BUF_SCOPED scratch = {0};
    struct span id;

    if (!pressed && !span_is(req->method, "GET")) {
        http_refuse_with(x, 405, SPAN("Allow: GET, POST\r\n"), "method not allowed",
                         "this is a page for people: GET");
        return;
    }
    struct login *l = webform_read(pressed ? req->body : req->query, names, 1, &id, &scratch) == 0
                          ? signin_find_begin(s, id)
                          : NULL;
    struct begin *b = l ? login_begin(l) : NULL;
    if (!b)
        consent_page_refuse(x, 400, "Nothing waits for this",
                            "This address was used before, has expired, or is not from Rialto. "
                            "Start the sign-in again.");
    else if (b->used && !begin_knows(b, req))
        consent_page_refuse(x, 403, "This sign-in has begun in another browser",
                            "An address is good for one. Ask for the sign-in again, and you get "
                            "another address.");
    else if (!pressed)
        show(l, b, x);
    else if (!is_from_page(b, req))
        consent_page_refuse(x, 403, "This answer is not taken",
                            "It was not given on the page of this Rialto. Open the address of the "
                            "sign-in again.");
    else
        send_on(l, b, x);
}
