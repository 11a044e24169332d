/*
 * oauth: the documents of OAuth that servers send to a client, read and checked.
 *
 * Metadata of a protected resource (RFC 9728) and of an authorization server (RFC 8414, OpenID
 * Connect discovery), answers to registrations (RFC 7591), device authorizations (RFC 8628) and
 * token requests (RFC 6749). Every text that is kept has passed a check of its form, so that it can
 * go into a request, a URL or a header as it is. Nothing here knows how a document was fetched.
 *
 * Each function returns 0, or a negative code with a text for people in `err`. Texts of the results
 * live in the arena; absent ones (and JSON's null) are NULL. A member that occurs twice is refused.
 */
#ifndef RIALTO_WIRE_OAUTH_H
#define RIALTO_WIRE_OAUTH_H

#include "base/arena.h"
#include "base/err.h"
#include "wire/url.h"

enum { OAUTH_DOCUMENT_MAX = 256 * 1024, OAUTH_SERVERS_MAX = 16 };

/* How a client shows who it is at the token endpoint. */
enum oauth_method {
    OAUTH_NONE,  /* "none": by its id alone */
    OAUTH_BASIC, /* client_secret_basic */
    OAUTH_POST,  /* client_secret_post */
    OAUTH_JWT,   /* private_key_jwt */
    OAUTH_METHODS,
};
const char *oauth_method_name(enum oauth_method m);

struct oauth_resource {
    const char *resource;
    const char *servers[OAUTH_SERVERS_MAX]; /* issuers; more are not looked at */
    size_t n_servers;
    const char *scopes; /* all that are supported, with blanks between; NULL: not given */
};
MUST_CHECK int oauth_read_resource(struct oauth_resource *out, struct span text,
                                   struct arena *arena, struct err *err);
/* Is the resource of this name the server at `url`, or does it contain the server? */
bool oauth_resource_covers(const char *resource, const struct url_parts *url);

struct oauth_server {
    const char *issuer;
    const char *authorize, *token, *registration, *revocation, *device; /* endpoints */
    unsigned methods;    /* bits of enum oauth_method; methods that we do not know are left out */
    const char *algs;    /* for private_key_jwt, with blanks between; or NULL */
    bool has_code;       /* response_types_supported has "code", or is not there */
    bool has_s256;       /* code_challenge_methods_supported has S256 */
    bool says_iss;       /* the callback has `iss` (RFC 9207) */
    bool takes_urls;     /* client ids may be URLs of metadata documents */
    bool offers_offline; /* scopes_supported has offline_access */
};
/* `issuer` is the issuer whose document we asked for: the document must name the same issuer. Only
 * a slash alone behind the host may differ. */
MUST_CHECK int oauth_read_server(struct oauth_server *out, struct span text, const char *issuer,
                                 struct arena *arena, struct err *err);

struct oauth_client {
    const char *id, *secret;
    int64_t expires; /* of the secret, Unix time; 0 = never */
    int method;      /* enum oauth_method; -1: the answer does not say */
};
MUST_CHECK int oauth_read_client(struct oauth_client *out, struct span text, struct arena *arena,
                                 struct err *err);

struct oauth_device {
    const char *device_code, *user_code;
    const char *uri, *uri_complete; /* where a person enters the code; the second with the code */
    int64_t expires_in, interval;   /* seconds */
};
MUST_CHECK int oauth_read_device(struct oauth_device *out, struct span text, struct arena *arena,
                                 struct err *err);

struct oauth_token {
    const char *access, *refresh;
    const char *scope;  /* NULL: as requested */
    int64_t expires_in; /* seconds; -1: the answer does not say */
};
/* `is_exchange`: the answer to a token exchange (RFC 8693), whose token need not be a Bearer. */
MUST_CHECK int oauth_read_token(struct oauth_token *out, struct span text, bool is_exchange,
                                struct arena *arena, struct err *err);

/* The error in an answer, whatever its status; `code` is NULL when there is none. Both texts have
 * visible ASCII only. */
struct oauth_error {
    const char *code, *description;
};
void oauth_read_error(struct oauth_error *out, struct span text, struct arena *arena);

/* A text of scopes: words with single blanks between. */
bool oauth_is_scope(struct span text);
/* Is each scope of `wanted` in `has`? */
bool oauth_scope_has(const char *has, const char *wanted);
/* Append the scopes of `more` that are not in `out` yet; NULL adds none. */
void oauth_scope_join(struct buf *out, const char *more);

#endif
