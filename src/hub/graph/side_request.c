/* An HTTP request to a server's host outside of MCP: its headers, its token, and its whole answer.
 * Called by hub/bus_host.c for the worker's uploads and downloads. */
#include "hub/graph/side_request.h"

#include "base/mem.h"
#include "mcp/server/http_upstream.h"

struct side_request {
    struct list node;
    struct loop *loop;
    struct server_plan *plan;
    struct http_client *client;
    struct identity *identity;  /* held; NULL: nobody signs in to the server */
    struct http_signer *signer; /* NULL = none */
    struct http_signer_wait wait;
    uint64_t token;                    /* number of the token that was sent */
    bool resigned;                     /* sent again, with another token */
    struct fetched_document *document; /* NULL: nothing is on the wire */
    struct document_spec spec;         /* its url and body are below */
    char *url;
    struct buf body, copy, type;
    bus_answer_fn *done; /* may be NULL */
    void *owner;
};

void side_request_cancel(struct side_request *r)
{
    list_remove(&r->wait.node);
    if (r->document)
        document_cancel(r->document);
    list_remove(&r->node);
    http_client_free(r->client);
    if (r->identity)
        identity_drop(r->identity);
    server_plan_drop(r->plan);
    buf_fini(&r->body);
    buf_fini(&r->copy);
    buf_fini(&r->type);
    mem_free(r->url);
    mem_free(r);
}

void side_request_cancel_all(struct list *all)
{
    struct side_request *r;

    while ((r = LIST_FIRST(all, struct side_request, node)))
        side_request_cancel(r);
}

static void finish(struct side_request *r, const struct document_answer *a)
{
    list_remove(&r->node);
    if (r->done)
        r->done(r->owner, a);
    side_request_cancel(r);
}

/* Headers of the entry that are about MCP's messages are not sent. */
static bool is_kept(struct span line)
{
    static const char *const names[] = {"Accept", "Content-Type", "Content-Length"};
    struct span name = span_cut(line, 0, span_find(line, ':'));

    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (span_eq_nocase(name, span_str(names[i])))
            return false;
    return true;
}

static void send(struct side_request *r);

static void on_answer(void *owner, const struct document_answer *a)
{
    struct side_request *r = owner;
    const struct http_refusal refusal = {
        .status = a->head.status, .number = r->token, .beside = true};
    BUF_SCOPED why = {0};
    struct document_answer told = *a;

    r->document = NULL;
    if (a->code == 0 && a->head.status == 401 && r->signer) {
        enum http_signed now = r->signer->refused(r->signer, &refusal, &why);
        if (now == HTTP_SIGNED_AGAIN && !r->resigned) {
            r->resigned = true;
            send(r);
            return;
        }
        told.body = why.n ? buf_view(&why) : a->body;
    }
    finish(r, &told);
}

/* Sends the request once there is a token, if it needs one; a copy of the body is kept if it may
 * have to be sent again. */
static void send(struct side_request *r)
{
    const struct http_upstream_options *remote = server_remote(r->plan);
    const char *token = NULL;
    BUF_SCOPED bearer = {0};
    size_t n = 0;

    if (r->signer && !r->signer->ready(r->signer, &r->wait))
        return;
    if (r->signer)
        token = r->signer->token(r->signer, &r->token);
    while (remote->headers && remote->headers[n])
        n++;
    const char **headers = MEM_ARRAY(const char *, n + 3);
    n = 0;
    for (const char *const *line = remote->headers; line && *line; line++)
        if (is_kept(span_str(*line)))
            headers[n++] = *line;
    buf_printf(&bearer, "Authorization: Bearer %s", token ? token : "");
    if (token)
        headers[n++] = buf_cstr(&bearer);
    if (r->type.n)
        headers[n++] = buf_cstr(&r->type);
    if (r->signer && !r->resigned)
        buf_span(&r->copy, buf_view(&r->body));
    r->spec.fetch.headers = headers;
    if (r->spec.fetch.body)
        r->spec.fetch.body = r->resigned ? &r->copy : &r->body;
    r->document = document_fetch(r->loop, r->client, &r->spec, on_answer, r);
    mem_free(headers);
}

static void on_token(struct http_signer_wait *w)
{
    send(CONTAINER_OF(w, struct side_request, wait));
}

struct side_request *side_request_start(struct signin *signin, struct list *all,
                                        struct server_plan *plan, const struct bus_request *request,
                                        bus_answer_fn *done, void *owner)
{
    const struct http_upstream_options *remote = server_remote(plan);
    char *url = remote ? http_url_resolve(remote->url, span_str(request->path)) : NULL;

    if (!url)
        return NULL;
    struct loop *loop = signin_loop(signin);
    struct side_request *r = MEM_NEW(struct side_request);
    *r = (struct side_request){.loop = loop,
                               .plan = server_plan_hold(plan),
                               .client = http_client_new(loop),
                               .signer = server_profile(plan, loop),
                               .wait.fire = on_token,
                               .url = url,
                               .done = done,
                               .owner = owner};
    r->spec = (struct document_spec){.fetch = {.method = request->method,
                                               .url = url,
                                               .body = request->body ? &r->body : NULL,
                                               .ca = remote->ca,
                                               .reach = remote->reach},
                                     .max = request->max,
                                     .timeout = request->timeout};
    if (server_signin(plan)) {
        r->identity = identity_hold(signin, plan, NULL);
        r->signer = identity_signer(r->identity);
    }
    list_append(all, &r->node);
    list_init(&r->wait.node);
    if (request->type)
        buf_printf(&r->type, "Content-Type: %s", request->type);
    if (request->body) {
        r->body = *request->body;
        *request->body = (struct buf){0};
    }
    send(r);
    return r;
}
