/* Noticing that a file has changed, by libuv's events of the file's folder and by a check every
 * five seconds. Called by hub/graph/follow.c for the configuration file, hub/auth/keyset.c and
 * hub/signin/signin.c. */
#include "io/watch.h"

#include "base/log.h"
#include "base/mem.h"
#include "io/loop_uv.h"

#include <libgen.h>
#include <sys/stat.h>

enum { SETTLE_MS = 500, LOOK_MS = 5000 };

/* What distinguishes the states of a file; all zero when there is no file. */
struct stamp {
    int64_t seconds, nanoseconds, size;
    uint64_t inode;
};

struct watch {
    uv_fs_event_t events;
    struct loop *loop;
    char *path;
    struct stamp stamp;
    struct stamp seen;   /* the state at the last event or check */
    struct timer settle; /* waits until changes stop coming */
    struct timer look;
    void (*changed)(void *arg);
    void *arg;
};

static struct stamp stamp_of(const char *path)
{
    struct stat st;

    if (stat(path, &st))
        return (struct stamp){0};
    return (struct stamp){st.st_mtim.tv_sec, st.st_mtim.tv_nsec, st.st_size, st.st_ino};
}

static bool is_other(const struct stamp *a, const struct stamp *b)
{
    return a->seconds != b->seconds || a->nanoseconds != b->nanoseconds || a->size != b->size ||
           a->inode != b->inode;
}

static bool differs(const struct watch *w)
{
    struct stamp now = stamp_of(w->path);

    return is_other(&now, &w->stamp);
}

static void on_settled(struct timer *t)
{
    struct watch *w = CONTAINER_OF(t, struct watch, settle);

    if (!differs(w))
        return;
    /* Noted before the owner reads the file: an edit during the reading is then seen as well. */
    watch_note(w);
    w->changed(w->arg);
}

/* Something has happened in the folder. Only changes of the file itself delay the report: if every
 * event did, it would never come in a folder where others write all the time. */
static void suspect(struct watch *w)
{
    struct stamp now = stamp_of(w->path);
    bool changes = is_other(&now, &w->seen);

    w->seen = now;
    if (is_other(&now, &w->stamp) && (changes || !timer_is_set(&w->settle)))
        timer_set(loop_timers(w->loop), &w->settle, SETTLE_MS);
}

static void on_look(struct timer *t)
{
    struct watch *w = CONTAINER_OF(t, struct watch, look);

    timer_set(loop_timers(w->loop), t, LOOK_MS);
    suspect(w);
}

static void on_event(uv_fs_event_t *handle, const char *name, int events, int status)
{
    struct watch *w = handle->data;

    (void)name;
    (void)events;
    loop_enter(w->loop);
    if (status >= 0)
        suspect(w);
}

struct watch *watch_open(struct loop *l, const char *path, void (*changed)(void *arg), void *arg)
{
    struct watch *w = MEM_NEW(struct watch);
    char *copy = mem_str(path);

    w->loop = l;
    w->path = mem_str(path);
    w->changed = changed;
    w->arg = arg;
    w->settle.fire = on_settled;
    w->look.fire = on_look;
    w->events.data = w;
    watch_note(w);
    timer_set(loop_timers(l), &w->look, LOOK_MS);
    uv_fs_event_init(&l->uv, &w->events);
    uv_unref((uv_handle_t *)&w->events);
    /* The folder is watched, not the file: a file replaced by renaming is another inode. */
    int code = uv_fs_event_start(&w->events, on_event, dirname(copy), 0);
    if (code)
        log_debug("rialto", "cannot be told of changes to %s (%s); looking every %d s", path,
                  uv_strerror(code), LOOK_MS / 1000);
    mem_free(copy);
    return w;
}

void watch_note(struct watch *w)
{
    w->stamp = stamp_of(w->path);
}

void watch_events_only(struct watch *w)
{
    timer_clear(loop_timers(w->loop), &w->look);
}

static void on_closed(uv_handle_t *handle)
{
    struct watch *w = handle->data;

    mem_free(w->path);
    mem_free(w);
}

void watch_close(struct watch *w)
{
    if (!w)
        return;
    timer_clear(loop_timers(w->loop), &w->settle);
    timer_clear(loop_timers(w->loop), &w->look);
    uv_close((uv_handle_t *)&w->events, on_closed);
}
