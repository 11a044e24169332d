/* Forms posted to authorization servers with our id and secret, and their answers. Called by
 * login.c and signin.c. */
#include "hub/signin/grant.h"

#include "base/base64.h"
#include "base/mem.h"
#include "hub/signin/client_assertion.h"
#include "wire/webform.h"

#include <stdio.h>

enum { TIMEOUT_MS = 20 * 1000, ANSWER_MAX = 256 * 1024 };

struct grant_request {
    struct loop *loop;
    struct fetched_document *fetch;
    struct arena arena;
    char *alias, *endpoint;
    bool plain, is_exchange;
    struct timer fail_later; /* failures that are known at once */
    struct grant_answer answer;
    grant_done_fn *done;
    void *owner;
};

static void grant_free(struct grant_request *g)
{
    timer_clear(loop_timers(g->loop), &g->fail_later);
    arena_fini(&g->arena);
    mem_free(g->alias);
    mem_free(g->endpoint);
    mem_free(g);
}

static void finish(struct grant_request *g)
{
    g->done(g->owner, &g->answer);
    grant_free(g);
}

/* --- the answer --- */

/* Sets the error: the server's own words, or its HTTP status. */
static void read_refusal(struct grant_request *g, int status, struct span body)
{
    struct grant_answer *a = &g->answer;
    const struct oauth_error *e = &a->error;

    oauth_read_error(&a->error, body, &g->arena);
    a->passing = status == 429 || status >= 500 ||
                 (e->code && strcmp(e->code, "temporarily_unavailable") == 0);
    if (e->code)
        err_set(&a->err, ERR_PROTOCOL, "server '%s': the authorization server says '%s'%s%s",
                g->alias, e->code, e->description ? ": " : "",
                e->description ? e->description : "");
    else
        err_set(&a->err, ERR_PROTOCOL,
                "server '%s': HTTP %d from the authorization server at %.200s", g->alias, status,
                g->endpoint);
}

static void read_token(struct grant_request *g, struct span body, struct oauth_token *token)
{
    struct grant_answer *a = &g->answer;
    struct err why;

    int code = oauth_read_token(token, body, g->is_exchange, &g->arena, &why);
    if (!code) {
        a->token = token;
        a->ok = true;
        return;
    }
    oauth_read_error(&a->error, body, &g->arena); /* some servers send errors with status 200 */
    if (a->error.code)
        read_refusal(g, 200, body);
    else
        err_set(&a->err, code, "server '%s': %s", g->alias, why.text);
}

static void on_answer(void *owner, const struct document_answer *got)
{
    struct grant_request *g = owner;
    struct grant_answer *a = &g->answer;
    struct oauth_token token;

    g->fetch = NULL;
    a->body = got->body;
    if (got->code) {
        a->passing = true;
        err_set(&a->err, got->code, "server '%s': the authorization server did not answer: %s",
                g->alias, got->why);
    } else if (got->head.status != 200 && got->head.status != 201) {
        read_refusal(g, got->head.status, got->body);
    } else if (g->plain) {
        a->ok = true;
    } else {
        read_token(g, got->body, &token);
    }
    finish(g);
}

/* --- the request --- */

static void put_basic(struct buf *line, const struct grant_client *c)
{
    BUF_SCOPED pair = {0};

    webform_put_text(&pair, span_str(c->id));
    buf_char(&pair, ':');
    webform_put_text(&pair, span_str(c->secret));
    buf_str(line, "Authorization: Basic ");
    base64_put(line, buf_view(&pair));
}

/* Adds our credentials to the form, or to the header line. */
static int show_client(struct buf *form, struct buf *line, const struct grant_client *c,
                       struct err *err)
{
    BUF_SCOPED assertion = {0};
    int code = 0;

    switch (c->method) {
    case OAUTH_BASIC:
        put_basic(line, c);
        break;
    case OAUTH_POST:
        webform_put(form, "client_id", span_str(c->id));
        webform_put(form, "client_secret", span_str(c->secret));
        break;
    case OAUTH_JWT:
        code = client_assertion_put(&assertion, c, err);
        webform_put(form, "client_assertion_type",
                    SPAN("urn:ietf:params:oauth:client-assertion-type:jwt-bearer"));
        webform_put(form, "client_assertion", buf_view(&assertion));
        break;
    case OAUTH_NONE:
    case OAUTH_METHODS:
        webform_put(form, "client_id", span_str(c->id));
        break;
    }
    return code;
}

static void on_fail_later(struct timer *t)
{
    finish(CONTAINER_OF(t, struct grant_request, fail_later));
}

struct grant_request *grant_start(struct loop *loop, struct http_client *client,
                                  const struct grant_spec *spec, struct buf *form,
                                  grant_done_fn *done, void *owner)
{
    struct grant_request *g = MEM_NEW(struct grant_request);
    BUF_SCOPED line = {0};

    g->loop = loop;
    g->alias = mem_str(spec->alias);
    g->endpoint = mem_str(spec->endpoint);
    g->plain = spec->plain;
    g->is_exchange = spec->is_exchange;
    g->done = done;
    g->owner = owner;
    g->fail_later.fire = on_fail_later;
    if (show_client(form, &line, &spec->client, &g->answer.err)) {
        buf_fini(form);
        timer_set(loop_timers(loop), &g->fail_later, 0);
        return g;
    }
    const char *const headers[] = {"Content-Type: application/x-www-form-urlencoded",
                                   "Accept: application/json", line.n ? buf_cstr(&line) : NULL,
                                   NULL};
    struct document_spec fetch = {
        .fetch = {.method = "POST",
                  .url = spec->endpoint,
                  .headers = headers,
                  .body = form,
                  .ca = spec->ca,
                  .reach = spec->reach},
        .max = ANSWER_MAX,
        .timeout = TIMEOUT_MS,
    };
    g->fetch = document_fetch(loop, client, &fetch, on_answer, g);
    return g;
}

void grant_cancel(struct grant_request *g)
{
    if (!g)
        return;
    if (g->fetch)
        document_cancel(g->fetch);
    grant_free(g);
}

int grant_choose_method(const struct oauth_server *as, bool secret, bool key)
{
    static const enum oauth_method order[] = {OAUTH_JWT, OAUTH_BASIC, OAUTH_POST, OAUTH_NONE};

    for (size_t i = 0; i < COUNT_OF(order); i++) {
        bool able = order[i] == OAUTH_JWT ? key : order[i] == OAUTH_NONE ? !secret && !key : secret;
        if (able && (as->methods & 1u << order[i]))
            return (int)order[i];
    }
    /* Some servers do not list all methods that they support. */
    return key ? OAUTH_JWT : secret ? -1 : OAUTH_NONE;
}
