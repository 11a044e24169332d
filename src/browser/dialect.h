/*
 * dialect: how the variants of BTCP differ from each other; docs/browser.md says who speaks them.
 */
#ifndef RIALTO_BROWSER_DIALECT_H
#define RIALTO_BROWSER_DIALECT_H

#include "base/buf.h"

struct sender;

struct dialect {
    const char *name;
    const char *event;  /* of SSE, for requests; NULL = unnamed */
    bool answers_list;  /* may be sent tools/list */
    bool says_success;  /* replies to tools/register and session/join have "success" */
    bool stamps_pongs;  /* replies to ping have a timestamp */
    bool answers_blind; /* its answers carry nothing but the id of the call */
    bool is_terse;      /* "success" is all that tools/register replies */
    bool reads_status;  /* of replies to its POSTs its clients read nothing else */
    bool speaks_words;  /* codes of errors are words, as the specification has them */
    bool pushes_ask;    /* its agents are told of changes by requests, which nobody answers */
    /* For one that is no JSON-RPC: */
    const char *ping; /* sent while nothing happens, and answered by those who live */
    void (*put_call)(struct buf *out, uint64_t n, struct span params);
    bool (*receive)(struct sender *s, struct span text); /* see sender_receive */
};
extern const struct dialect dialect_d1, dialect_d2, dialect_d3, dialect_d4a, dialect_d4b,
    dialect_d5, dialect_d6, dialect_d7, dialect_d8, dialect_relay;

#endif
