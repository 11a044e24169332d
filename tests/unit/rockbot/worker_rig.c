#include "worker_rig.h"

#include "base/log.h"

#include <stdio.h>
#include <sys/stat.h>

/* --- servers --- */

static struct rig_server *of_peer(struct peer *self)
{
    return CONTAINER_OF(CONTAINER_OF(self, struct provider, peer), struct rig_server, core);
}

void rig_finish(struct call *c, const char *text)
{
    struct buf body = {0};

    buf_str(&body, "{\"content\":[{\"type\":\"text\",\"text\":");
    json_quote(&body, span_str(text));
    buf_str(&body, "}]}");
    call_done(c, &(struct outcome){.kind = OUTCOME_RESULT, .body = buf_view(&body)});
    buf_fini(&body);
}

static void done_raw(struct call *c, enum outcome_kind kind, const char *body, bool is_error)
{
    call_done(c, &(struct outcome){.kind = kind, .body = span_str(body), .is_error = is_error});
}

static void finish_big(struct call *c)
{
    char *text = mem_alloc(20001);

    memset(text, 'x', 20000);
    text[20000] = '\0';
    rig_finish(c, text);
    mem_free(text);
}

static void on_open(struct peer *self, struct call *c, const struct request *q)
{
    struct rig_server *s = of_peer(self);
    struct json_slot arguments = json_get(q->params, "arguments");
    char *given = mem_span(arguments.type == JSON_OBJECT ? arguments.value : SPAN("none"));

    s->runs++;
    s->params.n = 0;
    buf_span(&s->params, q->params);
    s->meta.n = 0;
    buf_span(&s->meta, q->meta_keep);
    if (q->op == OP_GET_PROMPT)
        done_raw(c, OUTCOME_RESULT,
                 "{\"description\":\"d\",\"messages\":[{\"role\":\"user\",\"content\":"
                 "{\"type\":\"text\",\"text\":\"hello\"}}]}",
                 false);
    else if (q->op == OP_READ_RESOURCE && span_is(q->name, "res:none"))
        done_raw(c, OUTCOME_ERROR, "{\"code\":-32002,\"message\":\"Resource not found\"}", false);
    else if (q->op == OP_READ_RESOURCE)
        done_raw(c, OUTCOME_RESULT, "{\"contents\":[{\"uri\":\"res:a\",\"text\":\"inside\"}]}",
                 false);
    else if (span_is(q->name, "hold") && s->n_held < RIG_HELD)
        s->held[s->n_held++] = c;
    else if (span_is(q->name, "fail"))
        done_raw(c, OUTCOME_RESULT,
                 "{\"content\":[{\"type\":\"text\",\"text\":\"no such file\"}],\"isError\":true}",
                 true);
    else if (span_is(q->name, "picky"))
        done_raw(c, OUTCOME_ERROR, "{\"code\":-32602,\"message\":\"bad\\n\\narguments\"}", false);
    else if (span_is(q->name, "broken"))
        done_raw(c, OUTCOME_ERROR, "{\"code\":-32000,\"message\":\"boom\"}", false);
    else if (span_is(q->name, "big"))
        finish_big(c);
    else if (span_is(q->name, "ask"))
        ask_put(c, &(struct ask){.key = SPAN("k"),
                                 .method = SPAN("elicitation/create"),
                                 .needs = ANSWERS_ELICIT_FORM});
    else
        rig_finish(c, given);
    mem_free(given);
}

static void on_answer(struct peer *self, struct call *c, struct span key,
                      const struct outcome *outcome)
{
    (void)self, (void)key;
    rig_finish(c, span_is(outcome->body, "{\"action\":\"decline\"}") ? "declined" : "answered");
}

static void on_cancel(struct peer *self, struct call *c, enum failure why)
{
    struct rig_server *s = of_peer(self);

    (void)c, (void)why;
    s->cancels++;
    s->n_held = 0;
}

static const struct peer_verbs verbs = {.open = on_open, .answer = on_answer, .cancel = on_cancel};

static void add_item(struct catalog *c, enum item_kind kind, const char *member, struct span name,
                     const char *rest)
{
    struct buf raw = {0};
    struct item item = {.name = name};

    buf_printf(&raw, "{\"%s\":", member);
    item.name_at.at = raw.n;
    json_quote(&raw, name);
    item.name_at.n = raw.n - item.name_at.at;
    buf_printf(&raw, "%s}", rest);
    item.raw = buf_view(&raw);
    catalog_add(c, kind, &item);
    buf_fini(&raw);
}

/* Each word is a tool, or a prompt (p:NAME) or a resource (r:NAME). */
static struct catalog *make_catalog(const char *words)
{
    struct catalog *c = catalog_new();
    struct span rest = span_str(words);

    while (rest.n) {
        struct span word = span_cut(rest, 0, span_find(rest, ' '));
        rest = span_from(rest, word.n + 1);
        if (span_starts(word, SPAN("p:")))
            add_item(c, ITEM_PROMPT, "name", span_from(word, 2),
                     ",\"arguments\":[{\"name\":\"who\",\"required\":true}]");
        else if (span_starts(word, SPAN("r:")))
            add_item(c, ITEM_RESOURCE, "uri", span_from(word, 2), ",\"name\":\"R\",\"size\":6");
        else if (word.n)
            add_item(c, ITEM_TOOL, "name", word,
                     ",\"description\":\"does it\",\"inputSchema\":{\"type\":\"object\","
                     "\"properties\":{\"path\":{\"type\":\"string\"}}}");
    }
    return c;
}

void rig_publish(struct rig_server *s, const char *tools)
{
    provider_publish(&s->core, make_catalog(tools));
}

void rig_server_up(struct rig_server *s)
{
    rig_publish(s, s->tools);
    provider_up(&s->core);
}

static void on_later(struct timer *t)
{
    struct rig_server *s = CONTAINER_OF(t, struct rig_server, later);

    provider_lost(&s->core, s->why);
}

static void start(struct provider *p)
{
    struct rig_server *s = CONTAINER_OF(p, struct rig_server, core);

    s->starts++;
    if (s->fails) {
        s->why = s->fails;
        timer_set(loop_timers(s->rig->loop), &s->later, 1);
    } else if (!s->slow_start) {
        rig_server_up(s);
    }
}

static void stop(struct provider *p)
{
    struct rig_server *s = CONTAINER_OF(p, struct rig_server, core);

    s->n_held = 0;
    s->why = "stopped";
    timer_set(loop_timers(s->rig->loop), &s->later, 1);
}

static void on_relist(struct timer *t)
{
    struct rig_server *s = CONTAINER_OF(t, struct rig_server, relist);

    rig_publish(s, s->tools);
}

static const struct provider_ops ops = {.start = start, .stop = stop};

struct rig_server *rig_server(struct rig *r, const char *alias, const char *tools)
{
    struct rig_server *s = &r->servers[r->n_servers++];

    s->rig = r;
    s->tools = tools;
    s->later.fire = on_later;
    s->relist.fire = on_relist;
    provider_init(&s->core, &verbs, &ops, alias);
    s->core.policy.backoff_first = s->core.policy.backoff_max = 60 * 1000;
    router_add_provider(r->router, &s->core);
    s->view = view_new(alias, NULL);
    s->denied = SPAN("secret");
    s->filter = (struct filter){.deny = &s->denied, .n_deny = 1};
    view_add(s->view, &s->core, &s->filter);
    return s;
}

/* --- the host --- */

static struct provider *host_next(void *arg, const struct provider *p)
{
    struct rig *r = arg;
    bool behind = !p;

    for (size_t i = 0; i < r->n_servers; i++) {
        if (behind && !r->hidden[i])
            return &r->servers[i].core;
        behind |= p == &r->servers[i].core;
    }
    return NULL;
}

static struct view *host_view(void *arg, struct provider *p)
{
    (void)arg;
    return CONTAINER_OF(p, struct rig_server, core)->view;
}

static void host_facts(void *arg, const struct provider *p, struct bus_server_facts *facts)
{
    (void)arg;
    *facts = CONTAINER_OF(p, const struct rig_server, core)->facts;
}

static struct bus_asking host_asking(void *arg, const struct provider *p)
{
    (void)arg, (void)p;
    return (struct bus_asking){0};
}

static const struct config_attachments *host_files(void *arg, const struct provider *p)
{
    (void)arg, (void)p;
    return NULL;
}

static void host_relist(void *arg, struct provider *p)
{
    struct rig_server *s = CONTAINER_OF(p, struct rig_server, core);

    (void)arg;
    s->relists++;
    timer_set(loop_timers(s->rig->loop), &s->relist, 1);
}

static int host_add(void *arg, const struct bus_new_server *n, struct err *err)
{
    struct rig *r = arg;

    if (r->refuses)
        return err_set(err, ERR_CONFIG, "%s", r->refuses);
    snprintf(r->added, sizeof r->added,
             SPAN_FMT " " SPAN_FMT " " SPAN_FMT " " SPAN_FMT " " SPAN_FMT " " SPAN_FMT,
             SPAN_ARG(n->name), SPAN_ARG(n->type), SPAN_ARG(n->url), SPAN_ARG(n->command),
             SPAN_ARG(n->args), SPAN_ARG(n->env));
    struct rig_server *s = rig_server(r, "added", "echo hold");
    s->fails = span_is(n->url, "http://nowhere") ? "nobody there" : NULL;
    s->slow_start = span_is(n->url, "http://slow");
    provider_want(&s->core);
    return 0;
}

static int host_remove(void *arg, struct span name, struct err *err)
{
    struct rig *r = arg;

    if (r->refuses)
        return err_set(err, ERR_CONFIG, "%s", r->refuses);
    for (size_t i = 0; i < r->n_servers; i++)
        if (span_is(name, r->servers[i].core.alias) && !r->hidden[i]) {
            r->hidden[i] = true;
            return 0;
        }
    return err_set(err, ERR_CONFIG, "there is no server '" SPAN_FMT "'", SPAN_ARG(name));
}

/* --- the agent --- */

static void on_deliver(void *owner, const struct bus_delivery *d)
{
    struct rig *r = owner;

    assert_true(r->n_got < RIG_MESSAGES);
    r->got[r->n_got].topic = mem_span(d->topic);
    message_copy(&r->got[r->n_got++].copy, d->message);
    bus_settle(d->sub, d->tag, BUS_ACK);
}

void rig_listen(struct rig *r, const char *topic)
{
    (void)bus_subscribe(r->bus,
                        &(struct bus_subscription){.topic = topic, .group = topic, .prefetch = 100},
                        on_deliver, r);
}

void rig_send(struct rig *r, const struct rig_request *q)
{
    struct message m = {.type = span_str(q->type),
                        .source = span_str(q->source ? q->source : "RockBot"),
                        .correlation = span_str(q->correlation ? q->correlation : "corr"),
                        .reply_to = span_str(q->reply_to),
                        .sent_ms = q->sent_ms,
                        .body = span_str(q->body)};
    char id[40];

    snprintf(id, sizeof id, "%032u", ++r->n_ids);
    m.id = span_str(q->id ? q->id : id);
    if (q->server)
        (void)message_add_header(&m, ROCKBOT_SERVER, span_str(q->server));
    if (q->timeout)
        (void)message_add_header(&m, ROCKBOT_TIMEOUT, span_str(q->timeout));
    if (q->traceparent)
        (void)message_add_header(&m, "traceparent", span_str(q->traceparent));
    bus_publish(r->bus, span_str(q->topic), &m, 0, NULL, NULL);
}

void rig_invoke(struct rig *r, const char *server, const char *tool, const char *arguments)
{
    struct buf body = {0};

    rockbot_put(&body, ROCKBOT_INVOKE,
                (const struct span[ROCKBOT_MAX_MEMBERS]){[INVOKE_CALL] = SPAN("c1"),
                                                         [INVOKE_TOOL] = span_str(tool),
                                                         [INVOKE_ARGUMENTS] = span_str(arguments)});
    rig_send(r, &(struct rig_request){.topic = ROCKBOT_TOPIC_INVOKE,
                                      .type = rockbot_name(ROCKBOT_INVOKE),
                                      .server = server,
                                      .reply_to = "tool.result.RockBot",
                                      .timeout = "60000",
                                      .body = buf_cstr(&body)});
    buf_fini(&body);
}

void rig_manage(struct rig *r, const char *type, const char *body)
{
    struct buf name = {0};

    buf_printf(&name, "RockBot.Tools.Mcp.%s", type);
    rig_send(r, &(struct rig_request){.topic = ROCKBOT_TOPIC_MANAGE,
                                      .type = buf_cstr(&name),
                                      .reply_to = "mcp.manage.response.RockBot",
                                      .body = body});
    buf_fini(&name);
}

static struct rig_message *find(struct rig *r, const char *topic)
{
    for (size_t i = 0; i < r->n_got; i++)
        if (r->got[i].topic && strcmp(r->got[i].topic, topic) == 0)
            return &r->got[i];
    return NULL;
}

const struct message *rig_next(struct rig *r, const char *topic)
{
    struct rig_message *m;

    WAIT(r->loop, find(r, topic));
    m = find(r, topic);
    mem_free(m->topic); /* so it is not found again; the message stays until rig_forget */
    m->topic = NULL;
    return &m->copy.m;
}

size_t rig_count(const struct rig *r, const char *topic)
{
    size_t n = 0;

    for (size_t i = 0; i < r->n_got; i++)
        n += r->got[i].topic && strcmp(r->got[i].topic, topic) == 0;
    return n;
}

void rig_forget(struct rig *r)
{
    while (r->n_got) {
        struct rig_message *m = &r->got[--r->n_got];
        mem_free(m->topic);
        message_copy_fini(&m->copy);
    }
}

/* --- life --- */

static void on_up(void *owner)
{
    struct rig *r = owner;

    r->up = true;
    if (r->worker)
        bus_worker_up(r->worker);
}

static void on_down(void *owner, const char *why)
{
    (void)why;
    ((struct rig *)owner)->up = false;
}

static void on_bus_closed(void *owner)
{
    ((struct rig *)owner)->bus_closed = true;
}

static void on_worker_closed(void *arg)
{
    struct rig *r = arg;

    r->worker_closed = true;
}

void rig_close_worker(struct rig *r)
{
    bus_worker_close(r->worker, on_worker_closed, r);
    r->worker = NULL;
}

static void on_host_up(void *owner)
{
    ((struct rig *)owner)->host_up = true;
}

static void on_host_down(void *owner, const char *why)
{
    (void)owner, (void)why;
}

static void on_host_closed(void *owner)
{
    ((struct rig *)owner)->host_closed = true;
}

static const struct bus_events host_events = {on_host_up, on_host_down, on_host_closed};

static void open_apart(struct rig *r)
{
    struct err err = {0};

    r->host_options = (struct bus_options){.url = r->url, .name = "host"};
    r->bus_options.join_only = true;
    r->bus_host = bus_open(r->loop, &r->host_options, &host_events, r, &err);
    assert_string_equal(err.text, "");
    WAIT(r->loop, r->host_up);
}

void rig_lose_bus(struct rig *r)
{
    bus_close(r->bus_host);
    r->bus_host = NULL;
    WAIT(r->loop, r->host_closed && !r->up);
}

void rig_regain_bus(struct rig *r)
{
    r->host_up = r->host_closed = false;
    open_apart(r);
    WAIT(r->loop, r->up);
}

static const struct bus_events events = {on_up, on_down, on_bus_closed};

void rig_begin(struct rig *r)
{
    static const char *const agents[] = {"RockBot"};

    *r = (struct rig){0};
    log_set_level(LOG_ERROR);
    r->loop = loop_new();
    loop_step(r->loop, 0);
    snprintf(r->folder, sizeof r->folder, "/tmp/rialto-worker-XXXXXX");
    assert_non_null(mkdtemp(r->folder));
    snprintf(r->url, sizeof r->url, "unix:%s/bus.sock", r->folder);
    r->bus_options = (struct bus_options){.url = r->url, .name = "test"};
    r->router = router_new(loop_timers(r->loop), 1);
    r->host = (struct bus_host){.router = r->router,
                                .arg = r,
                                .next = host_next,
                                .view = host_view,
                                .facts = host_facts,
                                .asking = host_asking,
                                .files = host_files,
                                .relist = host_relist,
                                .add = host_add,
                                .remove = host_remove};
    r->options = (struct bus_worker_options){
        .agents = agents, .n_agents = 1, .servers_indexed = true, .prefetch = 4};
}

void rig_start(struct rig *r)
{
    static const char *const topics[] = {"tool.result.RockBot", "tool.meta.mcp.RockBot",
                                         "mcp.manage.response.RockBot"};
    struct err err = {0};

    if (r->hosted_apart)
        open_apart(r);
    r->bus = bus_open(r->loop, &r->bus_options, &events, r, &err);
    assert_string_equal(err.text, "");
    WAIT(r->loop, r->up);
    for (size_t i = 0; i < COUNT_OF(topics); i++)
        rig_listen(r, topics[i]);
    r->worker = bus_worker_new(r->loop, r->bus, &r->host, &r->options);
}

static bool all_down(const struct rig *r)
{
    for (size_t i = 0; i < r->n_servers; i++)
        if (r->servers[i].core.state != PROVIDER_DOWN)
            return false;
    return true;
}

void rig_end(struct rig *r)
{
    char path[160];

    if (r->worker)
        rig_close_worker(r);
    WAIT(r->loop, r->worker_closed);
    bus_close(r->bus);
    WAIT(r->loop, r->bus_closed);
    if (r->bus_host) {
        bus_close(r->bus_host);
        WAIT(r->loop, r->host_closed);
    }
    for (size_t i = 0; i < r->n_servers; i++) {
        timer_clear(loop_timers(r->loop), &r->servers[i].relist);
        provider_unwant(&r->servers[i].core);
    }
    WAIT(r->loop, all_down(r));
    for (size_t i = 0; i < r->n_servers; i++) {
        struct rig_server *s = &r->servers[i];
        router_remove_provider(r->router, &s->core);
        view_free(s->view);
        provider_fini(&s->core);
        buf_fini(&s->params);
        buf_fini(&s->meta);
    }
    assert_int_equal(router_call_count(r->router), 0);
    router_free(r->router);
    rig_forget(r);
    loop_free(r->loop);
    snprintf(path, sizeof path, "%s/bus.sock.lock", r->folder);
    (void)unlink(path);
    assert_int_equal(rmdir(r->folder), 0);
    log_set_level(LOG_INFO);
}
