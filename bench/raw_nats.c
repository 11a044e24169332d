/*
 * A ping-pong through nats-server by a plain blocking socket, with the headers of a RockBot
 * message: the least that a client can do. No library, nothing of Rialto.
 *   bench_raw_nats URL echo SUBJECT GROUP
 *   bench_raw_nats URL bench SUBJECT SECONDS IN_FLIGHT BYTES
 */
#include "bus_bench.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <unistd.h>

static int server;
static char out[256 * 1024], in[256 * 1024];
static size_t n_out, at, n_in;

static void fail(const char *what)
{
    fprintf(stderr, "bench_raw_nats: %s\n", what);
    exit(1);
}

static void flush(void)
{
    for (size_t done = 0; done < n_out;) {
        ssize_t n = write(server, out + done, n_out - done);
        if (n <= 0)
            fail("write");
        done += (size_t)n;
    }
    n_out = 0;
}

__attribute__((format(printf, 1, 2))) static void say(const char *fmt, ...)
{
    va_list ap;

    if (n_out > sizeof out / 2)
        flush();
    va_start(ap, fmt);
    n_out += (size_t)vsnprintf(out + n_out, sizeof out - n_out, fmt, ap);
    va_end(ap);
    if (n_out >= sizeof out)
        fail("too much to say");
}

/* Sends all output first, then waits for input. */
static void read_more(void)
{
    flush();
    memmove(in, in + at, n_in - at);
    n_in -= at;
    at = 0;
    ssize_t n = read(server, in + n_in, sizeof in - 1 - n_in);
    if (n <= 0)
        fail("read");
    n_in += (size_t)n;
    in[n_in] = '\0';
}

/* The next line, NUL-terminated and valid until more is read. */
static char *next_line(void)
{
    char *end;

    while (!(end = memchr(in + at, '\n', n_in - at)))
        read_more();
    char *line = in + at;
    *end = '\0';
    at = (size_t)(end - in) + 1;
    return line;
}

/* The next message: its headers and body as one text. */
static char *next_message(size_t *headers, size_t *total)
{
    for (;;) {
        char *line = next_line();
        if (strncmp(line, "PING", 4) == 0)
            say("PONG\r\n");
        if (strncmp(line, "-ERR", 4) == 0)
            fail(line);
        if (strncmp(line, "HMSG ", 5) != 0)
            continue;
        /* HMSG SUBJECT SID [REPLY] HEADERS TOTAL */
        char *last = strrchr(line, ' ');
        *total = strtoul(last, NULL, 10);
        *last = '\0';
        *headers = strtoul(strrchr(line, ' '), NULL, 10);
        while (n_in - at < *total + 2)
            read_more();
        char *text = in + at;
        at += *total + 2;
        return text;
    }
}

static const char *header(char *text, size_t headers, const char *key, char value[128])
{
    char *found = memmem(text, headers, key, strlen(key));

    value[0] = '\0';
    if (found)
        sscanf(found + strlen(key), ": %127[^\r]", value);
    return value;
}

static void publish(const char *subject, const char *correlation, const char *reply_to,
                    const char *body, size_t n)
{
    char headers[1024];
    int size = snprintf(headers, sizeof headers,
                        "NATS/1.0\r\nrb-message-id: 8f0c8f0c8f0c8f0c8f0c8f0c8f0c8f0c\r\n"
                        "rb-message-type: RockBot.Tools.ToolInvokeRequest\r\n"
                        "rb-correlation-id: %s\r\nrb-reply-to: %s\r\nrb-source: bench\r\n"
                        "rb-timestamp: 1771396224123\r\nrb-content-trust: tool-request\r\n"
                        "rb-tool-provider: mcp\r\nrb-timeout-ms: 60000\r\n"
                        "rb-mcp-server: echo\r\n\r\n",
                        correlation, reply_to);
    say("HPUB %s %d %zu\r\n%s%.*s\r\n", subject, size, (size_t)size + n, headers, (int)n, body);
}

/* nats://ADDRESS:PORT */
static void join(const char *url)
{
    struct sockaddr_in to = {.sin_family = AF_INET};
    char host[64];
    unsigned short port;
    int one = 1;

    if (sscanf(url, "nats://%63[0-9.]:%hu", host, &port) != 2 ||
        inet_pton(AF_INET, host, &to.sin_addr) != 1)
        fail("no nats://ADDRESS:PORT");
    to.sin_port = htons(port);
    server = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(server, (struct sockaddr *)&to, sizeof to) < 0)
        fail("connect");
    next_line(); /* INFO */
    say("CONNECT {\"verbose\":false,\"pedantic\":false,\"headers\":true}\r\n");
}

_Noreturn static void echo(char **argv)
{
    char to[128], correlation[128];
    size_t headers, total;

    say("SUB %s %s 1\r\n", argv[0], argv[1]);
    for (;;) {
        char *text = next_message(&headers, &total);
        publish(header(text, headers, "rb-reply-to", to),
                header(text, headers, "rb-correlation-id", correlation), "", text + headers,
                total - headers);
    }
}

static void call_once(struct calls *c, const char *subject, const char *reply_to, const char *body)
{
    char number[24];

    snprintf(number, sizeof number, "%zu", calls_send(c));
    publish(subject, number, reply_to, body, strlen(body));
}

static int bench(char **argv)
{
    struct calls calls = {0};
    char reply_to[64], correlation[128];
    char *body = request_body(atol(argv[3]));
    size_t headers, total;

    snprintf(reply_to, sizeof reply_to, "raw.result.%llx", (unsigned long long)now_ns());
    say("SUB %s 1\r\nPING\r\n", reply_to);
    while (strncmp(next_line(), "PONG", 4) != 0)
        ;
    calls_begin(&calls, atof(argv[1]));
    for (long i = atol(argv[2]); i > 0; i--)
        call_once(&calls, argv[0], reply_to, body);
    for (int more = 1; more;) {
        char *text = next_message(&headers, &total);
        more = calls_answered(
            &calls, strtoul(header(text, headers, "rb-correlation-id", correlation), NULL, 10));
        if (more)
            call_once(&calls, argv[0], reply_to, body);
    }
    calls_print(&calls);
    free(body);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    join(argv[1]);
    if (argc == 5 && strcmp(argv[2], "echo") == 0)
        echo(argv + 3);
    if (argc == 7 && strcmp(argv[2], "bench") == 0)
        return bench(argv + 3);
    return 2;
}
