/*
 * recorder: the last calls, with their params, results and ends.
 *
 * It is a tap of the router. Memory is bounded: of long bodies only the beginning is kept, and the
 * oldest records are dropped first, a chunk at a time. Chunks are used again, so that recording a
 * call allocates nothing. Records are kept as they came: code that shows one must redact it.
 */
#ifndef RIALTO_ADMIN_RECORDER_H
#define RIALTO_ADMIN_RECORDER_H

#include "base/list.h"
#include "base/map.h"
#include "core/router.h"
#include "core/tap.h"

/* How much of a body is shown. More is kept, because a secret on the edge is recognised only when
 * it is whole. */
enum { RECORD_SHOWN = 16 * 1024, RECORD_KEPT = RECORD_SHOWN + 4 * 1024 };

/* The beginning of a body, and the length of the whole. */
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
    enum outcome_kind kind; /* valid once `ended` */
    enum failure why;
    bool is_error;
    struct span server; /* empty: no provider was found */
    struct span name;
    struct span token;  /* the caller's; empty: none was needed */
    struct span client; /* its clientInfo, raw; empty if unknown, or if the params have it */
    struct record_body params;
    struct span error; /* empty when there is no text */
    struct record_body result;
    struct span decided_by; /* who approved or refused the call; empty: nobody was asked */
    bool allowed;
};

struct recorder {
    struct tap tap;
    struct router *router;
    size_t max_chunks, n_chunks;
    struct list chunks;    /* oldest first */
    struct chunk *current; /* the newest chunk; NULL before the first call */
    struct list records;
    struct idmap by_id;
};

/* Bytes of a chunk. A record, and each addition to one, fits into a chunk. */
enum { RECORD_CHUNK = 64 * 1024 };

/* About `keep` bytes at most; 0 records nothing. */
void recorder_begin(struct recorder *r, struct router *router, size_t keep);
void recorder_end(struct recorder *r);
const struct record *recorder_find(const struct recorder *r, uint64_t id);
/* From the newest record to the oldest: pass NULL for the newest. */
const struct record *recorder_next(const struct recorder *r, const struct record *rec);

#endif
