/* The processes that the daemon before us has promised to hand over, and the owners that wait for
 * them. Called by hub/upgrade.c, which receives them, and by mcp/server/stdio_upstream.c, which
 * claims them. */
#include "io/inherited_child.h"

#include "base/libc.h"
#include "base/log.h"
#include "base/mem.h"
#include "io/kin.h"
#include "io/loop_uv.h"
#include "io/spawn.h"
#include "wire/json.h"

#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { END_MS = 100 }; /* for a process that was killed */

struct inherited_child {
    struct list node; /* in the loop's list */
    struct loop *loop;
    struct kin kin; /* so that the process is not taken for an orphan */
    char *key, *cgroup;
    int fds[3]; /* stdin, stdout, stderr of the process; -1 until they are here */
    struct buf note, early;
    void (*come)(void *arg, struct inherited_child *h, bool here); /* NULL: nobody has claimed it */
    void *arg;
};

static char *text_in(struct span object, const char *name)
{
    struct json_slot slot = json_get(object, name);
    struct buf text = {0};

    if (slot.type != JSON_STRING)
        return NULL;
    json_unescape(&text, slot.value);
    return buf_take(&text);
}

void inherited_child_begin(struct loop *l)
{
    l->shares_children = true;
    child_watch_orphans(l);
}

void inherited_child_expect(struct loop *l, struct span promise)
{
    uint64_t pid = json_count(promise, "pid");
    char *key = text_in(promise, "key");

    if (!key || !pid || pid > INT_MAX) { /* another format: its process ends with its pipes */
        mem_free(key);
        return;
    }
    struct inherited_child *h = MEM_NEW(struct inherited_child);
    h->loop = l;
    h->key = key;
    h->cgroup = text_in(promise, "cgroup");
    h->kin.pid = (int)pid;
    h->kin.mark = (rlim_t)json_count(promise, "mark");
    for (size_t i = 0; i < COUNT_OF(h->fds); i++)
        h->fds[i] = -1;
    list_append(&l->kin, &h->kin.node);
    list_append(&l->inherited_children, &h->node);
}

static void drop(struct inherited_child *h)
{
    list_remove(&h->node);
    list_remove(&h->kin.node);
    for (size_t i = 0; i < COUNT_OF(h->fds); i++)
        if (h->fds[i] >= 0)
            close(h->fds[i]);
    mem_free(h->key);
    mem_free(h->cgroup);
    buf_fini(&h->note);
    buf_fini(&h->early);
    mem_free(h);
}

static struct inherited_child *find(const struct loop *l, struct span key, bool here)
{
    LIST_EACH (&l->inherited_children, it) {
        struct inherited_child *h = LIST_ENTRY(it, struct inherited_child, node);
        if (span_is(key, h->key) && (h->fds[0] >= 0) == here)
            return h;
    }
    return NULL;
}

static void hand_on(struct inherited_child *h, bool here)
{
    void (*come)(void *arg, struct inherited_child *h, bool here) = h->come;

    h->come = NULL;
    list_remove(&h->node); /* it cannot be claimed again */
    come(h->arg, h, here);
    drop(h);
}

void inherited_child_arrive(struct loop *l, struct span key, int fds[3], struct span note,
                            struct span early)
{
    struct inherited_child *h = find(l, key, false);

    if (!h)
        return;
    for (size_t i = 0; i < COUNT_OF(h->fds); i++) {
        h->fds[i] = fds[i];
        fds[i] = -1;
    }
    buf_span(&h->note, note);
    buf_span(&h->early, early);
    if (h->come)
        hand_on(h, true);
}

/* Kills what is left of the process and reaps it. One that takes longer to end, which it can
 * arrange (ptrace), is then an orphan as those that our children leave behind. */
static void finish(const struct inherited_child *h)
{
    kin_signal(&h->kin, SIGKILL);
    for (int i = 0; i < END_MS && waitpid(h->kin.pid, NULL, WNOHANG) == 0; i++)
        poll(NULL, 0, 1);
}

static void lose(struct inherited_child *h)
{
    finish(h);
    if (h->come)
        hand_on(h, false);
    else
        drop(h);
}

void inherited_child_lose(struct loop *l, struct span key)
{
    struct inherited_child *h = find(l, key, false);

    if (h)
        lose(h);
}

void inherited_child_end_all(struct loop *l)
{
    while (!list_empty(&l->inherited_children)) {
        struct inherited_child *h =
            LIST_FIRST(&l->inherited_children, struct inherited_child, node);
        log_info("rialto", "process %d of the daemon before this one is not needed any more",
                 h->kin.pid);
        lose(h);
    }
    if (l->shares_children) {
        l->shares_children = false;
        child_end_orphans(l);
    }
}

struct inherited_child *
inherited_child_claim(struct loop *l, const char *key,
                      void (*come)(void *arg, struct inherited_child *h, bool here), void *arg)
{
    LIST_EACH (&l->inherited_children, it) {
        struct inherited_child *h = LIST_ENTRY(it, struct inherited_child, node);
        if (h->come || strcmp(h->key, key) != 0)
            continue;
        h->come = come;
        h->arg = arg;
        return h;
    }
    return NULL;
}

bool inherited_child_is_promised(const struct loop *l, const char *key)
{
    LIST_EACH (&l->inherited_children, it)
        if (strcmp(LIST_ENTRY(it, struct inherited_child, node)->key, key) == 0)
            return true;
    return false;
}

void inherited_child_disclaim(struct inherited_child *h)
{
    h->come = NULL;
}

struct child *inherited_child_take(struct inherited_child *h, const char *name,
                                   const struct child_events *on, void *owner)
{
    struct spawned was = {.pid = h->kin.pid,
                          .pidfd = pidfd_open(h->kin.pid, 0),
                          .in = h->fds[0],
                          .out = h->fds[1],
                          .err = h->fds[2],
                          .mark = h->kin.mark,
                          .cgroup = h->cgroup};

    h->fds[0] = h->fds[1] = h->fds[2] = -1;
    h->cgroup = NULL;
    return child_adopt(h->loop, &was, name, on, owner);
}

struct span inherited_child_note(const struct inherited_child *h)
{
    return buf_view(&h->note);
}

struct span inherited_child_early(const struct inherited_child *h)
{
    return buf_view(&h->early);
}
