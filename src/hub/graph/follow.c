/* Reads the configuration file again, hands the configuration to the bridge and reports what
 * changed. Called by hub/hub.c and cmd/bus.c, by hub/bus_host.c after a write of its own, and by
 * io/watch when the file changes. */
#include "hub/graph/follow.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/edit.h"
#include "config/load.h"
#include "hub/auth/gate.h"
#include "hub/auth/token_file.h"
#include "hub/graph/lock.h"
#include "io/watch.h"
#include "wire/json_out.h"

#include <errno.h>

struct follow {
    struct bridge *bridge;
    const struct config *first; /* settings that hold until the program is started again */
    char *file;                 /* that is followed; NULL: there is none yet */
    const char *listen;
    struct loop *loop;
    struct watch *watch;      /* NULL without a file */
    struct watch *lock_watch; /* of mcp.lock; NULL while there is none */
    struct watch *tokens;     /* the file of hub/auth/token_file.h; NULL without a home */
    void (*applied)(void *arg, const struct config *c);
    void *applied_arg;
    struct problems rejected; /* of the file as it was read last; empty once it was taken */
};

/* Log all problems; the first error is also the reason in `err`. */
static void tell_problems(const struct problems *problems, struct err *err)
{
    bool said = false;

    for (size_t i = 0; i < problems->n; i++) {
        const struct problem *p = &problems->items[i];
        BUF_SCOPED line = {0};
        problem_put(&line, p);
        bool wrong = p->level == PROBLEM_ERROR;
        log_line(wrong ? LOG_ERROR : LOG_WARN, "rialto", "%s", buf_cstr(&line));
        if (wrong && !said)
            err_set(err, ERR_CONFIG, "%s", buf_cstr(&line));
        said |= wrong;
    }
}

/* Many editors and scripts empty a file before they write it again: an empty file is rejected. */
static bool is_blank(const char *path)
{
    struct problems problems = {0};
    BUF_SCOPED text = {0};
    bool blank = config_read_text(path, &text, &problems);

    for (size_t i = 0; i < text.n && blank; i++)
        blank = strchr(" \t\r\n", text.p[i]) != NULL;
    problems_fini(&problems);
    return blank;
}

/* The addresses of the start stay in use: check that `c` does not open them to everybody. */
static void check_open(const struct follow *f, struct config *c, struct problems *problems)
{
    struct config now = *c;

    now.listen.items = f->first->listen.items;
    now.listen.n = f->first->listen.n;
    gate_check(&now, problems);
}

static struct config *read_again(const struct follow *f, struct problems *problems)
{
    if (f->file && is_blank(f->file)) {
        problems_add(problems, PROBLEM_ERROR, (struct place){0}, "",
                     "%s is empty; if there are to be no servers, write servers: {}", f->file);
        return NULL;
    }
    struct config *c = token_file_load(f->file, problems);
    if (c)
        config_environment(c, problems);
    if (c && f->listen)
        config_set(c, "listen", f->listen, problems);
    if (c)
        check_open(f, c, problems);
    return c;
}

/* The problems of a file that is not taken are kept for follow_rejected. */
static struct config *load(struct follow *f, struct err *err)
{
    struct problems problems = {0};
    struct config *c = read_again(f, &problems);

    tell_problems(&problems, err);
    problems_fini(&f->rejected);
    if (problems.errors) {
        config_free(c);
        f->rejected = problems;
        return NULL;
    }
    problems_fini(&problems);
    return c;
}

static void put_report(struct buf *out, const struct bridge_changes *changes, struct span others)
{
    buf_char(out, '{');
    for (int act = 0; act < PLAN_ACTS; act++) {
        json_out_open(out, plan_act_name((enum plan_act)act), '[');
        buf_span(out, buf_view(&changes->names[act]));
        buf_char(out, ']');
    }
    json_out_text(out, "at_next_start", others);
    buf_char(out, '}');
}

static void tell(const struct bridge_changes *changes, struct span others)
{
    BUF_SCOPED line = {0};

    for (int act = 0; act < PLAN_ACTS; act++)
        if (act != PLAN_KEEP && changes->names[act].n)
            buf_printf(&line, "%s%s " SPAN_FMT, line.n ? ", " : "",
                       plan_act_name((enum plan_act)act), SPAN_ARG(buf_view(&changes->names[act])));
    log_info("rialto", "configuration read again: %s", line.n ? buf_cstr(&line) : "nothing to do");
    if (others.n)
        log_warn("rialto", "changes of " SPAN_FMT " take effect at the next start",
                 SPAN_ARG(others));
}

static void on_lock_changed(void *arg)
{
    struct follow *f = arg;

    log_info("lock", "mcp.lock has changed and is read again");
    bridge_relock(f->bridge);
}

/* Once there is a lock, its file is watched like the configuration. */
static void watch_lock(struct follow *f)
{
    if (f->lock_watch || !f->watch || !lock_in_force(bridge_lock(f->bridge)))
        return;
    char *path = lock_path(f->file);
    f->lock_watch = watch_open(f->loop, path, on_lock_changed, f);
    mem_free(path);
}

static void on_changed(void *arg);

int follow_now(struct follow *f, struct buf *report, struct err *err)
{
    struct bridge_changes changes = {0};
    BUF_SCOPED others = {0};

    if (f->first->fixed || (!f->watch && !token_file_exists())) {
        err_set(err, ERR_CONFIG, "there is no configuration file to read");
        err_hint(err, "start it with -c FILE");
        return ERR_CONFIG;
    }
    struct config *c = load(f, err);
    if (!c && f->applied)
        f->applied(f->applied_arg, NULL);
    if (!c)
        return ERR_CONFIG;
    plan_put_other_keys(&others, f->first, c);
    bridge_apply(f->bridge, c, &changes);
    bridge_relock(f->bridge);
    watch_lock(f);
    if (f->applied)
        f->applied(f->applied_arg, c);
    tell(&changes, buf_view(&others));
    if (report)
        put_report(report, &changes, buf_view(&others));
    bridge_changes_fini(&changes);
    return 0;
}

int follow_own_write(struct follow *f, struct err *err)
{
    if (f->watch)
        watch_note(f->watch);
    return follow_now(f, NULL, err);
}

static void forget_file(struct follow *f)
{
    watch_close(f->watch);
    f->watch = NULL;
    mem_free(f->file);
    f->file = NULL;
}

/* Read the edited file. If it is not taken, the edit is undone, and f->rejected is again `before`:
 * the problems of the file before the edit. */
static int take_edit(struct follow *f, const struct server_edit_done *done, struct problems *before,
                     struct err *err)
{
    struct err why = {0};
    int code = follow_own_write(f, err);

    if (!code)
        return 0;
    if (edit_undo_file(f->file, buf_view(&done->after), buf_view(&done->before), done->made,
                       &why)) {
        log_error("rialto", "the file could not be put back: %s", why.text);
        return code;
    }
    problems_fini(&f->rejected);
    f->rejected = *before;
    *before = (struct problems){0};
    if (done->made)
        forget_file(f);
    else
        watch_note(f->watch);
    return code;
}

int follow_edit(struct follow *f, const struct server_edit *e, struct err *err)
{
    struct server_edit_done done;
    char *path = f->file ? mem_str(f->file) : config_user_file();

    if (f->first->fixed || !path) {
        mem_free(path);
        return err_set(err, -ENOENT, "there is no configuration file to change");
    }
    int code = server_edit_file(path, e, 0, &done, err);
    if (!code && !f->file) {
        f->file = mem_str(path);
        f->watch = watch_open(f->loop, f->file, on_changed, f);
    }
    mem_free(path);
    if (code)
        return code;
    struct problems before = f->rejected;
    f->rejected = (struct problems){0};
    code = take_edit(f, &done, &before, err);
    problems_fini(&before);
    server_edit_end(&done);
    return code;
}

static void on_changed(void *arg)
{
    struct err err = {0};

    if (follow_now(arg, NULL, &err))
        log_error("rialto", "the changed configuration is not taken, all goes on as it was");
}

struct follow *follow_new(struct loop *loop, struct bridge *bridge, const char *listen)
{
    struct follow *f = MEM_NEW(struct follow);

    f->bridge = bridge;
    f->first = bridge_config(bridge);
    f->listen = listen;
    f->loop = loop;
    f->file = mem_str(f->first->file);
    if (f->file)
        f->watch = watch_open(loop, f->file, on_changed, f);
    watch_lock(f);
    char *tokens = f->first->fixed ? NULL : token_file_path();
    if (tokens)
        f->tokens = watch_open(loop, tokens, on_changed, f);
    if (tokens)
        watch_events_only(f->tokens);
    mem_free(tokens);
    return f;
}

const struct problems *follow_rejected(const struct follow *f)
{
    return &f->rejected;
}

void follow_on_applied(struct follow *f, void (*fn)(void *arg, const struct config *c), void *arg)
{
    f->applied = fn;
    f->applied_arg = arg;
}

const char *follow_file(const struct follow *f)
{
    return f->file;
}

void follow_free(struct follow *f)
{
    watch_close(f->watch);
    mem_free(f->file);
    watch_close(f->lock_watch);
    watch_close(f->tokens);
    problems_fini(&f->rejected);
    mem_free(f);
}
