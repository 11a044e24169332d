/* The headers of every request to an HTTP server, refusals in words, and SSE streams with their
 * last event id. Called by http_upstream.c, http_post.c, http_listen.c and http_old_sse.c. */
#include "base/mem.h"
#include "base/visible.h"
#include "mcp/server/http_link.h"
#include "wire/http.h"

#include <stdlib.h>

/* --- headers --- */

/* A list of lines that ends with NULL, as http_fetch_start wants it. */
struct header_list {
    char **items;
    size_t n;
};

static void add_line(struct header_list *l, struct span name, struct span value)
{
    struct buf line = {0};

    buf_span(&line, name);
    buf_str(&line, ": ");
    buf_span(&line, value);
    l->items = mem_resize(l->items, (l->n + 2) * sizeof *l->items);
    l->items[l->n++] = buf_take(&line);
    l->items[l->n] = NULL;
}

static void header_list_free(struct header_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        mem_free(l->items[i]);
    mem_free(l->items);
}

/* Headers that we derive from the message: the same headers in the configuration are ignored. */
static bool is_ours(struct span name)
{
    static const char *const names[] = {
        "Accept",        "Content-Type", "Content-Length", "Mcp-Session-Id", "MCP-Protocol-Version",
        "Last-Event-ID", "Mcp-Method",   "Mcp-Name"};

    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (span_eq_nocase(name, span_str(names[i])))
            return true;
    return false;
}

static void add_raw(struct header_list *l, struct span line)
{
    size_t colon = span_find(line, ':');

    if (colon < line.n)
        add_line(l, span_cut(line, 0, colon), span_trim(span_from(line, colon + 1)));
}

static void add_configured(struct header_list *l, const struct http_upstream *u)
{
    for (const char *const *line = u->options.headers; line && *line; line++) {
        struct span text = span_str(*line);
        if (!is_ours(span_cut(text, 0, span_find(text, ':'))))
            add_raw(l, text);
    }
}

/* The token goes only to the server's own host: http_url_resolve gives no other address. */
static void add_token(struct header_list *l, const struct http_upstream *u, uint64_t *number)
{
    struct http_signer *signer = u->options.signer;
    uint64_t n = 0;
    const char *token = signer ? signer->token(signer, &n) : NULL;
    BUF_SCOPED value = {0};

    if (number)
        *number = token ? n : 0;
    if (!token)
        return;
    buf_printf(&value, "Bearer %s", token);
    add_line(l, SPAN("Authorization"), buf_view(&value));
}

static void add_spec(struct header_list *l, const struct http_upstream *u,
                     const struct request_spec *spec)
{
    add_token(l, u, spec->token);
    for (struct span rest = spec->lines; rest.n;) {
        struct span line = span_cut(rest, 0, span_find(rest, '\r'));
        add_raw(l, line);
        rest = span_from(rest, line.n + 2);
    }
    if (spec->body)
        add_line(l, SPAN("Content-Type"), SPAN("application/json"));
    if (spec->version && *spec->version)
        add_line(l, SPAN("MCP-Protocol-Version"), span_str(spec->version));
    if (spec->with_session && u->session)
        add_line(l, SPAN("Mcp-Session-Id"), span_str(u->session));
    if (spec->last_id)
        add_line(l, SPAN("Last-Event-ID"), span_str(spec->last_id));
    add_line(l, SPAN("Accept"),
             spec->body ? SPAN("application/json, text/event-stream") : SPAN("text/event-stream"));
}

struct http_fetch *http_request_start(struct http_upstream *u, const struct request_spec *spec,
                                      const struct http_fetch_events *on, void *owner)
{
    struct header_list list = {0};

    add_configured(&list, u);
    add_spec(&list, u, spec);
    struct http_fetch_spec fetch = {
        .method = spec->method,
        .url = u->endpoint && spec->body ? u->endpoint : u->url,
        .headers = (const char *const *)list.items,
        .ca = u->options.ca,
        .unix_path = u->options.socket,
        .reach = u->options.reach,
        .body = spec->body,
    };
    struct http_fetch *f = http_fetch_start(u->client, &fetch, on, owner);
    header_list_free(&list);
    return f;
}

/* --- answers without permission --- */

void http_request_keep_challenge(struct buf *out, const struct http_head *head)
{
    buf_reset(out, 0);
    if (head->status == 401 || head->status == 403)
        http_head_put_all(out, head, "WWW-Authenticate");
}

enum http_signed http_request_resign(struct http_upstream *u, int status, uint64_t token,
                                     struct span challenge, struct buf *why)
{
    struct http_signer *signer = u->options.signer;

    if (!signer || (status != 401 && status != 403))
        return HTTP_SIGNED_NOT;
    return signer->refused(
        signer, &(struct http_refusal){.status = status, .number = token, .challenge = challenge},
        why);
}

/* --- words --- */

static bool mentions(struct span text, const char *word)
{
    size_t n = strlen(word);

    for (size_t i = 0; i + n <= text.n; i++)
        if (span_eq_nocase(span_cut(text, i, n), span_of(word, n)))
            return true;
    return false;
}

bool http_request_type_is(const struct http_head *head, const char *type)
{
    struct span value = http_head_value(head, "Content-Type");

    return span_eq_nocase(span_trim(span_cut(value, 0, span_find(value, ';'))), span_str(type));
}

bool http_request_says_no_session(int status, struct span body)
{
    /* The protocol wants 404; servers built after old examples of the SDK answer 400. */
    return status == 404 || (status == 400 && mentions(body, "session"));
}

/* The first line of a text; empty if the text is an HTML page. */
static struct span first_line(struct span text)
{
    struct span line = span_cut(text, 0, span_find(text, '\n'));

    line = span_trim(span_cut(line, 0, span_find(line, '\r')));
    return line.n && line.p[0] == '<' ? SPAN_EMPTY : line;
}

/* The message for people in an error body: JSON-RPC's error.message, or a member that others use
 * for that, else the whole JSON; the first line of a body that is no JSON object. */
static struct span message_of(struct span body, struct buf *scratch)
{
    static const char *const keys[] = {"message", "error_description", "error", "detail"};
    enum json_type type;

    if (json_skim(body, NULL, NULL, &type, NULL) < 0 || type != JSON_OBJECT)
        return first_line(body);
    struct json_slot error = json_get(body, "error");
    struct span in = error.type == JSON_OBJECT ? error.value : body;
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        struct json_slot slot = json_get(in, keys[i]);
        if (slot.type == JSON_STRING)
            return json_text(slot.value, scratch);
    }
    json_one_line(scratch, body);
    return buf_view(scratch);
}

enum { SAID_MAX = 100 }; /* bytes of the server's message that are shown */

void http_request_put_refusal(struct buf *out, int status, struct span body)
{
    BUF_SCOPED scratch = {0}, said = {0};

    visible_put(&said, span_cut(message_of(body, &scratch), 0, SAID_MAX), 0);
    if (status == 401)
        buf_str(out, "needs authorization, to be given in 'headers' (HTTP 401");
    else if (status == 403)
        buf_str(out, "refuses us (HTTP 403");
    else if (status >= 300 && status < 400)
        buf_printf(out, "redirects to another host (HTTP %d", status);
    else
        buf_printf(out, "HTTP %d %s", status, http_reason(status));
    if (said.n)
        buf_printf(out, ": %s", buf_cstr(&said));
    if (status == 401 || status == 403 || (status >= 300 && status < 400))
        buf_char(out, ')');
}

/* --- event streams --- */

struct feeding {
    struct sse_source *source;
    sse_event_fn *on_event;
    void *owner;
};

/* An event id goes back to the server in a header, which must not have control characters. */
static bool fits_header(struct span id)
{
    for (size_t i = 0; i < id.n; i++)
        if ((unsigned char)id.p[i] < 0x20 || id.p[i] == 0x7f)
            return false;
    return id.n && id.n <= 4096;
}

static void remember(void *owner, const struct sse_event *event)
{
    struct feeding *f = owner;
    struct sse_source *s = f->source;

    s->fresh = true;
    if (event->retry >= 0)
        s->retry = event->retry;
    if (fits_header(event->id) && !(s->last_id && span_is(event->id, s->last_id))) {
        mem_free(s->last_id);
        s->last_id = mem_span(event->id);
    }
    f->on_event(f->owner, event);
}

void sse_source_open(struct sse_source *s, size_t max_message)
{
    enum { FIELDS = 8192 }; /* bytes of an event besides its data */

    sse_source_close(s);
    sse_decoder_init(&s->decoder, max_message + FIELDS);
    s->reading = true;
    s->fresh = false;
    if (!s->last_id)
        s->retry = -1;
}

int sse_source_feed(struct sse_source *s, struct span chunk, sse_event_fn *on_event, void *owner)
{
    struct feeding f = {s, on_event, owner};

    return sse_feed(&s->decoder, chunk, remember, &f);
}

void sse_source_close(struct sse_source *s)
{
    if (s->reading)
        sse_decoder_fini(&s->decoder);
    s->reading = false;
}

void sse_source_fini(struct sse_source *s)
{
    sse_source_close(s);
    mem_free(s->last_id);
    s->last_id = NULL;
}
