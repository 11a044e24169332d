/*
 * jwt: a JSON Web Token (RFC 7519) taken apart: the parts that decide about an access token.
 *
 * The header and the claims are read by wire/json alone; a member that decides something and stands
 * there twice is refused. Only the form is checked here: io/jws checks the signature, and
 * hub/auth/trust decides whose keys count and what the claims allow. An answer of introspection
 * (RFC 7662) has the same claims and is read by the same function.
 */
#ifndef RIALTO_WIRE_JWT_H
#define RIALTO_WIRE_JWT_H

#include "base/buf.h"
#include "base/err.h"

enum { JWT_MAX = 8 * 1024 };

/* What is absent has p == NULL; a time that is absent is INT64_MIN. Times are seconds of Unix time,
 * and bounded so that they can be counted in ms. */
struct jwt_claims {
    struct span issuer, subject;
    struct span client;   /* client_id, else azp */
    struct span audience; /* raw JSON: a string or an array */
    struct span scope;    /* words separated by blanks */
    struct span scp;      /* raw JSON array, which some issuers use instead of `scope` */
    int64_t expires, not_before, issued;
    bool bound;  /* `cnf`: the token counts only together with a key */
    bool is_id;  /* an ID token, which is for the client alone: `at_hash`, or `typ` ID (Keycloak) */
    bool active; /* introspection: "active": true */
    struct buf own; /* holds the texts that had escapes */
};

struct jwt {
    struct span signed_text; /* the part of the token that is signed */
    struct span alg, typ, kid;
    struct jwt_claims claims;
    struct buf header, payload, signature; /* decoded */
    struct buf own;
};

/* 0, or negative with a reason in a few words. Call jwt_fini in both cases. */
MUST_CHECK int jwt_read(struct jwt *j, struct span token, struct err *err);
void jwt_fini(struct jwt *j);

/* `json` must outlive the claims; free `own` in any case. */
MUST_CHECK int jwt_claims_read(struct jwt_claims *c, struct span json, struct err *err);
bool jwt_claims_are_for(const struct jwt_claims *c, struct span audience);
bool jwt_claims_have_scope(const struct jwt_claims *c, struct span scope);

#endif
