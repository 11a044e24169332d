/*
 * issuer: our own authorization server, for people without another (auth.issuer: built-in).
 *
 * An agent's program registers (RFC 7591) or has a document about itself; the browser of the person
 * comes to /oauth/authorize, where a page asks (hub/auth/consent_page) and the password or code is
 * checked (hub/auth/pairing); the program gets a code, and exchanges the code and its PKCE verifier
 * for tokens (OAuth 2.1), which we judge ourselves (hub/auth/permits). The issuer is off unless
 * configured; while it is off, all its addresses answer 404.
 *
 * Files: issuer_authorize, issuer_register, issuer_token.
 */
#ifndef RIALTO_HUB_AUTH_ISSUER_H
#define RIALTO_HUB_AUTH_ISSUER_H

#include "hub/auth/pairing.h"
#include "hub/auth/trust.h"
#include "io/http_server.h"

struct issuer;
struct permit;

struct issuer *issuer_new(struct loop *l, struct passes *passes);
void issuer_free(struct issuer *i);
void issuer_apply(struct issuer *i, const struct config *c);
bool issuer_is_on(const struct issuer *i);

/* As trust_judge. */
enum trust_answer issuer_judge(struct issuer *i, struct span token, const struct pass **pass,
                               const char **why);

/* The paths of issuer_handle: metadata (also below), and the endpoints; NULL at the end. */
extern const char *const issuer_paths[];
#define ISSUER_AUTHORIZE "/oauth/authorize" /* for people's browsers, not pages of other sites */
void issuer_handle(struct issuer *i, struct http_exchange *x, const struct http_request *req);

/* A code for the consent page; false while the issuer is off. */
bool issuer_put_code(struct issuer *i, char out[PAIRING_CODE_SIZE]);
/* What was granted, as a JSON array. */
void issuer_put_grants(struct buf *out, const struct issuer *i);
/* End the grant with this id. -ENOENT: there is none; -EIO: the end could not be saved. If the last
 * save failed, an unknown id counts as that of a grant that has ended without being saved. */
MUST_CHECK int issuer_revoke(struct issuer *i, struct span id);

#endif
