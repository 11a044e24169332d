/*
 * A stdio MCP server that behaves, or misbehaves, as its arguments say. It shares no code with
 * Rialto, so that both cannot be wrong in the same way: it finds members by its own small scan and
 * copies raw text.
 *
 *   --name X           serverInfo.name               --version V      protocolVersion it answers
 *   --tools N          N more tools, tool_0 ...      --init-delay MS  answers initialize late
 *   --junk             lines that are no messages    --exit-at-once   ends with status 7
 *   --silent           never answers anything        --twice          answers every call twice
 *   --huge-line N      tool huge answers N bytes     --ignore-eof     outlives EOF and SIGTERM
 *   --grandchild       a grandchild holds the pipes  --reverse        answers in reverse order
 *   --raw-result FILE  result of every call          --odd-schemas    tools odd_*: schemas that are
 *                                                                     missing or not of objects
 *   --endless-pages N  pages of tools without end, N bytes each
 *
 * Tools: see the table in fake_tools.c.
 */
#include "fake_server.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* --- sending --- */

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void send_bytes(const char *p, size_t n)
{
    while (n > 0) {
        ssize_t w = write(STDOUT_FILENO, p, n);
        if (w <= 0)
            _exit(1);
        p += w;
        n -= (size_t)w;
    }
}

static void send_junk(void)
{
    static const char junk[] = "Server ready, enjoy!\n"
                               "{\"jsonrpc\":\"2.0\",\"id\":1,\n"
                               "\n"
                               "\xff\xfe\x01 binary\n"
                               "42\n"
                               "{\"hello\":\"world\"}\n"
                               "{\"jsonrpc\":\"2.0\",\"id\":987654,\"result\":{}}\n"
                               "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/unheard-of\"}\n";
    send_bytes(junk, sizeof(junk) - 1);
}

void send_later(struct server *s, struct piece id, struct text line, long delay)
{
    struct later *l = calloc(1, sizeof(*l));
    if (!l || !(l->id = strndup(id.p ? id.p : "", id.n)))
        abort();
    text_add(&line, "\n", 1);
    l->line = line;
    l->due = now_ms() + delay;
    struct later **at = &s->later;
    while (*at && (*at)->due <= l->due)
        at = &(*at)->next;
    l->next = *at;
    *at = l;
}

static void later_free(struct later *l)
{
    free(l->id);
    free(l->line.p);
    free(l);
}

void send_result(struct server *s, struct piece id, struct piece result, long delay)
{
    for (int i = 0; i < (s->twice ? 2 : 1); i++) {
        struct text line = {0};
        text_put(&line, "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":", (int)id.n, id.p);
        text_add(&line, result.p, result.n);
        text_add(&line, "}", 1);
        send_later(s, id, line, delay);
    }
}

void send_error(struct server *s, struct piece id, int code, const char *message, const char *data)
{
    struct text line = {0};
    text_put(&line,
             "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"error\":{\"code\":%d,\"message\":\"%s\"%s%s}}",
             (int)id.n, id.p, code, message, data ? ",\"data\":" : "", data ? data : "");
    send_later(s, id, line, 0);
}

/* --- requests --- */

static void call_raw_result(struct server *s, const struct call *c)
{
    struct text result = {0};
    char block[65536];
    FILE *f = fopen(s->raw_result, "rb");
    for (size_t n; f && (n = fread(block, 1, sizeof(block), f)) > 0;)
        text_add(&result, block, n);
    if (f)
        fclose(f);
    send_result(s, c->id, (struct piece){result.p, result.n}, 0);
    free(result.p);
}

static void call_tool(struct server *s, struct piece id, struct piece params)
{
    struct piece name = member_text(params, "name");
    struct call c = {.id = id, .params = params, .arguments = member(params, "arguments")};
    c.token = member(member(params, "_meta"), "progressToken");
    s->calls++;
    if (s->raw_result) {
        call_raw_result(s, &c);
        return;
    }
    for (int i = 0; i < fake_n_tools; i++) {
        if (piece_is(name, fake_tools[i].name)) {
            fake_tools[i].run(s, &c);
            return;
        }
    }
    if ((s->extra_tools && name.n > 5 && memcmp(name.p, "tool_", 5) == 0) ||
        (s->odd_schemas && name.n > 4 && memcmp(name.p, "odd_", 4) == 0))
        fake_tools[0].run(s, &c); /* echo */
    else
        send_error(s, id, -32602, "unknown tool", NULL);
}

static void answer_initialize(struct server *s, struct piece id)
{
    struct text result = {0};
    text_put(&result,
             "{\"protocolVersion\":\"%s\",\"capabilities\":{\"tools\":{\"listChanged\":true},"
             "\"logging\":{}},\"serverInfo\":{\"name\":\"%s\",\"version\":\"1.0.0\"},"
             "\"instructions\":\"Instructions of %s.\"}",
             s->version, s->name, s->name);
    send_result(s, id, (struct piece){result.p, result.n}, s->init_delay);
    free(result.p);
}

static void take_request(struct server *s, struct piece method, struct piece id,
                         struct piece params)
{
    if (piece_is(method, "initialize"))
        answer_initialize(s, id);
    else if (piece_is(method, "ping") || piece_is(method, "logging/setLevel"))
        send_result(s, id, piece_of("{}"), 0);
    else if (piece_is(method, "tools/list"))
        list_tools(s, id);
    else if (piece_is(method, "tools/call"))
        call_tool(s, id, params);
    else
        send_error(s, id, -32601, "method not found", NULL);
}

/* Drops what is still to be sent for a cancelled call. */
static void take_cancel(struct server *s, struct piece id)
{
    bool found = false;
    for (struct later **at = &s->later; *at;) {
        struct later *l = *at;
        if (!id.n || !piece_is(id, l->id)) {
            at = &l->next;
            continue;
        }
        *at = l->next;
        later_free(l);
        found = true;
    }
    if (s->asking && id.n && piece_is(id, s->asking)) {
        free(s->asking);
        s->asking = NULL;
        found = true;
    }
    s->cancelled += found;
}

/* The client answers our question: its raw answer becomes the waiting call's result. */
static void take_answer(struct server *s, struct piece message)
{
    struct piece result = member(message, "result"), error = member(message, "error");
    struct text text = {0};
    if (!s->asking)
        return;
    text_put(&text, "{\"content\":[],\"structuredContent\":{\"%s\":%.*s}}",
             result.n ? "result" : "error", (int)(result.n ? result.n : error.n),
             result.n ? result.p : error.p);
    struct piece id = piece_of(s->asking);
    send_result(s, id, (struct piece){text.p, text.n}, 0);
    free(text.p);
    free(s->asking);
    s->asking = NULL;
}

static void take_line(struct server *s, struct piece line)
{
    struct piece method = member_text(line, "method"), id = member(line, "id");
    if (s->silent)
        return;
    if (s->junk)
        send_junk();
    if (method.n && id.n)
        take_request(s, method, id, member(line, "params"));
    else if (piece_is(method, "notifications/cancelled"))
        take_cancel(s, member(member(line, "params"), "requestId"));
    else if (id.n)
        take_answer(s, line);
}

/* --- the loop --- */

/* Sends what is due, in order; with --reverse in reverse order, once the input pauses. */
static void send_due(struct server *s, bool paused)
{
    int64_t now = now_ms();
    struct later *due = NULL;
    if (s->reverse && !paused)
        return;
    while (s->later && s->later->due <= now) {
        struct later *l = s->later;
        s->later = l->next;
        if (s->reverse) {
            l->next = due;
            due = l;
            continue;
        }
        send_bytes(l->line.p, l->line.n);
        later_free(l);
    }
    while (due) {
        struct later *l = due;
        due = l->next;
        send_bytes(l->line.p, l->line.n);
        later_free(l);
    }
}

static void take_input(struct server *s)
{
    size_t at = 0;
    for (char *nl; (nl = memchr(s->in.p + at, '\n', s->in.n - at));) {
        size_t end = (size_t)(nl - s->in.p);
        size_t from = at;
        at = end + 1;
        take_line(s, (struct piece){s->in.p + from, end - from});
    }
    s->in.n -= at;
    memmove(s->in.p, s->in.p + at, s->in.n);
}

static void serve(struct server *s)
{
    static char block[262144];
    for (;;) {
        int64_t wait = s->later ? s->later->due - now_ms() : -1;
        if (s->later && wait < 0)
            wait = 0;
        if (s->later && s->reverse && wait < 50)
            wait = 50;
        struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
        int ready = poll(&in, 1, (int)wait);
        if (ready > 0) {
            ssize_t n = read(STDIN_FILENO, block, sizeof(block));
            if (n <= 0)
                return;
            text_add(&s->in, block, (size_t)n);
            take_input(s);
        }
        send_due(s, ready == 0);
    }
}

static void start_grandchild(struct server *s)
{
    s->grandchild_pid = fork();
    if (s->grandchild_pid == 0) {
        signal(SIGHUP, SIG_IGN);
        for (;;)
            sleep(60);
    }
}

static void read_options(struct server *s, int argc, char **argv)
{
    struct {
        const char *name;
        bool *flag;
        const char **text;
        long *number;
    } rows[] = {
        {"--junk", &s->junk, NULL, NULL},
        {"--exit-at-once", &s->exit_at_once, NULL, NULL},
        {"--silent", &s->silent, NULL, NULL},
        {"--twice", &s->twice, NULL, NULL},
        {"--ignore-eof", &s->ignore_eof, NULL, NULL},
        {"--grandchild", &s->grandchild, NULL, NULL},
        {"--reverse", &s->reverse, NULL, NULL},
        {"--odd-schemas", &s->odd_schemas, NULL, NULL},
        {"--name", NULL, &s->name, NULL},
        {"--version", NULL, &s->version, NULL},
        {"--raw-result", NULL, &s->raw_result, NULL},
        {"--tools", NULL, NULL, &s->extra_tools},
        {"--endless-pages", NULL, NULL, &s->endless},
        {"--huge-line", NULL, NULL, &s->huge},
        {"--init-delay", NULL, NULL, &s->init_delay},
    };
    for (int i = 1; i < argc; i++) {
        size_t r = 0, n = sizeof(rows) / sizeof(rows[0]);
        while (r < n && strcmp(argv[i], rows[r].name) != 0)
            r++;
        if (r == n || (!rows[r].flag && i + 1 == argc)) {
            fprintf(stderr, "fake_server: bad option %s\n", argv[i]);
            exit(2);
        }
        if (rows[r].flag)
            *rows[r].flag = true;
        else if (rows[r].text)
            *rows[r].text = argv[++i];
        else
            *rows[r].number = atol(argv[++i]);
    }
}

int main(int argc, char **argv)
{
    struct server s = {.name = "fake", .version = "2025-11-25"};
    read_options(&s, argc, argv);
    fprintf(stderr, "fake server %s is up\n", s.name);
    if (s.exit_at_once)
        return 7;
    if (s.ignore_eof)
        signal(SIGTERM, SIG_IGN);
    if (s.grandchild)
        start_grandchild(&s);
    if (s.junk)
        send_junk();
    serve(&s);
    while (s.ignore_eof)
        pause();
    while (s.later) {
        struct later *l = s.later;
        s.later = l->next;
        later_free(l);
    }
    free(s.asking);
    free(s.in.p);
    return 0;
}
