/* systemd's protocols for daemons (sd_listen_fds, sd_notify), which are a few variables and one
 * datagram each. Called by cmd/serve.c and listen.c. */
#include "io/service.h"

#include "base/log.h"
#include "base/mem.h"
#include "io/address.h"
#include "io/loop_uv.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    FIRST_SOCKET = 3, /* the numbers of handed-over sockets begin here */
    SOCKETS_MAX = 16,
};

struct service {
    struct loop *loop;
    int n_sockets;
    bool left[SOCKETS_MAX]; /* nobody took it so far */
    char *notify;           /* the manager's socket; NULL = it wants to hear nothing */
    uint64_t pause;         /* ms between two signs of life; 0 = none is wanted */
    struct timer beat;
};

/* The number in a variable that is meant for this process; 0 when there is none. */
static unsigned long long number_for_us(const char *name, const char *pid_name)
{
    const char *text = getenv(name), *pid = getenv(pid_name);

    if (!text || (pid && strtol(pid, NULL, 10) != (long)getpid()))
        return 0;
    return strtoull(text, NULL, 10);
}

static void forget_variables(void)
{
    static const char *const names[] = {"LISTEN_PID",    "LISTEN_FDS",   "LISTEN_FDNAMES",
                                        "NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC"};

    for (size_t i = 0; i < COUNT_OF(names); i++)
        unsetenv(names[i]);
}

struct service *service_new(struct loop *l)
{
    struct service *s = MEM_NEW(struct service);
    unsigned long long sockets =
        getenv("LISTEN_PID") ? number_for_us("LISTEN_FDS", "LISTEN_PID") : 0;
    const char *notify = getenv("NOTIFY_SOCKET");

    s->loop = l;
    s->n_sockets = (int)(sockets < SOCKETS_MAX ? sockets : SOCKETS_MAX);
    for (int i = 0; i < s->n_sockets; i++) {
        s->left[i] = true;
        fcntl(FIRST_SOCKET + i, F_SETFD, FD_CLOEXEC);
    }
    if (notify && (notify[0] == '/' || notify[0] == '@'))
        s->notify = mem_str(notify);
    s->pause = number_for_us("WATCHDOG_USEC", "WATCHDOG_PID") / 1000 / 2;
    forget_variables();
    l->service = s;
    return s;
}

void service_free(struct service *s)
{
    timer_clear(loop_timers(s->loop), &s->beat);
    s->loop->service = NULL;
    for (int i = 0; i < s->n_sockets; i++)
        if (s->left[i])
            close(FIRST_SOCKET + i);
    mem_free(s->notify);
    mem_free(s);
}

/* --- sockets --- */

/* Where a socket listens, in the words of the configuration. */
static void put_address(struct buf *out, int fd)
{
    struct sockaddr_storage sa = {0};
    socklen_t size = sizeof sa;
    char text[ADDRESS_TEXT_SIZE];

    out->n = 0;
    if (getsockname(fd, (struct sockaddr *)&sa, &size) < 0)
        return;
    if (sa.ss_family == AF_UNIX) {
        buf_printf(out, "unix:%s", ((const struct sockaddr_un *)&sa)->sun_path);
    } else if (sa.ss_family == AF_INET || sa.ss_family == AF_INET6) {
        address_format(&sa, text);
        buf_str(out, text);
    }
}

int service_take_socket(struct service *s, const char *address)
{
    BUF_SCOPED own = {0};

    for (int i = 0; s && i < s->n_sockets; i++) {
        put_address(&own, FIRST_SOCKET + i);
        if (s->left[i] && strcmp(buf_cstr(&own), address) == 0) {
            s->left[i] = false;
            return FIRST_SOCKET + i;
        }
    }
    return -1;
}

int service_check_sockets(const struct service *s, struct err *err)
{
    BUF_SCOPED own = {0};

    for (int i = 0; i < s->n_sockets; i++) {
        if (!s->left[i])
            continue;
        put_address(&own, FIRST_SOCKET + i);
        err_set(err, ERR_CONFIG,
                "the service manager handed over a socket on %s, where nothing is to be",
                own.n ? buf_cstr(&own) : "an unknown address");
        err_hint(err, "name that address in `listen` of the configuration, or take it out of the "
                      "socket unit");
        return ERR_CONFIG;
    }
    return 0;
}

/* --- words --- */

static void tell(const struct service *s, const char *word)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    size_t n = s->notify ? strlen(s->notify) : 0;

    if (!n || n >= sizeof sa.sun_path)
        return;
    memcpy(sa.sun_path, s->notify, n);
    if (sa.sun_path[0] == '@')
        sa.sun_path[0] = '\0'; /* a name without a file */
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
    if (fd < 0 || sendto(fd, word, strlen(word), MSG_NOSIGNAL, (struct sockaddr *)&sa, size) < 0)
        log_warn("service", "cannot tell the service manager %s: %s", word, strerror(errno));
    if (fd >= 0)
        close(fd);
}

static void on_beat(struct timer *t)
{
    struct service *s = CONTAINER_OF(t, struct service, beat);

    tell(s, "WATCHDOG=1");
    timer_set(loop_timers(s->loop), t, s->pause);
}

void service_ready(struct service *s)
{
    tell(s, "READY=1");
    s->beat.fire = on_beat;
    if (s->notify && s->pause)
        on_beat(&s->beat);
}

void service_stopping(struct service *s)
{
    tell(s, "STOPPING=1"); /* signs of life go on: stopping is work for the loop, too */
}
