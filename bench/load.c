/*
 * The load generator: keep-alive tools/call POSTs on N connections, each sending its next call as
 * soon as the last one is answered.
 *
 *   load [options] URL      -c CONNECTIONS -p PAYLOAD_BYTES -s SECONDS -n CALLS -t TOOL
 *                           -r  raw: no MCP handshake first (for the floor)
 *
 * Prints one line of "key=value" words: calls, errors, rate (calls/s), p50 and p99 (microseconds).
 * Answers may be plain (Content-Length) or chunked; an answer counts when its status is 200.
 */
#include "bytes.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { MAX_CONNECTIONS = 1024, BLOCK = 256 * 1024, ID_DIGITS = 10 };

struct connection {
    int fd;
    struct bytes front; /* head and beginning of the body, with this call's id in it */
    size_t sent;        /* of front and the shared rest together */
    uint64_t began;     /* ns */
    bool writing;       /* EPOLLOUT is asked for */

    /* the answer */
    struct bytes in; /* head, or an incomplete chunk header */
    bool in_body, chunked, failed;
    uint64_t left; /* bytes of the body or chunk still to come */
};

struct load {
    const char *tool, *path;
    struct sockaddr_in address;
    char session[256];
    int connections;
    long payload, calls;
    double seconds;
    bool raw;

    int epoll;
    struct bytes rest; /* of the request, the same for all */
    size_t id_at;      /* offset of the id in front */
    uint64_t next_id, end;
    long started, done, errors;
    uint32_t *latencies; /* us */
    size_t n_latencies, cap_latencies;
    char block[BLOCK];
    struct connection all[MAX_CONNECTIONS];
};

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void die(const char *what)
{
    fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int connect_to(const struct load *l)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&l->address, sizeof(l->address)) != 0)
        die("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    return fd;
}

static void put_head(struct bytes *out, const struct load *l, size_t body)
{
    char head[1024];
    int n = snprintf(head, sizeof(head),
                     "POST %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n"
                     "Accept: application/json, text/event-stream\r\n%s%s%s"
                     "Content-Length: %zu\r\n\r\n",
                     l->path, ntohs(l->address.sin_port), *l->session ? "Mcp-Session-Id: " : "",
                     l->session, *l->session ? "\r\n" : "", body);
    bytes_add(out, head, (size_t)n);
}

/* --- the MCP handshake, on a connection of its own --- */

/* Sends one message and reads until the answer's head is there; the body is left unread. */
static void handshake_step(struct load *l, const char *body, char *head, size_t size)
{
    struct bytes request = {0};
    put_head(&request, l, strlen(body));
    bytes_add_text(&request, body);
    int fd = connect_to(l);
    if (write(fd, request.p, request.n) != (ssize_t)request.n)
        die("handshake");
    size_t n = 0;
    head[0] = 0;
    while (!strstr(head, "\r\n\r\n") && n + 1 < size) {
        ssize_t got = read(fd, head + n, size - n - 1);
        if (got <= 0)
            die("handshake answer");
        n += (size_t)got;
        head[n] = 0;
    }
    close(fd);
    free(request.p);
    if (strncmp(head, "HTTP/1.1 20", 11) != 0) {
        fprintf(stderr, "load: handshake refused: %s\n", head);
        exit(1);
    }
}

static void handshake(struct load *l)
{
    char head[8192];
    handshake_step(l,
                   "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":"
                   "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":"
                   "{\"name\":\"load\",\"version\":\"1\"}}}",
                   head, sizeof(head));
    char *id = strcasestr(head, "\r\nmcp-session-id:");
    if (id) {
        id += strlen("\r\nmcp-session-id:");
        id += strspn(id, " ");
        snprintf(l->session, sizeof(l->session), "%.*s", (int)strcspn(id, "\r"), id);
    }
    handshake_step(l, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}", head,
                   sizeof(head));
}

/* --- requests --- */

static void build_request(struct load *l)
{
    char open[512];
    int n = snprintf(open, sizeof(open),
                     "{\"jsonrpc\":\"2.0\",\"id\":%0*d,\"method\":\"tools/call\",\"params\":"
                     "{\"name\":\"%s\",\"arguments\":{\"message\":\"",
                     ID_DIGITS, 0, l->tool);
    char *payload = malloc((size_t)l->payload);
    if (!payload)
        die("malloc");
    memset(payload, 'x', (size_t)l->payload);
    bytes_add(&l->rest, payload, (size_t)l->payload);
    bytes_add_text(&l->rest, "\"}}}");
    free(payload);
    struct bytes front = {0};
    put_head(&front, l, (size_t)n + l->rest.n);
    l->id_at = front.n + strlen("{\"jsonrpc\":\"2.0\",\"id\":");
    bytes_add(&front, open, (size_t)n);
    for (int i = 0; i < l->connections; i++)
        bytes_add(&l->all[i].front, front.p, front.n);
    free(front.p);
}

static void watch(struct load *l, struct connection *c, int op)
{
    struct epoll_event e = {.events = EPOLLIN | (c->writing ? EPOLLOUT : 0), .data.ptr = c};
    if (epoll_ctl(l->epoll, op, c->fd, &e) != 0)
        die("epoll_ctl");
}

static void send_more(struct load *l, struct connection *c)
{
    size_t total = c->front.n + l->rest.n;
    while (c->sent < total) {
        size_t in_front = c->sent < c->front.n ? c->front.n - c->sent : 0;
        size_t in_rest = c->sent > c->front.n ? c->sent - c->front.n : 0;
        struct iovec parts[2] = {{c->front.p + c->front.n - in_front, in_front},
                                 {l->rest.p + in_rest, l->rest.n - in_rest}};
        ssize_t n = writev(c->fd, parts, 2);
        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0)
            die("write");
        c->sent += (size_t)n;
    }
    if (c->writing != (c->sent < total)) {
        c->writing = !c->writing;
        watch(l, c, EPOLL_CTL_MOD);
    }
}

static void start_call(struct load *l, struct connection *c)
{
    uint64_t now = now_ns();
    if ((l->calls && l->started >= l->calls) || (!l->calls && now >= l->end))
        return;
    l->started++;
    uint64_t id = l->next_id++;
    for (int i = ID_DIGITS - 1; i >= 0; i--, id /= 10)
        c->front.p[l->id_at + (size_t)i] = (char)('0' + id % 10);
    c->sent = 0;
    c->began = now;
    send_more(l, c);
}

/* --- answers --- */

static void end_call(struct load *l, struct connection *c)
{
    if (l->n_latencies == l->cap_latencies) {
        l->cap_latencies = l->cap_latencies ? l->cap_latencies * 2 : 65536;
        l->latencies = realloc(l->latencies, l->cap_latencies * sizeof(*l->latencies));
        if (!l->latencies)
            die("realloc");
    }
    l->latencies[l->n_latencies++] = (uint32_t)((now_ns() - c->began) / 1000);
    l->done++;
    l->errors += c->failed;
    c->in_body = c->chunked = c->failed = false;
    c->left = 0;
    start_call(l, c);
}

/* The head is complete in c->in: finds out how long the body is. */
static void take_head(struct connection *c)
{
    bytes_add(&c->in, "", 1);
    c->failed = strncmp(c->in.p, "HTTP/1.1 200", 12) != 0;
    char *length = strcasestr(c->in.p, "\r\ncontent-length:");
    c->chunked = !length && strcasestr(c->in.p, "\r\ntransfer-encoding: chunked");
    c->left = length ? strtoull(length + 17, NULL, 10) : 0;
    c->in_body = true;
    c->in.n = 0;
}

/* c->in is the line with a chunk's size. True for the last chunk. */
static bool take_chunk_head(struct connection *c)
{
    bytes_add(&c->in, "", 1);
    uint64_t size = strtoull(c->in.p, NULL, 16);
    c->in.n = 0;
    c->left = size + 2; /* with the line end after it; an empty line follows the last chunk */
    return size == 0;
}

/* Copies bytes up to the end of `mark` to c->in; returns how many, *found tells if `mark` came. */
static size_t collect(struct connection *c, const char *p, size_t n, const char *mark, bool *found)
{
    size_t before = c->in.n, m = strlen(mark);
    size_t from = before >= m ? before - m + 1 : 0;
    size_t some = n < 8192 ? n : 8192;
    bytes_add(&c->in, p, some);
    char *at = memmem(c->in.p + from, c->in.n - from, mark, m);
    *found = at != NULL;
    if (!at)
        return some;
    c->in.n = (size_t)(at - c->in.p) + m;
    return c->in.n - before;
}

static void take_bytes(struct load *l, struct connection *c, const char *p, size_t n)
{
    bool last_chunk = false;
    while (n > 0) {
        size_t used;
        if (c->left > 0) {
            used = c->left < n ? (size_t)c->left : n;
            c->left -= used;
        } else {
            bool found;
            used = collect(c, p, n, c->in_body ? "\r\n" : "\r\n\r\n", &found);
            if (found && !c->in_body)
                take_head(c);
            else if (found)
                last_chunk = take_chunk_head(c);
        }
        p += used;
        n -= used;
        if (c->in_body && c->left == 0 && (!c->chunked || last_chunk))
            end_call(l, c);
    }
}

static void connection_ready(struct load *l, struct connection *c, uint32_t events)
{
    if (events & EPOLLOUT)
        send_more(l, c);
    if (!(events & ~(uint32_t)EPOLLOUT))
        return;
    ssize_t n = read(c->fd, l->block, BLOCK);
    if (n == 0) {
        fprintf(stderr, "load: a connection was closed\n");
        exit(1);
    }
    if (n > 0)
        take_bytes(l, c, l->block, (size_t)n);
    else if (errno != EAGAIN)
        die("read");
}

/* --- the run --- */

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void run(struct load *l)
{
    uint64_t began = now_ns();
    l->end = began + (uint64_t)(l->seconds * 1e9);
    l->next_id = 1000000000;
    for (int i = 0; i < l->connections; i++) {
        struct connection *c = &l->all[i];
        c->fd = connect_to(l);
        fcntl(c->fd, F_SETFL, O_NONBLOCK);
        watch(l, c, EPOLL_CTL_ADD);
        start_call(l, c);
    }
    while (l->done < l->started) {
        struct epoll_event events[64];
        int n = epoll_wait(l->epoll, events, 64, 20000);
        if (n == 0) {
            fprintf(stderr, "load: no answer for 20 s (%ld of %ld)\n", l->done, l->started);
            exit(1);
        }
        for (int i = 0; i < n; i++)
            connection_ready(l, events[i].data.ptr, events[i].events);
    }
    double took = (double)(now_ns() - began) / 1e9;
    qsort(l->latencies, l->n_latencies, sizeof(*l->latencies), by_value);
    size_t n = l->n_latencies;
    printf("calls=%ld errors=%ld rate=%.0f p50=%u p99=%u\n", l->done, l->errors,
           (double)l->done / took, n ? l->latencies[n / 2] : 0, n ? l->latencies[n * 99 / 100] : 0);
}

static void read_options(struct load *l, int argc, char **argv)
{
    for (int opt; (opt = getopt(argc, argv, "c:p:s:n:t:r")) != -1;) {
        switch (opt) {
        case 'c':
            l->connections = atoi(optarg);
            break;
        case 'p':
            l->payload = atol(optarg);
            break;
        case 's':
            l->seconds = atof(optarg);
            break;
        case 'n':
            l->calls = atol(optarg);
            break;
        case 't':
            l->tool = optarg;
            break;
        case 'r':
            l->raw = true;
            break;
        default:
            exit(2);
        }
    }
    int port;
    if (optind + 1 != argc || l->connections < 1 || l->connections > MAX_CONNECTIONS ||
        sscanf(argv[optind], "http://127.0.0.1:%d", &port) != 1) {
        fprintf(stderr, "usage: load [-c N] [-p BYTES] [-s SECONDS | -n CALLS] [-t TOOL] [-r] "
                        "http://127.0.0.1:PORT/PATH\n");
        exit(2);
    }
    char *path = strchr(argv[optind] + 7, '/');
    l->path = path ? path : "/mcp";
    l->address = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    l->address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
}

int main(int argc, char **argv)
{
    static struct load l = {.tool = "echo", .connections = 1, .payload = 64, .seconds = 1};
    signal(SIGPIPE, SIG_IGN);
    read_options(&l, argc, argv);
    l.epoll = epoll_create1(0);
    if (!l.raw)
        handshake(&l);
    build_request(&l);
    run(&l);
    for (int i = 0; i < l.connections; i++) {
        free(l.all[i].front.p);
        free(l.all[i].in.p);
        close(l.all[i].fd);
    }
    free(l.rest.p);
    free(l.latencies);
    return l.errors ? 1 : 0;
}
