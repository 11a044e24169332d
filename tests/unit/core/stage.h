/*
 * stage: a router whose clock the test controls, and fake peers.
 *
 * A `fake` is a provider and a `client` a consumer; both only write each verb that they receive as
 * a line into the stage's account. With the hooks a test sets what they do inside a verb. Calls
 * have the router's numbers, which start at 1.
 */
#ifndef RIALTO_TESTS_STAGE_H
#define RIALTO_TESTS_STAGE_H

#include "../unit.h"
#include "core/route.h"
#include "core/router.h"

#include <stdio.h>

struct stage {
    struct timers timers;
    struct router *router;
    struct buf account;
};

void stage_init(struct stage *s);
/* Also checks that no call and no timer is left. */
void stage_fini(struct stage *s);
void stage_wait(struct stage *s, uint64_t ms);

struct fake {
    struct provider core;
    struct stage *stage;
    bool up_in_start, lost_in_stop;
    /* Called inside the verb, after its line was written; may be NULL. */
    void (*in_open)(struct fake *f, struct call *c, const struct request *request);
    void (*in_answer)(struct fake *f, struct call *c);
};

void fake_init(struct fake *f, struct stage *s, const char *alias);
/* Stops the fake if it runs, removes and frees it. The account does not show what that causes. */
void fake_fini(struct fake *f);
/*
 * Publish a catalog of words: "read" is a tool, "read+ro" says read-only and "read+id" idempotent;
 * "p:x", "r:x" and "t:x" are a prompt, a resource and a template; "=NAME" after one is its label.
 */
void fake_publish(struct fake *f, const char *words);
/* provider_want, fake_publish and provider_up. */
void fake_ready(struct fake *f, const char *words);
/* The catalog that fake_publish makes. */
struct catalog *catalog_of_words(const char *words);

struct client {
    struct peer peer;
    struct stage *stage;
    const char *name;
    struct view *view;
    unsigned answers;
    bool wants_progress;
    struct call *last; /* what the last client_open returned */
    void (*in_done)(struct client *c, const struct outcome *outcome);
    void (*in_event)(struct client *c, struct call *call, const struct event *event);
    void (*in_ask)(struct client *c, struct call *call, const struct ask *ask);
};

void client_init(struct client *c, struct stage *s, const char *name, struct view *v);
struct call *client_open(struct client *c, const char *tool);
struct call *client_request(struct client *c, enum op op, const char *name);

/* Ends the call with a result that has this body. */
void finish_call(struct call *c, const char *body);
void ask_call(struct call *c, const char *key, unsigned needs);
void answer_call(struct call *c, const char *key, const char *body);

/* The lines written since the last check are exactly these. */
#define assert_account(stage, text)                                                                \
    do {                                                                                           \
        assert_string_equal(buf_cstr(&(stage)->account), (text));                                  \
        (stage)->account.n = 0;                                                                    \
    } while (0)

#endif
