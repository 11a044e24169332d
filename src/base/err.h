/*
 * err: why something failed, for a person.
 *
 * Functions return 0 or a negative code: a negated errno (which is also what libuv returns) or one
 * of ours below. Where a user will read the reason, the function also fills a struct err: one line
 * that says what is wrong and, where we know it, a hint that says what to do.
 */
#ifndef RIALTO_BASE_ERR_H
#define RIALTO_BASE_ERR_H

enum {
    ERR_FIRST = -20000,
    ERR_SYNTAX = ERR_FIRST, /* the bytes do not follow the grammar */
    ERR_DEPTH,              /* nested deeper than allowed */
    ERR_SIZE,               /* larger than allowed */
    ERR_DUPLICATE,          /* a member or header that must be unique occurs twice */
    ERR_UTF8,               /* not UTF-8 */
    ERR_CONFIG,             /* the configuration is wrong */
    ERR_PROTOCOL,           /* the peer broke its protocol */
    ERR_NO_HOST,            /* no host has this name */
    ERR_NAME_SERVER,        /* the name servers did not answer */
    ERR_REACH,              /* io/reach.h does not allow this address */
};

struct err {
    char text[512];
    char hint[256];
    int code; /* as returned by the function that failed first */
};

#define MUST_CHECK __attribute__((warn_unused_result))

/* Both return `code`, so a caller can `return err_set(...)`. */
int err_set(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void err_hint(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A short text for any of our codes or a negated errno. */
const char *err_name(int code);

#endif
