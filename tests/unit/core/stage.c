#include "stage.h"

#include "base/log.h"

#include <inttypes.h>

static const char *const failure_words[FAIL_COUNT] = {
    "none",    "unknown", "unavailable", "crashed",  "timeout",  "busy",    "cancelled",
    "refused", "denied",  "arguments",   "protocol", "shutdown", "limited",
};

static void on_stopped(void *arg, struct provider *p)
{
    struct stage *s = arg;

    assert_int_equal(p->state, PROVIDER_DOWN);
    buf_printf(&s->account, "%s stopped\n", p->alias);
}

void stage_init(struct stage *s)
{
    *s = (struct stage){.timers.now = 1000 * 1000};
    log_set_level(LOG_ERROR);
    s->router = router_new(&s->timers, 1);
    router_on_stopped(s->router, on_stopped, s);
}

void stage_fini(struct stage *s)
{
    assert_int_equal(router_call_count(s->router), 0);
    assert_int_equal(s->timers.n, 0);
    router_free(s->router);
    timers_fini(&s->timers);
    buf_fini(&s->account);
}

void stage_wait(struct stage *s, uint64_t ms)
{
    timers_advance(&s->timers, s->timers.now + ms);
}

static void put_outcome(struct buf *out, const struct outcome *outcome)
{
    if (outcome->kind == OUTCOME_FAILED)
        buf_printf(out, " %s%s\n", failure_words[outcome->why],
                   outcome->retryable ? " (retryable)" : "");
    else
        buf_printf(out, " %s" SPAN_FMT "\n", outcome->kind == OUTCOME_ERROR ? "error " : "",
                   SPAN_ARG(outcome->body));
}

/* --- fake --- */

static struct fake *of_provider(struct provider *p)
{
    return CONTAINER_OF(p, struct fake, core);
}

static struct fake *of_peer(struct peer *self)
{
    return of_provider(CONTAINER_OF(self, struct provider, peer));
}

static void fake_open(struct peer *self, struct call *c, const struct request *request)
{
    struct fake *f = of_peer(self);

    buf_printf(&f->stage->account, "%s open %" PRIu64 " " SPAN_FMT "\n", f->core.alias, c->handle,
               SPAN_ARG(request->name));
    if (f->in_open)
        f->in_open(f, c, request);
}

static void fake_answer(struct peer *self, struct call *c, struct span key,
                        const struct outcome *outcome)
{
    struct fake *f = of_peer(self);

    buf_printf(&f->stage->account, "%s answer %" PRIu64 " " SPAN_FMT, f->core.alias, c->handle,
               SPAN_ARG(key));
    put_outcome(&f->stage->account, outcome);
    if (f->in_answer)
        f->in_answer(f, c);
}

static void fake_cancel(struct peer *self, struct call *c, enum failure why)
{
    struct fake *f = of_peer(self);

    buf_printf(&f->stage->account, "%s cancel %" PRIu64 " %s\n", f->core.alias, c->handle,
               failure_words[why]);
}

static void fake_start(struct provider *p)
{
    struct fake *f = of_provider(p);

    buf_printf(&f->stage->account, "%s start\n", p->alias);
    if (f->up_in_start)
        provider_up(p);
}

static void fake_stop(struct provider *p)
{
    struct fake *f = of_provider(p);

    buf_printf(&f->stage->account, "%s stop\n", p->alias);
    if (f->lost_in_stop)
        provider_lost(p, "stopped at once");
}

static const struct peer_verbs fake_verbs = {
    .open = fake_open, .answer = fake_answer, .cancel = fake_cancel};
static const struct provider_ops fake_ops = {.start = fake_start, .stop = fake_stop};

void fake_init(struct fake *f, struct stage *s, const char *alias)
{
    *f = (struct fake){.stage = s};
    provider_init(&f->core, &fake_verbs, &fake_ops, alias);
    f->core.takes_any = true;
    router_add_provider(s->router, &f->core);
}

void fake_fini(struct fake *f)
{
    size_t said = f->stage->account.n;

    provider_unwant(&f->core);
    if (f->core.state == PROVIDER_STOPPING)
        provider_lost(&f->core, "the test is over");
    assert_int_equal(f->core.state, PROVIDER_DOWN);
    router_remove_provider(f->stage->router, &f->core);
    provider_fini(&f->core);
    f->stage->account.n = said;
}

static void add_word(struct catalog *c, struct span word)
{
    static const struct {
        char letter;
        enum item_kind kind;
        const char *member;
    } kinds[] = {{'p', ITEM_PROMPT, "name"},
                 {'r', ITEM_RESOURCE, "uri"},
                 {'t', ITEM_TEMPLATE, "uriTemplate"}};
    enum item_kind kind = ITEM_TOOL;
    const char *member = "name";
    struct item item = {.flags = 0};
    struct buf raw = {0};

    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        if (word.n > 2 && word.p[0] == kinds[i].letter && word.p[1] == ':') {
            kind = kinds[i].kind;
            member = kinds[i].member;
            word = span_from(word, 2);
        }
    }
    if (kind == ITEM_TOOL && span_find(word, '+') < word.n) {
        struct span flag = span_from(word, span_find(word, '+') + 1);
        item.flags = span_is(flag, "ro") ? ITEM_READ_ONLY : ITEM_IDEMPOTENT;
        word.n = span_find(word, '+');
    }
    item.label = span_from(word, span_find(word, '=') + 1);
    word.n = span_find(word, '=');
    buf_printf(&raw, "{\"%s\":\"" SPAN_FMT "\"}", member, SPAN_ARG(word));
    item.name = word;
    item.raw = buf_view(&raw);
    item.name_at = (struct cut){strlen(member) + 4, word.n + 2};
    catalog_add(c, kind, &item);
    buf_fini(&raw);
}

struct catalog *catalog_of_words(const char *words)
{
    struct catalog *c = catalog_new();
    struct span rest = span_str(words);

    while (rest.n) {
        struct span word = span_cut(rest, 0, span_find(rest, ' '));
        if (word.n)
            add_word(c, word);
        rest = span_from(rest, word.n + 1);
    }
    return c;
}

void fake_publish(struct fake *f, const char *words)
{
    provider_publish(&f->core, catalog_of_words(words));
}

void fake_ready(struct fake *f, const char *words)
{
    provider_want(&f->core);
    fake_publish(f, words);
    provider_up(&f->core);
}

/* --- client --- */

static struct client *of_client(struct peer *self)
{
    return CONTAINER_OF(self, struct client, peer);
}

static void put_changed(struct buf *out, unsigned changed)
{
    static const char *const words[ITEM_KINDS] = {"tools", "resources", "templates", "prompts"};

    for (int kind = 0; kind < ITEM_KINDS; kind++)
        if (changed & (1u << kind))
            buf_printf(out, " %s", words[kind]);
}

static void client_event(struct peer *self, struct call *call, const struct event *event)
{
    static const char *const words[] = {"progress", "log",     "changed", "updated",
                                        "other",    "unasked", "task",    "settled"};
    struct client *c = of_client(self);
    struct buf *out = &c->stage->account;

    buf_printf(out, "%s %s %" PRIu64, c->name, words[event->kind], call->handle);
    put_changed(out, event->changed);
    if (event->params.n)
        buf_printf(out, " " SPAN_FMT, SPAN_ARG(event->params));
    if (event->kind == EVENT_UNASKED)
        buf_printf(out, " " SPAN_FMT, SPAN_ARG(event->name));
    buf_char(out, '\n');
    if (c->in_event)
        c->in_event(c, call, event);
}

static void client_ask(struct peer *self, struct call *call, const struct ask *ask)
{
    struct client *c = of_client(self);

    buf_printf(&c->stage->account, "%s ask %" PRIu64 " " SPAN_FMT "\n", c->name, call->handle,
               SPAN_ARG(ask->key));
    if (c->in_ask)
        c->in_ask(c, call, ask);
}

static void client_done(struct peer *self, struct call *call, const struct outcome *outcome)
{
    struct client *c = of_client(self);

    buf_printf(&c->stage->account, "%s done %" PRIu64, c->name, call->handle);
    put_outcome(&c->stage->account, outcome);
    if (c->in_done)
        c->in_done(c, outcome);
}

static const struct peer_verbs client_verbs = {
    .event = client_event, .ask = client_ask, .done = client_done};

void client_init(struct client *c, struct stage *s, const char *name, struct view *v)
{
    *c = (struct client){.stage = s, .name = name, .view = v};
    peer_init(&c->peer, &client_verbs);
}

struct call *client_request(struct client *c, enum op op, const char *name)
{
    struct request request = {.op = op,
                              .name = span_str(name),
                              .params = SPAN("{}"),
                              .answers = c->answers,
                              .wants_progress = c->wants_progress};

    c->last = call_open(c->stage->router, &c->peer, c->view, &request, c);
    return c->last;
}

struct call *client_open(struct client *c, const char *tool)
{
    return client_request(c, OP_CALL_TOOL, tool);
}

void finish_call(struct call *c, const char *body)
{
    call_done(c, &(struct outcome){.kind = OUTCOME_RESULT, .body = span_str(body)});
}

void ask_call(struct call *c, const char *key, unsigned needs)
{
    ask_put(c, &(struct ask){.key = span_str(key),
                             .method = SPAN("elicitation/create"),
                             .params = SPAN("{}"),
                             .needs = needs});
}

void answer_call(struct call *c, const char *key, const char *body)
{
    ask_answer(c, span_str(key), &(struct outcome){.kind = OUTCOME_RESULT, .body = span_str(body)});
}
