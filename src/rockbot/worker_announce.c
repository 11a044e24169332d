/* Announces servers and their tools to agents: finds changes, publishes them, and answers refresh
 * requests. Called by worker.c; worker_invoke.c asks here for time limits and fresh lists. */
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "bus/stamp.h"
#include "rockbot/surface.h"
#include "rockbot/worker_inside.h"

#include <stdio.h>

/* Changes are collected for so long: lists often change several times in a row. */
enum { DEBOUNCE_MS = 500 };
/* How long an announcement may wait on the bus. */
enum { ANNOUNCED_WAITS_MS = 10 * 1000 };
/* Not every server reports changes of its lists: how often to ask, and how often at most. */
enum { RELIST_MS = 5 * 60 * 1000, RELIST_GAP_MS = 1000 };
/* How long an agent's refresh waits for a new list, and how many agents may wait for one server. */
enum { LIST_WAITS_MS = 5 * 1000, MAX_ASKERS = 64 };
/* How long a refresh request may wait on the bus, for example while the worker starts. */
enum { REQUEST_WAITS_MS = 10 * 1000 };
/* A list of tools is sent in parts of 1/PART of the largest message. */
enum { PART = 2 };

/* --- sending --- */

/* Announcements are not kept while the bus is away: all are sent again when it is back. */
static void publish(struct bus_worker *w, const char *agent, enum rockbot_record type,
                    struct span body)
{
    BUF_SCOPED topic = {0}, source = {0};
    struct message m = {.type = span_str(rockbot_name(type)), .body = body};

    buf_printf(&topic, "%s%s", ROCKBOT_TOPIC_META, agent);
    buf_printf(&source, "%s%s", ROCKBOT_BRIDGE, agent);
    m.source = buf_view(&source);
    (void)message_add_header(&m, ROCKBOT_TRUST, SPAN(ROCKBOT_TRUST_SYSTEM));
    bus_publish(w->bus, buf_view(&topic), &m, ANNOUNCED_WAITS_MS, NULL, NULL);
    w->counts.announced++;
    w->said_anything = true;
}

static void publish_index(struct bus_worker *w, const char *agent, struct span servers,
                          struct span removed)
{
    BUF_SCOPED body = {0};

    rockbot_put(&body, ROCKBOT_SERVERS_INDEXED,
                (const struct span[ROCKBOT_MAX_MEMBERS]){
                    [INDEXED_SERVERS] = servers, [INDEXED_REMOVED] = removed});
    publish(w, agent, ROCKBOT_SERVERS_INDEXED, buf_view(&body));
}

static void publish_tools(struct bus_worker *w, const char *agent, const char *alias,
                          struct span tools, struct span removed)
{
    BUF_SCOPED body = {0};

    rockbot_put(&body, ROCKBOT_TOOLS_AVAILABLE,
                (const struct span[ROCKBOT_MAX_MEMBERS]){[AVAILABLE_SERVER] = span_str(alias),
                                                         [AVAILABLE_TOOLS] = tools,
                                                         [AVAILABLE_REMOVED] = removed});
    publish(w, agent, ROCKBOT_TOOLS_AVAILABLE, buf_view(&body));
}

/* --- one server, to one agent --- */

/* In as many messages as needed: agents add the tools of each to those they have. */
static void tell_tools(struct bus_worker *w, const char *agent, const char *alias, struct view *v,
                       struct span removed)
{
    BUF_SCOPED list = {0};
    const struct target *t;

    for (size_t i = 0; (t = view_item(v, ITEM_TOOL, i)); i++) {
        buf_char(&list, list.n ? ',' : '[');
        surface_put_tool(&list, t);
        if (list.n < bus_max_body(w->bus) / PART)
            continue;
        buf_char(&list, ']');
        publish_tools(w, agent, alias, buf_view(&list), removed);
        removed = SPAN_EMPTY;
        list.n = 0;
    }
    if (list.n)
        buf_char(&list, ']');
    publish_tools(w, agent, alias, buf_view(&list), removed);
}

static void tell_entry(struct bus_worker *w, const char *agent, const struct known *k)
{
    BUF_SCOPED servers = {0};

    buf_printf(&servers, "[" SPAN_FMT "]", SPAN_ARG(buf_view(&k->entry)));
    publish_index(w, agent, buf_view(&servers), SPAN_EMPTY);
}

static void tell_server(struct bus_worker *w, const char *agent, const struct known *k,
                        struct span removed)
{
    struct provider *p = worker_server(w, span_str(k->alias));

    if (w->options->servers_indexed)
        tell_entry(w, agent, k);
    if (w->options->tools_available && p && provider_advertised(p))
        tell_tools(w, agent, k->alias, w->host->view(w->host->arg, p), removed);
}

static void tell_removal(struct bus_worker *w, const char *agent, const struct known *k)
{
    BUF_SCOPED names = {0};

    buf_char(&names, '[');
    json_quote(&names, span_str(k->alias));
    buf_char(&names, ']');
    if (w->options->servers_indexed)
        publish_index(w, agent, SPAN_EMPTY, buf_view(&names));
    if (w->options->tools_available)
        publish_tools(w, agent, k->alias, SPAN_EMPTY, buf_view(&k->tools));
}

/* --- the known servers --- */

static struct known *known_find(const struct bus_worker *w, const char *alias)
{
    LIST_EACH (&w->known, it) {
        struct known *k = LIST_ENTRY(it, struct known, node);
        if (strcmp(k->alias, alias) == 0)
            return k;
    }
    return NULL;
}

static struct known *known_add(struct bus_worker *w, const char *alias)
{
    struct known *k = MEM_NEW(struct known);

    k->alias = mem_str(alias);
    k->relisted_at = loop_now(w->loop);
    list_init(&k->askers);
    list_append(&w->known, &k->node);
    return k;
}

static void asker_free(struct known *k, struct bus_asker *a)
{
    k->n_askers--;
    list_remove(&a->node);
    mem_free(a);
}

static void known_free(struct known *k)
{
    struct bus_asker *a;

    while ((a = LIST_FIRST(&k->askers, struct bus_asker, node)))
        asker_free(k, a);
    list_remove(&k->node);
    buf_fini(&k->entry);
    buf_fini(&k->tools);
    mem_free(k->alias);
    mem_free(k);
}

void worker_forget_all(struct bus_worker *w)
{
    struct known *k;

    while ((k = LIST_FIRST(&w->known, struct known, node)))
        known_free(k);
}

/* Append the names of `before` that are not in `now`, both JSON arrays of texts. */
static void put_missing(struct buf *out, struct span before, struct span now)
{
    struct map names = {0};
    BUF_SCOPED text = {0};

    for (struct json_iter it = json_iter(now); json_next(&it);) {
        text.n = 0;
        map_put(&names, json_text(it.value, &text), &names);
    }
    buf_char(out, '[');
    for (struct json_iter it = json_iter(before); json_next(&it);) {
        text.n = 0;
        if (map_get(&names, json_text(it.value, &text)))
            continue;
        buf_str(out, out->n > 1 ? "," : "");
        buf_span(out, it.value);
    }
    buf_char(out, ']');
    map_fini(&names);
}

/* --- changes --- */

/* The tools' fingerprints are left out when the message would be too large with them. */
static void put_entry(struct bus_worker *w, struct buf *out, const struct surface *s,
                      const struct provider *p)
{
    struct bus_server_facts facts = {0};

    w->host->facts(w->host->arg, p, &facts);
    surface_put_server(out, s, p->alias, &facts, true);
    if (out->n < bus_max_body(w->bus) / PART)
        return;
    buf_reset(out, 0);
    surface_put_server(out, s, p->alias, &facts, false);
    if (out->n > bus_max_body(w->bus))
        log_error(p->alias, "has too many tools to be announced on the bus (%zu bytes)", out->n);
}

/* Of what the server's entry says besides its lists. */
static uint64_t facts_digest(struct bus_worker *w, const struct provider *p)
{
    static const struct surface nothing;
    struct bus_server_facts facts = {0};
    BUF_SCOPED entry = {0};

    w->host->facts(w->host->arg, p, &facts);
    surface_put_server(&entry, &nothing, p->alias, &facts, false);
    return map_hash(buf_view(&entry));
}

static void announce(struct bus_worker *w, struct known *k, const struct provider *p,
                     const struct surface *s)
{
    BUF_SCOPED removed = {0};

    put_missing(&removed, k->tools.n ? buf_view(&k->tools) : SPAN("[]"), buf_view(&s->tools));
    buf_reset(&k->entry, 0);
    buf_reset(&k->tools, 0);
    put_entry(w, &k->entry, s, p);
    buf_span(&k->tools, buf_view(&s->tools));
    snprintf(k->fingerprint, sizeof k->fingerprint, "%s", s->fingerprint);
    k->facts = facts_digest(w, p);
    k->announced = true;
    k->announced_at = stamp_now();
    k->n_announced++;
    k->due = 0;
    LIST_EACH (&w->listeners, it)
        tell_server(w, LIST_ENTRY(it, struct bus_listener, node)->agent, k, buf_view(&removed));
}

static uint64_t digest_of(struct view *v)
{
    uint64_t digests[ITEM_KINDS];

    for (int kind = 0; kind < ITEM_KINDS; kind++)
        digests[kind] = view_digest(v, (enum item_kind)kind);
    return map_hash(span_of((const char *)digests, sizeof digests));
}

/* Kept here because asking the host for the facts is too slow for every call. */
static void note_timeout(struct bus_worker *w, struct known *k, const struct provider *p)
{
    struct bus_server_facts facts = {0};

    w->host->facts(w->host->arg, p, &facts);
    k->timeout_ms = facts.timeout_ms;
}

uint64_t worker_timeout_of(struct bus_worker *w, const struct provider *p)
{
    struct known *k = known_find(w, p->alias);

    if (!k) {
        k = known_add(w, p->alias);
        note_timeout(w, k, p);
    }
    return k->timeout_ms;
}

bool worker_relist(struct bus_worker *w, struct provider *p)
{
    struct known *k = known_find(w, p->alias);
    uint64_t now = loop_now(w->loop);

    if (!k || p->state != PROVIDER_READY || now - k->relisted_at < RELIST_GAP_MS)
        return false;
    k->relisted_at = now;
    k->relisted_from = p->catalog ? p->catalog->generation : 0;
    w->host->relist(w->host->arg, p);
    return true;
}

bool worker_is_relisting(const struct bus_worker *w, const struct provider *p)
{
    const struct known *k = known_find(w, p->alias);

    return k && k->relisted_at && p->catalog && p->catalog->generation == k->relisted_from;
}

/* True while the server starts or its changes are collected. */
static bool look_at(struct bus_worker *w, struct known *k, struct provider *p)
{
    uint64_t now = loop_now(w->loop);
    struct surface s;

    if (!p->catalog && p->state == PROVIDER_DOWN && !p->why)
        provider_want(p); /* agents cannot call a server that was never announced */
    if (!provider_advertised(p))
        return p->state == PROVIDER_STARTING; /* the last announcement stays valid until it is up */
    uint64_t digest = digest_of(w->host->view(w->host->arg, p)) ^ facts_digest(w, p);
    if (k->announced && digest == k->digest && !k->due)
        return false;
    if (k->announced && digest != k->digest && !k->due)
        k->due = now + DEBOUNCE_MS;
    k->digest = digest;
    if (k->announced && now < k->due)
        return true;
    surface_read(&s, w->host->view(w->host->arg, p));
    if (!k->announced || strcmp(s.fingerprint, k->fingerprint) != 0 ||
        facts_digest(w, p) != k->facts)
        announce(w, k, p, &s);
    k->due = 0;
    surface_fini(&s);
    return false;
}

/* --- agents that wait for the next list --- */

/* False: too many agents wait already. */
static bool asker_add(struct known *k, const char *agent)
{
    struct bus_asker *a;

    LIST_EACH (&k->askers, it)
        if (strcmp(LIST_ENTRY(it, struct bus_asker, node)->agent, agent) == 0)
            return true;
    if (k->n_askers == MAX_ASKERS)
        return false;
    a = mem_zalloc(sizeof *a + strlen(agent) + 1);
    memcpy(a->agent, agent, strlen(agent));
    a->heard = k->n_announced;
    list_append(&k->askers, &a->node);
    k->n_askers++;
    return true;
}

/* Was the server announced to this agent after the agent's request? */
static bool has_its_answer(const struct bus_worker *w, const struct known *k,
                           const struct bus_asker *a)
{
    const struct bus_listener *l = worker_listener(w, span_str(a->agent));

    return l && l->since <= k->announced_at && a->heard < k->n_announced;
}

/* Asks the server for its lists as soon as allowed. When they have come and their changes are
 * announced, the waiting agents that did not get the announcement are told. */
static void answer_askers(struct bus_worker *w, struct known *k, struct provider *p)
{
    bool up = p->state == PROVIDER_READY && p->catalog;
    struct bus_asker *a;

    if (list_empty(&k->askers))
        return;
    if (up && !k->relisting) {
        k->generation = p->catalog->generation;
        k->relisting = worker_relist(w, p);
        return;
    }
    if (up && p->catalog->generation == k->generation &&
        loop_now(w->loop) - k->relisted_at < LIST_WAITS_MS)
        return;
    if (k->due && provider_advertised(p))
        return;
    k->relisting = false;
    while ((a = LIST_FIRST(&k->askers, struct bus_asker, node))) {
        if (k->announced && !has_its_answer(w, k, a))
            tell_server(w, a->agent, k, SPAN_EMPTY);
        asker_free(k, a);
    }
}

/* An index without servers: agents get their management tools with the first index. */
static void say_something(struct bus_worker *w)
{
    if (w->options->servers_indexed)
        LIST_EACH (&w->listeners, it)
            publish_index(w, LIST_ENTRY(it, struct bus_listener, node)->agent, SPAN_EMPTY,
                          SPAN_EMPTY);
    w->said_anything = true;
}

static void drop_removed(struct bus_worker *w)
{
    LIST_EACH_SAFE (&w->known, it) {
        struct known *k = LIST_ENTRY(it, struct known, node);
        if (k->there)
            continue;
        /* The removal is announced even if the server was not announced again after the bus was
         * away. */
        if (k->entry.n)
            LIST_EACH (&w->listeners, l)
                tell_removal(w, LIST_ENTRY(l, struct bus_listener, node)->agent, k);
        known_free(k);
    }
}

/* In how many ms to look again without a change. Changes of a server that is not advertised need no
 * look: coming back is a change itself. */
static uint64_t next_look(const struct bus_worker *w, const struct known *k,
                          const struct provider *p)
{
    uint64_t now = loop_now(w->loop), at = UINT64_MAX;

    if (k->due && provider_advertised(p))
        at = k->due;
    uint64_t list = k->relisted_at + (list_empty(&k->askers) ? RELIST_MS
                                      : k->relisting         ? LIST_WAITS_MS
                                                             : RELIST_GAP_MS);
    if (p->state == PROVIDER_READY && at > list)
        at = list;
    return at == UINT64_MAX ? at : at > now ? at - now : 0;
}

uint64_t worker_look(struct bus_worker *w)
{
    bool up = bus_is_up(w->bus), coming = false;
    uint64_t next = UINT64_MAX;

    LIST_EACH (&w->known, it) {
        struct known *k = LIST_ENTRY(it, struct known, node);
        k->there = false;
        k->announced = k->announced && (w->was_up || !up); /* announcements may be lost */
    }
    w->was_up = up;
    if (!up)
        return next;
    for (struct provider *p = NULL; (p = w->host->next(w->host->arg, p));) {
        struct known *k = known_find(w, p->alias);
        k = k ? k : known_add(w, p->alias);
        k->there = true;
        note_timeout(w, k, p);
        if (loop_now(w->loop) - k->relisted_at >= RELIST_MS)
            (void)worker_relist(w, p);
        coming |= look_at(w, k, p);
        answer_askers(w, k, p);
        uint64_t wait = next_look(w, k, p);
        next = wait < next ? wait : next;
    }
    drop_removed(w);
    if (!coming && !w->said_anything)
        say_something(w);
    return next;
}

/* --- new agents and refresh requests --- */

void worker_greet(struct bus_worker *w, const char *agent)
{
    LIST_EACH (&w->known, it) {
        const struct known *k = LIST_ENTRY(it, struct known, node);
        if (k->announced)
            tell_server(w, agent, k, SPAN_EMPTY);
    }
}

/*
 * An agent subscribes before it sends a request, so announcements to the agent after that request
 * have reached it. Stamps may be whole seconds, so the same second counts as before. Requests do
 * not wait on the bus for long: one older than an announcement of long ago comes from a wrong
 * clock.
 */
static bool has_heard(const struct bus_worker *w, const char *agent, const struct known *k,
                      uint64_t asked_at)
{
    const struct bus_listener *l = worker_listener(w, span_str(agent));

    return l && l->since <= k->announced_at && asked_at / 1000 < k->announced_at / 1000 &&
           stamp_now() < k->announced_at + REQUEST_WAITS_MS;
}

/* Announces the known lists again and asks the server for its lists, on the open connection, so
 * that no call is disturbed; changes are announced as usual. A server that was asked just now is
 * asked again as soon as allowed, and the agent is told then. */
static void refresh_server(struct bus_worker *w, const char *agent, struct known *k,
                           uint64_t asked_at)
{
    struct provider *p = worker_server(w, span_str(k->alias));

    bool too_soon = p && p->state == PROVIDER_READY && !worker_relist(w, p);

    if (has_heard(w, agent, k, asked_at))
        return;
    if (too_soon && asker_add(k, agent))
        worker_look_within(w, RELIST_GAP_MS);
    else
        tell_server(w, agent, k, SPAN_EMPTY);
}

void worker_refresh(struct bus_worker *w, const struct bus_delivery *d)
{
    struct json_slot slots[ROCKBOT_MAX_MEMBERS];
    BUF_SCOPED scratch = {0};
    struct err err = {0};
    char *agent = mem_span(d->message->source);
    uint64_t asked_at = d->message->sent_ms ? d->message->sent_ms : stamp_now();
    bool any = false;

    if (rockbot_read(ROCKBOT_REFRESH, d->message->body, slots, &err) < 0) {
        w->counts.dead++;
        log_warn("bus", "a refresh of '%s' cannot be used: %s", agent, err.text);
        bus_settle(d->sub, d->tag, BUS_DEAD);
        mem_free(agent);
        return;
    }
    struct span server = rockbot_text(&slots[ONLY_SERVER], &scratch);
    LIST_EACH (&w->known, it) {
        struct known *k = LIST_ENTRY(it, struct known, node);
        if (!k->announced || (server.n && !span_eq_nocase(server, span_str(k->alias))))
            continue;
        any = true;
        refresh_server(w, agent, k, asked_at);
    }
    struct provider *named = server.n ? worker_server(w, server) : NULL;
    if (named)
        provider_want(named);
    if (!any && !server.n && w->said_anything && w->options->servers_indexed)
        publish_index(w, agent, SPAN_EMPTY, SPAN_EMPTY);
    bus_settle(d->sub, d->tag, BUS_ACK);
    mem_free(agent);
}
