/*
 * The floor: relays HTTP requests to the stdin of a child and its stdout back, without any MCP.
 *
 *   floor PORT COMMAND [ARGS]     prints "listening on http://127.0.0.1:PORT"; 0 is any free port
 *
 * It finds the end of a request by its Content-Length, passes the body on as one line, and gives
 * the child's next line to the connection that has waited longest. It parses no JSON, keeps no ids
 * and checks nothing, so it shows what the sockets and pipes alone cost on this machine.
 */
#include "bytes.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* A connection, or one of the child's two pipes. */
struct end {
    int fd;
    bool writing; /* EPOLLOUT is asked for */
    struct bytes in, out;
    size_t sent; /* of out */
    size_t body; /* length of the request's body, once the head is complete */
    size_t head; /* length of the head, 0 before */
};

enum { MAX_FDS = 4096, BLOCK = 256 * 1024 };

struct floor {
    int epoll, listener;
    struct end to_child, from_child;
    struct end *connections[MAX_FDS];
    int waiting[MAX_FDS]; /* ring of connections in the order of their requests */
    unsigned first, last;
    char block[BLOCK];
};

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void watch(struct floor *f, int fd, int op, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.fd = fd};
    if (epoll_ctl(f->epoll, op, fd, &e) != 0)
        die("epoll_ctl");
}

/* Writes as much as possible now, the rest when the descriptor is ready again. */
static void flush(struct floor *f, struct end *e)
{
    while (e->sent < e->out.n) {
        ssize_t n = write(e->fd, e->out.p + e->sent, e->out.n - e->sent);
        if (n < 0)
            break;
        e->sent += (size_t)n;
    }
    bool more = e->sent < e->out.n;
    if (!more || e->sent > e->out.n / 2) { /* a queue that is never empty must not grow for ever */
        bytes_drop(&e->out, e->sent);
        e->sent = 0;
    }
    if (more != e->writing) {
        e->writing = more;
        uint32_t in = e == &f->to_child ? 0 : EPOLLIN;
        watch(f, e->fd, EPOLL_CTL_MOD, in | (more ? EPOLLOUT : 0));
    }
}

/* Queues every complete request that has arrived on the connection for the child. */
static void take_requests(struct floor *f, struct end *c)
{
    size_t used = 0;
    for (;;) {
        char *at = c->in.p + used;
        size_t left = c->in.n - used;
        if (!c->head) {
            char *blank = memmem(at, left, "\r\n\r\n", 4);
            if (!blank)
                break;
            c->head = (size_t)(blank - at) + 4;
            char *length = memmem(at, c->head, "Content-Length: ", 16);
            c->body = length ? strtoul(length + 16, NULL, 10) : 0;
        }
        if (left < c->head + c->body)
            break;
        bytes_add(&f->to_child.out, at + c->head, c->body);
        bytes_add(&f->to_child.out, "\n", 1);
        f->waiting[f->last++ % MAX_FDS] = c->fd;
        used += c->head + c->body;
        c->head = 0;
    }
    bytes_drop(&c->in, used);
}

/* Sends every complete line of the child to the connection that has waited longest. */
static void take_lines(struct floor *f, size_t seen)
{
    struct bytes *in = &f->from_child.in;
    size_t from = 0;
    for (char *nl; (nl = memchr(in->p + seen, '\n', in->n - seen)); seen = from) {
        size_t length = (size_t)(nl - in->p) - from;
        struct end *c = f->connections[f->waiting[f->first++ % MAX_FDS]];
        if (c) {
            char head[128];
            int n = snprintf(head, sizeof(head),
                             "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                             "Content-Length: %zu\r\n\r\n",
                             length);
            bytes_add(&c->out, head, (size_t)n);
            bytes_add(&c->out, in->p + from, length);
            flush(f, c);
        }
        from += length + 1;
    }
    bytes_drop(in, from);
}

static void connection_close(struct floor *f, struct end *c)
{
    f->connections[c->fd] = NULL;
    close(c->fd);
    free(c->in.p);
    free(c->out.p);
    free(c);
}

static void accept_all(struct floor *f)
{
    for (int fd; (fd = accept4(f->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) {
        struct end *c = calloc(1, sizeof(*c));
        if (!c || fd >= MAX_FDS)
            die("accept");
        c->fd = fd;
        f->connections[fd] = c;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
        watch(f, fd, EPOLL_CTL_ADD, EPOLLIN);
    }
}

static void connection_ready(struct floor *f, struct end *c, uint32_t events)
{
    if (events & EPOLLOUT)
        flush(f, c);
    if (!(events & ~(uint32_t)EPOLLOUT))
        return;
    ssize_t n = read(c->fd, f->block, BLOCK);
    if (n > 0) {
        bytes_add(&c->in, f->block, (size_t)n);
        take_requests(f, c);
    } else if (n == 0 || errno != EAGAIN) {
        connection_close(f, c);
    }
}

static void child_ready(struct floor *f)
{
    size_t seen = f->from_child.in.n;
    ssize_t n = read(f->from_child.fd, f->block, BLOCK);
    if (n == 0)
        exit(0);
    if (n > 0) {
        bytes_add(&f->from_child.in, f->block, (size_t)n);
        take_lines(f, seen);
    }
}

static void start_child(struct floor *f, char **argv)
{
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0)
        die("pipe");
    pid_t pid = fork();
    if (pid < 0)
        die("fork");
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(in[0], 0);
        dup2(out[1], 1);
        execvp(argv[0], argv);
        die(argv[0]);
    }
    close(in[0]);
    close(out[1]);
    f->to_child.fd = in[1];
    f->from_child.fd = out[0];
    fcntl(in[1], F_SETFL, O_NONBLOCK);
    fcntl(out[0], F_SETFL, O_NONBLOCK);
    watch(f, in[1], EPOLL_CTL_ADD, 0);
    watch(f, out[0], EPOLL_CTL_ADD, EPOLLIN);
}

static void start_listening(struct floor *f, int port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    socklen_t size = sizeof(a);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    f->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (bind(f->listener, (struct sockaddr *)&a, size) != 0 || listen(f->listener, 512) != 0 ||
        getsockname(f->listener, (struct sockaddr *)&a, &size) != 0)
        die("listen");
    watch(f, f->listener, EPOLL_CTL_ADD, EPOLLIN);
    fprintf(stderr, "listening on http://127.0.0.1:%d\n", ntohs(a.sin_port));
}

int main(int argc, char **argv)
{
    static struct floor f;
    if (argc < 3) {
        fprintf(stderr, "usage: floor PORT COMMAND [ARGS]\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    f.epoll = epoll_create1(EPOLL_CLOEXEC);
    start_child(&f, argv + 2);
    start_listening(&f, atoi(argv[1]));
    for (;;) {
        struct epoll_event events[64];
        int n = epoll_wait(f.epoll, events, 64, -1);
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            if (fd == f.listener)
                accept_all(&f);
            else if (fd == f.from_child.fd)
                child_ready(&f);
            else if (fd == f.to_child.fd)
                flush(&f, &f.to_child);
            else if (f.connections[fd])
                connection_ready(&f, f.connections[fd], events[i].events);
        }
        flush(&f, &f.to_child); /* once for all requests of this round */
    }
}
