/* The table of tasks, its limits, and the timer that forgets old tasks. Called by call_open.c to
 * route requests about tasks, by provider.c, mcp/server/, mcp/agent/ and admin/, and by
 * hub/graph/task_file.c. */
#include "core/tasks.h"

#include "base/id.h"
#include "base/map.h"
#include "base/mem.h"

#include <string.h>

struct tasks {
    struct timers *timers;
    uint64_t epoch;
    struct list all;
    size_t n, result_bytes;
    struct map by_id;
    struct timer expiry;
    void (*changed)(void *arg);
    void *changed_arg;
};

static struct task *entry(const struct list *it)
{
    return LIST_ENTRY(it, struct task, node);
}

uint64_t tasks_now(const struct tasks *ts)
{
    return ts->epoch + ts->timers->now;
}

static void changed(struct tasks *ts)
{
    if (ts->changed)
        ts->changed(ts->changed_arg);
}

static void forget(struct tasks *ts, struct task *t)
{
    map_del(&ts->by_id, span_str(t->id));
    list_remove(&t->node);
    ts->n--;
    ts->result_bytes -= t->result ? strlen(t->result) : 0;
    mem_free(t->id);
    mem_free(t->server);
    mem_free(t->own);
    mem_free(t->tool);
    mem_free(t->owner);
    mem_free(t->state);
    mem_free(t->result);
    mem_free(t);
}

/* Set the timer to the time when the next task expires. */
static void arm(struct tasks *ts)
{
    uint64_t first = UINT64_MAX, now = tasks_now(ts);

    LIST_EACH (&ts->all, it)
        first = entry(it)->expires < first ? entry(it)->expires : first;
    if (ts->n)
        timer_set(ts->timers, &ts->expiry, first > now ? first - now : 0);
    else
        timer_clear(ts->timers, &ts->expiry);
}

static void on_expiry(struct timer *timer)
{
    struct tasks *ts = CONTAINER_OF(timer, struct tasks, expiry);
    uint64_t now = tasks_now(ts);

    LIST_EACH_SAFE (&ts->all, it)
        if (entry(it)->expires <= now)
            forget(ts, entry(it));
    arm(ts);
    changed(ts);
}

struct tasks *tasks_new(struct timers *timers)
{
    struct tasks *ts = MEM_NEW(struct tasks);

    ts->timers = timers;
    ts->expiry.fire = on_expiry;
    list_init(&ts->all);
    return ts;
}

void tasks_free(struct tasks *ts)
{
    timer_clear(ts->timers, &ts->expiry);
    LIST_EACH_SAFE (&ts->all, it)
        forget(ts, entry(it));
    map_fini(&ts->by_id);
    mem_free(ts);
}

void tasks_set_epoch(struct tasks *ts, uint64_t epoch)
{
    ts->epoch = epoch;
}

void tasks_on_change(struct tasks *ts, void (*fn)(void *arg), void *arg)
{
    ts->changed = fn;
    ts->changed_arg = arg;
}

/* If the owner has too many tasks, its oldest one is forgotten. If the table is full, the owner's
 * oldest one or, if the owner has none, the oldest of all. */
static void make_room(struct tasks *ts, const char *owner)
{
    struct task *oldest = NULL;
    size_t own = 0;

    LIST_EACH (&ts->all, it) {
        bool same = strcmp(entry(it)->owner, owner) == 0;
        oldest = same && !oldest ? entry(it) : oldest;
        own += same;
    }
    if (own >= TASKS_BY_ONE || (ts->n >= TASKS_MAX && oldest))
        forget(ts, oldest);
    else if (ts->n >= TASKS_MAX)
        forget(ts, entry(ts->all.next));
}

static struct task *put(struct tasks *ts, struct span id, const struct task_facts *f)
{
    struct task *t;

    make_room(ts, f->owner ? f->owner : "");
    t = MEM_NEW(struct task);
    t->id = mem_span(id);
    t->server = mem_span(f->server);
    t->tool = mem_span(f->tool);
    t->own = mem_span(f->own.n ? f->own : id);
    t->owner = mem_str(f->owner ? f->owner : "");
    t->state = mem_span(span_cut(f->state, 0, TASK_STATE_MAX));
    t->result = f->result.n ? mem_span(f->result) : NULL;
    t->party = f->party;
    t->instance = f->instance;
    ts->result_bytes += f->result.n;
    ts->n++;
    list_append(&ts->all, &t->node);
    map_put(&ts->by_id, span_str(t->id), t);
    return t;
}

static bool fits(const struct tasks *ts, const struct task_facts *f)
{
    return f->own.n <= TASK_ID_MAX && !memchr(f->own.p ? f->own.p : "-", 0, f->own.n) &&
           f->state.n <= TASK_STATE_MAX && f->result.n <= TASK_RESULT_MAX &&
           ts->result_bytes + f->result.n <= TASKS_RESULTS_MAX;
}

struct task *tasks_add(struct tasks *ts, const struct task_facts *f)
{
    uint64_t life = f->life && f->life < TASK_LIFE_MAX ? f->life : TASK_LIFE_MAX;
    char made[ID_TOKEN_SIZE];

    if (!fits(ts, f))
        return NULL;
    /* If a server uses an id again, the id means the new task from now on. */
    struct task *before = f->own.n ? tasks_find_own(ts, f->server, f->instance, f->own) : NULL;
    if (before)
        forget(ts, before);
    bool plain = f->plain && f->own.n >= TASK_ID_UNGUESSABLE && !map_get(&ts->by_id, f->own);
    id_token(made);
    struct task *t = put(ts, plain ? f->own : span_str(made), f);
    t->expires = tasks_now(ts) + life;
    arm(ts);
    changed(ts);
    return t;
}

void tasks_restore(struct tasks *ts, struct span id, const struct task_facts *f, uint64_t expires,
                   bool cancelled)
{
    uint64_t last = tasks_now(ts) + TASK_LIFE_MAX;

    if (!fits(ts, f) || id.n > TASK_ID_MAX || expires <= tasks_now(ts) || map_get(&ts->by_id, id))
        return;
    struct task *t = put(ts, id, f);
    t->expires = expires < last ? expires : last;
    t->cancelled = cancelled;
    arm(ts);
}

struct task *tasks_find(struct tasks *ts, struct span id, const char *owner, uint64_t party)
{
    struct task *t = map_get(&ts->by_id, id);

    if (!t || strcmp(t->owner, owner ? owner : "") != 0)
        return NULL;
    t->party = party ? party : t->party;
    return t;
}

struct task *tasks_find_own(const struct tasks *ts, struct span server, uint64_t instance,
                            struct span own)
{
    LIST_EACH (&ts->all, it) {
        struct task *t = entry(it);
        if (t->instance == instance && span_is(own, t->own) && span_is(server, t->server))
            return t;
    }
    return NULL;
}

bool task_is_of(const struct task *t, const char *owner, uint64_t party)
{
    return (owner && strcmp(t->owner, owner) == 0) ||
           (!owner && !t->owner[0] && party && t->party == party);
}

struct task *tasks_next(const struct tasks *ts, const struct task *after)
{
    const struct list *next = after ? after->node.next : ts->all.next;

    return next == &ts->all ? NULL : entry(next);
}

void task_note(struct tasks *ts, struct task *t, struct span state, bool ended)
{
    t->ended = t->ended || ended;
    if (state.n > TASK_STATE_MAX || span_is(state, t->state))
        return;
    mem_free(t->state);
    t->state = mem_span(state);
    changed(ts);
}

void task_cancelled(struct tasks *ts, struct task *t)
{
    t->cancelled = t->ended = true;
    changed(ts);
}

bool tasks_at_work(const struct tasks *ts, const char *server)
{
    LIST_EACH (&ts->all, it)
        if (entry(it)->instance && !entry(it)->ended && strcmp(entry(it)->server, server) == 0)
            return true;
    return false;
}

void tasks_forget_instance(struct tasks *ts, uint64_t instance)
{
    LIST_EACH_SAFE (&ts->all, it)
        if (instance && entry(it)->instance == instance)
            forget(ts, entry(it));
}
