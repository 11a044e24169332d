/*
 * registration: the agents' programs (OAuth clients) that our own issuer knows: those that have
 * registered themselves (RFC 7591), and those whose id is the address of a document about them.
 *
 * Both are read by one function, since their JSON is the same. A redirect address is https, http to
 * a loopback address, or an app's own scheme. The address in a request must be exactly one of the
 * client's, except for the port of a loopback address.
 */
#ifndef RIALTO_HUB_AUTH_REGISTRATION_H
#define RIALTO_HUB_AUTH_REGISTRATION_H

#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "base/sha.h"

enum { REGISTRATION_MAX = 16 * 1024, REGISTRATION_REDIRECTS = 10 };

enum registration_method { REGISTRATION_NONE, REGISTRATION_BASIC, REGISTRATION_POST };

struct registration {
    struct list node;
    char *id, *name;
    char *redirects[REGISTRATION_REDIRECTS];
    size_t n_redirects;
    enum registration_method method;
    unsigned char secret[SHA256_N]; /* hash of the secret; all zero: none */
    int64_t created;                /* ms of Unix time */
    bool granted;                   /* a person has let it in at least once */
    uint64_t fresh_until;           /* of a document: ms of the loop's clock; 0: registered */
};

/* Reads a request to register, or a document. On failure the code is -EINVAL for a redirect address
 * that is not accepted, and another one for anything else. Call registration_free also on
 * failure. */
MUST_CHECK int registration_read(struct registration *r, struct span json, struct err *err);
void registration_free(struct registration *r);

/* Is this one of its redirect addresses? */
bool registration_has_redirect(const struct registration *r, struct span redirect);
/* "claude.ai", or the scheme of an app: for a person to see where the answer goes. */
void registration_put_redirect_host(struct buf *out, struct span redirect);
/* Does the address lead to a program on the browser's machine? Any program there may get the
 * answer. */
bool registration_is_local(struct span redirect);
const char *registration_method_name(enum registration_method m);

#endif
