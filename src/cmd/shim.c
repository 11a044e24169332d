/* Carries lines between the host and the daemon. After the end of a daemon, introduces the host to
 * the next one and answers requests that were lost. Called by shim_main.c and stdio.c. */
#include "cmd/shim.h"

#include "base/mem.h"
#include "cmd/attach.h"
#include "cmd/caller_variables.h"
#include "cmd/open_request.h"
#include "wire/lines.h"
#include "wire/rpc.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* LINE_MAX_N: the most that limits.message of the daemon can be. HIGH: bytes that may wait for a
 * slow reader before the other side is not read any more. */
enum { CHUNK = 16 * 1024, LINE_MAX_N = 1 << 30, HIGH = 256 * 1024, OPEN_MAX_N = 10000 };
/* Once the host has closed its end: how long the daemon may send nothing, and how long the host may
 * read nothing. */
enum { DRAIN_MS = 15 * 1000 };
/* How long the host's lines wait for its answer about its roots. */
enum { ROOTS_MS = 2000 };
/* How many daemons in a row may end without sending a line, and how much longer to wait before each
 * next one. */
enum { BARREN_MAX = 8, BARREN_MS = 200 };

/* How the ids of the shim's own requests begin. */
#define OWN "\"rialto-shim:"
/* The id of the shim's roots/list request to the host. */
#define ROOTS OWN "roots\""

/* Bytes to be written to a descriptor. */
struct outlet {
    struct buf waiting;
    uint64_t taken; /* bytes written so far, in all */
    bool mid_line;  /* the last byte written was no line end */
};

struct shim {
    const struct shim_options *options;
    int daemon;      /* -1: none */
    unsigned epoch;  /* number of the daemon, from 1 */
    unsigned barren; /* daemons in a row that have ended without sending a line */
    bool host_ended; /* the host's last line has been read */
    bool told;       /* the daemon was told so: our end is shut down */
    struct lines from_host, from_daemon;
    struct outlet to_host, to_daemon;
    struct list open;
    size_t n_open;
    struct list asked;   /* the daemon's questions to the host, by the ids that the host knows */
    uint64_t introduced; /* where in the stream to the daemon the introduction ends */
    /* Messages of the host that are sent again to a new daemon. */
    char *greeting, *level;
    bool initialized;
    struct list subscriptions; /* struct open_request, with texts */
    unsigned own;              /* number of own requests so far */
    /* What the daemon needs for the entries of this caller (decision 022). */
    struct caller_variables variables;
    bool has_roots;    /* the host can be asked for its roots */
    long asking_until; /* deadline for the host's answer about its roots; 0: it is not asked now */
    struct buf held;   /* lines of the host that wait for that answer */
};

/* --- requests that are open --- */

static void forget(struct shim *s, struct span id)
{
    struct open_request *r = open_request_find(&s->open, id);

    if (r) {
        open_request_free(r);
        s->n_open--;
    }
}

/* The daemon has refused a whole batch, or a line that is no message: it names no id. */
static void forget_batches(struct shim *s)
{
    LIST_EACH_SAFE (&s->open, it) {
        struct open_request *r = LIST_ENTRY(it, struct open_request, node);
        if (!r->batched)
            continue;
        open_request_free(r);
        s->n_open--;
    }
}

/* --- sending --- */

static void put_line(struct outlet *o, struct span line)
{
    buf_span(&o->waiting, line);
    buf_char(&o->waiting, '\n');
}

static void end_line(struct outlet *o)
{
    buf_char(&o->waiting, '\n');
}

/* Writes what the descriptor takes now; false when it is broken. */
static bool flush(struct outlet *o, int fd)
{
    while (o->waiting.n) {
        ssize_t n = write(fd, o->waiting.p, o->waiting.n);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR;
        o->taken += (size_t)n;
        o->mid_line = o->waiting.p[n - 1] != '\n';
        buf_drop(&o->waiting, (size_t)n);
    }
    buf_reset(&o->waiting, CHUNK);
    return true;
}

static void refuse(struct shim *s, struct span id, const char *why, const char *data)
{
    rpc_put_error(&s->to_host.waiting, id, -32000, span_str(why), span_str(data));
    end_line(&s->to_host);
}

/* --- the roots of the host --- */

static long now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000L + t.tv_nsec / 1000000;
}

/* Asks the host for its roots, whose first one is the project. The host's lines wait for its
 * answer, so that no call goes to the wrong folder. */
static void ask_roots(struct shim *s)
{
    if (!s->has_roots || !s->initialized || !caller_variables_want_project(&s->variables) ||
        s->asking_until)
        return;
    buf_str(&s->to_host.waiting,
            "{\"jsonrpc\":\"2.0\",\"id\":" ROOTS ",\"method\":\"roots/list\"}");
    end_line(&s->to_host);
    s->asking_until = now_ms() + ROOTS_MS;
}

static void from_host(void *owner, struct span line);

static void release(struct shim *s)
{
    struct buf held = s->held;

    s->asking_until = 0;
    s->held = (struct buf){0};
    for (struct span rest = buf_view(&held); rest.n;) {
        size_t n = span_find(rest, '\n');
        from_host(s, span_cut(rest, 0, n)); /* may ask again: then the rest is held again */
        rest = span_from(rest, n + 1);
    }
    buf_fini(&held);
}

static void hold(struct shim *s, struct span line)
{
    buf_span(&s->held, line);
    buf_char(&s->held, '\n');
    if (s->held.n > HIGH)
        release(s);
}

static void take_roots(struct shim *s, const struct rpc_message *m)
{
    caller_variables_take_roots(&s->variables, m->kind == RPC_RESULT ? m->result : SPAN_EMPTY);
    caller_variables_put(&s->variables, &s->to_daemon.waiting);
    release(s);
}

/* --- from the host --- */

/* Is it safe to send this request twice? No other request is sent again. */
static bool may_repeat(const struct rpc_message *m)
{
    static const char *const methods[] = {"initialize",          "ping",
                                          "server/discover",     "tools/list",
                                          "resources/list",      "resources/templates/list",
                                          "resources/subscribe", "resources/unsubscribe",
                                          "prompts/list",        "logging/setLevel",
                                          "subscriptions/listen"};

    for (size_t i = 0; i < COUNT_OF(methods); i++)
        if (rpc_method_is(m, methods[i]))
            return true;
    return false;
}

static struct span uri_of(const struct rpc_message *m)
{
    return m->params.n ? json_get(m->params, "uri").value : SPAN_EMPTY;
}

static void keep(char **kept, struct span text)
{
    mem_free(*kept);
    *kept = mem_span(text);
}

static bool can_name_roots(struct span params)
{
    struct span can = params.n ? json_get(params, "capabilities").value : SPAN_EMPTY;

    return can.n && json_type_of(can) == JSON_OBJECT && json_get(can, "roots").type == JSON_OBJECT;
}

/* Keeps what a new daemon must get, too. */
static void remember(struct shim *s, const struct rpc_message *m)
{
    struct open_request *known = open_request_find(&s->subscriptions, uri_of(m));

    if (rpc_method_is(m, "initialize")) {
        keep(&s->greeting, m->text);
        s->has_roots = can_name_roots(m->params);
    }
    if (rpc_method_is(m, "logging/setLevel"))
        keep(&s->level, m->text);
    else if (known && rpc_method_is(m, "resources/unsubscribe"))
        open_request_free(known);
    else if (!known && rpc_method_is(m, "resources/subscribe"))
        list_append(&s->subscriptions, &open_request_new(uri_of(m), m->text)->node);
}

static void open_one(struct shim *s, const struct rpc_message *m, bool batched)
{
    bool again = !batched && may_repeat(m);
    struct open_request *r = open_request_new(m->id, again ? m->text : SPAN_EMPTY);

    r->at = s->to_daemon.taken + s->to_daemon.waiting.n;
    r->batched = batched;
    list_append(&s->open, &r->node);
    s->n_open++;
}

static bool take_request(struct shim *s, const struct rpc_message *m)
{
    if (s->n_open >= OPEN_MAX_N) {
        refuse(s, m->id, "Too many requests at once", "{\"reason\":\"busy\",\"retryable\":true}");
        return false;
    }
    open_one(s, m, false);
    remember(s, m);
    return true;
}

/* Its requests are open as well. The line is passed on as it is, and is never sent again. */
static void take_batch(struct shim *s, const struct rpc_message *batch)
{
    struct json_iter it = json_iter(batch->text);
    struct rpc_message m;

    while (json_next(&it) && s->n_open < OPEN_MAX_N)
        if (!rpc_skim(it.value, NULL, NULL, NULL, 0, &m) && m.kind == RPC_REQUEST)
            open_one(s, &m, true);
}

/*
 * Ids of questions count from 1 in every daemon: from the second daemon on the host gets them as
 * "EPOCH:ID", so that a late answer to the old daemon is not taken for one to the new. Restores the
 * daemon's own id. False: the answer is for an old daemon.
 */
static bool restore_id(const struct shim *s, struct span *id)
{
    unsigned epoch = 0;
    size_t colon = span_find(*id, ':');

    if (s->epoch == 1)
        return true;
    if (!id->n || id->p[0] != '"' || colon == id->n)
        return false;
    for (size_t i = 1; i < colon && id->p[i] >= '0' && id->p[i] <= '9'; i++)
        epoch = epoch * 10 + (unsigned)(id->p[i] - '0');
    *id = span_cut(*id, colon + 1, id->n - colon - 2);
    return epoch == s->epoch;
}

/* The message with another id instead of its own. */
static void put_with_id(struct outlet *o, const struct rpc_message *m, struct span id)
{
    size_t at = (size_t)(m->id.p - m->text.p);

    buf_span(&o->waiting, span_cut(m->text, 0, at));
    buf_span(&o->waiting, id);
    buf_span(&o->waiting, span_from(m->text, at + m->id.n));
    end_line(o);
}

static void pass_answer(struct shim *s, const struct rpc_message *m)
{
    struct span id = m->id;
    struct open_request *asked = open_request_find(&s->asked, id);

    if (asked)
        open_request_free(asked);
    if (asked && restore_id(s, &id))
        put_with_id(&s->to_daemon, m, id);
}

static void from_host(void *owner, struct span line)
{
    struct shim *s = owner;
    struct rpc_message m;
    /* Lines that are no message, or a batch, are passed on: the daemon answers them. */
    bool invalid = rpc_skim(line, NULL, NULL, NULL, 0, &m) || m.kind == RPC_INVALID;
    bool odd = invalid || m.kind == RPC_BATCH;
    bool answer = !odd && (m.kind == RPC_RESULT || m.kind == RPC_ERROR);

    if (answer && span_is(m.id, ROOTS)) {
        take_roots(s, &m);
        return;
    }
    if (s->asking_until) {
        hold(s, line);
        return;
    }
    if (odd) {
        if (!invalid)
            take_batch(s, &m);
        put_line(&s->to_daemon, line);
        return;
    }
    if (answer) {
        pass_answer(s, &m);
        return;
    }
    if (m.kind == RPC_REQUEST && !take_request(s, &m))
        return;
    if (rpc_method_is(&m, "notifications/initialized"))
        s->initialized = true;
    if (rpc_method_is(&m, "notifications/cancelled") && m.params.n)
        forget(s, json_get(m.params, "requestId").value);
    put_line(&s->to_daemon, line);
    if (rpc_method_is(&m, "notifications/initialized") ||
        rpc_method_is(&m, "notifications/roots/list_changed"))
        ask_roots(s);
}

/* --- from the daemon --- */

static void tell_changed(struct shim *s, struct span result)
{
    static const char *const kinds[] = {"tools", "resources", "prompts"};
    struct span declared = json_get(result, "capabilities").value;

    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        BUF_SCOPED method = {0};
        if (json_type_of(declared) != JSON_OBJECT ||
            json_get(declared, kinds[i]).type != JSON_OBJECT)
            continue;
        buf_printf(&method, "notifications/%s/list_changed", kinds[i]);
        rpc_put_notification(&s->to_host.waiting, buf_cstr(&method), SPAN_EMPTY);
        end_line(&s->to_host);
    }
}

/* Passes a request of a server on to the host. */
static void pass_question(struct shim *s, const struct rpc_message *m)
{
    BUF_SCOPED id = {0};

    if (s->epoch > 1)
        buf_printf(&id, "\"%u:", s->epoch);
    buf_span(&id, m->id);
    if (s->epoch > 1)
        buf_char(&id, '"');
    list_append(&s->asked, &open_request_new(buf_view(&id), SPAN_EMPTY)->node);
    put_with_id(&s->to_host, m, buf_view(&id));
}

static void close_answered(struct shim *s, const struct rpc_message *m)
{
    struct json_iter it = json_iter(m->kind == RPC_BATCH ? m->text : SPAN_EMPTY);
    struct rpc_message one;

    while (json_next(&it))
        if (!rpc_skim(it.value, NULL, NULL, NULL, 0, &one) && one.kind != RPC_REQUEST)
            forget(s, one.id);
    if (m->kind == RPC_ERROR && (!m->id.n || span_is(m->id, "null")))
        forget_batches(s);
    else if (m->kind == RPC_RESULT || m->kind == RPC_ERROR)
        forget(s, m->id);
}

static void from_daemon(void *owner, struct span line)
{
    struct shim *s = owner;
    struct rpc_message m;
    bool invalid = rpc_skim(line, NULL, NULL, NULL, 0, &m) != 0;
    bool answer = !invalid && (m.kind == RPC_RESULT || m.kind == RPC_ERROR) && m.id.n;

    s->barren = 0;
    if (answer && span_starts(m.id, SPAN(OWN))) {
        if (m.kind == RPC_RESULT && span_is(m.id, OWN "greeting\""))
            tell_changed(s, m.result);
        return;
    }
    if (!invalid)
        close_answered(s, &m);
    if (!invalid && m.kind == RPC_REQUEST)
        pass_question(s, &m);
    else
        put_line(&s->to_host, line);
}

static void too_long(void *owner, struct span head)
{
    (void)owner, (void)head;
    fprintf(stderr, "rialto stdio: a message of more than %d bytes was dropped\n", LINE_MAX_N);
}

static const struct lines_events host_events = {from_host, too_long};
static const struct lines_events daemon_events = {from_daemon, too_long};

/* --- another daemon --- */

/* Keeps those waiting lines of the host of which the old daemon has not got a byte. */
static void keep_unsent(struct shim *s)
{
    struct outlet *o = &s->to_daemon;
    size_t end = 0;

    if (o->taken < s->introduced)
        end = (size_t)(s->introduced - o->taken);
    else if (o->mid_line)
        end = span_find(buf_view(&o->waiting), '\n') + 1;
    o->taken += end;
    buf_drop(&o->waiting, end);
    o->mid_line = false;
}

static void withdraw_questions(struct shim *s)
{
    LIST_EACH_SAFE (&s->asked, it) {
        struct open_request *r = LIST_ENTRY(it, struct open_request, node);
        BUF_SCOPED params = {0};
        buf_str(&params, "{\"requestId\":");
        buf_span(&params, open_request_id(r));
        buf_str(&params, ",\"reason\":\"the daemon ended\"}");
        rpc_put_notification(&s->to_host.waiting, "notifications/cancelled", buf_view(&params));
        end_line(&s->to_host);
        open_request_free(r);
    }
}

/* Fails the requests that the old daemon had received, except those that may be sent again. After
 * the host's end no other daemon gets the rest. */
static void answer_lost(struct shim *s)
{
    LIST_EACH_SAFE (&s->open, it) {
        struct open_request *r = LIST_ENTRY(it, struct open_request, node);
        if ((r->at >= s->to_daemon.taken && !s->host_ended) || r->text_n)
            continue;
        if (s->told)
            refuse(s, open_request_id(r),
                   "The input ended, and the answer did not come soon after it",
                   "{\"reason\":\"cancelled\",\"retryable\":false}");
        else
            refuse(s, open_request_id(r),
                   "The daemon ended while it worked on this. It is not known how far it came, so "
                   "the call is not repeated",
                   "{\"reason\":\"crashed\",\"retryable\":false}");
        open_request_free(r);
        s->n_open--;
    }
}

static void put_own(struct shim *s, struct buf *out, const char *text, const char *name)
{
    BUF_SCOPED id = {0};
    struct outlet o = {0};
    struct rpc_message m;

    buf_str(&id, OWN);
    if (*name)
        buf_printf(&id, "%s\"", name);
    else
        buf_printf(&id, "%u\"", s->own++);
    if (rpc_skim(span_str(text), NULL, NULL, NULL, 0, &m) == 0)
        put_with_id(&o, &m, buf_view(&id));
    buf_span(out, buf_view(&o.waiting));
    buf_fini(&o.waiting);
}

static bool is_open(struct shim *s, const char *text)
{
    LIST_EACH (&s->open, it) {
        const struct open_request *r = LIST_ENTRY(it, struct open_request, node);
        if (text && r->text_n && span_is(open_request_text(r), text))
            return true;
    }
    return false;
}

/* Puts before all waiting lines what the new daemon must get first: variables, the host's greeting,
 * log level and subscriptions, and the requests that may be sent again. */
static void introduce(struct shim *s)
{
    BUF_SCOPED first = {0}, rest = {0};

    caller_variables_put(&s->variables, &first);
    if (s->greeting && !is_open(s, s->greeting))
        put_own(s, &first, s->greeting, "greeting");
    LIST_EACH (&s->open, it) {
        struct open_request *r = LIST_ENTRY(it, struct open_request, node);
        bool greeting = s->greeting && span_is(open_request_text(r), s->greeting);
        struct buf *out = greeting ? &first : &rest;
        if (r->at >= s->to_daemon.taken || !r->text_n)
            continue;
        buf_span(out, open_request_text(r));
        buf_char(out, '\n');
    }
    if (s->initialized)
        buf_str(&first, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n");
    if (s->level && !is_open(s, s->level))
        put_own(s, &first, s->level, "");
    LIST_EACH (&s->subscriptions, it) {
        char *text = mem_span(open_request_text(LIST_ENTRY(it, struct open_request, node)));
        if (!is_open(s, text))
            put_own(s, &first, text, "");
        mem_free(text);
    }
    buf_span(&first, buf_view(&rest));
    uint64_t more = first.n;
    s->introduced = s->to_daemon.taken + more;
    buf_span(&first, buf_view(&s->to_daemon.waiting));
    buf_fini(&s->to_daemon.waiting);
    s->to_daemon.waiting = first;
    first = (struct buf){0};
    LIST_EACH (&s->open, it) {
        struct open_request *r = LIST_ENTRY(it, struct open_request, node);
        if (r->at >= s->to_daemon.taken)
            r->at += more;
    }
}

static bool attach(struct shim *s)
{
    s->daemon = attach_to_daemon(s->options, s->epoch > 0, &s->variables.names);
    if (s->daemon < 0)
        return false;
    fcntl(s->daemon, F_SETFL, O_NONBLOCK);
    s->epoch++;
    introduce(s);
    if (!s->variables.root.n)
        ask_roots(s); /* this daemon may be the first that asks for the project */
    return true;
}

/* The daemon has ended: attaches to the next one. False: the shim must end. */
static bool change_daemon(struct shim *s)
{
    close(s->daemon);
    s->daemon = -1;
    lines_fini(&s->from_daemon); /* drops half a line */
    lines_init(&s->from_daemon, LINE_MAX_N);
    keep_unsent(s);
    answer_lost(s);
    withdraw_questions(s);
    flush(&s->to_host, STDOUT_FILENO);
    if (s->host_ended)
        return false;
    if (s->barren++ > BARREN_MAX) {
        fputs("rialto stdio: the daemon leaves again and again\n", stderr);
        return false;
    }
    poll(NULL, 0, (int)(s->barren - 1) * BARREN_MS);
    return attach(s);
}

/* --- the loop --- */

/* Is there an open request that may take its time? Lists and the like come soon, and a
 * subscription has no end. */
static bool awaits_answer(const struct shim *s)
{
    LIST_EACH (&s->open, it)
        if (!LIST_ENTRY(it, struct open_request, node)->text_n)
            return true;
    return false;
}

/* Writes what still waits for the host, which may be slow. */
static void flush_rest(struct shim *s)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};

    while (s->to_host.waiting.n && poll(&out, 1, DRAIN_MS) > 0 && flush(&s->to_host, STDOUT_FILENO))
        continue;
}

/* Reads once; false at the end of the input or when it is broken. */
static bool feed(int fd, struct lines *lines, const struct lines_events *on, struct shim *s)
{
    static char chunk[CHUNK];
    ssize_t n = read(fd, chunk, sizeof chunk);

    if (n > 0)
        lines_feed(lines, span_of(chunk, (size_t)n), on, s);
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

/* Waits for events and handles them. An exit status, or -1 to go on. */
static int turn(struct shim *s)
{
    struct pollfd polls[] = {
        {.fd = s->host_ended || s->to_daemon.waiting.n > HIGH ? -1 : STDIN_FILENO,
         .events = POLLIN},
        {.fd = s->to_host.waiting.n || s->host_ended ? STDOUT_FILENO : -1,
         .events = s->to_host.waiting.n ? POLLOUT : 0},
        {.fd = s->daemon,
         .events = (short)((s->to_host.waiting.n > HIGH ? 0 : POLLIN) |
                           (s->to_daemon.waiting.n ? POLLOUT : 0))},
    };
    long left = s->asking_until ? s->asking_until - now_ms() : 0;
    int ready = poll(polls, 3,
                     s->host_ended     ? DRAIN_MS
                     : s->asking_until ? (int)(left > 0 ? left : 0)
                                       : -1);

    if (ready < 0)
        return errno == EINTR ? -1 : 1;
    if (ready == 0 && s->asking_until)
        release(s);
    else if (ready == 0 && s->told)
        return 0; /* the host has ended, and the daemon sent nothing for DRAIN_MS */
    /* The daemon is read first: if it has ended, the host's lines must wait for the next one. */
    bool lost = (polls[2].revents & (POLLIN | POLLHUP | POLLERR)) &&
                !feed(s->daemon, &s->from_daemon, &daemon_events, s);
    if (!lost && (polls[0].revents) && !feed(STDIN_FILENO, &s->from_host, &host_events, s)) {
        lines_end(&s->from_host, &host_events, s);
        s->has_roots = false;
        release(s);
        s->host_ended = true;
    }
    if ((polls[1].revents & (POLLERR | POLLHUP)) || !flush(&s->to_host, STDOUT_FILENO))
        return 0; /* the host does not read any more */
    lost = lost || !flush(&s->to_daemon, s->daemon);
    if (lost)
        return change_daemon(s) ? -1 : !s->host_ended;
    /* A daemon that knows of the host's end gives up its calls soon. */
    if (s->host_ended && !s->to_daemon.waiting.n && !s->told && (!ready || !awaits_answer(s)))
        s->told = shutdown(s->daemon, SHUT_WR) == 0;
    return -1;
}

static void fini(struct shim *s)
{
    struct list *const lists[] = {&s->open, &s->asked, &s->subscriptions};

    for (size_t i = 0; i < COUNT_OF(lists); i++)
        LIST_EACH_SAFE (lists[i], it)
            open_request_free(LIST_ENTRY(it, struct open_request, node));
    lines_fini(&s->from_host);
    lines_fini(&s->from_daemon);
    buf_fini(&s->to_host.waiting);
    buf_fini(&s->to_daemon.waiting);
    caller_variables_fini(&s->variables);
    buf_fini(&s->held);
    mem_free(s->greeting);
    mem_free(s->level);
}

int shim_run(const struct shim_options *options)
{
    struct shim s = {.options = options};
    int status = -1;

    signal(SIGPIPE, SIG_IGN);
    list_init(&s.open);
    list_init(&s.asked);
    list_init(&s.subscriptions);
    lines_init(&s.from_host, LINE_MAX_N);
    lines_init(&s.from_daemon, LINE_MAX_N);
    /* A host that does not read must not keep us from reading what it writes. */
    int flags = fcntl(STDOUT_FILENO, F_GETFL);
    fcntl(STDOUT_FILENO, F_SETFL, flags | O_NONBLOCK);
    if (!attach(&s))
        status = 1;
    while (status < 0)
        status = turn(&s);
    flush_rest(&s);
    fcntl(STDOUT_FILENO, F_SETFL, flags);
    if (s.daemon >= 0)
        close(s.daemon);
    fini(&s);
    return status;
}
