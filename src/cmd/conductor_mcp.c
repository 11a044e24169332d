/* Connects to a port of the conductor and copies bytes between the port and standard input and
 * output; connects again when the connection breaks. Called by cmd/conductor.c and by
 * conductor_main.c, the small program. */
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

/* DRAIN_MS: how long to wait for further answers once the standard input has ended. */
enum { TRIES = 10, FIRST_WAIT_MS = 50, LONGEST_WAIT_MS = 1000, DRAIN_MS = 10 * 1000 };
enum { CHUNK = 64 * 1024 };

/* One direction: read from one descriptor, write to the other. */
struct way {
    int from, to;
    size_t n, at;  /* bytes in `bytes`, and how many of them are written */
    bool ended;    /* end of file was read */
    bool mid_line; /* the last written byte is no line end */
    bool skipping; /* dropping the rest of a line whose beginning is lost */
    char bytes[CHUNK];
};

struct carrier {
    int port, fd;
    int tries;      /* connections that failed or broke since the last byte came */
    bool mute;      /* writing to the socket failed; reading tells whether it is closed */
    bool told;      /* our side of the socket is shut down: the input has ended */
    struct way out; /* from the agent to the conductor */
    struct way in;  /* from the conductor to the agent */
    size_t n_first; /* bytes in `first`, sent before any byte came back; CHUNK + 1: too many */
    char first[CHUNK];
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

/* Sends the secret as the first line, which the port expects; false when that fails. */
static bool show_secret(int fd)
{
    const char *secret = getenv("RIALTO_BRIDGE_AUTH");
    char line[256];

    if (!secret)
        return true; /* a port without a secret */
    int n = snprintf(line, sizeof line, "%s\n", secret);
    return n < (int)sizeof line && write(fd, line, (size_t)n) == n;
}

static void wait_before(int attempt)
{
    long ms = FIRST_WAIT_MS;

    for (int i = 1; i < attempt && ms < LONGEST_WAIT_MS; i++)
        ms *= 2;
    ms = ms < LONGEST_WAIT_MS ? ms : LONGEST_WAIT_MS;
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static bool reach(struct carrier *c)
{
    while (c->tries < TRIES) {
        if (c->tries)
            wait_before(c->tries);
        c->tries++;
        int fd = try_connect(c->port);
        if (fd >= 0 && show_secret(fd)) {
            fcntl(fd, F_SETFL, O_NONBLOCK);
            c->fd = c->out.to = c->in.from = fd;
            c->mute = false;
            return true;
        }
        if (fd >= 0)
            close(fd);
    }
    fprintf(stderr, "conductor mcp: cannot connect to 127.0.0.1:%d: %s\n", c->port,
            strerror(errno));
    return false;
}

static bool is_passing(int error)
{
    return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

/* 0, or an errno when the descriptor is broken. */
static int fill(struct way *w)
{
    ssize_t n = read(w->from, w->bytes, sizeof w->bytes);

    if (n < 0)
        return is_passing(errno) ? 0 : errno;
    w->ended = n == 0;
    w->n = (size_t)n;
    w->at = 0;
    return 0;
}

static int drain(struct way *w)
{
    ssize_t n = write(w->to, w->bytes + w->at, w->n - w->at);

    if (n < 0)
        return is_passing(errno) ? 0 : errno;
    if (n > 0)
        w->mid_line = w->bytes[w->at + (size_t)n - 1] != '\n';
    w->at += (size_t)n;
    if (w->at == w->n)
        w->n = 0;
    return 0;
}

/* Drop what is left of a line whose beginning went into a connection that broke. */
static void skip_line(struct way *w)
{
    const char *end = w->n ? memchr(w->bytes + w->at, '\n', w->n - w->at) : NULL;

    w->skipping = !end;
    w->at = end ? (size_t)(end + 1 - w->bytes) : w->n;
    if (w->at == w->n)
        w->n = 0;
}

static void note_first(struct carrier *c, const char *bytes, size_t n)
{
    if (c->n_first + n <= CHUNK)
        memcpy(c->first + c->n_first, bytes, n);
    c->n_first = c->n_first + n <= CHUNK ? c->n_first + n : CHUNK + 1;
}

/* From the agent to the conductor. */
static void pump_out(struct carrier *c, short readable, short writable)
{
    struct way *w = &c->out;

    if (readable && !w->n && fill(w))
        w->ended = true;
    if (w->skipping)
        skip_line(w);
    if (!w->n || !(readable || writable))
        return;
    size_t at = w->at, n = w->n;
    if (drain(w))
        c->mute = true;
    else if (c->n_first <= CHUNK)
        note_first(c, w->bytes + at, (w->n ? w->at : n) - at);
}

/* From the conductor to the agent. An errno: the socket is broken; -1: the agent is gone. */
static int pump_in(struct carrier *c, short readable, short writable)
{
    struct way *w = &c->in;

    if (readable && !w->n) {
        int code = fill(w);
        if (code)
            return code;
        if (w->n) {
            c->tries = 0;
            c->n_first = CHUNK + 1; /* the conductor has read it: never send it again */
        }
    }
    return w->n && (readable || writable) && drain(w) ? -1 : 0;
}

/*
 * Connects again after the connection broke; both directions begin with a whole line. Only an
 * initialize request is sent again, and only if nothing came back yet.
 */
static bool reconnect(struct carrier *c)
{
    close(c->fd);
    c->fd = -1;
    if (c->in.mid_line) {
        c->in.bytes[0] = '\n';
        c->in.at = 0;
        c->in.n = 1;
    }
    if (!reach(c))
        return false;
    bool again = c->n_first && c->n_first <= CHUNK &&
                 memmem(c->first, c->n_first, "\"initialize\"", strlen("\"initialize\""));
    if (again && write(c->fd, c->first, c->n_first) == (ssize_t)c->n_first)
        return true;
    if (c->out.mid_line)
        skip_line(&c->out);
    c->out.mid_line = false;
    return true;
}

/* Once all of the standard input is sent: shuts our side down, and goes on reading. */
static void half_close(struct carrier *c)
{
    if (c->out.ended && !c->out.n && !c->told) {
        shutdown(c->fd, SHUT_WR);
        c->told = true;
    }
}

/* Waits for events and handles them. An exit status, or -1 to go on. */
static int turn(struct carrier *c)
{
    struct way *out = &c->out, *in = &c->in;
    struct pollfd polls[] = {
        {.fd = out->ended || out->n || c->mute ? -1 : out->from, .events = POLLIN},
        {.fd = out->n && !c->mute ? out->to : -1, .events = POLLOUT},
        {.fd = in->ended || in->n ? -1 : in->from, .events = POLLIN},
        {.fd = in->n ? in->to : -1, .events = POLLOUT},
    };
    int ready = poll(polls, 4, c->told ? DRAIN_MS : -1);

    if (ready < 0)
        return errno == EINTR ? -1 : 1;
    if (ready == 0)
        return 0; /* DRAIN_MS without another answer */
    pump_out(c, polls[0].revents, polls[1].revents);
    int code = pump_in(c, polls[2].revents, polls[3].revents);
    if (code < 0)
        return 1;
    if (code && out->ended)
        return 0; /* nothing is left to be sent, so there is no need to connect again */
    if (code) {
        fprintf(stderr, "conductor mcp: the connection broke (%s), trying again\n", strerror(code));
        return reconnect(c) ? -1 : 1;
    }
    half_close(c);
    return in->ended && !in->n ? 0 : -1;
}

int conductor_mcp(const char *port)
{
    static struct carrier c;
    char *end;
    long number = strtol(port, &end, 10);
    int status = -1;

    if (*end || end == port || number < 1 || number > 65535) {
        fprintf(stderr, "conductor mcp: '%s' is not a port\n", port);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    c.port = (int)number;
    c.out.from = STDIN_FILENO;
    c.in.to = STDOUT_FILENO;
    if (!reach(&c))
        return 1;
    /* An agent that does not read must not keep us from reading what it writes. */
    int flags = fcntl(STDOUT_FILENO, F_GETFL);
    fcntl(STDOUT_FILENO, F_SETFL, flags | O_NONBLOCK);
    while (status < 0)
        status = turn(&c);
    fcntl(STDOUT_FILENO, F_SETFL, flags);
    close(c.fd);
    return status;
}
