/*
 * recorder: the last calls, with their params, results and ends, and what happened in between.
 *
 * It is a tap of the router. Memory is bounded: of long bodies only the beginning is kept, of a
 * call with many legs the first ones, and the oldest records are dropped first, a chunk at a time.
 * Chunks are used again, so that recording a call allocates nothing. A call that was only opened,
 * sent to its provider and ended has no legs: the record itself has these times. Records are not
 * redacted: code that shows one must do it.
 */
#ifndef RIALTO_ADMIN_RECORDER_H
#define RIALTO_ADMIN_RECORDER_H

#include "base/list.h"
#include "base/map.h"
#include "core/router.h"
#include "core/tap.h"

/* More is kept of a body than is shown (record.body), because a secret on the edge is recognised
 * only when it is whole. */
enum { RECORD_MARGIN = 4 * 1024 };
/* The most legs of one call, and how many of them may be events: so there is room for questions and
 * decisions even when a server reports progress without end. */
enum { RECORD_LEGS = 256, RECORD_EVENTS = 64 };

/* The beginning of a body, and the length of the whole. */
struct record_body {
    struct span kept;
    size_t whole;
};

enum leg_kind {
    LEG_WAITS,
    LEG_SENT, /* sent again */
    LEG_EVENT,
    LEG_ASK,
    LEG_OWN_ASK, /* asked by Rialto: for approval, or to sign in */
    LEG_ANSWER,
    LEG_OWN_ANSWER,
    LEG_REFUSED_ANSWER, /* given by us because the consumer cannot answer */
    LEG_UNASK,
    LEG_OWN_UNASK,
    LEG_HELD,
    LEG_ALLOWED,
    LEG_REFUSED,
    LEG_RETRY,
    LEG_CANCEL,
    LEG_CALLED_OFF,
};

/* One step of a call. */
struct record_leg {
    const struct record_leg *next; /* a later one; NULL: the last */
    uint64_t at;                   /* on the router's clock */
    enum leg_kind kind;
    enum event_kind event; /* LEG_EVENT */
    struct span what;      /* a method, a reason or who decided; may be empty */
    struct record_body body;
};

struct record {
    struct list node; /* newest last */
    uint64_t id;      /* the call's handle */
    uint64_t opened_at, sent_at, took;
    enum op op;
    bool ended, sent; /* `sent` and `sent_at` are valid once `ended`; before, the call has them */
    bool resumes;     /* continues a call that ended with questions */
    enum outcome_kind kind; /* valid once `ended` */
    enum failure why;
    bool is_error;
    struct span server; /* empty: no provider was found */
    struct span page;   /* of a provider that comes and goes: its own name; else empty */
    struct span name;
    struct span token;   /* the caller's; empty: none was needed */
    struct span client;  /* the caller's clientInfo, raw; empty: unknown, or in the params */
    struct span session; /* of the caller; empty: there is none */
    struct span way;     /* the endpoint or transport that the caller used; empty: not known */
    struct record_body params;
    struct record_body pinned; /* arguments that the server gets instead of the agent's, if any */
    struct span error;         /* empty when there is no text */
    struct record_body result;
    struct span decided_by; /* who approved or refused the call; empty: nobody was asked */
    bool allowed, by_rule;  /* by_rule: a rule decided when the call was opened */
    unsigned retried;
    const struct record_leg *legs; /* NULL: none */
    struct record_leg *last_leg;
    unsigned n_legs, n_events;
    size_t legs_bytes;    /* of their bodies */
    uint64_t left_out;    /* legs that were too many */
    uint64_t left_out_at; /* the time of the last of these */
};

struct recorder {
    struct tap tap;
    struct router *router;
    size_t body;  /* how much of a body is shown */
    size_t chunk; /* bytes of a chunk: a record, and each addition to one, fits into it */
    size_t max_chunks, n_chunks;
    struct list chunks;    /* oldest first */
    struct chunk *current; /* the newest chunk; NULL before the first call */
    struct list records;
    struct idmap by_id;
    /* Called when a call has ended, inside the router; or NULL. */
    void (*ended)(void *owner, const struct record *rec);
    void *owner;
};

/* Keeps about `keep` bytes at most, and shows `body` bytes of each body; 0 records nothing. */
void recorder_begin(struct recorder *r, struct router *router, size_t keep, size_t body);
void recorder_end(struct recorder *r);
const struct record *recorder_find(const struct recorder *r, uint64_t id);
/* From the newest record to the oldest: pass NULL for the newest. */
const struct record *recorder_next(const struct recorder *r, const struct record *rec);
/* How many bytes of a body may be shown; fewer than the whole: the body is cut. */
size_t recorder_shown(const struct recorder *r, const struct record_body *body);
bool recorder_is_whole(const struct recorder *r, const struct record_body *body);

#endif
