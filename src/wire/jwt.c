/* JWTs taken apart, and their claims. Called by hub/auth/trust.c and, for answers of introspection,
 * by hub/auth/introspection.c. */
#include "wire/jwt.h"

#include "base/base64.h"
#include "wire/json.h"

enum { DEPTH_MAX = 8 };

/* --- texts and times --- */

/* The text of a slot; p == NULL if it is absent. False: the slot has a value that is no text. `own`
 * is large enough for all texts, so that they do not move. */
static bool take_text(const struct json_slot *slot, struct buf *own, struct span *out)
{
    *out = SPAN_EMPTY;
    if (slot->type == JSON_NONE || slot->type == JSON_NULL)
        return true;
    if (slot->type == JSON_STRING)
        *out = json_text(slot->value, own);
    return slot->type == JSON_STRING && out->p;
}

static bool take_time(const struct json_slot *slot, int64_t *out)
{
    double number;

    *out = INT64_MIN;
    if (slot->type == JSON_NONE || slot->type == JSON_NULL)
        return true;
    /* A number beyond the year 9999 is not a time in seconds. */
    if (slot->type != JSON_NUMBER || !json_double(slot->value, &number) || number < 0 ||
        number > 253402300799.0)
        return false;
    *out = (int64_t)number;
    return true;
}

/* --- claims --- */

enum {
    C_NONE,
    C_ISS,
    C_SUB,
    C_CLIENT,
    C_AZP,
    C_AUD,
    C_SCOPE,
    C_SCP,
    C_EXP,
    C_NBF,
    C_IAT,
    C_CNF,
    C_AT_HASH,
    C_TYP,
    C_ACTIVE,
    C_SLOTS
};

static const struct json_shape_row claim_rows[] = {
    {"iss", C_ISS, NULL}, {"sub", C_SUB, NULL},       {"client_id", C_CLIENT, NULL},
    {"azp", C_AZP, NULL}, {"aud", C_AUD, NULL},       {"scope", C_SCOPE, NULL},
    {"scp", C_SCP, NULL}, {"exp", C_EXP, NULL},       {"nbf", C_NBF, NULL},
    {"iat", C_IAT, NULL}, {"cnf", C_CNF, NULL},       {"at_hash", C_AT_HASH, NULL},
    {"typ", C_TYP, NULL}, {"active", C_ACTIVE, NULL},
};
static const struct json_shape claim_shape = JSON_SHAPE(claim_rows);

static int skim(struct span json, const struct json_shape *shape, struct json_slot *slots,
                const char *what, struct err *err)
{
    enum json_type type;
    int code = json_skim(json, shape, slots, &type, NULL);

    if (code == ERR_DUPLICATE)
        return err_set(err, code, "a member of its %s occurs twice", what);
    if (code || type != JSON_OBJECT || json_depth(json) > DEPTH_MAX)
        return err_set(err, ERR_SYNTAX, "its %s is not a JSON object", what);
    return 0;
}

int jwt_claims_read(struct jwt_claims *c, struct span json, struct err *err)
{
    struct json_slot slots[C_SLOTS] = {{0}};
    struct span azp;
    int code = skim(json, &claim_shape, slots, "payload", err);

    *c = (struct jwt_claims){0};
    if (code)
        return code;
    buf_room(&c->own, json.n + 1);
    if (!take_text(&slots[C_ISS], &c->own, &c->issuer) ||
        !take_text(&slots[C_SUB], &c->own, &c->subject) ||
        !take_text(&slots[C_CLIENT], &c->own, &c->client) ||
        !take_text(&slots[C_AZP], &c->own, &azp) || !take_text(&slots[C_SCOPE], &c->own, &c->scope))
        return err_set(err, ERR_SYNTAX, "iss, sub, client_id, azp or scope is not a text");
    if (!c->client.p)
        c->client = azp;
    if (!take_time(&slots[C_EXP], &c->expires) || !take_time(&slots[C_NBF], &c->not_before) ||
        !take_time(&slots[C_IAT], &c->issued))
        return err_set(err, ERR_SYNTAX, "exp, nbf or iat is not a time");
    c->audience = slots[C_AUD].value;
    c->scp = slots[C_SCP].value;
    c->bound = slots[C_CNF].type != JSON_NONE && slots[C_CNF].type != JSON_NULL;
    c->is_id = slots[C_AT_HASH].type != JSON_NONE || json_string_is(slots[C_TYP].value, SPAN("ID"));
    c->active = slots[C_ACTIVE].type == JSON_TRUE;
    return 0;
}

/* Is `value` this text, or an array that has it? */
static bool has_text(struct span value, struct span text)
{
    struct json_iter it = json_iter(value);

    if (!value.n)
        return false;
    if (json_string_is(value, text))
        return true;
    while (json_type_of(value) == JSON_ARRAY && json_next(&it))
        if (json_string_is(it.value, text))
            return true;
    return false;
}

bool jwt_claims_are_for(const struct jwt_claims *c, struct span audience)
{
    return has_text(c->audience, audience);
}

bool jwt_claims_have_scope(const struct jwt_claims *c, struct span scope)
{
    struct span rest = c->scope;

    while (rest.n) {
        struct span word = span_cut(rest, 0, span_find(rest, ' '));
        if (span_eq(word, scope))
            return true;
        rest = span_from(rest, word.n + 1);
    }
    return has_text(c->scp, scope);
}

/* --- the token --- */

enum { H_NONE, H_ALG, H_TYP, H_KID, H_CRIT, H_SLOTS };

static const struct json_shape_row header_rows[] = {
    {"alg", H_ALG, NULL},
    {"typ", H_TYP, NULL},
    {"kid", H_KID, NULL},
    {"crit", H_CRIT, NULL},
};
static const struct json_shape header_shape = JSON_SHAPE(header_rows);

static int read_header(struct jwt *j, struct err *err)
{
    struct json_slot slots[H_SLOTS] = {{0}};
    struct span json = buf_view(&j->header);
    int code = skim(json, &header_shape, slots, "header", err);

    if (code)
        return code;
    buf_room(&j->own, json.n + 1);
    if (slots[H_CRIT].type != JSON_NONE)
        return err_set(err, ERR_SYNTAX, "it has critical extensions, which are not known here");
    if (!take_text(&slots[H_ALG], &j->own, &j->alg) || !j->alg.n ||
        !take_text(&slots[H_TYP], &j->own, &j->typ) || !take_text(&slots[H_KID], &j->own, &j->kid))
        return err_set(err, ERR_SYNTAX, "alg, typ or kid is not a text");
    return 0;
}

int jwt_read(struct jwt *j, struct span token, struct err *err)
{
    *j = (struct jwt){0};
    if (token.n > JWT_MAX)
        return err_set(err, ERR_SIZE, "it is longer than %d bytes", JWT_MAX);
    size_t first = span_find(token, '.');
    struct span rest = span_from(token, first + 1);
    size_t second = span_find(rest, '.');
    struct span last = span_from(rest, second + 1);

    if (second >= rest.n || base64_read_url(&j->header, span_cut(token, 0, first)) ||
        base64_read_url(&j->payload, span_cut(rest, 0, second)) ||
        base64_read_url(&j->signature, last))
        return err_set(err, ERR_SYNTAX, "it is not three parts of base64url");
    j->signed_text = span_cut(token, 0, first + 1 + second);
    int code = read_header(j, err);
    return code ? code : jwt_claims_read(&j->claims, buf_view(&j->payload), err);
}

void jwt_fini(struct jwt *j)
{
    buf_fini(&j->header);
    buf_fini(&j->payload);
    buf_fini(&j->signature);
    buf_fini(&j->own);
    buf_fini(&j->claims.own);
}
