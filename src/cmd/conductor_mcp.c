/* Connects to a port of the conductor and copies bytes between it and standard input and output.
 * Called by cmd/conductor.c and by conductor_main.c, the small program. */
#include "cmd/conductor_mcp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* DRAIN: how long answers may still take once the input has ended and nothing comes any more. */
enum { TRIES = 10, FIRST_WAIT_MS = 50, LONGEST_WAIT_MS = 1000, DRAIN_MS = 10 * 1000 };

/* One direction: read from one descriptor, write to the other. */
struct way {
    int from, to;
    size_t n, at; /* bytes in `bytes`, and how many of them are written */
    bool ended;   /* nothing more comes */
    char bytes[64 * 1024];
};

static int try_connect(int port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int one = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0)
        return -1;
    if (connect(fd, (struct sockaddr *)&to, sizeof to) < 0) {
        close(fd);
        return -1;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

/* The first line that the port wants; false when it cannot be sent. */
static bool show_secret(int fd)
{
    const char *secret = getenv("RIALTO_BRIDGE_AUTH");
    char line[256];

    if (!secret)
        return true; /* an open port */
    int n = snprintf(line, sizeof line, "%s\n", secret);
    return n < (int)sizeof line && write(fd, line, (size_t)n) == n;
}

static int connect_patiently(int port)
{
    long wait = FIRST_WAIT_MS;

    for (int i = 0; i < TRIES; i++) {
        int fd = try_connect(port);
        if (fd >= 0 && show_secret(fd))
            return fd;
        if (fd >= 0)
            close(fd);
        if (i + 1 == TRIES)
            break;
        struct timespec ts = {wait / 1000, wait % 1000 * 1000000};
        nanosleep(&ts, NULL);
        wait = wait * 2 < LONGEST_WAIT_MS ? wait * 2 : LONGEST_WAIT_MS;
    }
    fprintf(stderr, "conductor mcp: cannot connect to 127.0.0.1:%d: %s\n", port, strerror(errno));
    return -1;
}

static bool is_passing(int error)
{
    return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

/* false when the pipe broke. */
static bool pump(struct way *w, short readable, short writable)
{
    if (readable && w->n == 0) {
        ssize_t n = read(w->from, w->bytes, sizeof w->bytes);
        if (n < 0 && !is_passing(errno))
            n = 0; /* a reset is an end, too */
        else if (n < 0)
            return true;
        w->ended = n == 0;
        w->n = (size_t)n;
        w->at = 0;
    }
    if (w->n && (writable || readable)) {
        ssize_t n = write(w->to, w->bytes + w->at, w->n - w->at);
        if (n < 0)
            return is_passing(errno);
        w->at += (size_t)n;
        if (w->at == w->n)
            w->n = 0;
    }
    return true;
}

/* The standard input has ended and all of it is sent: tell the other side, but hear it out. */
static void half_close(struct way *out, bool *told)
{
    if (out->ended && !out->n && !*told) {
        shutdown(out->to, SHUT_WR);
        *told = true;
    }
}

static int carry(int fd)
{
    static struct way out, in;
    bool told = false;

    out = (struct way){.from = STDIN_FILENO, .to = fd};
    in = (struct way){.from = fd, .to = STDOUT_FILENO};
    while (!in.ended || in.n) {
        struct pollfd polls[] = {
            {.fd = out.ended || out.n ? -1 : out.from, .events = POLLIN},
            {.fd = out.n ? out.to : -1, .events = POLLOUT},
            {.fd = in.ended || in.n ? -1 : in.from, .events = POLLIN},
            {.fd = in.n ? in.to : -1, .events = POLLOUT},
        };
        int ready = poll(polls, 4, told ? DRAIN_MS : -1);
        if (ready < 0 && errno != EINTR)
            return 1;
        if (ready == 0)
            return 0; /* nobody has anything to say any more */
        if (ready < 0)
            continue;
        if (!pump(&out, polls[0].revents, polls[1].revents)) {
            out.ended = true; /* the conductor is gone: what it has sent is still passed on */
            out.n = 0;
        }
        if (!pump(&in, polls[2].revents, polls[3].revents))
            return 1;
        half_close(&out, &told);
    }
    return 0;
}

int conductor_mcp(const char *port)
{
    char *end;
    long number = strtol(port, &end, 10);

    if (*end || end == port || number < 1 || number > 65535) {
        fprintf(stderr, "conductor mcp: '%s' is no port\n", port);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    int fd = connect_patiently((int)number);
    if (fd < 0)
        return 1;
    /* A reader that does not read must not keep us from reading what it writes. */
    int flags = fcntl(STDOUT_FILENO, F_GETFL);
    fcntl(STDOUT_FILENO, F_SETFL, flags | O_NONBLOCK);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    int code = carry(fd);
    fcntl(STDOUT_FILENO, F_SETFL, flags);
    close(fd);
    return code;
}
