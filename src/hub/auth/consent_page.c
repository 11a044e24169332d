/* The HTML of the consent page and its neighbours. Called by issuer_authorize.c and
 * hub/signin/begin.c. */
#include "hub/auth/consent_page.h"

#include "base/id.h"
#include "base/visible.h"
#include "hub/auth/registration.h"

static const char style[] =
    ":root{color-scheme:light dark;--back:#f5f6f8;--card:#fff;--text:#1c2330;--soft:#5a6475;"
    "--line:#d5dae3;--accent:#1f5fbf;--on:#fff;--warn-back:#fff4db;--warn:#6b4a00;--bad:#a3201b}"
    "@media (prefers-color-scheme:dark){:root{--back:#12161d;--card:#1b212b;--text:#e7ebf2;"
    "--soft:#a2adbf;--line:#394354;--accent:#7fb0ff;--on:#0d1420;--warn-back:#3a2f12;"
    "--warn:#ffd98a;--bad:#ff9d97}}"
    "*{box-sizing:border-box}"
    "body{margin:0;min-height:100vh;display:flex;align-items:center;justify-content:center;"
    "padding:1.5rem;background:var(--back);color:var(--text);font:16px/1.5 system-ui,sans-serif}"
    "main{width:100%;max-width:28rem;background:var(--card);border:1px solid var(--line);"
    "border-radius:12px;padding:1.75rem}"
    "h1{font-size:1.3rem;line-height:1.3;margin:0 0 .75rem;overflow-wrap:anywhere}"
    "p{margin:.5rem 0}dl{margin:1rem 0;padding:.75rem 0;border:solid var(--line);"
    "border-width:1px 0}dt{color:var(--soft);font-size:.85rem}"
    "dd{margin:0 0 .6rem;overflow-wrap:anywhere}dd:last-child{margin:0}"
    ".warn{margin:0 0 "
    "1rem;background:var(--warn-back);color:var(--warn);border-radius:8px;padding:.6rem .8rem}"
    ".bad{color:var(--bad);font-weight:600}fieldset{border:0;margin:0 0 1rem;padding:0}"
    "legend,label.field{color:var(--soft);font-size:.85rem;padding:0;display:block}"
    ".choice{display:block;margin:.2rem 0}"
    "input[type=password]{width:100%;font:inherit;padding:.55rem .7rem;margin:.25rem 0 1rem;"
    "color:inherit;background:var(--back);border:1px solid var(--line);border-radius:8px}"
    "button{font:inherit;padding:.55rem 1.2rem;border-radius:8px;border:1px solid var(--line);"
    "background:none;color:inherit;cursor:pointer;margin-right:.5rem}"
    "button.allow{background:var(--accent);border-color:var(--accent);color:var(--on);"
    "font-weight:600}:focus-visible{outline:3px solid var(--accent);outline-offset:2px}"
    "code{font-size:.9em}";

static void put_escaped(struct buf *out, struct span text)
{
    BUF_SCOPED shown = {0};

    visible_put(&shown, text, 0);
    for (size_t i = 0; i < shown.n; i++) {
        char c = shown.p[i];
        const char *entity = c == '&'    ? "&amp;"
                             : c == '<'  ? "&lt;"
                             : c == '>'  ? "&gt;"
                             : c == '"'  ? "&quot;"
                             : c == '\'' ? "&#39;"
                                         : NULL;
        if (entity)
            buf_str(out, entity);
        else
            buf_char(out, c);
    }
}

static void put_str(struct buf *out, const char *text)
{
    put_escaped(out, span_str(text));
}

/* The styles of a page are allowed by a nonce, which is new each time. There is no form-action:
 * browsers would also apply it to the redirect that answers the form. */
static void put_headers(struct buf *out, struct span cookie, const char *nonce)
{
    buf_printf(out,
               "Content-Security-Policy: default-src 'none'; style-src 'nonce-%s'; base-uri "
               "'none'; frame-ancestors 'none'\r\n"
               "X-Frame-Options: DENY\r\nX-Content-Type-Options: nosniff\r\n"
               "Cache-Control: no-store\r\nReferrer-Policy: same-origin\r\n",
               nonce);
    buf_span(out, cookie);
}

static struct buf *begin(struct http_exchange *x, int status, struct span cookie, const char *title)
{
    char nonce[ID_TOKEN_SIZE];
    BUF_SCOPED headers = {0};

    id_token(nonce);
    put_headers(&headers, cookie, nonce);
    struct buf *out = http_respond_begin(x, status, "text/html; charset=utf-8", buf_view(&headers));
    buf_printf(out,
               "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
               "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
               "<meta name=\"robots\" content=\"noindex\"><title>%s</title>"
               "<style nonce=\"%s\">%s</style></head><body><main>\n",
               title, nonce, style);
    return out;
}

static void end(struct http_exchange *x, struct buf *out)
{
    buf_str(out, "</main></body></html>\n");
    http_respond_end(x);
}

static void put_choice(struct buf *out, struct span scope, const char *text, const char *view,
                       bool chosen)
{
    buf_str(out, "<label class=\"choice\"><input type=\"radio\" name=\"scope\" value=\"");
    put_escaped(out, scope);
    buf_printf(out, "\"%s> %s", chosen ? " checked" : "", text);
    if (view) {
        buf_str(out, "<em>");
        put_str(out, view);
        buf_str(out, "</em>");
    }
    buf_str(out, "</label>\n");
}

/* What the agent gets: all, or one of the views. */
static void put_choices(struct buf *out, const struct consent_question *q)
{
    buf_str(out, "<fieldset><legend>It may use</legend>\n");
    put_choice(out, SPAN("mcp"), "all servers and tools", NULL, span_is(q->scope, "mcp"));
    for (size_t i = 0; i < q->views->n; i++) {
        BUF_SCOPED scope = {0};
        buf_printf(&scope, "mcp:%s", q->views->items[i]);
        put_choice(out, buf_view(&scope), "only the view ", q->views->items[i],
                   span_eq(q->scope, buf_view(&scope)));
    }
    buf_str(out, "</fieldset>\n");
}

static void put_facts(struct buf *out, const struct consent_question *q)
{
    BUF_SCOPED host = {0};

    registration_put_redirect_host(&host, q->redirect);
    buf_str(out, "<dl><dt>Its id</dt><dd><code>");
    put_str(out, q->client);
    buf_str(out, "</code></dd><dt>The answer goes to</dt><dd><strong>");
    put_escaped(out, buf_view(&host));
    buf_str(out, "</strong></dd></dl>\n");
    if (registration_is_local(q->redirect))
        buf_str(out, "<p class=\"warn\">The answer goes to a program on the computer that you are "
                     "looking at this with. Go on only if you have just started to connect such a "
                     "program yourself.</p>\n");
    else if (q->registered)
        buf_str(out, "<p class=\"warn\">Anybody can choose that name. Go on only if you have just "
                     "started to connect it yourself, and the answer goes where you expect.</p>\n");
}

void consent_page_ask(struct http_exchange *x, int status, struct span cookie,
                      const struct consent_question *q)
{
    struct buf *out = begin(x, status, cookie, "Let an agent in? - Rialto");

    buf_str(out, "<h1>Let <em>");
    put_str(out, q->name ? q->name : q->client);
    buf_str(out, "</em> use this Rialto?</h1>\n"
                 "<p>It will be able to call the tools of the servers behind it.</p>\n");
    put_facts(out, q);
    buf_str(out, "<form method=\"post\" action=\"authorize\" autocomplete=\"off\">\n"
                 "<input type=\"hidden\" name=\"request\" value=\"");
    put_str(out, q->request);
    buf_str(out, "\"><input type=\"hidden\" name=\"csrf\" value=\"");
    put_str(out, q->csrf);
    buf_str(out, "\">\n");
    put_choices(out, q);
    if (q->problem) {
        buf_str(out, "<p class=\"bad\" role=\"alert\">");
        put_str(out, q->problem);
        buf_str(out, "</p>\n");
    }
    buf_printf(out,
               "<label class=\"field\" for=\"word\">%s</label>\n"
               "<input id=\"word\" type=\"password\" name=\"word\" "
               "autocomplete=\"current-password\" autofocus>\n",
               q->has_password ? "Password, or the code that <code>rialto pair</code> prints"
                               : "The code that <code>rialto pair</code> prints");
    buf_str(out, "<button class=\"allow\" name=\"answer\" value=\"allow\">Let it in</button>"
                 "<button name=\"answer\" value=\"deny\">No</button>\n</form>\n");
    end(x, out);
}

void consent_page_begin(struct http_exchange *x, const struct consent_sign_in *s)
{
    struct buf *out = begin(x, 200, SPAN_EMPTY, "Sign in? - Rialto");

    buf_str(out, "<h1>Sign in to <em>");
    put_str(out, s->server);
    buf_str(out,
            "</em>?</h1>\n<p>Rialto was asked for this sign-in, and will keep what it gets.</p>\n"
            "<dl><dt>It is for</dt><dd><strong>");
    put_str(out, s->user ? s->user : "everybody who uses this Rialto");
    buf_str(out, "</strong></dd><dt>You sign in at</dt><dd><code>");
    put_escaped(out, s->to);
    buf_str(out, "</code></dd></dl>\n"
                 "<p class=\"warn\">Go on only if you asked for this yourself. Whoever it is for "
                 "can use the server as you from then on.</p>\n"
                 "<form method=\"post\" action=\"begin\" autocomplete=\"off\">\n"
                 "<input type=\"hidden\" name=\"login\" value=\"");
    put_str(out, s->login);
    buf_str(out, "\"><button class=\"allow\">Go on</button>\n</form>\n");
    end(x, out);
}

void consent_page_refuse(struct http_exchange *x, int status, const char *title, const char *text)
{
    struct buf *out = begin(x, status, SPAN_EMPTY, "Rialto");

    buf_str(out, "<h1>");
    put_str(out, title);
    buf_str(out, "</h1>\n<p>");
    put_str(out, text);
    buf_str(out, "</p>\n");
    end(x, out);
}
