/*
 * recorder: the last calls, with what they carried and how they ended.
 *
 * It is the router's tap. What it keeps is bounded in bytes: long bodies are kept by their
 * beginning, and the oldest go first, a chunk of memory at a time, which is used again: a call that
 * is recorded allocates nothing. Nothing is changed on the way in; whoever shows a record to people
 * redacts it.
 */
#ifndef RIALTO_ADMIN_RECORDER_H
#define RIALTO_ADMIN_RECORDER_H

#include "base/list.h"
#include "base/map.h"
#include "core/router.h"
#include "core/tap.h"

/* How much of a body is to be shown. More is kept, because a secret on the edge must be seen whole
 * to be recognised. */
enum { RECORD_SHOWN = 16 * 1024, RECORD_KEPT = RECORD_SHOWN + 4 * 1024 };

/* The beginning of something, and how long it was. */
struct record_body {
    struct span kept;
    size_t whole;
};

struct record {
    struct list node; /* newest last */
    uint64_t id;      /* the call's handle */
    uint64_t opened_at, took;
    enum op op;
    bool ended;
    enum outcome_kind kind; /* once it has */
    enum failure why;
    bool is_error;
    struct span server; /* empty: nobody was found for it */
    struct span name;
    struct record_body params;
    struct span error; /* empty when there is no text */
    struct record_body result;
    struct span decided_by; /* who let it go on or refused it; empty: nobody was asked */
    bool allowed;
};

struct recorder {
    struct tap tap;
    struct router *router;
    size_t max_chunks, n_chunks;
    struct list chunks;    /* oldest first */
    struct chunk *current; /* the last of them; NULL before the first call */
    struct list records;
    struct idmap by_id;
};

/* Of so many bytes each; what a record needs at once fits into one. */
enum { RECORD_CHUNK = 64 * 1024 };

/* About `keep` bytes at most; 0 records nothing. */
void recorder_begin(struct recorder *r, struct router *router, size_t keep);
void recorder_end(struct recorder *r);
const struct record *recorder_find(const struct recorder *r, uint64_t id);
/* The one before, newest first: pass NULL for the first. */
const struct record *recorder_next(const struct recorder *r, const struct record *rec);

#endif
