/* Finds the running daemon and sends HTTP requests through its control socket, one at a time and
 * waiting for each answer. Called by the commands that use the daemon (status.c, calls.c, call.c
 * ...), candidates.c and doctor/daemon.c. */
#include "cmd/daemon.h"

#include "admin/control.h"
#include "base/mem.h"
#include "config/load.h"
#include "io/http_client.h"
#include "io/listen.h"
#include "mcp/header_value.h"
#include "mcp/protocol.h"
#include "wire/json.h"
#include "wire/sse.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

/* The daemon is trusted; the answers of its servers, which it passes on, are not. */
enum { ANSWER_MAX = 256 * 1024 * 1024 };
/* For requests that the daemon answers by itself, at once; calls of tools have no limit here. */
enum { PATIENCE_MS = 10 * 1000 };

struct daemon {
    const struct command *self;
    struct loop *loop;
    struct http_client *client;
    char *socket;
    /* the request under way */
    struct http_fetch *fetch;
    struct buf body;
    int status;
    int code;
    bool sse;
    char why[256];
    uint64_t patience_ms; /* for requests that the daemon answers by itself */
    struct timer patience;
    /* for commands that go on until a signal comes */
    struct timer wake;
    bool over;
};

/* --- fetching --- */

static void on_head(void *owner, const struct http_head *head)
{
    struct daemon *d = owner;

    d->status = head->status;
    d->sse = span_starts(http_head_value(head, "content-type"), SPAN("text/event-stream"));
}

static void on_chunk(void *owner, struct span chunk)
{
    struct daemon *d = owner;

    if (d->body.n + chunk.n <= ANSWER_MAX) {
        buf_span(&d->body, chunk);
        return;
    }
    d->code = ERR_SIZE;
    snprintf(d->why, sizeof d->why, "the answer has more than %d bytes", ANSWER_MAX);
    http_fetch_cancel(d->fetch);
    d->fetch = NULL;
    loop_stop(d->loop);
}

static void on_done(void *owner, int code, const char *why, bool delivered)
{
    struct daemon *d = owner;

    (void)delivered;
    d->fetch = NULL; /* a signal in the same turn of the loop must not cancel what is done */
    d->code = code;
    snprintf(d->why, sizeof d->why, "%s", why);
    loop_stop(d->loop);
}

static const struct http_fetch_events fetch_events = {on_head, on_chunk, on_done};

static void on_too_slow(struct timer *t)
{
    struct daemon *d = CONTAINER_OF(t, struct daemon, patience);

    http_fetch_cancel(d->fetch);
    d->fetch = NULL;
    d->code = -ETIMEDOUT;
    snprintf(d->why, sizeof d->why, "it gave no answer within %d s", (int)(d->patience_ms / 1000));
    loop_stop(d->loop);
}

static void say_unreachable(const struct daemon *d)
{
    if (d->code == -ECONNREFUSED) {
        cmd_error(d->self, "no daemon is running (nothing listens on %s any more)", d->socket);
        cmd_hint("'rialto serve' starts one");
    } else {
        cmd_error(d->self, "the daemon at %s cannot be asked: %s", d->socket, d->why);
    }
}

static void keep_data(void *owner, const struct sse_event *event)
{
    struct buf *last = owner;

    if (event->has_data) {
        last->n = 0;
        buf_span(last, event->data);
    }
}

/* The last message of a stream is the answer; the others are dropped. */
static int take_last_event(struct daemon *d)
{
    struct sse_decoder decoder;
    struct buf last = {0};

    sse_decoder_init(&decoder, ANSWER_MAX);
    int code = sse_feed(&decoder, buf_view(&d->body), keep_data, &last);
    sse_decoder_fini(&decoder);
    buf_fini(&d->body);
    d->body = last;
    return code;
}

/* Negative, without a message, when there is no answer. `patience`: ms, 0 = for ever. */
static int fetch_quietly(struct daemon *d, const char *path, const char *const *headers,
                         struct buf *body, uint64_t patience)
{
    BUF_SCOPED url = {0};

    if (d->over)
        return -ECANCELED;
    d->status = 0;
    d->code = 0;
    d->sse = false;
    d->body.n = 0;
    buf_printf(&url, "http://localhost%s", path);
    d->fetch = http_fetch_start(d->client,
                                &(struct http_fetch_spec){.method = body ? "POST" : "GET",
                                                          .url = buf_cstr(&url),
                                                          .headers = headers,
                                                          .body = body,
                                                          .unix_path = d->socket},
                                &fetch_events, d);
    d->patience.fire = on_too_slow;
    if (patience)
        timer_set(loop_timers(d->loop), &d->patience, patience);
    loop_run(d->loop);
    timer_clear(loop_timers(d->loop), &d->patience);
    if (!d->code && d->sse)
        d->code = take_last_event(d);
    return d->code;
}

static int fetch(struct daemon *d, const char *path, const char *const *headers, struct buf *body,
                 uint64_t patience)
{
    if (fetch_quietly(d, path, headers, body, patience)) {
        say_unreachable(d);
        return d->code;
    }
    if (json_skim(buf_view(&d->body), NULL, NULL, NULL, NULL)) {
        cmd_error(d->self, "the daemon at %s did not answer in JSON (status %d)", d->socket,
                  d->status);
        return ERR_PROTOCOL;
    }
    return 0;
}

int daemon_fetch(struct daemon *d, const char *path, struct span body, int *status,
                 struct buf *answer)
{
    static const char *const headers[] = {"Content-Type: application/json", NULL};
    BUF_SCOPED copy = {0};

    buf_span(&copy, body);
    int code = fetch(d, path, headers, body.n ? &copy : NULL, d->patience_ms);
    if (code)
        return code;
    *status = d->status;
    *answer = d->body;
    d->body = (struct buf){0};
    return 0;
}

int daemon_try(struct daemon *d, const char *path, int *status, struct buf *answer)
{
    int code = fetch_quietly(d, path, NULL, NULL, d->patience_ms);

    if (code)
        return code;
    if (json_skim(buf_view(&d->body), NULL, NULL, NULL, NULL))
        return ERR_PROTOCOL;
    *status = d->status;
    *answer = d->body;
    d->body = (struct buf){0};
    return 0;
}

int daemon_do(const struct args *a, int (*act)(struct daemon *d, const struct args *a))
{
    struct daemon *d = daemon_find(a);

    if (!d)
        return CMD_FAILED;
    int code = act(d, a);
    daemon_free(d);
    return code;
}

bool daemon_agreed(const struct daemon *d, int status, struct span answer)
{
    BUF_SCOPED scratch = {0};

    if (status == 200)
        return true;
    cmd_error(d->self, "%s", daemon_cstr(answer, "error", &scratch));
    const char *hint = daemon_cstr(answer, "hint", &scratch);
    if (hint[0])
        cmd_hint("%s", hint);
    return false;
}

void daemon_wait_for(struct daemon *d, uint64_t ms)
{
    d->patience_ms = ms;
}

void daemon_put_value(struct buf *path, const char *text)
{
    for (; *text; text++)
        buf_printf(path, "%%%02X", (unsigned char)*text);
}

/* --- commands that go on --- */

void daemon_leave(struct daemon *d)
{
    d->over = true;
    if (d->fetch)
        http_fetch_cancel(d->fetch);
    d->fetch = NULL;
    d->code = -ECANCELED;
    loop_stop(d->loop);
}

static void on_signal(void *arg, int signo)
{
    (void)signo;
    daemon_leave(arg);
}

void daemon_mind_signals(struct daemon *d)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

    for (size_t i = 0; i < COUNT_OF(signals); i++) {
        struct sigaction now;
        /* Under nohup, which ignores SIGHUP, the command is to go on. */
        if (sigaction(signals[i], NULL, &now) == 0 && now.sa_handler == SIG_IGN)
            continue;
        if (loop_on_signal(d->loop, signals[i], on_signal, d) < 0)
            cmd_error(d->self, "cannot handle %s", strsignal(signals[i]));
    }
}

bool daemon_is_over(const struct daemon *d)
{
    return d->over;
}

static void on_wake(struct timer *t)
{
    loop_stop(CONTAINER_OF(t, struct daemon, wake)->loop);
}

bool daemon_pause(struct daemon *d, uint64_t ms)
{
    if (d->over)
        return false;
    d->wake.fire = on_wake;
    timer_set(loop_timers(d->loop), &d->wake, ms);
    loop_run(d->loop);
    timer_clear(loop_timers(d->loop), &d->wake);
    return !d->over;
}

void daemon_hurry(struct daemon *d)
{
    if (timer_is_set(&d->wake))
        loop_stop(d->loop);
}

struct loop *daemon_loop(const struct daemon *d)
{
    return d->loop;
}

/* --- MCP --- */

static void put_request(struct buf *out, const char *method, struct span params)
{
    buf_printf(out,
               "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":{\"_meta\":{"
               "\"" MCP_META_PREFIX "protocolVersion\":\"" MCP_MODERN "\","
               "\"" MCP_META_PREFIX "clientCapabilities\":{},"
               "\"" MCP_META_PREFIX "clientInfo\":{\"name\":\"rialto\",\"version\":\"%s\"}}%s",
               method, RIALTO_VERSION, params.n ? "," : "");
    buf_span(out, params);
    buf_str(out, "}}");
}

enum { HEADERS_MAX = 64 };

/* Splits lines "Name: value\r\n" into the array that http_fetch takes; `lines` is changed. */
static void split_lines(struct buf *lines, const char **out)
{
    size_t n = 0;

    buf_cstr(lines); /* adds the NUL, and may move the bytes */
    char *at = lines->p;
    for (char *end; at && n < HEADERS_MAX && (end = strstr(at, "\r\n")); at = end + 2) {
        *end = '\0';
        out[n++] = at;
    }
    out[n] = NULL;
}

static int report_error(const struct daemon *d, struct span error)
{
    BUF_SCOPED scratch = {0};
    struct span text = daemon_text(error, "message", &scratch);

    cmd_error(d->self, SPAN_FMT, SPAN_ARG(text.n ? text : error));
    return ERR_PROTOCOL;
}

int daemon_request(struct daemon *d, const char *path, const char *method, struct span name,
                   struct span params, struct span headers, struct buf *result)
{
    BUF_SCOPED body = {0}, lines = {0};
    const char *split[HEADERS_MAX + 1];

    buf_printf(&lines,
               "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
               "MCP-Protocol-Version: " MCP_MODERN "\r\nMcp-Method: %s\r\n",
               method);
    if (name.n) {
        buf_str(&lines, "Mcp-Name: ");
        header_value_put(&lines, name);
        buf_str(&lines, "\r\n");
    }
    buf_span(&lines, headers);
    split_lines(&lines, split);
    put_request(&body, method, params);
    int code = fetch(d, path, split, &body, 0);
    if (code)
        return code;
    struct json_slot got = json_get(buf_view(&d->body), "result");
    struct json_slot error = json_get(buf_view(&d->body), "error");
    if (got.type != JSON_OBJECT)
        return report_error(d, error.type == JSON_OBJECT ? error.value : buf_view(&d->body));
    buf_span(result, got.value);
    return 0;
}

struct span daemon_text(struct span object, const char *key, struct buf *scratch)
{
    struct json_slot slot =
        json_type_of(object) == JSON_OBJECT ? json_get(object, key) : (struct json_slot){0};

    return slot.type == JSON_STRING ? json_text(slot.value, scratch) : SPAN_EMPTY;
}

const char *daemon_cstr(struct span object, const char *key, struct buf *scratch)
{
    BUF_SCOPED text = {0};

    buf_reset(scratch, 0);
    buf_span(scratch, daemon_text(object, key, &text));
    return buf_cstr(scratch);
}

/* --- finding --- */

struct daemon *daemon_at(const struct args *a, const char *path)
{
    struct daemon *d = MEM_NEW(struct daemon);

    d->self = a->command;
    d->patience_ms = PATIENCE_MS;
    d->socket = mem_str(path);
    d->loop = loop_new();
    d->client = http_client_new(d->loop);
    return d;
}

struct daemon *daemon_open(const struct args *a, const char *setting, const char *file)
{
    char *socket = control_find(setting, file);
    struct daemon *d = NULL;

    if (socket) {
        d = daemon_at(a, socket);
    } else {
        BUF_SCOPED places = {0};
        control_put_places(&places, setting, file);
        cmd_error(a->command, "no daemon is running");
        cmd_hint("'rialto serve' starts one; looked for its socket at %s", buf_cstr(&places));
    }
    mem_free(socket);
    return d;
}

/* The path of the only socket on which a daemon listens; NULL when there are none, or several. */
static char *only_socket(void)
{
    char *only = NULL, *path;
    size_t live = 0;

    for (size_t i = 0; (path = control_nth(i)); i++) {
        if (listen_is_live(path) && !live++)
            only = path;
        else
            mem_free(path);
    }
    if (live > 1) {
        mem_free(only);
        only = NULL;
    }
    return only;
}

/* The only daemon that runs. NULL when there is none or several, when the user has said which one
 * is meant, or when the configuration that would be read has a daemon of its own. */
static struct daemon *find_only(const struct args *a, const char *setting, const char *file)
{
    const char *chosen = getenv("RIALTO_CONFIG");
    char *own = control_find(setting, file);
    bool meant = !own && !a->config && !(chosen && *chosen) && strcmp(setting, "auto") == 0;
    char *only = meant ? only_socket() : NULL;
    struct daemon *d = only ? daemon_at(a, only) : NULL;

    mem_free(own);
    mem_free(only);
    return d;
}

struct daemon *daemon_find(const struct args *a)
{
    struct problems problems = {0};
    struct config *c = args_read_config(a, &problems);
    char *file = config_find(a->config);
    const char *from_env = getenv("RIALTO_CONTROL");
    const char *setting = c ? c->control : from_env && *from_env ? from_env : "auto";
    struct daemon *d = find_only(a, setting, file);

    if (!d)
        d = daemon_open(a, setting, file);
    problems_fini(&problems);
    mem_free(file);
    if (c)
        config_free(c);
    return d;
}

/* Does the daemon's status name the same configuration file as `c`? */
static bool is_same_config(struct span status, const struct config *c)
{
    BUF_SCOPED scratch = {0};
    struct span theirs = daemon_text(status, "config", &scratch);
    char *ours = c->file ? realpath(c->file, NULL) : NULL;
    bool same = span_eq(theirs, span_str(ours));

    free(ours);
    return same;
}

struct daemon *daemon_find_same(const struct args *a, const struct config *c)
{
    struct daemon *d = daemon_open(a, c->control, c->file);
    BUF_SCOPED answer = {0};
    int status;

    if (!d)
        return NULL;
    if (daemon_fetch(d, "/status", SPAN_EMPTY, &status, &answer) == 0) {
        if (is_same_config(buf_view(&answer), c))
            return d;
        cmd_error(a->command, "the daemon at %s runs with another configuration", d->socket);
        cmd_hint("-c FILE names the one it was started with; 'rialto status' tells which");
    }
    daemon_free(d);
    return NULL;
}

struct daemon *daemon_look(const struct args *a, const struct config *c)
{
    char *socket = control_find(c->control, c->file);
    struct daemon *d = socket ? daemon_at(a, socket) : NULL;
    BUF_SCOPED answer = {0};
    int status;

    mem_free(socket);
    if (d && daemon_try(d, "/status", &status, &answer) == 0 &&
        is_same_config(buf_view(&answer), c))
        return d;
    if (d)
        daemon_free(d);
    return NULL;
}

struct config *daemon_stand_in(const struct daemon *d, const char *server)
{
    struct problems problems = {0};
    BUF_SCOPED text = {0}, path = {0};

    buf_printf(&path, "http://localhost/mcp/%s", server); /* an alias needs no percent-encoding */
    buf_str(&text, "{\"remember\":false,\"servers\":{");
    json_quote(&text, span_str(server));
    buf_str(&text, ":{\"era\":\"modern\",\"transport\":\"streamable-http\",\"url\":");
    json_quote(&text, buf_view(&path));
    buf_str(&text, "}}}");
    struct config *c = config_parse(buf_view(&text), CONFIG_JSON, &problems);
    problems_fini(&problems);
    if (!c)
        return NULL;
    c->limits.message = ANSWER_MAX;
    c->servers.items[0].socket = arena_span(&c->arena, span_str(d->socket)).p;
    c->servers.items[0].timeout = 0; /* the daemon ends calls that take too long */
    return c;
}

void daemon_free(struct daemon *d)
{
    http_client_free(d->client);
    loop_free(d->loop);
    buf_fini(&d->body);
    mem_free(d->socket);
    mem_free(d);
}
