/*
 * provider: a peer in the provider role, with its state machine, its catalog and its limits.
 *
 * A family embeds struct provider, fills in the verbs and `ops`, and registers it with the router.
 * A table of state x event -> action (provider.c) drives every kind of provider: a stdio child, an
 * HTTP upstream, a page, an ACP component and a remote bridge. The family reports what happens with
 * provider_up, provider_lost and provider_publish; the router decides when to start and stop.
 *
 * The contract of `ops`: after `start` the family calls provider_lost exactly once, when nothing of
 * that instance is left (also after `stop`, also when starting failed; not from inside `start` or
 * `cancel`). By then the family must have dropped all calls of the instance as well: the router
 * ends them and calls no verb for them any more.
 */
#ifndef RIALTO_CORE_PROVIDER_H
#define RIALTO_CORE_PROVIDER_H

#include "base/backoff.h"
#include "base/timers.h"
#include "core/catalog.h"
#include "core/observers.h"
#include "core/peer.h"
#include "core/policy.h"
#include "core/stats.h"

struct router;

enum provider_state {
    PROVIDER_DOWN,
    PROVIDER_STARTING,
    PROVIDER_READY,
    PROVIDER_BACKOFF,
    PROVIDER_STOPPING,
    PROVIDER_STATES,
};

enum provider_event {
    PROVIDER_WANTED,   /* to be started: at boot, for a call, or by the configuration */
    PROVIDER_UP,       /* handshake done and the first catalog published */
    PROVIDER_LOST,     /* the instance is gone */
    PROVIDER_TIMER,    /* start deadline, or end of the backoff */
    PROVIDER_IDLE,     /* time to check whether the provider is in use */
    PROVIDER_UNWANTED, /* shutdown, removed, stopped by hand */
    PROVIDER_EVENTS,
};

/* What a family knows about an instance, for people; 0 and NULL for what it does not know. */
struct provider_facts {
    const char *version;   /* of the protocol that the instance speaks */
    const char *transport; /* "stdio", "http" ... */
    int pid;               /* of the instance's process on this machine */
    const char *sandbox;   /* the level of its sandbox */
    struct span refused;   /* what the sandbox refused before the instance last ended */
    struct span remedy;    /* what to set in the configuration to allow that */
};

struct provider_ops {
    void (*start)(struct provider *p);
    void (*stop)(struct provider *p);
    void (*describe)(const struct provider *p, struct provider_facts *facts); /* may be NULL */
    /* The arguments that the family puts into calls of this tool instead of the consumer's: a JSON
     * object, or NULL for none. The function may be NULL. */
    const char *(*pinned)(const struct provider *p, struct span tool);
};

/* Decides whether a provider may be started now, where the number that may run is limited. */
struct provider_room {
    /* NULL if the provider may be started, else why not; `*soon` if there may be room at the next
     * change of some provider. Must not touch the provider. */
    const char *(*ask)(struct provider_room *room, bool *soon);
};

struct provider {
    struct peer peer;
    const struct provider_ops *ops;
    struct router *router;
    const char *alias;   /* the family's; may change between turns, with router_provider_changed */
    bool bare_names;     /* its items keep their own names in every view */
    bool takes_any;      /* its family can pass on unknown methods: OP_OTHER, OP_TELL */
    bool built_in;       /* part of the bridge: not in the router's list, and no events */
    const char *mark;    /* for people: tells tools of the same name apart; or NULL */
    const char *told_as; /* one of many that come and go: their common name in events */
    bool tells_later;    /* its family calls router_tell_changes itself, once for several changes */
    struct span bridges; /* names of bridges behind this provider; owned by its family */
    void *entry;         /* the hub's server whose shared instance this is; else NULL */
    /* Takes the calls that wait for this provider when it cannot be started; that failure is then
     * not published as an event. This provider is halted, resumed and restarted with its stand-in.
     * Or NULL. */
    struct provider *stand_in;
    /* Takes the calls for which somebody must sign in first (hub/signin/signin_tool.h), and gives
     * them back afterwards. Until somebody has signed in, this provider stays down and is not
     * started. NULL: nobody can sign in. */
    struct provider *sign_in;
    const char *refuses; /* why it takes no calls and is never started; NULL: it takes calls */
    /* Its sign-in is that of callers without a token. Owners of tokens have a provider each, and
     * their calls are refused here. */
    bool tokenless_only;
    bool signed_in; /* its requests carry a token, which may expire: they are kept for a retry */
    struct policy policy;
    struct provider_room *room; /* NULL: may always be started */
    const char *no_room;        /* why there was no room for the last start; NULL when there was */
    struct observer room_soon;  /* used while calls wait for room */

    enum provider_state state;
    uint64_t since;      /* when the state was entered */
    uint64_t started_at; /* last start */
    bool wanted_again;   /* WANTED came while stopping */
    bool was_too_slow;   /* being stopped because the start took too long */
    bool retries_late;   /* its family knows that an early retry cannot succeed */
    bool locked;      /* its family knows that the server wants credentials that it was not given */
    bool remembered;  /* the catalog is of an earlier run: shown while the provider starts */
    bool rests;       /* stopped, or being stopped, for being idle */
    bool halted;      /* stopped by hand: down until started by hand */
    bool draining;    /* gets no new calls: observers are told when the last call has ended */
    uint64_t used_at; /* when the last call ended, or the provider became ready */
    char *why;        /* last reason for going down; NULL when there was none */
    uint64_t failing_since; /* when `why` was first set after the provider was ready; or 0 */
    struct timer timer;
    struct timer idle;
    struct backoff backoff;

    int log_rank; /* most verbose log level that a consumer wants; or LOG_RANK_NONE */
    char log_word[16];
    size_t unconfirmed;   /* requests of ours it has not confirmed: calls wait (subscriptions.h) */
    struct timer confirm; /* ends that wait after a while */
    struct catalog *catalog; /* last published; kept while down so that names stay known */
    struct list open;        /* calls handed over (struct call.in_provider) */
    struct list waiting;     /* calls that wait for a slot or for READY */
    struct list held;        /* calls that wait for a person (core/approval.h) */
    size_t n_open, n_waiting;
    bool pumping;     /* calls are being handed over */
    bool takes_turns; /* asks without saying on which call (core/doubts.h) */
    bool settling;    /* `doubts` are being asked */
    struct list doubts;
    size_t n_refused;        /* doubts that were refused; the calls have not ended yet */
    struct list node;        /* in the router */
    struct list memberships; /* in views (core/view.c) */
    struct stats stats;
};

/* The family's constructor calls this; policy may be changed afterwards. */
void provider_init(struct provider *p, const struct peer_verbs *verbs,
                   const struct provider_ops *ops, const char *alias);
/* Only when DOWN and unregistered. Views that still have the provider lose it. */
void provider_fini(struct provider *p);
/* `why` as text: empty when there was no failure. */
const char *provider_why(const struct provider *p);
/* What happened was no failure after all. */
void provider_forget_why(struct provider *p);

/* --- for the family --- */
/* The start in progress may take `ms` from now. */
void provider_start_again(struct provider *p, uint64_t ms);
void provider_up(struct provider *p);
/* `why` in a few words: "exited with 1", "no answer to initialize within 30 s". */
void provider_lost(struct provider *p, const char *why);
/* An empty catalog to fill and publish, bounded by limits.catalog. */
struct catalog *provider_draft(const struct provider *p);
/* Takes over the catalog as the next generation and tells consumers whose lists have changed. */
void provider_publish(struct provider *p, struct catalog *c);
/* The same with the catalog of an earlier run, before the start: that catalog is shown until the
 * provider has published a new one or has failed. Calls wait for the start. */
void provider_recall(struct provider *p, struct catalog *c);

/* --- for the bridge and the router --- */
/* Other limits from now on, also while the provider runs; the caller then calls view_touch. */
void provider_adjust(struct provider *p, const struct policy *policy);
void provider_want(struct provider *p);
/* Somebody has signed in: start the provider. */
void provider_unlock(struct provider *p);
void provider_unwant(struct provider *p);
/* For operators: stop the provider and refuse its calls until it is resumed; start it as if it had
 * never failed; stop and start it. */
void provider_halt(struct provider *p);
void provider_resume(struct provider *p);
void provider_restart(struct provider *p);
/* Does the provider have calls, in any state? */
bool provider_has_calls(const struct provider *p);
/* How many calls the provider has or may have to take over, as a stand-in. */
size_t provider_count_calls(const struct provider *p);
/* Does the provider have calls, a subscribed resource, or a process that works on a task? */
bool provider_in_use(const struct provider *p);
/* Stop the provider until the next call, if it is ready and not in use; false otherwise. */
bool provider_rest(struct provider *p);
/* Is the provider down until somebody signs in? */
bool provider_needs_sign_in(const struct provider *p);
/* When a provider that failed is tried again, in ms from now; 0 when no try is planned. */
uint64_t provider_next_try(const struct provider *p);
/* Are the provider's items to be listed now? */
bool provider_advertised(const struct provider *p);
/* The arguments that this provider's family puts into a call instead of the consumer's; empty:
 * none. */
struct span provider_pinned(const struct provider *p, enum op op, struct span name);
const char *provider_state_name(enum provider_state s);
struct provider_facts provider_describe(const struct provider *p);

#endif
