/* Who wants a successor, what the old daemon hands over and when, and how the new one takes
 * it. Called by cmd/serve.c, by a route of the front, and by the loop. */
#include "hub/upgrade.h"

#include "base/log.h"
#include "base/mem.h"
#include "core/drain.h"
#include "hub/endpoints.h"
#include "hub/promises.h"
#include "hub/rehearsal.h"
#include "hub/shims.h"
#include "io/handover.h"
#include "io/http_client.h"
#include "io/inherited_child.h"
#include "io/listen.h"
#include "io/successor.h"
#include "mcp/agent/seal.h"
#include "mcp/server/catalog_text.h"
#include "wire/json.h"
#include "wire/json_out.h"

#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    LOOKUPS_MS = 5 * 1000, /* for libcurl's lookups: a name server may not answer for longer */
    READY_MS = 15 * 1000,  /* for the rehearsal, and again until the successor serves */
    CALLS_MS = 25 * 1000,  /* after this, the last calls of the old daemon are ended */
    GONE_MS = 28 * 1000,   /* after this, the old daemon ends, whatever is left */
    TICK_MS = 10,
};

struct upgrade {
    struct loop *loop;
    struct hub *hub;
    struct service *service;
    const struct upgrade_host *host;
    char *program; /* this daemon's */
    /* the successor that is wanted */
    char *wanted; /* its program; NULL: none is wanted */
    char **words;
    struct http_exchange *x;     /* who asked; NULL when gone */
    struct rehearsal *rehearsal; /* NULL: none is under way */
    bool rehearsed, due;
    struct timer threads;   /* checks whether the threads have ended */
    uint64_t lookups_until; /* libcurl's are not waited for after this; 0: not waited yet */
    /* while there are two daemons, and this is the old or the new one */
    struct handover *handover; /* NULL: there is no other daemon */
    int old;                   /* in the new one: the process of the old one; else 0 */
    bool ready;   /* new one: what must come first is here; old one: the new one serves */
    bool closing; /* everything is handed over, the rest is being closed */
    struct promises promises;
    struct timer tick;
    uint64_t since;
};

/* --- who asked --- */

static void on_gone(void *owner)
{
    struct upgrade *u = owner;

    u->x = NULL;
}

static void forget_request(struct upgrade *u)
{
    timer_clear(loop_timers(u->loop), &u->threads);
    mem_free(u->wanted);
    mem_free(u->words);
    u->wanted = NULL;
    u->words = NULL;
    u->x = NULL;
    u->due = u->rehearsed = false;
    u->lookups_until = 0;
}

static void refuse(struct upgrade *u, const char *why)
{
    log_error("upgrade", "%s: this daemon goes on: %s", u->wanted, why);
    if (u->x)
        http_refuse(u->x, 409, why, "the daemon goes on as it was");
    forget_request(u);
}

/* --- the rehearsal --- */

static void go_if_ready(struct upgrade *u);

static void on_threads(struct timer *t)
{
    go_if_ready(CONTAINER_OF(t, struct upgrade, threads));
}

/* Threads of ours end soon, libcurl's may not: then the calls that wait for them fail. */
static bool has_threads(struct upgrade *u)
{
    uint64_t now = loop_now(u->loop);

    if (!u->lookups_until)
        u->lookups_until = now + LOOKUPS_MS;
    return loop_has_threads(u->loop) ||
           (http_client_has_lookups(u->loop) && now < u->lookups_until);
}

/* Starts the upgrade unless the old process of the last upgrade is still there, or a thread runs: a
 * fork would not copy the thread. */
static void go_if_ready(struct upgrade *u)
{
    if (!u->rehearsed || u->handover || u->due)
        return;
    if (has_threads(u)) {
        timer_set(loop_timers(u->loop), &u->threads, TICK_MS);
        return;
    }
    u->due = true;
    loop_stop(u->loop);
}

static void on_rehearsed(void *arg, const char *why)
{
    struct upgrade *u = arg;

    u->rehearsal = NULL;
    if (why) {
        refuse(u, why);
        return;
    }
    u->rehearsed = true;
    if (u->handover)
        log_info("upgrade", "waits for the last calls of the upgrade before");
    go_if_ready(u);
}

static void rehearse(struct upgrade *u)
{
    struct err err = {0};

    u->rehearsal =
        rehearsal_start(u->loop, (const char *const *)u->words, READY_MS, on_rehearsed, u, &err);
    if (!u->rehearsal)
        refuse(u, err.text);
}

void upgrade_give_up(struct upgrade *u)
{
    rehearsal_free(u->rehearsal);
    u->rehearsal = NULL;
    if (u->wanted)
        refuse(u, "this Rialto is being stopped");
}

void upgrade_handle(void *owner, const struct caller *caller, struct http_exchange *x,
                    const struct http_request *req, struct span rest)
{
    struct upgrade *u = owner;
    BUF_SCOPED scratch = {0};
    enum json_type type;

    (void)rest;
    /* The request says which program is to run: callers that can only reach a port may not do that.
     */
    if (caller->way != CALLER_SOCKET) {
        http_refuse(x, 403, "only by the control socket", "'rialto upgrade' asks there");
        return;
    }
    if (!span_is(req->method, "POST")) {
        http_refuse(x, 405, "method not allowed", "this does something: POST");
        return;
    }
    if (u->wanted || hub_is_stopping(u->hub)) {
        http_refuse(x, 409, u->wanted ? "an upgrade is going on" : "this Rialto is being stopped",
                    "try again later");
        return;
    }
    if (json_skim(req->body, NULL, NULL, &type, NULL) || type != JSON_OBJECT) {
        http_refuse(x, 400, "the body is not a JSON object", "{\"program\": PATH}, or {}");
        return;
    }
    struct json_slot program = json_get(req->body, "program");
    u->wanted = program.type == JSON_STRING ? mem_span(json_text(program.value, &scratch))
                                            : mem_str(u->program);
    u->words = successor_words(u->wanted);
    u->x = x;
    http_exchange_on_gone(x, on_gone, u);
    rehearse(u);
}

/* --- messages --- */

static struct span text_in(struct span object, const char *name, struct buf *scratch)
{
    struct json_slot slot = json_get(object, name);

    return slot.type == JSON_STRING ? json_text(slot.value, scratch) : SPAN_EMPTY;
}

/* --- the old daemon: what the new one must have before it serves --- */

/* Numbers that must not be given twice, and the key that seals what agents keep for us. */
static void show_numbers(struct upgrade *u)
{
    BUF_SCOPED members = {0}, key = {0};

    json_out_number(&members, "handle", router_last_handle(bridge_router(hub_bridge(u->hub))));
    seal_put_key(&key);
    handover_tell(u->handover, "numbers", &members, buf_view(&key), NULL, 0);
}

static void show_inherited_call(void *arg, struct span text)
{
    const struct upgrade *u = arg;

    handover_send(u->handover, text, SPAN_EMPTY, NULL, 0);
}

/* The new daemon gets the catalog, so that no call has to wait for a list or is refused because the
 * list is missing. */
static void show_catalog(void *arg, struct mcp_provider *server)
{
    const struct upgrade *u = arg;
    const struct catalog *known = mcp_provider_core(server)->catalog;
    BUF_SCOPED members = {0}, text = {0};

    if (!known)
        return;
    json_out_str(&members, "key", mcp_provider_key(server));
    catalog_text_put(&text, known);
    handover_tell(u->handover, "catalog", &members, buf_view(&text), NULL, 0);
}

static void show_listener(void *arg, const char *asked, int fd, bool ours)
{
    const struct upgrade *u = arg;
    BUF_SCOPED members = {0};

    json_out_str(&members, "address", asked);
    json_out_bool(&members, "ours", ours);
    handover_tell(u->handover, "listen", &members, SPAN_EMPTY, &fd, 1);
}

static void show_session(void *arg, struct span home, struct span id, struct span state,
                         uint64_t ttl)
{
    const struct upgrade *u = arg;
    BUF_SCOPED members = {0};

    json_out_text(&members, "home", home);
    json_out_text(&members, "id", id);
    json_out_number(&members, "ttl", ttl);
    handover_tell(u->handover, "session", &members, state, NULL, 0);
}

/* --- the old daemon: the rest, as its calls end --- */

static void give_connection(void *arg, const struct http_given *given)
{
    const struct upgrade *u = arg;
    BUF_SCOPED members = {0};

    json_out_str(&members, "address", given->address);
    json_out_bool(&members, "by_kin", given->by_kin);
    if (given->peer) {
        json_out_str(&members, "peer", given->peer);
        json_out_str(&members, "local", given->local);
    }
    handover_tell(u->handover, "connection", &members, given->early, &given->fd, 1);
}

static void give_shim(void *arg, struct span text, int fd, struct span early)
{
    struct upgrade *u = arg;

    handover_send(u->handover, text, early, &fd, 1);
}

static bool is_through(const struct upgrade *u)
{
    return promises_are_kept(&u->promises) &&
           drain_count(bridge_router(hub_bridge(u->hub))) == u->promises.moved &&
           hub_is_quiet(u->hub) && handover_is_flushed(u->handover);
}

/* Ends without any cleanup: the children and files of this process belong to the new daemon now. */
static _Noreturn void end(void)
{
    log_info("upgrade", "the old process ends");
    _exit(0);
}

static void on_all_closed(void *arg)
{
    (void)arg;
    end();
}

static void on_tick(struct timer *t)
{
    struct upgrade *u = CONTAINER_OF(t, struct upgrade, tick);
    struct router *router = bridge_router(hub_bridge(u->hub));
    uint64_t age = loop_now(u->loop) - u->since;

    if (age > CALLS_MS && drain_count(router) > u->promises.moved)
        drain_end(router);
    if (age > CALLS_MS)
        front_hurry(hub_front(u->hub));
    promises_keep(&u->promises, u->handover);
    if (is_through(u)) {
        u->closing = true;
        hub_close_rest(u->hub, on_all_closed, u);
        return;
    }
    if (age > GONE_MS)
        end();
    timer_set(loop_timers(u->loop), t, TICK_MS);
}

static void on_last_signal(void *arg, int signo)
{
    struct upgrade *u = arg;

    (void)signo;
    u->since = 0; /* as if all time limits were over */
}

static void retire(struct upgrade *u)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    log_info("upgrade", "process %d serves with %s; this one, %d, ends its calls", getppid(),
             u->wanted, getpid());
    if (u->x) {
        BUF_SCOPED body = {0};
        buf_printf(&body, "{\"process\":%d}\n", getppid());
        http_exchange_on_gone(u->x, NULL, NULL);
        http_respond(u->x, 200, "application/json", SPAN_EMPTY, buf_view(&body));
    }
    service_fall_silent(u->service);
    listen_leave_all(u->loop);
    loop_on_signal(u->loop, SIGTERM, on_last_signal, u);
    loop_on_signal(u->loop, SIGINT, on_last_signal, u);
    u->since = loop_now(u->loop);
    hub_retire(u->hub);
    front_leave(hub_front(u->hub), give_connection, u);
    shims_leave(hub_shim_list(u->hub), give_shim, u);
    u->tick.fire = on_tick;
    timer_set(loop_timers(u->loop), &u->tick, 0);
    handover_start(u->handover);
}

static void on_serving(struct upgrade *u, struct handover_message *m)
{
    (void)m;
    u->ready = true;
}

static void on_said(struct upgrade *u, struct handover_message *m)
{
    if (!u->closing)
        endpoints_pass(hub_endpoints(u->hub), json_count(m->text, "session") << 1 | 1, m->body);
}

/* --- the new daemon --- */

static void on_promise(struct upgrade *u, struct handover_message *m)
{
    inherited_child_expect(u->loop, m->text);
}

static void on_numbers(struct upgrade *u, struct handover_message *m)
{
    router_skip_handles(bridge_router(hub_bridge(u->hub)), json_count(m->text, "handle"));
    seal_take_key(m->body);
}

static void on_parked(struct upgrade *u, struct handover_message *m)
{
    inherited_add_parked(hub_inherited(u->hub), m->text);
}

static void learn(void *arg, struct mcp_provider *server)
{
    const struct handover_message *m = arg;
    struct provider *core = mcp_provider_core(server);
    struct span key = json_get(m->text, "key").value;

    if (core->catalog || !json_string_is(key, span_str(mcp_provider_key(server))))
        return;
    struct catalog *known = catalog_text_read(m->body);
    if (known)
        provider_recall(core, known);
}

static void on_catalog(struct upgrade *u, struct handover_message *m)
{
    bridge_show_servers(hub_bridge(u->hub), learn, m);
}

static void on_listen(struct upgrade *u, struct handover_message *m)
{
    BUF_SCOPED scratch = {0}, address = {0};

    buf_span(&address, text_in(m->text, "address", &scratch));
    service_give_socket(u->service, buf_cstr(&address), m->fds[0],
                        json_get(m->text, "ours").type == JSON_TRUE);
    m->fds[0] = -1;
}

static void on_session(struct upgrade *u, struct handover_message *m)
{
    BUF_SCOPED home = {0}, id = {0};

    inherited_add(hub_inherited(u->hub), text_in(m->text, "home", &home),
                  text_in(m->text, "id", &id), m->body, json_count(m->text, "ttl"));
}

static char *copy_in(struct span object, const char *name)
{
    BUF_SCOPED scratch = {0};

    return json_get(object, name).type == JSON_STRING ? mem_span(text_in(object, name, &scratch))
                                                      : NULL;
}

static void on_connection(struct upgrade *u, struct handover_message *m)
{
    char *address = copy_in(m->text, "address"), *peer = copy_in(m->text, "peer"),
         *local = copy_in(m->text, "local");
    const struct http_given given = {.address = address,
                                     .fd = m->fds[0],
                                     .early = m->body,
                                     .peer = peer,
                                     .local = local,
                                     .by_kin = json_get(m->text, "by_kin").type == JSON_TRUE};

    if (front_adopt(hub_front(u->hub), &given))
        m->fds[0] = -1;
    mem_free(address);
    mem_free(peer);
    mem_free(local);
}

static void on_server(struct upgrade *u, struct handover_message *m)
{
    BUF_SCOPED key = {0};

    inherited_child_arrive(u->loop, text_in(m->text, "key", &key), m->fds, m->text, m->body);
}

static void on_lost(struct upgrade *u, struct handover_message *m)
{
    BUF_SCOPED key = {0};

    inherited_child_lose(u->loop, text_in(m->text, "key", &key));
}

static void on_shim(struct upgrade *u, struct handover_message *m)
{
    BUF_SCOPED scratch = {0}, view = {0};
    bool narrowed = json_get(m->text, "view").type == JSON_STRING;

    buf_span(&view, text_in(m->text, "view", &scratch));
    const struct narrowing *narrowing = narrowed ? hub_narrowing(u->hub, buf_cstr(&view)) : NULL;
    if (narrowed && !narrowing)
        return; /* the shim attaches again, and then gets the reason */
    if (shims_adopt(hub_shim_list(u->hub), m->text, m->fds[0], m->body, narrowing))
        m->fds[0] = -1;
}

static void on_line(struct upgrade *u, struct handover_message *m)
{
    u->host->line(u->host->arg, m->body);
}

static void on_message(void *owner, struct handover_message *m)
{
    static const struct {
        const char *kind;
        void (*handle)(struct upgrade *u, struct handover_message *m);
    } rows[] = {{"numbers", on_numbers}, {"parked", on_parked},   {"promise", on_promise},
                {"listen", on_listen},   {"session", on_session}, {"serve", on_serving},
                {"serving", on_serving}, {"said", on_said},       {"connection", on_connection},
                {"server", on_server},   {"lost", on_lost},       {"catalog", on_catalog},
                {"shim", on_shim},       {"line", on_line}};
    struct span kind = json_get(m->text, "kind").value;

    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (json_string_is(kind, span_str(rows[i].kind)))
            rows[i].handle(owner, m);
}

/* Waits for the old process to end and reads its status; until then it stays as a zombie. */
static void reap(struct timer *t)
{
    struct upgrade *u = CONTAINER_OF(t, struct upgrade, tick);

    if (waitpid(u->old, NULL, WNOHANG) == 0) {
        timer_set(loop_timers(u->loop), t, TICK_MS);
        return;
    }
    handover_free(u->handover);
    u->handover = NULL;
    go_if_ready(u);
}

static void on_ended(void *owner)
{
    struct upgrade *u = owner;

    if (!u->old)
        end(); /* the new daemon has gone, and the servers with it */
    inherited_on_stray(hub_inherited(u->hub), NULL, NULL);
    inherited_child_end_all(u->loop);
    u->tick.fire = reap;
    reap(&u->tick);
}

static void on_stray(void *arg, uint64_t session, struct span message)
{
    const struct upgrade *u = arg;
    BUF_SCOPED members = {0};

    json_out_number(&members, "session", session >> 1);
    handover_tell(u->handover, "said", &members, message, NULL, 0);
}

bool upgrade_inherit(struct upgrade *u, int handover, int old)
{
    u->old = old;
    inherited_child_begin(u->loop);
    u->handover = handover_new(u->loop, handover, on_message, on_ended, u);
    while (!u->ready)
        if (!handover_wait(u->handover, READY_MS))
            return false;
    return true;
}

/* Servers that run go on running, even those that are started only by a call. */
static void want(void *arg, struct mcp_provider *server)
{
    (void)arg;
    if (mcp_provider_is_promised(server))
        provider_want(mcp_provider_core(server));
}

void upgrade_serve(struct upgrade *u)
{
    if (!u->handover)
        return;
    inherited_on_stray(hub_inherited(u->hub), on_stray, u);
    bridge_show_servers(hub_bridge(u->hub), want, u);
    handover_tell(u->handover, "serving", NULL, SPAN_EMPTY, NULL, 0);
    handover_start(u->handover);
}

/* --- both --- */

/* Hands over what the new daemon needs before it serves, and waits until it serves. Until then, the
 * old daemon gives nothing up. */
static bool hand_over_first(struct upgrade *u)
{
    const struct hub *hub = u->hub;

    show_numbers(u);
    inherited_show_parked(hub_inherited(hub), show_inherited_call, u);
    promises_make(&u->promises, u->handover);
    bridge_show_servers(hub_bridge(hub), show_catalog, u);
    listen_show_all(u->loop, show_listener, u);
    endpoints_show(hub_endpoints(hub), show_session, u);
    inherited_show(hub_inherited(hub), show_session, u);
    u->host->leave(u->host->arg);
    handover_tell(u->handover, "serve", NULL, SPAN_EMPTY, NULL, 0);
    while (!u->ready)
        if (!handover_wait(u->handover, READY_MS))
            return false;
    return true;
}

/* The successor has failed. `heir` is the process that became the successor. It may have ended:
 * then our parent is an unrelated process. */
static void go_on(struct upgrade *u, int heir)
{
    if (getppid() == heir)
        kill(heir, SIGKILL);
    handover_free(u->handover);
    u->handover = NULL;
    promises_forget(&u->promises);
    u->host->come_back(u->host->arg);
    refuse(u, "it did not serve in time, or ended; servers that it had taken are started again");
}

void upgrade_run(struct upgrade *u)
{
    struct err err = {0};
    int socket, heir = getpid(); /* this process becomes the new program; below is its fork */

    if (successor_start(u->loop, u->service, u->wanted, u->words, &socket, &err)) {
        refuse(u, err.text);
        return;
    }
    u->ready = false;
    u->old = 0;
    u->handover = handover_new(u->loop, socket, on_message, on_ended, u);
    if (hand_over_first(u))
        retire(u);
    else
        go_on(u, heir);
}

void upgrade_send_line(struct upgrade *u, struct span body)
{
    handover_tell(u->handover, "line", NULL, body, NULL, 0);
}

bool upgrade_is_due(const struct upgrade *u)
{
    return u->due;
}

struct upgrade *upgrade_new(struct hub *hub, struct loop *loop, struct service *service,
                            const char *program, const struct upgrade_host *host)
{
    struct upgrade *u = MEM_NEW(struct upgrade);

    u->loop = loop;
    u->hub = hub;
    u->service = service;
    u->host = host;
    u->program = mem_str(program);
    u->threads.fire = on_threads;
    promises_init(&u->promises, hub);
    return u;
}

void upgrade_free(struct upgrade *u)
{
    forget_request(u);
    timer_clear(loop_timers(u->loop), &u->tick);
    if (u->handover)
        handover_free(u->handover);
    inherited_child_end_all(u->loop);
    mem_free(u->program);
    mem_free(u);
}
