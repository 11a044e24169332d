/* The link to a server that is a child process: started, lines in and out, its last line of stderr,
 * stopped, handed over to the next daemon. Made by hub/graph/server.c; the provider calls its link
 * functions. */
#include "mcp/server/stdio_upstream.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/sha.h"
#include "io/cage.h"
#include "io/inherited_child.h"
#include "wire/json_out.h"
#include "wire/lines.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

struct stdio_upstream {
    struct loop *loop;
    struct stdio_upstream_options options;
    struct mcp_provider *provider;
    struct child *child;   /* NULL when none runs */
    struct stream *stream; /* NULL when closed */
    struct lines lines;
    struct buf discard;    /* takes messages that are sent after the pipe broke */
    struct timer report;   /* reports a failed start from the loop, not from inside `open` */
    char why[256];         /* the reason of that failure */
    char last_stderr[160]; /* often says why a server ended */
    uint64_t stderr_at;    /* when it came */
    bool before;           /* the child is not the server, but options.before */
    bool closing;          /* nothing may be started any more */
    struct buf denied;     /* the last line of stderr about something refused; only with a cage */
    uint64_t denied_at;    /* when it came */
    struct buf refused, remedy; /* what the cage refused to the server that ended last */
    struct inherited_child
        *inherited_child; /* the program of the daemon before us that we wait for; or NULL */
    struct map greetings; /* method of the handshake -> struct kept_greeting */
    bool greeting;        /* the handshake is going on: its answers are kept */
    bool known;           /* the daemon before us did the handshake: ours gets the kept answers */
    struct buf held;      /* the message being written while `known` is set */
    size_t begun;         /* where the message being written begins otherwise */
    struct timer answer;  /* gives the handshake the kept answer */
    uint64_t answer_id;
    const struct kept_greeting *answered;
};

/* A server's answer in the handshake, kept for the handshake of the next daemon. */
struct kept_greeting {
    uint64_t id;     /* of our request */
    size_t n;        /* 0: no answer so far */
    const char *key; /* "result" or "error" */
    char bytes[];
};

/* A line of stderr counts as the reason of the server's end only if it came within this time before
 * the end; an older one, such as a greeting at the start, does not. */
enum { STDERR_TAIL_MS = 1000 };

/* --- the handshake: a program has only one, with the first daemon that owns it --- */

static void forget_greetings(struct stdio_upstream *u)
{
    size_t at = 0;
    void *g;

    while (map_next(&u->greetings, &at, NULL, &g))
        mem_free(g);
    map_fini(&u->greetings);
    u->greetings = (struct map){0};
}

static void keep_greeting(struct stdio_upstream *u, struct span method, uint64_t id,
                          const char *key, struct span text)
{
    struct kept_greeting *g = mem_alloc(sizeof *g + text.n);

    *g = (struct kept_greeting){.id = id, .n = text.n, .key = key};
    if (text.n)
        memcpy(g->bytes, text.p, text.n);
    mem_free(map_put(&u->greetings, method, g));
}

static bool is_of_handshake(const struct mcp_parcel *parcel)
{
    return parcel->kind == RPC_REQUEST && parcel->method &&
           (strcmp(parcel->method, "initialize") == 0 ||
            strcmp(parcel->method, "server/discover") == 0);
}

/* Keep the line if it is the answer to a request of the handshake. */
static void listen_to_greeting(struct stdio_upstream *u, struct span line)
{
    struct rpc_message m;
    struct span method;
    size_t at = 0;
    int64_t id;
    void *g;

    if (rpc_skim(line, NULL, NULL, NULL, 0, &m) || (m.kind != RPC_RESULT && m.kind != RPC_ERROR) ||
        !json_int(m.id, &id))
        return;
    while (map_next(&u->greetings, &at, &method, &g)) {
        if (((struct kept_greeting *)g)->id != (uint64_t)id)
            continue;
        bool fine = m.kind == RPC_RESULT;
        BUF_SCOPED name = {0};
        buf_span(&name, method);
        keep_greeting(u, buf_view(&name), (uint64_t)id, fine ? "result" : "error",
                      fine ? m.result : m.error);
        return;
    }
}

static void on_answer(struct timer *t)
{
    struct stdio_upstream *u = CONTAINER_OF(t, struct stdio_upstream, answer);
    const struct kept_greeting *g = u->answered;
    BUF_SCOPED line = {0};

    buf_printf(&line, "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"%s\":", (unsigned long long)u->answer_id,
               g->key);
    buf_bytes(&line, g->bytes, g->n);
    buf_char(&line, '}');
    mcp_provider_receive(u->provider, buf_view(&line), 0);
}

/* The program has had its handshake: true if this message is a part of that, and is not sent. */
static bool is_known_already(struct stdio_upstream *u, const struct mcp_parcel *parcel)
{
    const struct kept_greeting *g =
        is_of_handshake(parcel) ? map_get(&u->greetings, span_str(parcel->method)) : NULL;

    if (g && g->n) {
        u->answered = g;
        u->answer_id = parcel->id;
        timer_set(loop_timers(u->loop), &u->answer, 0);
        return true;
    }
    u->known = false; /* the handshake is over */
    return parcel->method && strcmp(parcel->method, "notifications/initialized") == 0;
}

/* --- lines --- */

static void on_line(void *owner, struct span line)
{
    struct stdio_upstream *u = owner;

    if (u->greeting)
        listen_to_greeting(u, line);
    mcp_provider_receive(u->provider, line, 0);
}

static void on_too_long(void *owner, struct span head)
{
    struct stdio_upstream *u = owner;

    mcp_provider_too_long(u->provider, head, u->options.max_message);
}

static const struct lines_events line_events = {on_line, on_too_long};

static void on_data(void *owner, struct span chunk)
{
    struct stdio_upstream *u = owner;

    lines_feed(&u->lines, chunk, &line_events, u);
}

static void on_stream_closed(void *owner, const char *reason)
{
    struct stdio_upstream *u = owner;

    (void)reason;
    u->stream = NULL;
    /* A server that closed its stdout is of no more use, even if the process still runs. */
    child_stop(u->child, u->options.stop_grace);
}

static const struct stream_events stream_events = {.data = on_data, .closed = on_stream_closed};

/* If `line` says that something was refused, append what the cage refuses and what allows it. */
static void blame_cage(struct stdio_upstream *u, struct span line, struct buf *why)
{
    const struct cage_rules *cage = u->options.cage;

    u->refused.n = u->remedy.n = 0;
    if (!cage || !cage_is_refusal(line))
        return;
    cage_blame(cage, line, &u->refused, &u->remedy);
    if (u->refused.n)
        buf_printf(why, "; its sandbox (%s) refuses %s, which `%s` would open", cage->level,
                   buf_cstr(&u->refused), buf_cstr(&u->remedy));
    else
        buf_printf(why, "; its sandbox (%s) may have refused that: see 'rialto sandbox %s'",
                   cage->level, u->options.alias);
}

static void start(struct stdio_upstream *u);

static void on_exited(void *owner, int status, const char *how)
{
    struct stdio_upstream *u = owner;
    BUF_SCOPED why = {0};

    u->child = NULL;
    lines_fini(&u->lines);
    if (u->before && status == 0 && !u->closing) {
        start(u);
        return;
    }
    buf_printf(&why, "%s%s", u->before ? "the step that installs it " : "", how);
    uint64_t now = loop_timers(u->loop)->now;
    bool denied = now - u->denied_at <= STDERR_TAIL_MS;
    blame_cage(u, denied ? buf_view(&u->denied) : SPAN_EMPTY, &why);
    if (u->last_stderr[0] && now - u->stderr_at <= STDERR_TAIL_MS)
        buf_printf(&why, "; its last words: %s", u->last_stderr);
    mcp_provider_closed(u->provider, buf_cstr(&why));
}

static void on_stderr(void *owner, struct span line)
{
    struct stdio_upstream *u = owner;
    BUF_SCOPED clean = {0};

    line = span_trim(line);
    if (!line.n)
        return;
    /* Redacted before the line is cut: half a secret would not be recognised. */
    log_redact(&clean, line);
    u->stderr_at = loop_timers(u->loop)->now;
    snprintf(u->last_stderr, sizeof u->last_stderr, "%.150s", buf_cstr(&clean));
    if (u->options.cage && cage_is_refusal(buf_view(&clean))) {
        BUF_SCOPED refused = {0}, remedy = {0};
        cage_blame(u->options.cage, buf_view(&clean), &refused, &remedy);
        /* A line that names something tells more than a later one that does not. */
        if (refused.n || !u->denied.n) {
            u->denied.n = 0;
            buf_span(&u->denied, buf_view(&clean));
            u->denied_at = u->stderr_at;
        }
    }
}

static const struct child_events child_events = {.exited = on_exited, .stderr_line = on_stderr};

static void report_failure(struct timer *t)
{
    struct stdio_upstream *u = CONTAINER_OF(t, struct stdio_upstream, report);

    mcp_provider_closed(u->provider, u->why);
}

static void on_step_data(void *owner, struct span chunk)
{
    (void)owner, (void)chunk;
}

static void on_step_closed(void *owner, const char *reason)
{
    struct stdio_upstream *u = owner;

    (void)reason;
    u->stream = NULL;
}

static const struct stream_events step_events = {.data = on_step_data, .closed = on_step_closed};

/* Why the program was not started, for people. */
static void explain_failure(struct stdio_upstream *u, const struct err *err)
{
    BUF_SCOPED why = {0};

    buf_str(&why, err->text);
    blame_cage(u, span_str(strstr(err->text, SPAWN_REFUSED) ? err->text : ""), &why);
    if (u->options.cage && !u->refused.n && err->hint[0])
        buf_printf(&why, " (%s)", err->hint);
    snprintf(u->why, sizeof u->why, "%s", buf_cstr(&why));
    timer_set(loop_timers(u->loop), &u->report, 0);
}

/* The server runs: read and write its stream from now on. */
static void begin(struct stdio_upstream *u)
{
    lines_init(&u->lines, u->options.max_message);
    u->stream = child_stream(u->child);
    /* One message of any allowed length fits, even if the server has not read those before it. */
    stream_set_limit(u->stream, u->options.max_message + STREAM_LIMIT);
    stream_start(u->stream, &stream_events, u);
}

/* --- programs from the daemon before us, and for the next daemon --- */

/* Longer than the old daemon waits for its last calls (hub/upgrade.c). */
enum { INHERITED_CHILD_MS = 45 * 1000 };

/* A key that the next daemon also makes if it would start the same program in the same way. */
static void put_key(struct buf *out, const struct stdio_upstream *u)
{
    const struct stdio_upstream_options *o = &u->options;
    unsigned char hash[SHA256_N];
    BUF_SCOPED all = {0};

    for (size_t i = 0; o->argv[i]; i++)
        buf_bytes(&all, o->argv[i], strlen(o->argv[i]) + 1);
    buf_char(&all, '\n');
    for (size_t i = 0; o->env && o->env[i]; i++)
        buf_bytes(&all, o->env[i], strlen(o->env[i]) + 1);
    buf_printf(&all, "\n%s\n%s", o->cwd ? o->cwd : "", o->cage ? o->cage->level : "");
    sha_256(hash, buf_view(&all));
    buf_printf(out, "%s ", mcp_provider_key(u->provider));
    for (size_t i = 0; i < SHA256_N; i++)
        buf_printf(out, "%02x", hash[i]);
}

static void take_greetings(struct stdio_upstream *u, struct span note)
{
    struct json_iter it = json_iter(json_get(note, "greetings").value);

    forget_greetings(u);
    while (json_next(&it)) {
        BUF_SCOPED method = {0};
        bool fine = json_get(it.value, "result").type != JSON_NONE;
        const char *key = fine ? "result" : "error";
        keep_greeting(u, json_text(it.key, &method), 0, key, json_get(it.value, key).value);
    }
}

/* A program that answered server/discover may have been sent initialize as well, but not the other
 * way round: many of those that do not know server/discover end, or are silent. */
static bool is_modern(const struct stdio_upstream *u)
{
    const struct kept_greeting *g = map_get(&u->greetings, SPAN("server/discover"));

    return g && strcmp(g->key, "result") == 0;
}

static void on_inherited_child(void *arg, struct inherited_child *h, bool here)
{
    struct stdio_upstream *u = arg;
    struct provider *core = mcp_provider_core(u->provider);

    u->inherited_child = NULL;
    provider_start_again(core, core->policy.start_timeout);
    if (!here) {
        start(u);
        return;
    }
    u->child = inherited_child_take(h, u->options.alias, &child_events, u);
    u->known = true;
    take_greetings(u, inherited_child_note(h));
    begin(u);
    mcp_provider_inherited(u->provider, is_modern(u), inherited_child_note(h));
    lines_feed(&u->lines, inherited_child_early(h), &line_events, u);
}

/* True: the program runs already, and the daemon before us will hand it over. */
static bool await_inherited_child(struct stdio_upstream *u)
{
    BUF_SCOPED key = {0};

    if (!mcp_provider_key(u->provider))
        return false;
    put_key(&key, u);
    u->inherited_child = inherited_child_claim(u->loop, buf_cstr(&key), on_inherited_child, u);
    if (!u->inherited_child)
        return false;
    provider_start_again(mcp_provider_core(u->provider), INHERITED_CHILD_MS);
    return true;
}

static bool link_is_promised(const void *link)
{
    const struct stdio_upstream *u = link;
    BUF_SCOPED key = {0};

    put_key(&key, u);
    return inherited_child_is_promised(u->loop, buf_cstr(&key));
}

static bool link_promise(const void *link, struct buf *out)
{
    const struct stdio_upstream *u = link;
    BUF_SCOPED key = {0};

    if (!u->child || u->before || u->closing || !u->stream)
        return false;
    put_key(&key, u);
    json_out_str(out, "key", buf_cstr(&key));
    child_put_promise(u->child, out);
    return true;
}

static void put_greetings(const struct stdio_upstream *u, struct buf *out)
{
    struct span method;
    size_t at = 0;
    void *value;

    json_out_open(out, "greetings", '{');
    while (map_next(&u->greetings, &at, &method, &value)) {
        const struct kept_greeting *g = value;
        BUF_SCOPED name = {0};
        buf_span(&name, method);
        if (!g->n)
            continue;
        json_out_open(out, buf_cstr(&name), '{');
        json_out_raw(out, g->key, span_of(g->bytes, g->n));
        buf_char(out, '}');
    }
    buf_char(out, '}');
}

static bool link_leave(void *link, struct buf *note, int fds[3], struct buf *early)
{
    struct stdio_upstream *u = link;

    if (!u->child || !u->stream || u->lines.skipping || stream_queued(u->stream) ||
        !child_show_pipes(u->child, fds))
        return false;
    int pipes[3] = {fds[0], fds[1], fds[2]};
    for (int i = 0; i < 3; i++) {
        fds[i] = fcntl(pipes[i], F_DUPFD_CLOEXEC, 3);
        if (fds[i] >= 0)
            continue;
        while (i > 0) /* no free descriptors: it is tried again, as when a call is open */
            close(fds[--i]);
        return false;
    }
    put_greetings(u, note);
    buf_span(early, buf_view(&u->lines.tail));
    child_leave(u->child);
    lines_fini(&u->lines);
    u->child = NULL;
    u->stream = NULL;
    u->closing = true;
    return true;
}

static void start(struct stdio_upstream *u)
{
    const struct stdio_upstream_step *before = u->options.before;
    const char *const *argv = before ? before->ready(before->arg) : u->options.argv;
    bool was_before = u->before;

    if (!was_before && await_inherited_child(u))
        return;
    u->before = !argv;
    const struct child_spec spec = {.name = u->options.alias,
                                    .argv = u->before ? before->argv : argv,
                                    .env = u->before ? before->env : u->options.env,
                                    .cwd = u->before ? NULL : u->options.cwd,
                                    .cage = u->before ? before->cage : u->options.cage};
    struct err err = {0};

    u->last_stderr[0] = '\0';
    u->denied.n = 0;
    if (was_before && u->before)
        err_set(&err, 0, "what was installed for it has no program to start");
    else
        u->child = child_spawn(u->loop, &spec, &child_events, u, &err);
    if (!u->child) {
        explain_failure(u, &err);
        return;
    }
    if (u->before) {
        log_info(u->options.alias, "is being installed");
        lines_init(&u->lines, 0);
        u->stream = child_stream(u->child);
        stream_start(u->stream, &step_events, u);
        return;
    }
    forget_greetings(u);
    u->greeting = true;
    u->known = false;
    begin(u);
    mcp_provider_connected(u->provider);
}

static void link_open(void *link)
{
    struct stdio_upstream *u = link;

    u->closing = u->before = false;
    start(u);
}

static struct buf *link_begin(void *link)
{
    struct stdio_upstream *u = link;

    u->held.n = 0;
    if (u->known)
        return &u->held;
    if (u->stream) {
        u->begun = stream_out(u->stream)->n;
        return stream_out(u->stream);
    }
    u->discard.n = 0;
    return &u->discard;
}

static void link_end(void *link, const struct mcp_parcel *parcel)
{
    struct stdio_upstream *u = link;

    if (u->greeting || u->known) {
        if (u->known && is_known_already(u, parcel))
            return;
        if (is_of_handshake(parcel))
            keep_greeting(u, span_str(parcel->method), parcel->id, "result", SPAN_EMPTY);
        else
            u->greeting = false;
    }
    if (!u->stream)
        return;
    struct buf *out = stream_out(u->stream);
    if (u->held.n) {
        u->begun = out->n;
        buf_span(out, buf_view(&u->held));
    }
    json_join_lines(out, u->begun);
    buf_char(out, '\n');
    stream_wrote(u->stream);
}

static void link_close(void *link)
{
    struct stdio_upstream *u = link;

    u->closing = true;
    if (u->inherited_child) {
        inherited_child_disclaim(u->inherited_child);
        u->inherited_child = NULL;
        snprintf(u->why, sizeof u->why, "the daemon before this one did not hand it over");
        timer_set(loop_timers(u->loop), &u->report, 0);
    }
    if (u->child)
        child_stop(u->child, u->options.stop_grace);
}

static void link_free(void *link)
{
    struct stdio_upstream *u = link;

    timer_clear(loop_timers(u->loop), &u->report);
    timer_clear(loop_timers(u->loop), &u->answer);
    if (u->inherited_child)
        inherited_child_disclaim(u->inherited_child);
    forget_greetings(u);
    buf_fini(&u->held);
    buf_fini(&u->discard);
    buf_fini(&u->denied);
    buf_fini(&u->refused);
    buf_fini(&u->remedy);
    mem_free(u);
}

static void link_describe(const void *link, struct provider_facts *facts)
{
    const struct stdio_upstream *u = link;

    facts->transport = "stdio";
    facts->pid = u->child ? child_pid(u->child) : 0;
    if (u->options.cage) {
        facts->sandbox = u->options.cage->level;
        facts->refused = buf_view(&u->refused);
        facts->remedy = buf_view(&u->remedy);
    }
}

static const struct mcp_link_ops link_ops = {
    .open = link_open,
    .begin = link_begin,
    .end = link_end,
    .close = link_close,
    .free = link_free,
    .is_promised = link_is_promised,
    .promise = link_promise,
    .leave = link_leave,
    .describe = link_describe,
};

struct mcp_provider *stdio_upstream_new(struct loop *loop,
                                        const struct stdio_upstream_options *options)
{
    struct stdio_upstream *u = MEM_NEW(struct stdio_upstream);

    u->loop = loop;
    u->options = *options;
    u->report.fire = report_failure;
    u->answer.fire = on_answer;
    u->provider = mcp_provider_new(options->alias, &link_ops, u);
    return u->provider;
}
