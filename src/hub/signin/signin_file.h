/*
 * signin_file: signin.json in the state folder: the tokens of servers that somebody signed in to,
 * and the ids under which we are registered at authorization servers.
 *
 * Daemon and commands share the file. Each change is made under a lock, to the current content of
 * the file, and is on the disk when the function returns: so a token that was replaced is never
 * used again, even if one of the processes crashes. With the secret `rialto-token-key` the content
 * is encrypted. A file that cannot be read is left as it is, and is not overwritten.
 *
 * Two locks: one for a change, which lasts as long as a write to the disk; and one for each token,
 * held as long as the token is being renewed (signin_file_claim), so that no two processes use the
 * same refresh token.
 *
 * Nouns: signin_file_, signin_record_.
 */
#ifndef RIALTO_HUB_SIGNIN_SIGNIN_FILE_H
#define RIALTO_HUB_SIGNIN_SIGNIN_FILE_H

#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"

#include <stdint.h>

struct signin_file;

/* The texts of a record, in the order of their names in the file. */
enum signin_text {
    /* what the record is for */
    SIGNIN_SERVER, /* the server's name; empty for a registration */
    SIGNIN_URL,    /* the server's address; of a registration: the redirect URI */
    SIGNIN_USER,   /* whose token; empty: everybody's */
    SIGNIN_ISSUER, /* the authorization server */
    /* who we are there */
    SIGNIN_CLIENT,
    SIGNIN_CLIENT_SECRET,
    SIGNIN_METHOD, /* how we authenticate at the token endpoint */
    /* of a server's record only */
    SIGNIN_RESOURCE,
    SIGNIN_TOKEN_ENDPOINT,
    SIGNIN_REVOCATION,
    SIGNIN_REDIRECT, /* of the sign-in, or "device"; used to find our registration */
    SIGNIN_NEAR,     /* "yes": the server had an address of this machine or of a private network */
    SIGNIN_SCOPE,    /* the scope that was granted */
    SIGNIN_ASKED,    /* the scope that was asked for */
    SIGNIN_WANTED,   /* the scope that calls lacked since then */
    SIGNIN_ACCESS,
    SIGNIN_REFRESH,
    SIGNIN_TEXTS,
};

/* A token of a server, or a registration. Texts that are absent are NULL. */
struct signin_record {
    struct list node;
    char *texts[SIGNIN_TEXTS];
    int64_t since;   /* Unix time, seconds: when the access token came */
    int64_t expires; /* of the access token, or of the client's secret; 0 = not known, or never */
};

void signin_record_set(struct signin_record *r, enum signin_text which, struct span text);

/* `secret` is the value of rialto-token-key, or empty. NULL: there is no state folder. */
struct signin_file *signin_file_new(struct span secret);
void signin_file_free(struct signin_file *f);
const char *signin_file_path(const struct signin_file *f);

/* Read the file again if it has changed. Records that were found before are then invalid. */
MUST_CHECK int signin_file_read(struct signin_file *f, struct err *err);
/* NULL when there is none; `user` may be NULL. As the file was when it was last read. */
const struct signin_record *signin_file_find(const struct signin_file *f, const char *server,
                                             const char *url, const char *user);
/* Our registration at this issuer with this redirect URI, or for "device" codes. */
const struct signin_record *signin_file_client(const struct signin_file *f, const char *issuer,
                                               const char *redirect_uri);

/* Replace the record with the same key (its first texts), or add it; the texts are copied. */
MUST_CHECK int signin_file_put(struct signin_file *f, const struct signin_record *r,
                               struct err *err);
/* Remove the record, if there is one. */
MUST_CHECK int signin_file_drop(struct signin_file *f, const struct signin_record *r,
                                struct err *err);

/* May this process renew the token of the record? False: another process is renewing it. */
bool signin_file_claim(struct signin_file *f, const struct signin_record *r);
void signin_file_unclaim(struct signin_file *f, const struct signin_record *r);

#endif
