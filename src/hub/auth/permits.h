/*
 * permits: what people have granted to agents at our own issuer, and the clients that registered
 * there; kept in grants.json of the state folder.
 *
 * A permit is one sign-in: a family of tokens of one client, for one resource, with one scope. Of
 * tokens and secrets only SHA-256 hashes are kept; tokens have 256 random bits, so a plain hash is
 * enough. The refresh token changes each time that it is used. The previous refresh token is
 * accepted for half a minute more, and gives the current one once more: agents run several
 * processes, which race. For that long the current one is kept as a text, in memory alone (after a
 * restart such an answer has no refresh token). If the previous one is used later than that, it
 * counts as stolen, and the whole family ends. The same holds for all older refresh tokens of the
 * family: they are recognised by the random text with which all refresh tokens of a family begin. A
 * change is written to the file before it is reported in an answer.
 *
 * Nouns: permit_, permits_.
 */
#ifndef RIALTO_HUB_AUTH_PERMITS_H
#define RIALTO_HUB_AUTH_PERMITS_H

#include "hub/auth/registration.h"
#include "io/loop.h"

struct permits;

enum { PERMIT_TOKEN_SIZE = 44, PERMIT_FAMILY_N = 22, PERMIT_ACCESS = 4, PERMIT_ACCESS_S = 3600 };
enum { PERMIT_REFRESH_SIZE = PERMIT_FAMILY_N + PERMIT_TOKEN_SIZE };

struct permit {
    struct list node;
    uint64_t mark;                  /* unique for as long as the program runs */
    char id[17];                    /* for people */
    char *client;                   /* the client's id */
    char *name;                     /* the client's name */
    char *scope, *resource;         /* "mcp", "/mcp" */
    int64_t created, used, expires; /* ms of Unix time; `expires`: of the refresh token */
    struct {
        unsigned char hash[SHA256_N];
        int64_t expires; /* 0: none */
    } access[PERMIT_ACCESS];
    unsigned char family[SHA256_N]; /* hash of the first PERMIT_FAMILY_N bytes of refresh tokens */
    unsigned char refresh[SHA256_N], before[SHA256_N];
    int64_t rotated;                   /* when `before` was replaced; 0: never */
    char current[PERMIT_REFRESH_SIZE]; /* the refresh token while `before` is accepted; or empty */
};

/* What an authorization code stands for. It is valid once, for one minute. */
struct permit_code {
    struct list node;
    unsigned char hash[SHA256_N];
    char *client, *name, *redirect, *challenge, *resource, *scope;
    uint64_t expires; /* by the loop's clock, which is monotonic */
    uint64_t used;    /* mark of the permit that was made from the code; 0: not used yet */
};

/* `revoked` is called with the mark of a permit that has ended. */
struct permits *permits_open(struct loop *l, void (*revoked)(void *arg, uint64_t mark), void *arg);
void permits_close(struct permits *p);
/* Write the file; a failed write is logged. */
MUST_CHECK int permits_save(struct permits *p);
/* Did the last write fail? What has ended since the one before is on disk still. */
bool permits_is_unsaved(const struct permits *p);

/* --- clients --- */

struct registration *permits_client(struct permits *p, struct span id);
/* Takes the struct over, unless it returns false: there are too many clients with grants. */
bool permits_add_client(struct permits *p, struct registration *r);

/* --- codes and tokens --- */

/* Takes the texts of `from` over; the code is appended to `out`. */
void permits_add_code(struct permits *p, struct permit_code *from, struct buf *out);
/* The code, if it has not expired. A used code is also found for some minutes after that. */
struct permit_code *permits_code(struct permits *p, struct span code);
/* Makes a permit from a code; both tokens are appended. */
struct permit *permits_redeem(struct permits *p, struct permit_code *code, struct buf *access,
                              struct buf *refresh);
/* The permit of this access token, and when the token expires; NULL for none. */
struct permit *permits_by_access(struct permits *p, struct span token, int64_t *expires);
enum permit_refresh { PERMIT_CURRENT, PERMIT_JUST_BEFORE, PERMIT_REPLAYED };
struct permit *permits_by_refresh(struct permits *p, struct span token, enum permit_refresh *what);
/* A new access token and a refresh token: a new one that replaces `spent`; if `spent` is empty the
 * current one, or none if it is not in memory any more. */
void permits_renew(struct permits *p, struct permit *permit, struct span spent, struct buf *access,
                   struct buf *refresh);
void permits_revoke(struct permits *p, struct permit *permit, const char *why);
struct permit *permits_by_mark(struct permits *p, uint64_t mark);
/* The permit after `before`, or the first permit if `before` is NULL; NULL at the end. */
struct permit *permits_next(const struct permits *p, const struct permit *before);
/* For permit_file.c alone. */
void permit_free(struct permit *p);

#endif
