/* The paths /api/servers/NAME/login and /logout: begin a sign-in, show its state, hand over a
 * pasted address, forget the token. Called by servers.c. */
#include "admin/inside.h"

#include "base/log.h"
#include "base/mem.h"
#include "hub/signin/signin.h"
#include "wire/json.h"
#include "wire/json_out.h"

/* An operator that waits for the address of a login, or for the end of a logout. */
struct login_request {
    struct identity_wait wait;
    struct http_exchange *x; /* NULL: the client has left */
};

static void on_gone(void *owner)
{
    struct login_request *r = owner;

    identity_leave(&r->wait);
    mem_free(r);
}

static void show_address(struct http_exchange *x, const char *url, const char *code)
{
    struct buf *out = http_respond_begin(x, 200, "application/json", SPAN_EMPTY);

    buf_char(out, '{');
    json_out_str(out, "url", url);
    if (code)
        json_out_str(out, "code", code);
    buf_str(out, "}\n");
    http_respond_end(x);
}

static void on_address(struct identity_wait *w, const char *url, const char *code)
{
    struct login_request *r = CONTAINER_OF(w, struct login_request, wait);

    show_address(r->x, url, code);
    identity_leave(w);
    mem_free(r);
}

static void on_done(struct identity_wait *w, const struct err *err)
{
    struct login_request *r = CONTAINER_OF(w, struct login_request, wait);

    if (err)
        http_refuse(r->x, 502, err->text, err->hint[0] ? err->hint : NULL);
    else
        http_respond(r->x, 200, "application/json", SPAN_EMPTY,
                     SPAN("{\"state\":\"signed_in\"}\n"));
    mem_free(r);
}

static void begin(struct identity *id, struct http_exchange *x, bool device)
{
    struct login_request *r = MEM_NEW(struct login_request);

    r->x = x;
    r->wait.address = on_address;
    r->wait.done = on_done;
    http_exchange_on_gone(x, on_gone, r);
    identity_login(id, device, &r->wait);
}

/* Shows the state of the last login. */
static void show_state(struct identity *id, struct http_exchange *x)
{
    const struct err *err;
    enum login_state state = identity_login_state(id, &err);
    static const char *const words[] = {[LOGIN_NONE] = "signed_out",
                                        [LOGIN_WAITS] = "waiting",
                                        [LOGIN_DONE] = "signed_in",
                                        [LOGIN_FAILED] = "failed"};
    struct buf *out = http_respond_begin(x, 200, "application/json", SPAN_EMPTY);

    buf_char(out, '{');
    json_out_str(out, "state", words[state]);
    if (state == LOGIN_FAILED) {
        json_out_redacted(out, "error", span_str(err->text));
        json_out_redacted(out, "hint", span_str(err->hint));
    }
    buf_str(out, "}\n");
    http_respond_end(x);
}

static void paste(struct identity *id, struct http_exchange *x, struct span raw)
{
    BUF_SCOPED scratch = {0};

    if (identity_paste(id, json_text(raw, &scratch)))
        http_respond(x, 202, "application/json", SPAN_EMPTY, SPAN("{\"state\":\"waiting\"}\n"));
    else
        http_refuse(x, 409, "no sign-in waits for this address",
                    "it was used before, has expired, or is of another sign-in");
}

static void show_signed_out(struct http_exchange *x, const struct err *err)
{
    BUF_SCOPED why = {0};

    if (err && err->code) {
        buf_str(&why, "still signed in: ");
        log_redact(&why, span_str(err->text));
        http_refuse(x, 500, buf_cstr(&why), err->hint[0] ? err->hint : NULL);
        return;
    }
    struct buf *out = http_respond_begin(x, 200, "application/json", SPAN_EMPTY);

    buf_str(out, "{\"state\":\"signed_out\"");
    if (err)
        json_out_redacted(out, "warning", span_str(err->text));
    buf_str(out, "}\n");
    http_respond_end(x);
}

/* The revocation goes on without the operator. */
static void on_left(void *owner)
{
    struct login_request *r = owner;

    r->x = NULL;
}

static void on_logged_out(void *arg, const struct err *err)
{
    struct login_request *r = arg;

    if (r->x)
        show_signed_out(r->x, err);
    mem_free(r);
}

static void end(struct identity *id, struct http_exchange *x)
{
    struct login_request *r = MEM_NEW(struct login_request);

    r->x = x;
    http_exchange_on_gone(x, on_left, r);
    identity_logout(id, on_logged_out, r);
}

void logins_handle(struct http_exchange *x, const struct http_request *req,
                   const struct provider *p, bool out)
{
    struct identity *id = bridge_server_identity(p, !out);
    struct json_slot slots[2] = {{0}};
    static const struct json_shape_row rows[] = {{"device", 0, NULL}, {"callback", 1, NULL}};
    static const struct json_shape shape = JSON_SHAPE(rows);

    if (!id || !identity_wants_person(id))
        http_refuse(x, 409, "nobody signs in to this server",
                    "it has no https url, a header Authorization, or another auth.grant");
    else if (!out && span_is(req->method, "GET"))
        show_state(id, x);
    else if (!api_wants_post(x, req))
        return;
    else if (req->body.n && json_skim(req->body, &shape, slots, NULL, NULL))
        http_refuse(x, 400, "the body is not JSON",
                    "{}, {\"device\": true} or {\"callback\": URL}");
    else if (out)
        end(id, x);
    else if (slots[1].type == JSON_STRING)
        paste(id, x, slots[1].value);
    else
        begin(id, x, slots[0].type == JSON_TRUE);
}
