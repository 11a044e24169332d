/* The tools of the fake server; the table is at the end. */
#include "fake_server.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A result with one text. */
static void send_text(struct server *s, const struct call *c, struct piece what, long delay)
{
    struct text result = {0};
    text_put(&result, "{\"content\":[{\"type\":\"text\",\"text\":");
    text_add_quoted(&result, what);
    text_put(&result, "}]}");
    send_result(s, c->id, (struct piece){result.p, result.n}, delay);
    free(result.p);
}

static void send_notification(struct server *s, struct piece id, long delay, const char *format,
                              ...) __attribute__((format(printf, 4, 5)));
static void send_notification(struct server *s, struct piece id, long delay, const char *format,
                              ...)
{
    struct text line = {0};
    char body[1024];
    va_list ap;
    va_start(ap, format);
    vsnprintf(body, sizeof(body), format, ap);
    va_end(ap);
    text_put(&line, "{\"jsonrpc\":\"2.0\",\"method\":%s}", body);
    send_later(s, id, line, delay);
}

/* The arguments come back byte for byte, as text and as structured content. */
static void tool_echo(struct server *s, const struct call *c)
{
    struct piece args = c->arguments.n ? c->arguments : piece_of("{}");
    struct text result = {0};
    text_put(&result, "{\"content\":[{\"type\":\"text\",\"text\":");
    text_add_quoted(&result, args);
    text_put(&result, "}],\"structuredContent\":");
    text_add(&result, args.p, args.n);
    text_put(&result, ",\"x-unknown\":{\"lexeme\":1.50e+2}}");
    send_result(s, c->id, (struct piece){result.p, result.n}, 0);
    free(result.p);
}

/* What arrived besides the arguments: the id of this hop and all of params. */
static void tool_params(struct server *s, const struct call *c)
{
    struct text result = {0};
    text_put(&result, "{\"content\":[],\"structuredContent\":{\"id\":%.*s,\"params\":%.*s}}",
             (int)c->id.n, c->id.p, (int)c->params.n, c->params.p);
    send_result(s, c->id, (struct piece){result.p, result.n}, 0);
    free(result.p);
}

static void tool_add(struct server *s, const struct call *c)
{
    char sum[64];
    snprintf(sum, sizeof(sum), "%.17g",
             member_number(c->arguments, "a", 0) + member_number(c->arguments, "b", 0));
    send_text(s, c, piece_of(sum), 0);
}

static void tool_sleep(struct server *s, const struct call *c)
{
    send_text(s, c, piece_of("slept"), (long)member_number(c->arguments, "ms", 100));
}

static void tool_slow(struct server *s, const struct call *c)
{
    long steps = (long)member_number(c->arguments, "steps", 3);
    long ms = (long)member_number(c->arguments, "ms", 30);
    for (long i = 1; i <= steps && c->token.n; i++)
        send_notification(s, c->id, i * ms,
                          "\"notifications/progress\",\"params\":{\"progressToken\":%.*s,"
                          "\"progress\":%ld,\"total\":%ld.0,\"message\":\"step %ld\"}",
                          (int)c->token.n, c->token.p, i, steps, i);
    send_text(s, c, piece_of("done slowly"), steps * ms);
}

static void tool_fail(struct server *s, const struct call *c)
{
    send_result(s, c->id,
                piece_of("{\"content\":[{\"type\":\"text\",\"text\":\"failed on purpose\"}],"
                         "\"isError\":true}"),
                0);
}

static void tool_error(struct server *s, const struct call *c)
{
    send_error(s, c->id, -32050, "refused on purpose", "{\"limit\":1.0,\"big\":9007199254740993}");
}

static void tool_big(struct server *s, const struct call *c)
{
    size_t n = (size_t)member_number(c->arguments, "bytes", 1000);
    char *x = malloc(n + 1);
    if (!x)
        abort();
    memset(x, 'x', n);
    send_text(s, c, (struct piece){x, n}, 0);
    free(x);
}

static void tool_huge(struct server *s, const struct call *c)
{
    struct text line = {0};
    char block[65536];
    memset(block, 'h', sizeof(block));
    text_put(&line,
             "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":{\"content\":[{\"type\":\"text\","
             "\"text\":\"",
             (int)c->id.n, c->id.p);
    send_bytes(line.p, line.n);
    for (long left = s->huge; left > 0; left -= (long)sizeof(block))
        send_bytes(block, left < (long)sizeof(block) ? (size_t)left : sizeof(block));
    send_bytes("\"}]}}\n", 6);
    free(line.p);
}

/* Exits in the middle of a call, after half a line. */
static void tool_crash(struct server *s, const struct call *c)
{
    (void)s;
    (void)c;
    send_bytes("{\"jsonrpc\":\"2.0\",", 17);
    _exit(42);
}

static void tool_die(struct server *s, const struct call *c)
{
    (void)s;
    (void)c;
    _exit(0);
}

static void tool_env(struct server *s, const struct call *c)
{
    struct piece name = member_text(c->arguments, "name");
    char key[256];
    snprintf(key, sizeof(key), "%.*s", (int)name.n, name.p ? name.p : "");
    const char *value = getenv(key);
    send_text(s, c, piece_of(value ? value : "(unset)"), 0);
}

static void tool_whoami(struct server *s, const struct call *c)
{
    struct text result = {0};
    char cwd[4096];
    text_put(&result,
             "{\"content\":[],\"structuredContent\":{\"name\":\"%s\",\"pid\":%d,"
             "\"grandchild\":%d,\"calls\":%ld,\"cancelled\":%ld,\"cwd\":",
             s->name, getpid(), s->grandchild_pid, s->calls, s->cancelled);
    text_add_quoted(&result, piece_of(getcwd(cwd, sizeof(cwd)) ? cwd : ""));
    text_put(&result, "}}");
    send_result(s, c->id, (struct piece){result.p, result.n}, 0);
    free(result.p);
}

static void tool_notify(struct server *s, const struct call *c)
{
    s->extra_shown = !s->extra_shown;
    send_notification(s, c->id, 0, "\"notifications/tools/list_changed\"");
    send_text(s, c, piece_of(s->extra_shown ? "shown" : "hidden"), 0);
}

static void tool_log(struct server *s, const struct call *c)
{
    struct piece level = member_text(c->arguments, "level");
    send_notification(
        s, c->id, 0,
        "\"notifications/message\",\"params\":{\"level\":\"%.*s\",\"logger\":\"fake\","
        "\"data\":{\"n\":1.0}}",
        level.n ? (int)level.n : 4, level.n ? level.p : "info");
    send_text(s, c, piece_of("logged"), 0);
}

/* Asks the client something and gives back its raw answer: elicitation, sampling or roots. */
static void tool_ask(struct server *s, const struct call *c)
{
    struct piece method = member_text(c->arguments, "method");
    struct piece params = member(c->arguments, "params");
    struct text line = {0};
    if (!method.n)
        method = piece_of("roots/list");
    text_put(&line, "{\"jsonrpc\":\"2.0\",\"id\":\"ask-%ld\",\"method\":\"%.*s\"%s%.*s}", ++s->asks,
             (int)method.n, method.p, params.n ? ",\"params\":" : "", (int)params.n,
             params.n ? params.p : "");
    free(s->asking);
    s->asking = strndup(c->id.p, c->id.n);
    send_later(s, c->id, line, 0);
}

#define OBJECT(properties) "{\"type\":\"object\",\"properties\":{" properties "}}"

const struct tool fake_tools[] = {
    {"echo", OBJECT("\"message\":{\"type\":\"string\",\"x-lexeme\":1.50}"), tool_echo},
    {"params", OBJECT(""), tool_params},
    {"add", OBJECT("\"a\":{\"type\":\"number\"},\"b\":{\"type\":\"number\"}"), tool_add},
    {"sleep", OBJECT("\"ms\":{\"type\":\"integer\"}"), tool_sleep},
    {"slow", OBJECT("\"steps\":{\"type\":\"integer\"},\"ms\":{\"type\":\"integer\"}"), tool_slow},
    {"fail", OBJECT(""), tool_fail},
    {"error", OBJECT(""), tool_error},
    {"big", OBJECT("\"bytes\":{\"type\":\"integer\"}"), tool_big},
    {"huge", OBJECT(""), tool_huge},
    {"crash", OBJECT(""), tool_crash},
    {"die", OBJECT(""), tool_die},
    {"env", OBJECT("\"name\":{\"type\":\"string\"}"), tool_env},
    {"whoami", OBJECT(""), tool_whoami},
    {"notify-list-changed", OBJECT(""), tool_notify},
    {"log", OBJECT("\"level\":{\"type\":\"string\"}"), tool_log},
    {"ask", OBJECT("\"method\":{\"type\":\"string\"},\"params\":{\"type\":\"object\"}"), tool_ask},
    {"extra", OBJECT(""), tool_echo}, /* the last one: shown only when toggled */
};
const int fake_n_tools = sizeof(fake_tools) / sizeof(fake_tools[0]);

void list_tools(struct server *s, struct piece id)
{
    struct text list = {0};
    text_put(&list, "{\"tools\":[");
    for (int i = 0; i < fake_n_tools - (s->extra_shown ? 0 : 1); i++)
        text_put(&list, "%s{\"name\":\"%s\",\"description\":\"%s of %s\",\"inputSchema\":%s}",
                 i ? "," : "", fake_tools[i].name, fake_tools[i].name, s->name,
                 fake_tools[i].schema);
    for (long i = 0; i < s->extra_tools; i++)
        text_put(
            &list,
            ",{\"name\":\"tool_%ld\",\"title\":\"Tool number %ld\",\"description\":\"One of many "
            "generated tools, with a description of ordinary length.\",\"inputSchema\":"
            "{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\",\"description\":"
            "\"Where to look\"},\"limit\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":1e3}},"
            "\"required\":[\"path\"]}}",
            i, i);
    if (s->odd_schemas)
        text_put(&list, ",{\"name\":\"odd_none\"},{\"name\":\"odd_null\",\"inputSchema\":null},"
                        "{\"name\":\"odd_text\",\"inputSchema\":{\"type\":\"string\"}},"
                        "{\"inputSchema\":{\"properties\":{\"a\":{\"x-lexeme\":1.50}}},"
                        "\"name\":\"odd_untyped\",\"description\":5}");
    if (s->endless) {
        text_put(&list, ",{\"name\":\"page_%ld\",\"inputSchema\":{\"type\":\"object\"},",
                 ++s->pages);
        text_put(&list, "\"description\":\"");
        for (long i = 0; i < s->endless; i++)
            text_add(&list, "d", 1);
        text_put(&list, "\"}],\"nextCursor\":\"%ld\"}", s->pages);
    } else {
        text_put(&list, "],\"x-unknown\":[1.0,2e0]}");
    }
    send_result(s, id, (struct piece){list.p, list.n}, 0);
    free(list.p);
}
