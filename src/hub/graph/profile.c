/* The token of an auth profile, used as a signer of links. It is read from the secrets without
 * blocking the loop while their command runs. Made by server.c for servers with auth.profile. */
#include "hub/graph/profile.h"

#include "base/arena.h"
#include "base/ascii.h"
#include "base/libc.h"
#include "base/mem.h"
#include "config/secret.h"
#include "io/poll.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COMMAND_MS = 10 * 1000, TOKEN_MAX = 64 * 1024, CHUNK = 4096 };

struct profile {
    struct http_signer signer;
    struct arena arena;
    struct config_secrets places;
    const char *name, *secret; /* of the profile; of the secret that is looked up */
    struct loop *loop;
    char *token; /* NULL = none */
    uint64_t number;
    bool checked;      /* read, and found unchanged or missing, since the last refusal */
    struct list waits; /* of struct http_signer_wait */

    /* Used while the token is being read. `poll` watches the output of the command and, once the
     * output has ended, the process. */
    bool reading;
    struct timer timer; /* starts the reading; then limits the time of the command */
    pid_t pid;          /* 0 = none runs */
    struct poll *poll;
    int fd; /* of `poll` */
    struct buf found;
};

static void stop_polling(struct profile *p)
{
    if (p->poll)
        poll_close(p->poll);
    p->poll = NULL;
}

static void stop_reading(struct profile *p)
{
    stop_polling(p);
    if (p->pid) {
        kill(p->pid, SIGKILL);
        waitpid(p->pid, NULL, 0);
    }
    p->pid = 0;
    if (p->reading)
        timer_clear(loop_timers(p->loop), &p->timer);
    p->reading = false;
}

static void finish(struct profile *p, bool found)
{
    struct http_signer_wait *w;

    stop_reading(p);
    p->checked = !found || (p->token && span_is(buf_view(&p->found), p->token));
    if (!p->checked) {
        mem_free(p->token);
        p->token = mem_span(buf_view(&p->found));
        p->number++;
    }
    buf_reset(&p->found, 0);
    while ((w = LIST_FIRST(&p->waits, struct http_signer_wait, node))) {
        list_remove(&w->node);
        w->fire(w);
    }
}

static void without_command(struct profile *p)
{
    finish(p, secrets_in_environment(p->secret, &p->found));
}

static void on_late(struct timer *t)
{
    without_command(CONTAINER_OF(t, struct profile, timer));
}

static void on_ended(void *owner)
{
    struct profile *p = owner;
    int code = secrets_end_command(p->pid, &p->found);

    if (code == -EAGAIN)
        return;
    p->pid = 0;
    if (code == 0)
        finish(p, true);
    else
        without_command(p);
}

static void on_output(void *owner)
{
    struct profile *p = owner;
    ssize_t n = read(p->fd, buf_room(&p->found, CHUNK), CHUNK);

    if (n > 0 && p->found.n + (size_t)n <= TOKEN_MAX) {
        p->found.n += (size_t)n;
        return;
    }
    if (n > 0)
        p->found.n = 0; /* too long for a token */
    stop_polling(p);
    p->fd = pidfd_open(p->pid, 0);
    if (p->fd < 0)
        without_command(p);
    else
        p->poll = poll_new(p->loop, p->fd, on_ended, p);
}

static void look(struct timer *t)
{
    struct profile *p = CONTAINER_OF(t, struct profile, timer);

    if (secrets_in_files(&p->places, p->secret, &p->found)) {
        finish(p, true);
        return;
    }
    p->fd = secrets_start_command(&p->places.command, p->secret, &p->pid);
    if (p->fd < 0) {
        p->pid = 0;
        without_command(p);
        return;
    }
    p->found.n = 0;
    p->poll = poll_new(p->loop, p->fd, on_output, p);
    p->timer.fire = on_late;
    timer_set(loop_timers(p->loop), &p->timer, COMMAND_MS);
}

static void start_reading(struct profile *p)
{
    p->reading = true;
    p->timer.fire = look;
    timer_set(loop_timers(p->loop), &p->timer, 0);
}

/* --- the signer --- */

static const char *token_of(struct http_signer *s, uint64_t *number)
{
    struct profile *p = CONTAINER_OF(s, struct profile, signer);

    *number = p->number;
    return p->token;
}

static bool is_ready(struct http_signer *s, struct http_signer_wait *w)
{
    struct profile *p = CONTAINER_OF(s, struct profile, signer);

    if (!p->token && !p->checked && !p->reading)
        start_reading(p);
    if (!p->reading)
        return true;
    list_remove(&w->node); /* it may be in the list already */
    list_append(&p->waits, &w->node);
    return false;
}

/* After a refusal the token is read again and the request is sent again. If the token is unchanged
 * or missing, the second refusal fails the request; the next refused request has the token read
 * again. */
static enum http_signed refused(struct http_signer *s, const struct http_refusal *r,
                                struct buf *why)
{
    struct profile *p = CONTAINER_OF(s, struct profile, signer);

    if (r->status != 401)
        return HTTP_SIGNED_NOT;
    if (p->token)
        buf_printf(why, "refuses the token of auth profile '%s', which is the secret %s (HTTP 401)",
                   p->name, p->secret);
    else
        buf_printf(why, "has no token: auth profile '%s' is the secret %s, and there is none",
                   p->name, p->secret);
    if (p->reading || r->number != p->number)
        return HTTP_SIGNED_AGAIN;
    if (p->checked) {
        p->checked = false;
        return HTTP_SIGNED_NOT;
    }
    start_reading(p);
    return HTTP_SIGNED_AGAIN;
}

struct http_signer *profile_signer(struct profile *p, struct loop *loop)
{
    p->loop = loop;
    return &p->signer;
}

struct profile *profile_new(const struct config_secrets *places, const char *name)
{
    struct profile *p = MEM_NEW(struct profile);
    struct arena *arena = &p->arena;
    const char **command = ARENA_ARRAY(arena, const char *, places->command.n + 1);
    BUF_SCOPED secret = {0};

    for (const char *c = name; *c; c++)
        buf_char(&secret, ascii_is_word(*c, "") ? ascii_to_upper(*c) : '_');
    buf_str(&secret, "_TOKEN");
    for (size_t i = 0; i < places->command.n; i++)
        command[i] = arena_span(arena, span_str(places->command.items[i])).p;
    p->name = arena_span(arena, span_str(name)).p;
    p->secret = arena_span(arena, buf_view(&secret)).p;
    if (places->directory)
        p->places.directory = arena_span(arena, span_str(places->directory)).p;
    p->places.command = (struct config_strings){command, places->command.n};
    p->signer = (struct http_signer){.token = token_of, .ready = is_ready, .refused = refused};
    list_init(&p->waits);
    return p;
}

void profile_free(struct profile *p)
{
    if (!p)
        return;
    stop_reading(p);
    buf_fini(&p->found);
    arena_fini(&p->arena);
    mem_free(p->token);
    mem_free(p);
}
