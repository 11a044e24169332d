/*
 * The parts of a chain for the conductor's measurements, one program in six roles:
 *   bench_acp_parts load REQUESTS WINDOW SIZE COMMAND...   a client; prints requests/s, p50 and p99
 *   bench_acp_parts agent                                  answers every request with its params
 *   bench_acp_parts proxy                                  a proxy (P3) that passes everything on
 *   bench_acp_parts relay COMMAND...                       passes bytes both ways: the floor
 *   bench_acp_parts first TIMES COMMAND...                 starts COMMAND PORT; time to its first
 *                                                          byte (p50, p99), and its memory
 *   bench_acp_parts greet TIMES COMMAND...                 starts COMMAND; time to its answer to
 *                                                          initialize (p50, p99)
 *
 * It reads only messages that it has written itself, in which conductors replace the ids, so it
 * finds members by plain text search.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void write_all(int fd, const char *p, size_t n)
{
    while (n) {
        ssize_t done = write(fd, p, n);
        if (done < 0)
            die("write");
        p += done;
        n -= (size_t)done;
    }
}

/* Bytes that were read and not handled yet. */
struct reader {
    char *p;
    size_t n, cap;
};

static bool fill(struct reader *r, int fd)
{
    if (r->cap - r->n < 65536) {
        r->cap = r->cap * 2 + 131072;
        r->p = realloc(r->p, r->cap);
        if (!r->p)
            die("realloc");
    }
    ssize_t n = read(fd, r->p + r->n, r->cap - r->n);
    if (n <= 0)
        return false;
    r->n += (size_t)n;
    return true;
}

/* Start a program with pipes. */
static pid_t start(char **argv, int *to, int *from)
{
    int in[2], out[2];

    if (pipe(in) < 0 || pipe(out) < 0)
        die("pipe");
    pid_t pid = fork();
    if (pid < 0)
        die("fork");
    if (pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        close(in[0]), close(in[1]), close(out[0]), close(out[1]);
        execvp(argv[0], argv);
        die(argv[0]);
    }
    close(in[0]);
    close(out[1]);
    *to = in[1];
    *from = out[0];
    return pid;
}

/* --- agent and proxy --- */

static size_t answer_line(char *out, const char *line, size_t n)
{
    const char *params = memmem(line, n, "\"params\":", 9);
    const char *id = strstr(line, "\"id\":") + 5; /* echoed as text: some conductors use strings */
    int id_length = (int)strcspn(id, ",}");
    bool hello = memmem(line, n, "\"initialize\"", 12) != NULL;
    size_t at = (size_t)sprintf(out, "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":", id_length, id);

    if (hello) {
        at += (size_t)sprintf(out + at, "{\"protocolVersion\":1}");
    } else {
        size_t length = (size_t)(line + n - 1 - (params + 9));
        memcpy(out + at, params + 9, length);
        at += length;
    }
    out[at++] = '}';
    return at;
}

static size_t pass_line(char *out, const char *line, size_t n)
{
    static const char envelope[] = "\"method\":\"proxy/successor\",\"params\":{";
    const char *method = memmem(line, n, "\"method\":\"", 10);

    if (!method) { /* a response: this proxy uses the same ids on both sides */
        memcpy(out, line, n);
        return n;
    }
    size_t head = (size_t)(method - line), at = head;
    memcpy(out, line, head);
    memcpy(out + at, envelope, sizeof envelope - 1);
    at += sizeof envelope - 1;
    if (memcmp(method + 10, "proxy/initialize", 16) == 0) {
        at += (size_t)sprintf(out + at, "\"method\":\"");
        method += 16; /* "proxy/" is left out */
        memcpy(out + at, method, (size_t)(line + n - method));
        at += (size_t)(line + n - method);
    } else {
        memcpy(out + at, method, (size_t)(line + n - method));
        at += (size_t)(line + n - method);
    }
    out[at++] = '}';
    return at;
}

static int serve(size_t (*handle)(char *out, const char *line, size_t n))
{
    struct reader r = {0};
    char *out = NULL;
    size_t cap = 0;

    while (fill(&r, 0)) {
        size_t done = 0, at = 0;
        if (cap < r.n * 4 + 65536) {
            cap = r.n * 4 + 65536;
            out = realloc(out, cap);
        }
        for (char *end; (end = memchr(r.p + done, '\n', r.n - done));) {
            *end = '\0';
            at += handle(out + at, r.p + done, (size_t)(end - (r.p + done)));
            out[at++] = '\n';
            done = (size_t)(end + 1 - r.p);
        }
        memmove(r.p, r.p + done, r.n - done);
        r.n -= done;
        write_all(1, out, at);
    }
    free(out);
    free(r.p);
    return 0;
}

/* --- the floor --- */

static int relay(char **argv)
{
    static char bytes[65536];
    int to, from;
    pid_t pid = start(argv, &to, &from);
    struct pollfd fds[] = {{.fd = 0, .events = POLLIN}, {.fd = from, .events = POLLIN}};

    for (;;) {
        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            die("poll");
        for (int i = 0; i < 2; i++) {
            if (!fds[i].revents)
                continue;
            ssize_t n = read(fds[i].fd, bytes, sizeof bytes);
            if (n > 0) {
                write_all(i ? 1 : to, bytes, (size_t)n);
            } else if (i == 0) {
                close(to);
                fds[0].fd = -1;
            } else {
                waitpid(pid, NULL, 0);
                return 0;
            }
        }
    }
}

/* --- the client --- */

static uint64_t now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

static size_t put_request(char *out, size_t id, const char *padding)
{
    return (size_t)sprintf(out,
                           "{\"jsonrpc\":\"2.0\",\"id\":%zu,\"method\":\"_bench/echo\","
                           "\"params\":{\"t\":\"%s\"}}\n",
                           id, padding);
}

static const char hello[] = "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\","
                            "\"params\":{\"protocolVersion\":1}}\n";

static int load(size_t requests, size_t window, size_t size, char **argv)
{
    char *padding = malloc(size + 1), *line = malloc(size + 128);
    uint64_t *sent_at = calloc(requests + 1, sizeof *sent_at), begin = 0;
    uint32_t *took = calloc(requests + 1, sizeof *took);
    size_t sent = 0, got = 0;
    struct reader r = {0};
    int to, from;
    pid_t pid = start(argv, &to, &from);

    memset(padding, 'x', size);
    padding[size] = '\0';
    write_all(to, hello, sizeof hello - 1);
    while (got < requests && fill(&r, from)) {
        size_t done = 0;
        for (char *end; (end = memchr(r.p + done, '\n', r.n - done));) {
            *end = '\0';
            size_t id = strtoull(strstr(r.p + done, "\"id\":") + 5, NULL, 10);
            uint64_t now = now_ns();
            if (id == 0)
                begin = now;
            else
                took[got++] = (uint32_t)((now - sent_at[id]) / 1000);
            done = (size_t)(end + 1 - r.p);
        }
        memmove(r.p, r.p + done, r.n - done);
        r.n -= done;
        while (begin && sent < requests && sent - got < window) {
            sent_at[++sent] = now_ns();
            write_all(to, line, put_request(line, sent, padding));
        }
    }
    double seconds = (double)(now_ns() - begin) / 1e9;
    close(to);
    waitpid(pid, NULL, 0);
    qsort(took, got, sizeof *took, by_size);
    printf("%.0f %u %u\n", (double)got / seconds, took[got / 2], took[got * 99 / 100]);
    return got == requests ? 0 : 1;
}

/* --- the first byte --- */

static int listen_anywhere(char port[8])
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&at, size) < 0 || listen(fd, 8) < 0 ||
        getsockname(fd, (struct sockaddr *)&at, &size) < 0)
        die("listen");
    snprintf(port, 8, "%u", ntohs(at.sin_port));
    return fd;
}

static unsigned memory_of(pid_t pid)
{
    char path[64], line[256];
    unsigned kib = 0;

    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *status = fopen(path, "r");
    while (status && fgets(line, sizeof line, status))
        if (sscanf(line, "VmHWM: %u", &kib) == 1)
            break;
    if (status)
        fclose(status);
    return kib;
}

/* The time from starting COMMAND until the byte on its stdin arrives at the port. */
static int first_byte(size_t times, char **argv, int argc)
{
    char port[8], byte;
    char *line[16] = {0};
    uint32_t *took = calloc(times, sizeof *took);
    unsigned memory = 0;
    int listener = listen_anywhere(port);

    if (!took || argc > 14)
        return 2;
    memcpy(line, argv, (size_t)argc * sizeof *argv);
    line[argc] = port;
    for (size_t i = 0; i < times; i++) {
        int to, from;
        uint64_t begin = now_ns();
        pid_t pid = start(line, &to, &from);
        write_all(to, "x", 1);
        int fd = accept(listener, NULL, NULL);
        if (fd < 0 || read(fd, &byte, 1) != 1)
            die("the first byte");
        took[i] = (uint32_t)((now_ns() - begin) / 1000);
        unsigned now = memory_of(pid);
        memory = now > memory ? now : memory;
        close(fd);
        close(to);
        close(from);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    qsort(took, times, sizeof *took, by_size);
    printf("%u %u %u\n", took[times / 2], took[times * 99 / 100], memory);
    free(took);
    return 0;
}

/* The time from starting COMMAND until it has answered `initialize`. */
static int greet(size_t times, char **argv)
{
    uint32_t *took = calloc(times, sizeof *took);

    for (size_t i = 0; took && i < times; i++) {
        struct reader r = {0};
        int to, from;
        uint64_t begin = now_ns();
        pid_t pid = start(argv, &to, &from);
        write_all(to, hello, sizeof hello - 1);
        while (!memchr(r.p ? r.p : "", '\n', r.n))
            if (!fill(&r, from))
                die("the answer to initialize");
        took[i] = (uint32_t)((now_ns() - begin) / 1000);
        close(to);
        close(from);
        waitpid(pid, NULL, 0);
        free(r.p);
    }
    qsort(took, times, sizeof *took, by_size);
    printf("%u %u\n", took[times / 2], took[times * 99 / 100]);
    free(took);
    return 0;
}

int main(int argc, char **argv)
{
    const char *role = argc > 1 ? argv[1] : "";

    if (strcmp(role, "agent") == 0)
        return serve(answer_line);
    if (strcmp(role, "proxy") == 0)
        return serve(pass_line);
    if (strcmp(role, "relay") == 0 && argc > 2)
        return relay(argv + 2);
    if (strcmp(role, "load") == 0 && argc > 5)
        return load(strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10),
                    strtoull(argv[4], NULL, 10), argv + 5);
    if (strcmp(role, "first") == 0 && argc > 3)
        return first_byte(strtoull(argv[2], NULL, 10), argv + 3, argc - 3);
    if (strcmp(role, "greet") == 0 && argc > 3)
        return greet(strtoull(argv[2], NULL, 10), argv + 3);
    fprintf(stderr, "usage: bench_acp_parts load|agent|proxy|relay|first|greet ...\n");
    return 2;
}
