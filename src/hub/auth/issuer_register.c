/* /oauth/register: clients that register themselves (RFC 7591). Called by issuer.c. */
#include "hub/auth/issuer_inside.h"

#include "base/base64.h"
#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "wire/json_out.h"

#include <errno.h>
#include <stdio.h>

enum { HOUR_MS = 3600 * 1000, PER_HOUR = 20 };

/* The peer's address without its port. */
static struct span address_of(const struct http_exchange *x)
{
    struct span peer = span_str(http_exchange_peer(x));
    size_t end = peer.n;

    while (end && peer.p[end - 1] != ':')
        end--;
    return end ? span_cut(peer, 0, end - 1) : peer;
}

/* Has this address registered too many clients in the last hour? When the table is full, its oldest
 * row is used again. */
static bool is_too_fast(struct issuer *i, const struct http_exchange *x)
{
    struct span peer = span_cut(address_of(x), 0, sizeof i->registering[0].peer - 1);
    uint64_t now = loop_now(i->loop);
    size_t at = 0;

    for (size_t k = 0; k < ISSUER_ADDRESSES; k++) {
        if (span_is(peer, i->registering[k].peer)) {
            at = k;
            break;
        }
        if (i->registering[k].since < i->registering[at].since)
            at = k;
    }
    if (!span_is(peer, i->registering[at].peer) || now - i->registering[at].since >= HOUR_MS) {
        snprintf(i->registering[at].peer, sizeof i->registering[at].peer, SPAN_FMT, SPAN_ARG(peer));
        i->registering[at].since = now;
        i->registering[at].n = 0;
    }
    return ++i->registering[at].n > PER_HOUR;
}

static void put_answer(struct buf *out, const struct registration *r, struct span secret)
{
    buf_char(out, '{');
    json_out_str(out, "client_id", r->id);
    json_out_number(out, "client_id_issued_at", (uint64_t)r->created / 1000);
    if (secret.n) {
        json_out_text(out, "client_secret", secret);
        json_out_number(out, "client_secret_expires_at", 0);
    }
    if (r->name)
        json_out_str(out, "client_name", r->name);
    json_out_open(out, "redirect_uris", '[');
    for (size_t k = 0; k < r->n_redirects; k++)
        json_out_str(out, NULL, r->redirects[k]);
    buf_char(out, ']');
    json_out_str(out, "token_endpoint_auth_method", registration_method_name(r->method));
    json_out_raw(out, "grant_types", SPAN("[\"authorization_code\",\"refresh_token\"]"));
    json_out_raw(out, "response_types", SPAN("[\"code\"]"));
    json_out_str(out, "scope", "mcp");
    buf_str(out, "}\n");
}

static void make_secret(struct registration *r, struct buf *secret)
{
    unsigned char random[32];

    id_random_bytes(random, sizeof random);
    base64_put_url(secret, span_of((const char *)random, sizeof random));
    sha_256(r->secret, buf_view(secret));
}

static void answer(struct issuer *i, struct http_exchange *x, struct registration *r)
{
    BUF_SCOPED secret = {0}, body = {0}, id = {0};
    char random[ID_TOKEN_SIZE];

    id_token(random);
    buf_printf(&id, "rialto-%s", random);
    mem_free(r->id);
    r->id = buf_take(&id);
    r->created = pass_clock();
    if (r->method != REGISTRATION_NONE)
        make_secret(r, &secret);
    put_answer(&body, r, buf_view(&secret));
    if (!permits_add_client(i->permits, r)) {
        registration_free(r);
        issuer_refuse(x, 503, "temporarily_unavailable", "too many clients are registered");
        return;
    }
    if (permits_save(i->permits)) {
        issuer_refuse(x, 500, "server_error", "the registration cannot be kept");
        return;
    }
    log_info("auth", "a client has registered, as %s, from %s", r->id, http_exchange_peer(x));
    http_respond(x, 201, "application/json", SPAN("Cache-Control: no-store\r\n"), buf_view(&body));
}

void issuer_handle_register(struct issuer *i, struct http_exchange *x,
                            const struct http_request *req)
{
    struct span type = http_header(req, "content-type");
    struct err err;

    if (!span_eq_nocase(span_trim(span_cut(type, 0, span_find(type, ';'))),
                        SPAN("application/json"))) {
        issuer_refuse(x, 415, "invalid_client_metadata", "send application/json");
        return;
    }
    if (is_too_fast(i, x)) {
        http_exchange_add_headers(x, SPAN("Retry-After: 3600\r\n"));
        issuer_refuse(x, 429, "temporarily_unavailable", "too many registrations, come back later");
        return;
    }
    struct registration *r = MEM_NEW(struct registration);
    int code = registration_read(r, req->body, &err);
    if (!code) {
        answer(i, x, r);
        return;
    }
    registration_free(r);
    issuer_refuse(x, 400, code == -EINVAL ? "invalid_redirect_uri" : "invalid_client_metadata",
                  err.text);
}
