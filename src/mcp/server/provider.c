/* Messages from a server: answers and asks given to the calls they belong to, notifications to
 * notices.c; and the provider's start, stop and settings. Called by the links for each message, by
 * hub/ to make, set up and free providers, by admin/ and cmd/ to show them. */
#include "mcp/server/provider.h"

#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/doubts.h"
#include "mcp/circle.h"
#include "mcp/server/as_tools.h"
#include "mcp/server/context.h"
#include "mcp/server/task_watch.h"
#include "mcp/server/upstream.h"
#include "mcp/task_text.h"
#include "wire/json_out.h"

#include <stdio.h>

/* --- what the server sends --- */

static void respond(struct mcp_provider *p, struct span id, struct span result)
{
    rpc_put_result(p->ops->begin(p->link), id, result);
    upstream_send(p, (struct mcp_parcel){.kind = RPC_RESULT});
}

static void respond_error(struct mcp_provider *p, struct span id, int code, const char *text)
{
    rpc_put_error(p->ops->begin(p->link), id, code, span_str(text), SPAN_EMPTY);
    upstream_send(p, (struct mcp_parcel){.kind = RPC_ERROR});
}

static void receive_response(struct mcp_provider *p, const struct mcp_message *m)
{
    struct sent *sent = upstream_sent_of(p, m->rpc.id);

    if (!sent) {
        /* A second answer, or one to a call that was given up. */
        log_debug(p->alias, "answer to id " SPAN_FMT ", which is not open", SPAN_ARG(m->rpc.id));
        return;
    }
    if (!sent->call)
        upstream_note(p, true, m->rpc.text);
    idmap_take(&p->sent, sent->id);
    sent->id = 0;
    sent->keep = false;
    sent->answered(p, sent, m);
    if (!sent->keep)
        upstream_sent_free(p, sent);
}

/* A question of a server that does not say on which call it asks. */
static void receive_orphan(struct mcp_provider *p, const struct ask *ask)
{
    if (p->on_orphan)
        p->on_orphan(p->orphan_arg);
    /* A question of a shared server that belongs to no call is never broadcast. */
    if (!doubts_put(&p->core, ask))
        respond_error(p, ask->key, RPC_METHOD_NOT_FOUND,
                      "No client can be asked: this request belongs to no single open call");
}

/* Give a question of the server to the consumer of the call that the question belongs to: by its
 * stream, or as core/doubts.h finds the call. */
static void receive_ask(struct mcp_provider *p, const struct mcp_message *m, uint64_t about,
                        const struct ask *given)
{
    const struct sent *sent = idmap_get(&p->sent, about);
    struct call *owner = sent ? sent->call : NULL;
    BUF_SCOPED params = {0}, related = {0};
    struct ask ask = *given;

    if (p->offers & OFFERS_TASKS) {
        struct call *of_task = upstream_tasks_owner(p, task_text_related(m->rpc.params));
        owner = of_task ? of_task : owner;
    }
    if (m->slots[SLOT_META_TOKEN].type != JSON_NONE) {
        params_put_foreign(&params, m);
        ask.params = buf_view(&params);
    }
    if (p->offers & OFFERS_TASKS)
        ask.params = upstream_tasks_relate(p, ask.params, &related);
    if (owner)
        ask_put(owner, &ask);
    else
        receive_orphan(p, &ask);
}

static void receive_request(struct mcp_provider *p, const struct mcp_message *m, uint64_t about)
{
    BUF_SCOPED method = {0};
    struct ask ask = {.key = m->rpc.id,
                      .method = rpc_method_text(&m->rpc, &method),
                      .params = m->rpc.params,
                      .needs =
                          p->plain ? 0 : mcp_ask_needs(rpc_method_quoted(&m->rpc), m->rpc.params)};

    if (p->plain) {
        if (!ask_put_standing(&p->core, &ask))
            respond_error(p, m->rpc.id, RPC_INTERNAL_ERROR, "The client is not there");
    } else if (rpc_method_is(&m->rpc, "ping")) {
        respond(p, m->rpc.id, SPAN("{}"));
    } else if (!ask.needs || p->modern) {
        /* In the stateless era servers ask in their results, and clients answer no requests. */
        respond_error(p, m->rpc.id, RPC_METHOD_NOT_FOUND, "Method not found");
    } else if (!p->watches.n || !task_watch_ask(p, m, about, &ask)) {
        receive_ask(p, m, about, &ask);
    }
}

/* Agents read a server's asks and notifications as well, and not all as strictly as we do. */
static bool refuse_misleading(struct mcp_provider *p, const struct mcp_message *m)
{
    BUF_SCOPED why = {0};
    bool misleads = !p->plain && mcp_params_mislead(m, &why);

    if (misleads)
        log_warn(p->alias, "dropped '" SPAN_FMT "': %s", SPAN_ARG(m->rpc.method), buf_cstr(&why));
    if (misleads && m->rpc.kind == RPC_REQUEST)
        respond_error(p, m->rpc.id, RPC_INVALID_PARAMS, buf_cstr(&why));
    return misleads;
}

static void receive_one(struct mcp_provider *p, const struct mcp_message *m, uint64_t about)
{
    if (m->rpc.method.p && refuse_misleading(p, m))
        return;
    switch (m->rpc.kind) {
    case RPC_RESULT:
    case RPC_ERROR:
        receive_response(p, m);
        break;
    case RPC_REQUEST:
        upstream_note(p, true, m->rpc.text);
        receive_request(p, m, about);
        break;
    case RPC_NOTIFICATION:
        if (!rpc_method_is(&m->rpc, "notifications/progress"))
            upstream_note(p, true, m->rpc.text);
        (p->plain ? notices_pass : notices_receive)(p, m, about);
        break;
    case RPC_BATCH:
    case RPC_INVALID:
        log_warn(p->alias, "sent JSON that is not a message (%s)", m->rpc.why);
        break;
    }
}

void mcp_provider_receive(struct mcp_provider *p, struct span text, uint64_t about)
{
    struct mcp_message m;
    int code = mcp_skim(text, &m);

    if (code == 0 && !m.rpc.one_line) {
        /* Pieces of the message will go out where a message is one line, so it is made one line
         * here, once. */
        BUF_SCOPED line = {0};
        json_one_line(&line, text);
        mcp_provider_receive(p, buf_view(&line), about);
        return;
    }
    p->heard_at = router_timers(p->core.router)->now;
    if (code) {
        /* Some servers print banners and debug output: skip the text, but log it. */
        struct span head = span_cut(text, 0, 120);
        log_warn(p->alias, "said something that is not JSON (%s): " SPAN_FMT "%s", err_name(code),
                 SPAN_ARG(head), head.n < text.n ? "..." : "");
        return;
    }
    if (m.rpc.kind != RPC_BATCH) {
        receive_one(p, &m, about);
        return;
    }
    struct json_iter it = json_iter(m.rpc.text);
    while (json_next(&it))
        if (mcp_skim(it.value, &m) == 0 && m.rpc.kind != RPC_BATCH)
            receive_one(p, &m, about);
}

void mcp_provider_failed(struct mcp_provider *p, uint64_t id, int status, bool delivered,
                         const char *why)
{
    if (!mcp_provider_expects(p, id))
        return;
    struct sent *sent = idmap_take(&p->sent, id);
    if (!delivered && sent->call)
        sent->call->repeatable = true; /* the server never saw the call: repeating it is safe */
    sent->id = 0;
    sent->failed(p, sent, status, why);
    upstream_sent_free(p, sent);
}

bool mcp_provider_expects(const struct mcp_provider *p, uint64_t id)
{
    const struct sent *sent = idmap_get(&p->sent, id);

    return sent && !sent->progress_only;
}

void mcp_provider_greet_again(struct mcp_provider *p)
{
    log_info(p->alias, "forgot our session: introducing ourselves again");
    handshake_start(p);
}

/* The call whose response is too long to keep. Only the beginning of the response is known: if the
 * id comes before the result, the text up to the result is a message without result. */
static struct call *owner_of_head(const struct mcp_provider *p, struct span head)
{
    static const struct span contents[] = {{",\"result\":", 10}, {",\"error\":", 9}};
    struct call *owner = NULL;

    for (size_t i = 0; i < head.n && !owner; i++) {
        struct span rest = span_from(head, i);
        if (!span_starts(rest, contents[0]) && !span_starts(rest, contents[1]))
            continue;
        BUF_SCOPED text = {0};
        int64_t id = 0;
        buf_span(&text, span_cut(head, 0, i));
        buf_char(&text, '}');
        if (json_skim(buf_view(&text), NULL, NULL, NULL, NULL) == 0 &&
            json_int(json_get(buf_view(&text), "id").value, &id)) {
            const struct sent *sent = idmap_get(&p->sent, (uint64_t)id);
            owner = sent ? sent->call : NULL;
        }
    }
    return owner;
}

void mcp_provider_too_long(struct mcp_provider *p, struct span head, size_t limit)
{
    struct call *owner = owner_of_head(p, head);
    struct span start = span_cut(head, 0, 80);
    BUF_SCOPED text = {0};

    log_warn(p->alias,
             "sent a message of more than %zu bytes (limits.message): dropped; it began " SPAN_FMT,
             limit, SPAN_ARG(start));
    if (!owner)
        owner = ask_sole_call(&p->core);
    if (!owner)
        return; /* it is not known which call was answered: that call ends by its deadline */
    upstream_sent_free(p, owner->provider_data);
    buf_printf(&text, "server '%s' answered with more than %zu bytes (limits.message)", p->alias,
               limit);
    call_done(owner, &(struct outcome){
                         .kind = OUTCOME_FAILED, .why = FAIL_PROTOCOL, .text = buf_view(&text)});
}

/* --- life --- */

uint64_t mcp_provider_phase(const struct mcp_provider *p, enum mcp_phase phase)
{
    return p->phase_at[phase];
}

static void connected(struct mcp_provider *p)
{
    /* A new process may give its tasks ids that the process before it has given to others. */
    p->instance = p->ops->outlived ? 0 : id_random_u64() | 1;
    handshake_reached(p, MCP_CONNECTED);
    ping_start(p);
}

void mcp_provider_connected(struct mcp_provider *p)
{
    connected(p);
    handshake_start(p);
}

static void drop_sent(struct mcp_provider *p)
{
    struct sent *sent;

    while ((sent = LIST_FIRST(&p->all_sent, struct sent, node))) /* freeing one may free another */
        upstream_sent_free(p, sent);
}

static void clear_timers(struct mcp_provider *p)
{
    handshake_ended(p);
    timer_clear(router_timers(p->core.router), &p->listen);
    timer_clear(router_timers(p->core.router), &p->listen_wait);
    timer_clear(router_timers(p->core.router), &p->ping);
}

void mcp_provider_locked(struct mcp_provider *p)
{
    p->core.locked = true;
}

void mcp_provider_closed(struct mcp_provider *p, const char *why)
{
    drop_sent(p);
    clear_timers(p);
    p->listen_id = p->listen_old = 0;
    p->listen_due = p->listen_acked = false;
    map_fini(&p->listen_uris); /* the router tells us again those that are left */
    backoff_reset(&p->listen_backoff);
    tasks_forget_instance(router_tasks(p->core.router), p->instance);
    lists_abort(p);
    p->knows_modern &= p->phase_at[MCP_GREETED] != 0;
    why = p->verdict[0] ? p->verdict : why;
    if (p->discreet && !p->core.retries_late) { /* with retries_late, `why` is our own text */
        log_info(p->alias, "failed: %s", why);
        why = "could not be reached, or did not answer as an MCP server";
        p->core.locked = false;
    }
    provider_lost(&p->core, why);
}

static void start(struct provider *core)
{
    struct mcp_provider *p = CONTAINER_OF(core, struct mcp_provider, core);

    p->verdict[0] = '\0';
    p->core.locked = false;
    memset(p->phase_at, 0, sizeof p->phase_at);
    handshake_reached(p, MCP_OPENING);
    p->ops->open(p->link);
}

static void stop(struct provider *core)
{
    struct mcp_provider *p = CONTAINER_OF(core, struct mcp_provider, core);

    p->ops->close(p->link);
}

static void describe(const struct provider *core, struct provider_facts *facts)
{
    const struct mcp_provider *p = CONTAINER_OF(core, struct mcp_provider, core);

    facts->version = p->version;
    if (p->ops->describe)
        p->ops->describe(p->link, facts);
}

static const char *pinned(const struct provider *core, struct span tool)
{
    const struct mcp_provider *p = CONTAINER_OF(core, const struct mcp_provider, core);
    const struct mcp_override *o = override_find(&p->overrides, tool);

    return o ? o->arguments : NULL;
}

static const struct provider_ops life = {
    .start = start, .stop = stop, .describe = describe, .pinned = pinned};

struct mcp_provider *mcp_provider_new(const char *alias, const struct mcp_link_ops *ops, void *link)
{
    struct mcp_provider *p = MEM_NEW(struct mcp_provider);

    p->alias = mem_str(alias);
    p->ops = ops;
    p->link = link;
    p->declares = ANSWERS_ELICIT_FORM | ANSWERS_ELICIT_URL | ANSWERS_SAMPLING;
    list_init(&p->all_sent);
    traffic_init(&p->traffic);
    p->listen.fire = upstream_on_listen;
    p->listen_wait.fire = upstream_on_listen_silence;
    p->probe.fire = handshake_on_silence;
    p->page.fire = lists_on_silence;
    p->ping.fire = ping_on_answer;
    provider_init(&p->core, &upstream_verbs, &life, p->alias);
    p->core.takes_any = true;
    return p;
}

void mcp_provider_free(struct mcp_provider *p)
{
    p->ops->free(p->link);
    provider_fini(&p->core);
    drop_sent(p);
    idmap_fini(&p->sent);
    map_fini(&p->listen_uris);
    buf_fini(&p->extra);
    traffic_fini(&p->traffic);
    map_fini(&p->withheld);
    map_fini(&p->listen_tasks);
    map_fini(&p->watches);
    as_tools_fini(p);
    context_fini(p);
    circle_fini(p);
    mem_free(p->instructions);
    mem_free(p->info);
    mem_free(p->capabilities);
    mem_free(p->alias);
    mem_free(p->key);
    mem_free(p);
}

/* --- another daemon takes over --- */

void mcp_provider_set_key(struct mcp_provider *p, const char *key)
{
    mem_free(p->key);
    p->key = mem_str(key);
}

const char *mcp_provider_key(const struct mcp_provider *p)
{
    return p->key;
}

bool mcp_provider_is_promised(const struct mcp_provider *p)
{
    return p->key && p->ops->is_promised && p->ops->is_promised(p->link);
}

bool mcp_provider_promise(const struct mcp_provider *p, struct buf *out)
{
    return p->key && p->ops->promise && p->ops->promise(p->link, out);
}

/* Other answers that we wait for, such as a list, are lost: the other daemon asks again. */
bool mcp_provider_leave(struct mcp_provider *p, size_t moving, struct buf *note, int fds[3],
                        struct buf *early)
{
    if (!p->key || !p->ops->leave || p->core.state != PROVIDER_READY ||
        provider_count_calls(&p->core) > moving || !p->ops->leave(p->link, note, fds, early))
        return false;
    json_out_number(note, "last_id", p->last_id);
    handshake_put(p, note);
    upstream_listen_put(p, note);
    timer_clear(router_timers(p->core.router), &p->ping);
    timer_clear(router_timers(p->core.router), &p->listen);
    timer_clear(router_timers(p->core.router), &p->page);
    return true;
}

bool mcp_provider_put_going_on(const struct mcp_provider *p, const struct call *call,
                               struct buf *out)
{
    const struct sent *sent = call->provider_data;
    struct provider_facts facts = {0};

    if (p->modern || call->state != CALL_OPEN || call->op == OP_STANDING || !sent || !sent->id ||
        sent->task_request || sent->made || !p->ops->describe)
        return false;
    p->ops->describe(p->link, &facts);
    json_out_number(out, "id", sent->id);
    json_out_number(out, "pid", (uint64_t)facts.pid);
    return facts.pid > 0;
}

void mcp_provider_inherited(struct mcp_provider *p, bool modern, struct span note)
{
    uint64_t last = json_count(note, "last_id");

    if (p->last_id < last)
        p->last_id = last;
    connected(p);
    upstream_listen_resume(p, note);
    handshake_resume(p, modern, note);
}

struct provider *mcp_provider_core(struct mcp_provider *p)
{
    return &p->core;
}

void mcp_provider_set_overrides(struct mcp_provider *p, const struct mcp_overrides *overrides)
{
    p->overrides = *overrides;
    /* A method that we do not know might use a tool that is hidden or held. */
    p->core.takes_any = !p->admits && !overrides_restrict(overrides);
}

void mcp_provider_set_judge(struct mcp_provider *p,
                            bool (*admits)(void *arg, const char *alias, struct span name,
                                           struct span tool),
                            void *arg)
{
    p->admits = admits;
    p->judge = arg;
    p->core.takes_any = !admits && !overrides_restrict(&p->overrides);
}

void mcp_provider_set_extras(struct mcp_provider *p, const struct mcp_extras *extras)
{
    p->extras = *extras;
}

void mcp_provider_set_answers(struct mcp_provider *p, unsigned answers)
{
    p->declares = answers;
}

void mcp_provider_set_ping(struct mcp_provider *p, uint64_t interval_ms)
{
    p->ping_interval = interval_ms;
}

void mcp_provider_set_discreet(struct mcp_provider *p)
{
    p->discreet = true;
}

void mcp_provider_relist(struct mcp_provider *p)
{
    if (p->core.state == PROVIDER_READY)
        lists_fetch(p, (1u << ITEM_KINDS) - 1);
}

void mcp_provider_on_lists(struct mcp_provider *p, void (*fn)(void *arg), void *arg)
{
    p->on_lists = fn;
    p->lists_arg = arg;
}

void mcp_provider_on_orphan(struct mcp_provider *p, void (*fn)(void *arg), void *arg)
{
    p->on_orphan = fn;
    p->orphan_arg = arg;
}

void mcp_provider_set_plain(struct mcp_provider *p)
{
    p->plain = true;
}

void mcp_provider_set_era(struct mcp_provider *p, enum mcp_era era)
{
    p->wanted_era = era;
}

const struct traffic *mcp_provider_traffic(const struct mcp_provider *p)
{
    return &p->traffic;
}

struct span mcp_provider_info(const struct mcp_provider *p)
{
    return p->info ? span_str(p->info) : SPAN_EMPTY;
}

struct span mcp_provider_capabilities(const struct mcp_provider *p)
{
    return p->capabilities ? span_str(p->capabilities) : SPAN_EMPTY;
}

const char *mcp_provider_instructions(const struct mcp_provider *p)
{
    return p->instructions;
}

const char *mcp_provider_version(const struct mcp_provider *p)
{
    return p->version;
}

bool mcp_provider_is_modern(const struct mcp_provider *p)
{
    return p->modern;
}
