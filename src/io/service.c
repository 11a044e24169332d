/* systemd's protocols for daemons (sd_listen_fds, sd_notify), which are a few variables and one
 * datagram each. Called by cmd/serve.c, hub/upgrade.c, successor.c and listen.c. */
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

/* A socket that listens already. */
struct service_socket {
    struct list node;
    int fd;
    char *address;
    bool by_manager; /* false: handed over by the daemon before us */
    bool ours;
};

struct service {
    struct loop *loop;
    struct list left; /* of struct service_socket: those that nobody has taken */
    char *notify;     /* the manager's socket; NULL = it wants no messages */
    uint64_t pause;   /* ms between two signs of life; 0 = none is wanted */
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

static void put_address(struct buf *out, int fd);

static void add_socket(struct service *s, const struct service_socket *from)
{
    struct service_socket *socket = MEM_NEW(struct service_socket);

    *socket = *from;
    fcntl(socket->fd, F_SETFD, FD_CLOEXEC);
    list_append(&s->left, &socket->node);
}

static void drop_socket(struct service_socket *socket)
{
    list_remove(&socket->node);
    mem_free(socket->address);
    mem_free(socket);
}

static void take_from_manager(struct service *s)
{
    unsigned long long n = getenv("LISTEN_PID") ? number_for_us("LISTEN_FDS", "LISTEN_PID") : 0;

    for (int i = 0; i < SOCKETS_MAX && (unsigned long long)i < n; i++) {
        struct buf own = {0};
        put_address(&own, FIRST_SOCKET + i);
        add_socket(s, &(struct service_socket){
                          .fd = FIRST_SOCKET + i, .address = buf_take(&own), .by_manager = true});
    }
}

struct service *service_new(struct loop *l)
{
    struct service *s = MEM_NEW(struct service);
    const char *notify = getenv("NOTIFY_SOCKET");

    s->loop = l;
    list_init(&s->left);
    take_from_manager(s);
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
    LIST_EACH_SAFE (&s->left, it) {
        struct service_socket *socket = LIST_ENTRY(it, struct service_socket, node);
        close(socket->fd);
        drop_socket(socket);
    }
    mem_free(s->notify);
    mem_free(s);
}

/* --- sockets --- */

/* The address that a socket listens on, written as in the configuration. */
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

int service_take_socket(struct service *s, const char *address, bool *ours)
{
    if (!s)
        return -1;
    LIST_EACH (&s->left, it) {
        struct service_socket *socket = LIST_ENTRY(it, struct service_socket, node);
        int fd = socket->fd;
        if (strcmp(socket->address, address) != 0)
            continue;
        *ours = socket->ours;
        drop_socket(socket);
        return fd;
    }
    return -1;
}

bool service_has_socket(const struct service *s, const char *address)
{
    if (!s)
        return false;
    LIST_EACH (&s->left, it)
        if (strcmp(LIST_ENTRY(it, struct service_socket, node)->address, address) == 0)
            return true;
    return false;
}

void service_give_socket(struct service *s, const char *address, int fd, bool ours)
{
    add_socket(s, &(struct service_socket){.fd = fd, .address = mem_str(address), .ours = ours});
}

/* A socket that is left of the daemon before us is no error: its address was taken out of the
 * configuration. */
int service_check_sockets(const struct service *s, struct err *err)
{
    LIST_EACH (&s->left, it) {
        const struct service_socket *socket = LIST_ENTRY(it, struct service_socket, node);
        if (!socket->by_manager)
            continue;
        err_set(err, ERR_CONFIG,
                "the service manager handed over a socket on %s, where nothing is to be",
                *socket->address ? socket->address : "an unknown address");
        err_hint(err, "name that address in `listen` of the configuration, or take it out of the "
                      "socket unit");
        return ERR_CONFIG;
    }
    return 0;
}

/* --- messages to the manager --- */

static void tell(const struct service *s, const char *word)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    size_t n = s->notify ? strlen(s->notify) : 0;

    if (!n || n >= sizeof sa.sun_path)
        return;
    memcpy(sa.sun_path, s->notify, n);
    if (sa.sun_path[0] == '@')
        sa.sun_path[0] = '\0'; /* an abstract socket, which has no file */
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

void service_restore_variables(const struct service *s)
{
    char text[24];

    if (s->notify)
        setenv("NOTIFY_SOCKET", s->notify, 1);
    snprintf(text, sizeof text, "%llu", (unsigned long long)s->pause * 2 * 1000);
    if (s->pause)
        setenv("WATCHDOG_USEC", text, 1);
}

void service_fall_silent(struct service *s)
{
    timer_clear(loop_timers(s->loop), &s->beat);
    mem_free(s->notify);
    s->notify = NULL;
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
    tell(s, "STOPPING=1"); /* WATCHDOG=1 is still sent: the loop still runs */
}
