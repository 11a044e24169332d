/* Session set-up and close requests: rewrites declared MCP servers for the agent, and remembers
 * which component declared each server. Called by conductor.c, and by greet.c with the agent's
 * initialize result. */
#include "acp/json_edit.h"
#include "acp/port.h"
#include "base/log.h"
#include "base/mem.h"
#include "wire/json_out.h"

enum { OWNERS_MAX = 4096, SERVERS_MAX = 4096 };

/* Where set-up requests list MCP servers; each may be an array or a map. */
static const char *const *const containers[] = {
    (const char *const[]){"mcpServers", NULL},
    (const char *const[]){"mcp_servers", NULL},
    (const char *const[]){"tools", "mcpServers", NULL},
};

/* --- what the agent can do --- */

void setup_learn_agent(struct conductor *c, struct span result)
{
    if (json_type_of(result) != JSON_OBJECT)
        return;
    c->native_url =
        json_edit_truthy(result, EDIT_PATH("_meta", "mcp_acp_transport")) ||
        json_edit_truthy(result, EDIT_PATH("_meta", "symposium", "mcp_acp_transport")) ||
        json_edit_truthy(result, EDIT_PATH("agentCapabilities", "_meta", "mcp_acp_transport")) ||
        json_edit_truthy(result,
                         EDIT_PATH("agentCapabilities", "_meta", "symposium", "mcp_acp_transport"));
    c->native_type =
        json_edit_truthy(result, EDIT_PATH("agentCapabilities", "mcpCapabilities", "acp")) ||
        json_edit_truthy(result, EDIT_PATH("capabilities", "session", "mcp", "acp"));
    c->takes_http =
        json_edit_truthy(result, EDIT_PATH("agentCapabilities", "mcpCapabilities", "http")) ||
        json_edit_truthy(result, EDIT_PATH("capabilities", "session", "mcp", "http"));
    /* Every agent of the first version takes stdio servers; agents of later versions declare it. */
    c->takes_stdio = c->version < 2 ||
                     json_edit_truthy(result, EDIT_PATH("capabilities", "session", "mcp", "stdio"));
    if (c->options.bridge == BRIDGE_HTTP && !c->takes_http && c->takes_stdio)
        log_info(c->options.name,
                 "the agent takes no MCP servers over HTTP: it is given stdio ones");
}

/* Every name by which components of the first version have looked for this capability. */
static const char *const *const welcomes[] = {
    (const char *const[]){"agentCapabilities", "mcpCapabilities", "acp", NULL},
    (const char *const[]){"agentCapabilities", "_meta", "symposium", "mcp_acp_transport", NULL},
    (const char *const[]){"_meta", "mcp_acp_transport", NULL},
};

void setup_put_welcome(struct conductor *c, struct buf *out, struct span result)
{
    if (c->native_type || port_kind(c) == BRIDGED_NOT || json_type_of(result) != JSON_OBJECT) {
        buf_span(out, result);
        return;
    }
    if (c->version >= 2) {
        json_edit_set(out, result, EDIT_PATH("capabilities", "session", "mcp", "acp"), SPAN("{}"));
        return;
    }
    buf_span(out, result);
    for (size_t i = 0; i < COUNT_OF(welcomes); i++) {
        struct buf next = {0};
        json_edit_set(&next, buf_view(out), welcomes[i], SPAN("true"));
        buf_fini(out);
        *out = next;
    }
}

/* --- which component declared a server --- */

void setup_note_owners(struct hop *from, const struct acp_message *m)
{
    struct conductor *c = from->c;
    struct declaration d;

    if (json_type_of(m->params) != JSON_OBJECT)
        return;
    for (size_t i = 0; i < COUNT_OF(containers); i++) {
        struct json_iter it = json_iter(json_edit_get(m->params, containers[i]).value);
        while (json_next(&it)) {
            /* Requests travel from left to right: the first hop that shows a server has declared
             * the server. */
            if (!declaration_read(it.value, &d) || map_get(&c->owners, d.key))
                continue;
            if (c->owners.n >= OWNERS_MAX) {
                map_fini(&c->owners);
                c->owners = (struct map){0};
            }
            map_put(&c->owners, d.key, from);
        }
    }
}

/* The key stays in the map: sessions set up at the same time may declare the same server. */
static struct hop *owner_of(struct conductor *c, struct span key)
{
    struct hop *owner = map_get(&c->owners, key);

    return owner ? owner : conductor_left_of(c, (int)c->n - 1).hop;
}

/* --- life --- */

static struct setup *setup_new(struct conductor *c)
{
    struct setup *s = MEM_NEW(struct setup);

    s->c = c;
    list_init(&s->servers);
    list_append(&c->setups, &s->node);
    return s;
}

static void server_free(struct acp_server *s)
{
    struct conductor *c = s->setup->c;

    port_withdraw(s);
    channel_kill_all(s, "the session has ended");
    list_remove(&s->node);
    c->n_servers--;
    mem_free(s->name);
    mem_free(s->key);
    mem_free(s->greeting);
    mem_free(s);
}

static void setup_free(struct setup *s)
{
    if (s->asked)
        s->asked->answered = NULL; /* a session may be closed before session/load is answered */
    LIST_EACH_SAFE (&s->servers, it)
        server_free(LIST_ENTRY(it, struct acp_server, node));
    list_remove(&s->node);
    mem_free(s->session);
    mem_free(s);
}

void setup_free_all(struct conductor *c)
{
    LIST_EACH_SAFE (&c->setups, it)
        setup_free(LIST_ENTRY(it, struct setup, node));
}

void setup_hurry(struct conductor *c)
{
    LIST_EACH (&c->setups, i) {
        LIST_EACH (&LIST_ENTRY(i, struct setup, node)->servers, k)
            channel_hurry_all(LIST_ENTRY(k, struct acp_server, node));
    }
}

static struct acp_server *server_new(struct setup *setup, const struct declaration *d,
                                     struct span name)
{
    struct acp_server *s = MEM_NEW(struct acp_server);

    s->name = mem_span(name);
    s->setup = setup;
    s->form = d->form;
    s->key = mem_span(d->key);
    s->owner = owner_of(setup->c, d->key);
    s->dialect = mcp_dialect_guess(d->form, s->owner->dialect == P0 || s->owner->dialect == P1);
    list_init(&s->channels);
    list_append(&setup->servers, &s->node);
    setup->c->n_servers++;
    return s;
}

/*
 * The same server, declared earlier in this request, or by an earlier request for the same session.
 * An earlier request that is not answered yet does not count: the agent may still refuse that
 * request, and then its addresses close.
 */
static struct acp_server *known_server(const struct setup *setup, const struct declaration *d)
{
    LIST_EACH (&setup->c->setups, i) {
        const struct setup *other = LIST_ENTRY(i, struct setup, node);
        bool stands = !other->asked && setup->session && other->session &&
                      strcmp(setup->session, other->session) == 0;
        if (other != setup && !stands)
            continue;
        LIST_EACH (&other->servers, k) {
            struct acp_server *s = LIST_ENTRY(k, struct acp_server, node);
            if (span_is(d->key, s->key))
                return s;
        }
    }
    return NULL;
}

/* --- rewriting --- */

struct rewrite {
    struct setup *setup;
    struct map names; /* name of a server in the request -> struct acp_server, or `ordinary` */
    bool map;         /* `mcpServers` is a map */
    bool changed;
    const char *refused; /* why the request cannot be passed on */
};

/* The value in `names` for a server whose entry is passed on unchanged. */
static const char ordinary[] = "";

static bool is_native(const struct conductor *c, const struct declaration *d)
{
    return d->form == BY_URL ? c->native_url : c->native_type;
}

/* Must this entry be given another transport? */
static bool is_bridged(const struct conductor *c, struct span entry, struct declaration *d)
{
    return declaration_read(entry, d) && !is_native(c, d);
}

static struct span raw_name(const struct json_iter *it)
{
    return it->key.n ? it->key : json_get(it->value, "name").value;
}

/* Collect the names of entries that are passed on unchanged: no bridged entry may get those. */
static void note_names(struct rewrite *r, struct span params)
{
    struct declaration d;

    for (size_t i = 0; i < COUNT_OF(containers); i++) {
        struct json_iter it = json_iter(json_edit_get(params, containers[i]).value);
        while (json_next(&it)) {
            BUF_SCOPED name = {0};
            if (json_type_of(it.value) != JSON_OBJECT || is_bridged(r->setup->c, it.value, &d) ||
                json_type_of(raw_name(&it)) != JSON_STRING)
                continue;
            json_unescape(&name, raw_name(&it));
            map_put(&r->names, buf_view(&name), (void *)(uintptr_t)ordinary);
        }
    }
}

/*
 * Append the (quoted) name that the agent gets for the server `who`: the declared name, with a
 * number appended if another server in this request has that name. Agents tell tools apart by the
 * name.
 */
static void put_name(struct rewrite *r, struct buf *out, struct span own, const void *who)
{
    BUF_SCOPED name = {0};
    void *taken;

    buf_span(&name, own);
    for (unsigned n = 2; (taken = map_get(&r->names, buf_view(&name))) && taken != who; n++) {
        name.n = own.n;
        buf_printf(&name, "-%u", n);
    }
    if (name.n != own.n)
        log_warn(r->setup->c->options.name,
                 "the MCP server '" SPAN_FMT "' is given to the agent as '%s': another server in "
                 "this session has its name",
                 SPAN_ARG(own), buf_cstr(&name));
    map_put(&r->names, buf_view(&name), (void *)(uintptr_t)who);
    json_quote(out, buf_view(&name));
}

static bool is_transport_member(struct span key)
{
    static const char *const names[] = {"type", "transport", "url",  "headers", "serverId",
                                        "id",   "command",   "args", "env"};

    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (json_string_is(key, span_str(names[i])))
            return true;
    return false;
}

/* Append the entry with another transport and this (quoted) name; all other members stay. */
static void put_entry(struct buf *out, struct span name, struct span entry,
                      const struct acp_server *s, bool map)
{
    struct json_iter member = json_iter(entry);

    if (map)
        buf_span(out, name);
    buf_str(out, map ? ":{" : "{");
    if (!map)
        json_out_raw(out, "name", name);
    while (json_next(&member)) {
        bool is_name = !map && json_string_is(member.key, SPAN("name"));
        if (!is_transport_member(member.key) && !is_name)
            json_out_raw(out, NULL, member.member);
    }
    port_put_members(out, s, map);
    buf_char(out, '}');
}

/* The server that an entry declares, with an address; NULL: the request must be refused. */
static struct acp_server *offered_server(struct rewrite *r, const struct declaration *d,
                                         struct span name)
{
    struct conductor *c = r->setup->c;
    struct acp_server *s = known_server(r->setup, d);

    if (s)
        return s;
    if (port_kind(c) == BRIDGED_NOT) {
        r->refused = "this agent takes no MCP server with ACP as transport";
    } else if (c->n_servers >= SERVERS_MAX) {
        r->refused = "too many MCP servers with ACP as transport are open";
    } else {
        s = server_new(r->setup, d, name);
        if (port_offer(s))
            r->refused = "no address can be opened for an MCP server";
    }
    return r->refused ? NULL : s;
}

/* Rewrite one entry of a container. `also` gets the entry in the form for `mcpServers`; NULL when
 * this container is `mcpServers`. */
static void rewrite_entry(struct rewrite *r, struct buf *out, const struct json_iter *it, bool map,
                          struct buf *also)
{
    struct declaration d;
    BUF_SCOPED own = {0}, name = {0};

    if (!is_bridged(r->setup->c, it->value, &d)) {
        buf_span(out, it->member);
        return;
    }
    r->changed = true;
    if (json_type_of(raw_name(it)) == JSON_STRING)
        json_unescape(&own, raw_name(it));
    const struct acp_server *s = offered_server(r, &d, buf_view(&own));
    if (!s)
        return;
    bool there = map_get(&r->names, buf_view(&own)) == s;
    put_name(r, &name, buf_view(&own), s);
    put_entry(out, buf_view(&name), it->value, s, map);
    if (also && !there) {
        buf_str(also, also->n ? "," : "");
        put_entry(also, buf_view(&name), it->value, s, r->map);
    }
}

static void rewrite_entries(struct rewrite *r, struct buf *out, struct json_slot old,
                            struct buf *also)
{
    struct json_iter it = json_iter(old.value);

    while (!r->refused && json_next(&it)) {
        buf_str(out, out->n ? "," : "");
        rewrite_entry(r, out, &it, old.type == JSON_OBJECT, also);
    }
}

/* Replace the container at `path` in `params` by one with these entries. */
static void set_container(struct buf *params, const char *const *path, struct span entries,
                          bool map)
{
    BUF_SCOPED container = {0};
    struct buf next = {0};

    buf_char(&container, map ? '{' : '[');
    buf_span(&container, entries);
    buf_char(&container, map ? '}' : ']');
    json_edit_set(&next, buf_view(params), path, buf_view(&container));
    buf_fini(params);
    *params = next;
}

/* Append the entry of the host's own server. */
static void put_extra(struct rewrite *r, struct buf *out)
{
    struct conductor *c = r->setup->c;
    BUF_SCOPED name = {0}, entry = {0};

    if (!c->host.extra_name || port_kind(c) == BRIDGED_NOT)
        return;
    put_name(r, &name, span_str(c->host.extra_name), c);
    if (port_put_extra(c, &entry, buf_view(&name), r->map))
        return;
    buf_str(out, out->n ? "," : "");
    buf_span(out, buf_view(&entry));
    r->changed = true;
}

static bool is_container(struct json_slot value)
{
    return value.type == JSON_ARRAY || value.type == JSON_OBJECT;
}

/*
 * Append the params in the form that the agent must see. Each container is rewritten in its own
 * form; `mcpServers`, the only container that agents read today, also gets the servers of the
 * others.
 */
static void put_params(struct rewrite *r, struct buf *out, struct span params)
{
    BUF_SCOPED entries = {0}, also = {0};
    struct json_slot main = json_edit_get(params, containers[0]);

    r->map = main.type == JSON_OBJECT;
    note_names(r, params);
    buf_span(out, params);
    if (is_container(main))
        rewrite_entries(r, &entries, main, NULL);
    for (size_t i = 1; i < COUNT_OF(containers) && !r->refused; i++) {
        BUF_SCOPED inner = {0};
        struct json_slot old = json_edit_get(buf_view(out), containers[i]);
        if (!is_container(old))
            continue;
        rewrite_entries(r, &inner, old, &also);
        set_container(out, containers[i], buf_view(&inner), old.type == JSON_OBJECT);
    }
    if (r->refused || (main.type != JSON_NONE && main.type != JSON_NULL && !is_container(main)))
        return;
    buf_str(&entries, entries.n && also.n ? "," : "");
    buf_span(&entries, buf_view(&also));
    put_extra(r, &entries);
    if (is_container(main) || entries.n)
        set_container(out, containers[0], buf_view(&entries), r->map);
}

/* --- the requests --- */

static bool setup_answered(struct pending *p, const struct acp_message *m)
{
    struct setup *s = p->owner;
    struct json_slot id = m->slots[ACP_SESSION_ID];

    s->asked = NULL;
    if (m->rpc.kind == RPC_ERROR) {
        setup_free(s);
        return false;
    }
    /* The document that introduced passing on the id spells it `session_id`. */
    if (id.type != JSON_STRING && json_type_of(m->rpc.result) == JSON_OBJECT)
        id = json_get(m->rpc.result, "session_id");
    if (id.type == JSON_STRING) {
        mem_free(s->session);
        s->session = mem_span(id.value);
    }
    /* Connections that wait for the session's id get the id before the answer is passed on. */
    LIST_EACH (&s->servers, it)
        channel_session_known(LIST_ENTRY(it, struct acp_server, node));
    if (list_empty(&s->servers))
        setup_free(s);
    return false;
}

void setup_relay(struct hop *from, const struct acp_message *m, struct hop_place to)
{
    struct conductor *c = from->c;
    struct rewrite r = {.setup = setup_new(c)};
    BUF_SCOPED params = {0};

    if (json_type_of(m->params) != JSON_OBJECT || !acp_is_request(m)) {
        setup_free(r.setup);
        conductor_relay(from, m, to, m->params);
        return;
    }
    if (m->word == WORD_SETUP && m->slots[ACP_SESSION_ID].type == JSON_STRING)
        r.setup->session = mem_span(m->slots[ACP_SESSION_ID].value);
    put_params(&r, &params, m->params);
    if (r.refused) {
        bool ours = port_kind(c) != BRIDGED_NOT; /* then we failed, not the request */
        hop_error(from, m, ours ? RPC_INTERNAL_ERROR : RPC_INVALID_PARAMS,
                  ours ? "Internal error" : "Invalid params", r.refused);
        setup_free(r.setup);
    } else {
        struct pending *p = conductor_relay(from, m, to, r.changed ? buf_view(&params) : m->params);
        if (list_empty(&r.setup->servers)) {
            setup_free(r.setup);
        } else {
            p->answered = setup_answered;
            p->owner = r.setup;
            r.setup->asked = p;
        }
    }
    map_fini(&r.names);
}

static bool close_answered(struct pending *p, const struct acp_message *m)
{
    char *session = p->owner;
    struct conductor *c = p->to->c;

    /* A session that the agent does not find counts as closed; any other error leaves it open. */
    bool closed =
        m->rpc.kind == RPC_RESULT || rpc_error_of(m->rpc.error).code == ACP_RESOURCE_NOT_FOUND;
    LIST_EACH_SAFE (&c->setups, it) {
        struct setup *s = LIST_ENTRY(it, struct setup, node);
        if (closed && s->session && strcmp(s->session, session) == 0)
            setup_free(s);
    }
    mem_free(session);
    return false;
}

static void close_dropped(struct pending *p)
{
    mem_free(p->owner);
}

void setup_close_relay(struct hop *from, const struct acp_message *m, struct hop_place to)
{
    struct pending *p = conductor_relay(from, m, to, m->params);

    if (!p || m->slots[ACP_SESSION_ID].type != JSON_STRING)
        return;
    p->answered = close_answered;
    p->dropped = close_dropped;
    p->owner = mem_span(m->slots[ACP_SESSION_ID].value);
}
