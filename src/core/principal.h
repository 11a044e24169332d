/*
 * principal: the owner of a token as the core knows it: a name, limits, and what counts against the
 * limits now.
 *
 * hub/auth/gate.c makes one for each token of the configuration, hub/auth/pass.c for owners of
 * other tokens. Calls from all endpoints count together, so that an owner gets no more by
 * connecting twice. Endpoints and calls hold the struct, which therefore outlives the token: it is
 * `ended` from the moment the token was revoked or has expired, and is freed by its last holder.
 */
#ifndef RIALTO_CORE_PRINCIPAL_H
#define RIALTO_CORE_PRINCIPAL_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

/* 0 means that there is no limit. */
struct principal_limits {
    uint64_t calls_per_minute; /* in any 60 s */
    uint64_t in_flight;        /* calls that have not ended */
    uint64_t processes;        /* programs that run for the owner's sessions alone */
    uint64_t bytes;            /* of the params of calls that have not ended */
};

struct principal {
    char *name;
    /* The newest valid token that the owner has shown, its issuer, and how many tokens there were:
     * for servers whose own tokens are obtained by exchanging this one. hub/auth/pass.c owns the
     * bytes, which are secret. Empty for tokens of the configuration. */
    struct span token, issuer;
    uint64_t tokens;
    struct principal_limits limits;
    bool tokenless; /* not the owner of a token: see principal_new_tokenless */
    bool ended;
    size_t in_flight;
    uint64_t bytes;
    uint64_t *times; /* when the last `calls_per_minute` calls were opened, a ring; or NULL */
    size_t n_times, next;
    unsigned holders;
};

/* Held by the caller. */
struct principal *principal_new(const char *name);
/* For people at this machine who show no token. */
struct principal *principal_new_tokenless(const char *name);
/* Both take NULL. */
struct principal *principal_hold(struct principal *p);
void principal_release(struct principal *p);
/* Takes NULL, and returns NULL for it. */
const char *principal_name(const struct principal *p);
/* Calls that are open count against the new limits. */
void principal_set_limits(struct principal *p, const struct principal_limits *limits);

/*
 * Counts one more call with params of `bytes`, to be given back by principal_give_back. False if
 * that would exceed a limit: `why` says which, and `*retry_ms` when to try again.
 */
bool principal_take(struct principal *p, uint64_t now, size_t bytes, struct buf *why,
                    uint64_t *retry_ms);
void principal_give_back(struct principal *p, size_t bytes);

#endif
