/* The functions of struct bus_host: facts about servers, adding and removing servers in the
 * configuration file, views, and admitting the providers of a proxy. Created by bus_role.c, called
 * by worker and proxy in rockbot/. */
#include "hub/bus_host.h"

#include "base/ascii.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/sha.h"
#include "config/check.h"
#include "config/edit.h"
#include "config/load.h"
#include "hub/graph/side_request.h"
#include "io/reach.h"
#include "wire/json.h"

#include <errno.h>
#include <unistd.h>

enum { ID_DIGITS = 12, IDENTITY_DIGITS = 16 };

struct bus_hosting {
    struct bridge *bridge;
    struct follow *follow; /* NULL: another daemon follows the file */
    struct bus_host host;
    struct list requests; /* of struct side_request */
    struct buf texts;     /* the texts of the facts that put_facts returned last */
};

/* --- the identity of a server --- */

static void put_digest(struct buf *out, struct span text, size_t digits)
{
    unsigned char digest[SHA256_N];

    sha_256(digest, text);
    for (size_t i = 0; i < digits / 2; i++)
        buf_printf(out, "%02x", digest[i]);
}

static struct span digest(struct bus_hosting *h, struct span text, size_t digits)
{
    size_t at = h->texts.n;

    put_digest(&h->texts, text, digits);
    return span_from(buf_view(&h->texts), at);
}

/* Scheme and host are case-insensitive, and a slash at the end makes no difference. */
static void put_url(struct buf *out, const char *url)
{
    struct span text = span_str(url);
    size_t host = span_find(text, ':') + 3, path = host;

    while (path < text.n && text.p[path] != '/')
        path++;
    for (size_t i = 0; i < path && i < text.n; i++)
        buf_char(out, ascii_to_lower(text.p[i]));
    struct span rest = span_from(text, path);
    while (rest.n && rest.p[rest.n - 1] == '/')
        rest.n--;
    buf_span(out, rest);
}

static void put_texts(struct buf *out, const char *what, const struct config_strings *list)
{
    for (size_t i = 0; i < list->n; i++)
        buf_printf(out, "%s=%s\n", what, list->items[i]);
}

static void put_pairs(struct buf *out, const char *what, const struct config_pairs *pairs)
{
    for (size_t i = 0; i < pairs->n; i++)
        buf_printf(out, "%s=%s=%s\n", what, pairs->items[i].name, pairs->items[i].value);
}

/* Two entries with the same identity are one server under two names. The identity contains secrets:
 * only its digest is ever shown. */
static void put_identity(struct buf *out, const struct config_server *s)
{
    if (s->url) {
        buf_str(out, "url=");
        put_url(out, s->url);
        buf_char(out, '\n');
    }
    if (s->command)
        buf_printf(out, "command=%s\n", s->command);
    buf_printf(out, "transport=%d\n", (int)s->transport);
    put_texts(out, "arg", &s->args);
    put_pairs(out, "env", &s->env);
    put_pairs(out, "header", &s->headers);
    if (s->auth.profile)
        buf_printf(out, "profile=%s\n", s->auth.profile);
    put_texts(out, "allow", &s->allow);
    put_texts(out, "deny", &s->deny);
}

static void copy_text(struct bus_hosting *h, struct span object, const char *key, struct span *to)
{
    struct json_slot slot = json_get(object, key);
    size_t at = h->texts.n;

    if (slot.type != JSON_STRING)
        return;
    json_unescape(&h->texts, slot.value);
    *to = span_from(buf_view(&h->texts), at);
}

static const struct config_server *entry_of(const struct bus_hosting *h, const struct provider *p)
{
    return config_server(bridge_config(h->bridge), p->alias);
}

static void put_facts(void *arg, const struct provider *p, struct bus_server_facts *facts)
{
    struct bus_hosting *h = arg;
    const struct config_server *s = entry_of(h, p);
    const struct mcp_provider *server = bridge_mcp_provider(p);
    struct span info = server ? mcp_provider_info(server) : SPAN_EMPTY;
    BUF_SCOPED identity = {0};

    *facts = (struct bus_server_facts){0};
    buf_reset(&h->texts, 4096);
    buf_room(&h->texts, info.n + 256); /* texts added below must not move */
    if (info.n) {
        copy_text(h, info, "title", &facts->display_name);
        copy_text(h, info, "version", &facts->version);
        copy_text(h, info, "name", &facts->implementation);
        copy_text(h, info, "description", &facts->description);
    }
    const char *instructions = server ? mcp_provider_instructions(server) : NULL;
    facts->instructions = instructions ? span_str(instructions) : SPAN_EMPTY;
    facts->server_id = s && s->id ? span_str(s->id) : digest(h, span_str(p->alias), ID_DIGITS);
    if (!s)
        return; /* the demo server, which is in no file */
    put_identity(&identity, s);
    facts->identity_hash = digest(h, buf_view(&identity), IDENTITY_DIGITS);
    facts->timeout_ms = s->own_timeout ? s->timeout : 0;
    facts->agent_owned = s->origin == ORIGIN_AGENT;
    facts->handback = s->elicitation.mode == ELICITATION_HANDBACK;
}

static struct bus_asking asking_of(void *arg, const struct provider *p)
{
    const struct config_server *s = entry_of(arg, p);

    if (!s)
        return (struct bus_asking){0};
    return (struct bus_asking){.off = s->elicitation.mode == ELICITATION_OFF,
                               .handback = s->elicitation.mode == ELICITATION_HANDBACK,
                               .max = s->elicitation.max_per_call,
                               .denied = s->elicitation.denied_fields.items,
                               .n_denied = s->elicitation.denied_fields.n};
}

static const struct config_attachments *files_of(void *arg, const struct provider *p)
{
    const struct config_server *s = entry_of(arg, p);

    return s && s->attachments.given ? &s->attachments : NULL;
}

static struct side_request *request(void *arg, const struct provider *p,
                                    const struct bus_request *request, bus_answer_fn *done,
                                    void *owner)
{
    struct bus_hosting *h = arg;
    struct server_plan *plan = bridge_server_plan(p);

    return plan ? side_request_start(bridge_signin(h->bridge), &h->requests, plan, request, done,
                                     owner)
                : NULL;
}

/* --- register and unregister --- */

static int check_new_name(struct span name, struct err *err)
{
    const char *wrong = check_alias(name);

    for (size_t i = 1; !wrong && i < name.n; i++)
        if (name.p[i] == '_' && name.p[i - 1] == '_')
            wrong = "a server's name has no '__' in it, which parts it from its tools' names";
    return wrong ? err_set(err, -EINVAL, "%s", wrong) : 0;
}

static const struct config_server *find_nocase(const struct config *c, struct span name)
{
    for (size_t i = 0; i < c->servers.n; i++)
        if (span_eq_nocase(name, span_str(c->servers.items[i].alias)))
            return &c->servers.items[i];
    return NULL;
}

/* Does the URL lead to a host that the operator allows agents to register? The address of the host
 * is checked when it is connected to. */
static int check_reach(const struct config *c, struct span url, struct err *err)
{
    const struct config_strings *hosts = &c->bus.register_hosts;
    BUF_SCOPED text = {0};

    if (!hosts->n)
        return err_set(err, -EPERM,
                       "agents register no servers here: the operator has named no hosts for that "
                       "(bus.register_hosts)");
    buf_span(&text, url);
    bool has = reach_has_url(&(struct reach){(const char *const *)hosts->items, hosts->n},
                             buf_cstr(&text));
    return has ? 0
               : err_set(err, -EPERM,
                         "the url's host is none of those whose servers agents may register "
                         "(bus.register_hosts)");
}

static int check_new(const struct bus_hosting *h, const struct bus_new_server *s, struct err *err)
{
    const struct config_server *there = find_nocase(bridge_config(h->bridge), s->name);
    static const char *const types[] = {"sse", "http", "streamable-http"};
    bool known = false;

    if (check_new_name(s->name, err))
        return -EINVAL;
    if (there)
        return err_set(err, -EEXIST,
                       "a server named '%s' exists and is not replaced; unregister it first, or "
                       "choose another name",
                       there->alias);
    for (size_t i = 0; i < COUNT_OF(types); i++)
        known |= span_eq_nocase(s->type, span_str(types[i]));
    if (s->command.n || !known)
        return err_set(err, -EINVAL,
                       "only servers that are reached by a url can be registered over the bus: "
                       "give type sse, http or streamable-http");
    if (!s->url.n)
        return err_set(err, -EINVAL, "a url is required");
    return check_reach(bridge_config(h->bridge), s->url, err);
}

/* The name of another entry that is the same server; NULL when there is none. */
static const char *find_twin(const struct config *c, const char *alias)
{
    const struct config_server *fresh = config_server(c, alias);
    BUF_SCOPED own = {0}, other = {0};
    const char *twin = NULL;

    put_identity(&own, fresh);
    for (size_t i = 0; i < c->servers.n && !twin; i++) {
        buf_reset(&other, 1024);
        put_identity(&other, &c->servers.items[i]);
        if (&c->servers.items[i] != fresh && span_eq(buf_view(&own), buf_view(&other)))
            twin = c->servers.items[i].alias;
    }
    return twin;
}

/* Is the changed file valid? The agent reads the reason, which names no place in the file. */
static int check_file(const char *file, struct span text, const char *fresh, struct err *err)
{
    struct problems problems = {0};
    struct config *c = config_parse(text, config_format_of(file, text), &problems);
    int code = 0;

    for (size_t i = 0; !c && i < problems.n && !code; i++)
        if (problems.items[i].level == PROBLEM_ERROR)
            code = err_set(err, ERR_CONFIG, "%s", problems.items[i].text);
    if (!c && !code)
        code = err_set(err, ERR_CONFIG, "the entry is not valid");
    const char *twin = c && fresh ? find_twin(c, fresh) : NULL;
    if (twin)
        code = err_set(err, -EEXIST, "'%s' is the same server already", twin);
    else if (c && fresh && !config_server(c, fresh)->enabled)
        code = err_set(err, -EPERM,
                       "the operator has named the servers that run here (enabled_servers)");
    problems_fini(&problems);
    config_free(c);
    return code;
}

/* Replace the file and apply the change; if that fails, put the old file back. The path of the file
 * and what is wrong with it are for the operator's log only. */
static int commit(struct bus_hosting *h, const char *file, struct span before, struct span after,
                  struct err *err)
{
    struct err why = {0};
    int lock = edit_lock(file, 0, &why);
    BUF_SCOPED now = {0};

    if (lock < 0 || file_read(&now, file, CONFIG_MAX_BYTES) || !span_eq(buf_view(&now), before)) {
        if (lock >= 0)
            close(lock);
        return err_set(err, -EBUSY, "the configuration file is just being changed; try again");
    }
    int code = edit_replace_file(file, after, &why);
    if (code) {
        log_error("bus", "%s", why.text);
        err_set(err, code, "the bridge's configuration file cannot be written");
    } else if (h->follow && (code = follow_own_write(h->follow, &why))) {
        log_error("bus", "the change is not taken: %s", why.text);
        if (edit_undo_file(file, after, before, false, &why))
            log_error("bus", "the file could not be put back: %s", why.text);
        err_set(err, code, "the bridge does not take its changed configuration file");
    }
    close(lock); /* only now, so that the undo above cannot revert somebody else's edit */
    return code;
}

static int read_file(const struct bus_hosting *h, struct buf *text, struct err *err)
{
    const char *file = bridge_config(h->bridge)->file;
    struct problems problems = {0};

    if (!file) {
        return err_set(err, -ENOENT,
                       "this bridge has no configuration file in which servers could be kept");
    }
    bool read = config_read_text(file, text, &problems);
    problems_fini(&problems);
    return read ? 0 : err_set(err, -EIO, "the configuration file cannot be read");
}

/* Write the entry in the format of the file: RockBot's format has a type; with ours, the transport
 * is detected. */
static void put_entry(struct buf *out, struct span file, const struct bus_new_server *s)
{
    buf_char(out, '{');
    if (strcmp(edit_servers(file).keys[0], "mcpServers") == 0) {
        buf_str(out, "\"type\": ");
        json_quote(out, s->type);
        buf_str(out, ", ");
    }
    buf_str(out, "\"url\": ");
    json_quote(out, s->url);
    buf_str(out, ", \"origin\": \"agent\"}");
}

static int add_server(void *arg, const struct bus_new_server *s, struct err *err)
{
    struct bus_hosting *h = arg;
    BUF_SCOPED before = {0}, after = {0}, entry = {0}, name = {0};
    int code = check_new(h, s, err);

    if (!code)
        code = read_file(h, &before, err);
    if (!code) {
        put_entry(&entry, buf_view(&before), s);
        struct edit_place place = edit_servers(buf_view(&before));
        code = edit_put(&after, edit_format_of(buf_view(&before)), &place, buf_view(&before),
                        s->name, buf_view(&entry), err);
    }
    buf_span(&name, s->name);
    if (!code)
        code = check_file(bridge_config(h->bridge)->file, buf_view(&after), buf_cstr(&name), err);
    if (!code)
        code = commit(h, bridge_config(h->bridge)->file, buf_view(&before), buf_view(&after), err);
    if (!code)
        log_info("bus", "server '%s' was registered by an agent", buf_cstr(&name));
    return code;
}

/* Is the entry still as add_server wrote it? An entry to which the operator has added anything (a
 * filter, a limit, `enabled: false`) belongs to the operator. */
static bool is_agents(const struct config_server *s)
{
    struct problems problems = {0};
    BUF_SCOPED text = {0};
    bool same = false;

    if (s->origin != ORIGIN_AGENT || !s->url)
        return false;
    buf_str(&text, "{\"servers\":{");
    json_quote(&text, span_str(s->alias));
    buf_str(&text, ":{\"origin\":\"agent\",\"url\":");
    json_quote(&text, span_str(s->url));
    buf_str(&text, "}}}");
    struct config *c = config_parse(buf_view(&text), CONFIG_JSON, &problems);
    if (c) {
        struct config_server plain = c->servers.items[0];
        plain.transport = s->transport;
        plain.id = s->id;
        /* These may come from a setting for all servers. */
        plain.resources_as_tools = s->resources_as_tools;
        plain.prompts_as_tools = s->prompts_as_tools;
        same = config_server_equal(&plain, s);
    }
    config_free(c);
    problems_fini(&problems);
    return same;
}

static int remove_server(void *arg, struct span name, struct err *err)
{
    struct bus_hosting *h = arg;
    const struct config_server *s = find_nocase(bridge_config(h->bridge), name);
    BUF_SCOPED before = {0}, after = {0};

    if (!s)
        return err_set(err, -ENOENT, "there is no server '" SPAN_FMT "'", SPAN_ARG(name));
    if (!is_agents(s))
        return err_set(err, -EPERM, "'%s' belongs to the operator and is not removed over the bus",
                       s->alias);
    int code = read_file(h, &before, err);
    if (!code) {
        struct edit_place place = edit_servers(buf_view(&before));
        code = edit_take(&after, edit_format_of(buf_view(&before)), &place, buf_view(&before),
                         span_str(s->alias), err);
    }
    if (!code)
        code = check_file(bridge_config(h->bridge)->file, buf_view(&after), NULL, err);
    if (!code)
        code = commit(h, bridge_config(h->bridge)->file, buf_view(&before), buf_view(&after), err);
    if (!code)
        log_info("bus", "server '" SPAN_FMT "' was removed by an agent", SPAN_ARG(name));
    return code;
}

/* --- the graph --- */

static struct provider *next_server(void *arg, const struct provider *p)
{
    const struct bus_hosting *h = arg;

    return bridge_next(h->bridge, p);
}

static struct view *view_of(void *arg, struct provider *p)
{
    (void)arg;
    return bridge_server_view(p);
}

static void relist(void *arg, struct provider *p)
{
    struct mcp_provider *server = bridge_mcp_provider(p);

    (void)arg;

    if (server)
        mcp_provider_relist(server);
}

static void admit(void *arg, struct provider *p)
{
    const struct bus_hosting *h = arg;

    bridge_admit(h->bridge, p);
}

struct bus_hosting *bus_hosting_new(struct bridge *bridge, struct follow *follow)
{
    struct bus_hosting *h = MEM_NEW(struct bus_hosting);

    list_init(&h->requests);
    h->bridge = bridge;
    h->follow = follow;
    h->host = (struct bus_host){.router = bridge_router(bridge),
                                .arg = h,
                                .next = next_server,
                                .view = view_of,
                                .facts = put_facts,
                                .asking = asking_of,
                                .files = files_of,
                                .request = request,
                                .withdraw = side_request_cancel,
                                .relist = relist,
                                .add = add_server,
                                .remove = remove_server,
                                .admit = admit};
    return h;
}

void bus_hosting_forget_follow(struct bus_hosting *h)
{
    h->follow = NULL;
}

void bus_hosting_free(struct bus_hosting *h)
{
    side_request_cancel_all(&h->requests);
    buf_fini(&h->texts);
    mem_free(h);
}

const struct bus_host *bus_hosting_host(const struct bus_hosting *h)
{
    return &h->host;
}
