/*
 * pass: what a token lets its owner do, and the table of the tokens that were found valid.
 *
 * Checking a signature or asking another server costs far more than a call, so a token is judged
 * once. Its pass is kept until it expires, with the bytes of the token, and is found by comparing
 * these bytes: first with the token of the connection's last pass (hub/auth/gate), then by a keyed
 * hash in this table. All passes of one subject of one issuer with one view share one principal, so
 * that sessions outlive a single token and limits hold over all tokens of the subject. The
 * principal is `ended` with the last of its passes.
 *
 * Nouns: pass_, passes_.
 */
#ifndef RIALTO_HUB_AUTH_PASS_H
#define RIALTO_HUB_AUTH_PASS_H

#include "config/config.h"
#include "io/loop.h"

struct passes;

struct pass {
    struct principal *who;
    char *view; /* NULL: everything */
    enum config_role role;
    int64_t expires; /* ms of Unix time; 0: never */
    char *resource;  /* the only path that the token is valid for; NULL: all paths */
};

/* What is known of a token that was found valid. */
struct pass_facts {
    struct span issuer, subject;
    const char *view;
    struct span resource;
    int64_t expires;
    const void *judge; /* who found the token valid; `mark`: by which key or grant (passes_end) */
    uint64_t mark;
};

/* The current Unix time in ms, and whether a pass has expired at such a time. */
int64_t pass_clock(void);
bool pass_is_over(const struct pass *p, int64_t now);

/* `ended` is called from the loop when principals have ended. */
struct passes *passes_new(struct loop *l, void (*ended)(void *arg), void *arg);
void passes_free(struct passes *t);
/* The pass of this token; NULL if there is none, or it is over. */
const struct pass *passes_find(struct passes *t, struct span token);
const struct pass *passes_add(struct passes *t, struct span token, const struct pass_facts *f);
/* End the passes of this judge for which `is_over` returns true; NULL: all of them. */
void passes_end(struct passes *t, const void *judge, bool (*is_over)(void *arg, uint64_t mark),
                void *arg);

/* A held pass stays in memory, but it may be over: ask pass_is_of. */
const struct pass *pass_hold(const struct pass *p);
void pass_release(const struct pass *p);
/* Is it the pass of this token, and still good? */
bool pass_is_of(const struct pass *p, struct span token);
/* Does a session, a stream or a call still use the principal of the pass? */
bool pass_is_in_use(const struct pass *p);

#endif
