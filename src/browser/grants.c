#include "base/log.h"
#include "base/mem.h"
#include "browser/inside.h"
#include "wire/rpc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* How long the agent waits for its user; the answer counts also when it comes later. */
enum { CONSENT_WAIT_MS = 25 * 1000, GRANTS_MAX = 256, FILE_MAX = 1024 * 1024 };

/* --- grants for good, by origin --- */

struct kept_grant {
    struct list node;
    char *origin;
    char name[];
};

struct kept_grants {
    char *file;
    struct list all;
    size_t n;
};

static void keep(struct kept_grants *k, struct span origin, struct span name)
{
    LIST_EACH (&k->all, it) {
        struct kept_grant *g = LIST_ENTRY(it, struct kept_grant, node);
        if (span_is(origin, g->origin) && span_is(name, g->name))
            return;
    }
    if (k->n++ >= FILE_MAX / CAPABILITY_MAX)
        return;
    struct kept_grant *g = mem_zalloc(sizeof *g + name.n + 1);
    g->origin = mem_span(origin);
    if (name.n)
        memcpy(g->name, name.p, name.n);
    list_append(&k->all, &g->node);
}

static void read_grants(struct kept_grants *k, struct span text)
{
    struct buf origin = {0}, name = {0};
    enum json_type type;

    if (json_skim(text, NULL, NULL, &type, NULL) || type != JSON_OBJECT) {
        log_warn("browser", "%s is no list of grants; it is not read", k->file);
        return;
    }
    struct json_iter origins = json_iter(text);
    while (json_next(&origins)) {
        struct json_iter names = json_iter(origins.value);
        origin.n = 0;
        struct span from = json_text(origins.key, &origin);
        while (origins.type == JSON_ARRAY && json_next(&names)) {
            name.n = 0;
            struct span what =
                names.type == JSON_STRING ? json_text(names.value, &name) : SPAN_EMPTY;
            if (capability_is_valid(what))
                keep(k, from, what);
        }
    }
    buf_fini(&name);
    buf_fini(&origin);
}

struct kept_grants *kept_grants_load(const char *file)
{
    struct kept_grants *k = MEM_NEW(struct kept_grants);
    struct buf text = {0};

    list_init(&k->all);
    if (!file)
        return k;
    k->file = mem_str(file);
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return k;
    ssize_t n = 1;
    while (n > 0 && text.n < FILE_MAX) {
        n = read(fd, buf_room(&text, 4096), 4096);
        text.n += n > 0 ? (size_t)n : 0;
    }
    close(fd);
    read_grants(k, buf_view(&text));
    buf_fini(&text);
    return k;
}

static void save(const struct kept_grants *k)
{
    struct buf text = {0}, part = {0};

    if (!k->file)
        return;
    buf_char(&text, '{');
    LIST_EACH (&k->all, it) {
        const struct kept_grant *g = LIST_ENTRY(it, struct kept_grant, node);
        bool first = true;
        LIST_EACH (&k->all, before) {
            if (before == it)
                break;
            first &= strcmp(LIST_ENTRY(before, struct kept_grant, node)->origin, g->origin) != 0;
        }
        if (!first)
            continue;
        buf_str(&text, text.n > 1 ? ",\n " : "\n ");
        json_quote(&text, span_str(g->origin));
        buf_str(&text, ": [");
        bool head = true;
        LIST_EACH (&k->all, other) {
            const struct kept_grant *o = LIST_ENTRY(other, struct kept_grant, node);
            if (strcmp(o->origin, g->origin) != 0)
                continue;
            buf_str(&text, head ? "" : ", ");
            head = false;
            json_quote(&text, span_str(o->name));
        }
        buf_char(&text, ']');
    }
    buf_str(&text, "\n}\n");
    buf_printf(&part, "%s.part", k->file);
    const char *path = buf_cstr(&part);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool fine = fd >= 0 && write(fd, text.p, text.n) == (ssize_t)text.n;
    if (fd >= 0)
        fine &= close(fd) == 0;
    if (!fine || rename(path, k->file))
        log_warn("browser", "cannot keep grants in %s: %s", k->file, strerror(errno));
    buf_fini(&part);
    buf_fini(&text);
}

void kept_grants_free(struct kept_grants *k)
{
    LIST_EACH_SAFE (&k->all, it) {
        struct kept_grant *g = LIST_ENTRY(it, struct kept_grant, node);
        mem_free(g->origin);
        mem_free(g);
    }
    mem_free(k->file);
    mem_free(k);
}

/* --- grants of a session --- */

bool session_has(const struct browser_session *s, struct span capability)
{
    const struct browser_options *o = &s->browser->options;

    for (size_t i = 0; i < o->n_granted; i++)
        if (capability_covers(o->granted[i], capability))
            return true;
    LIST_EACH (&s->grants, it)
        if (capability_covers(span_str(LIST_ENTRY(it, struct grant, node)->name), capability))
            return true;
    return false;
}

static void add_grant(struct browser_session *s, struct span name, enum grant_kind kind)
{
    size_t n = 0;

    LIST_EACH (&s->grants, it) {
        struct grant *g = LIST_ENTRY(it, struct grant, node);
        n++;
        if (!span_is(name, g->name))
            continue;
        g->kind = kind > g->kind ? kind : g->kind;
        return;
    }
    if (n >= GRANTS_MAX)
        return;
    struct grant *g = mem_zalloc(sizeof *g + name.n + 1);
    g->kind = kind;
    if (name.n)
        memcpy(g->name, name.p, name.n);
    list_append(&s->grants, &g->node);
}

void session_grant(struct browser_session *s, const struct page *page, struct span array,
                   enum grant_kind kind)
{
    struct json_iter it = json_iter(array);
    struct buf scratch = {0};
    bool kept = kind == GRANT_PERSISTENT && page->origin;

    while (json_next(&it)) {
        scratch.n = 0;
        struct span name = it.type == JSON_STRING ? json_text(it.value, &scratch) : SPAN_EMPTY;
        if (!capability_is_valid(name))
            continue;
        add_grant(s, name, kind);
        if (kept)
            keep(s->browser->kept, span_str(page->origin), name);
    }
    if (kept)
        save(s->browser->kept);
    buf_fini(&scratch);
    session_changed(s);
}

static bool is_in(struct span array, const char *name)
{
    struct json_iter it = json_iter(array);

    while (json_next(&it))
        if (it.type == JSON_STRING && json_string_is(it.value, span_str(name)))
            return true;
    return false;
}

void session_revoke(struct browser_session *s, const struct page *page, struct span array)
{
    struct kept_grants *k = s->browser->kept;
    bool any = false;

    LIST_EACH_SAFE (&s->grants, it) {
        struct grant *g = LIST_ENTRY(it, struct grant, node);
        if (!is_in(array, g->name))
            continue;
        list_remove(&g->node);
        mem_free(g);
    }
    LIST_EACH_SAFE (&k->all, it) {
        struct kept_grant *g = LIST_ENTRY(it, struct kept_grant, node);
        if (!page->origin || strcmp(g->origin, page->origin) != 0 || !is_in(array, g->name))
            continue;
        list_remove(&g->node);
        mem_free(g->origin);
        mem_free(g);
        any = true;
    }
    if (any)
        save(k);
    session_changed(s);
}

void session_recall(struct browser_session *s, const struct page *page)
{
    LIST_EACH (&s->browser->kept->all, it) {
        const struct kept_grant *g = LIST_ENTRY(it, struct kept_grant, node);
        if (page->origin && strcmp(g->origin, page->origin) == 0)
            add_grant(s, span_str(g->name), GRANT_PERSISTENT);
    }
}

/* What was granted for one call has served. */
void session_use_once(struct browser_session *s, const struct tool *tool)
{
    struct json_iter it = json_iter(tool->capabilities);
    struct buf scratch = {0};
    bool any = false;

    while (s->enforces && tool->capabilities.n && json_next(&it)) {
        scratch.n = 0;
        struct span name = it.type == JSON_STRING ? json_text(it.value, &scratch) : SPAN_EMPTY;
        LIST_EACH_SAFE (&s->grants, at) {
            struct grant *g = LIST_ENTRY(at, struct grant, node);
            if (g->kind != GRANT_ONCE || !capability_covers(span_str(g->name), name))
                continue;
            list_remove(&g->node);
            mem_free(g);
            any = true;
        }
    }
    buf_fini(&scratch);
    if (any)
        session_changed_late(s); /* we are inside of a call of it */
}

enum grant_kind grant_kind_of(struct span params)
{
    struct json_slot type = json_get(params, "type");

    if (json_string_is(type.value, SPAN("persistent")))
        return GRANT_PERSISTENT;
    return json_string_is(type.value, SPAN("once")) ? GRANT_ONCE : GRANT_SESSION;
}

/* --- the meta-tool --- */

void put_meta_tool(struct catalog *c)
{
    static const char raw[] =
        "{\"name\":\"" META_TOOL "\",\"description\":\"Ask the user of the web page for "
        "capabilities that its hidden tools need, such as dom:write. Tells which were granted, "
        "which denied, and which the user has not decided on.\",\"inputSchema\":{\"type\":"
        "\"object\",\"properties\":{\"capabilities\":{\"type\":\"array\",\"items\":{\"type\":"
        "\"string\"}}},\"required\":[\"capabilities\"]}}";

    catalog_add(c, ITEM_TOOL,
                &(struct item){.name = SPAN(META_TOOL),
                               .raw = span_str(raw),
                               .name_at = {8, sizeof META_TOOL + 1}});
}

static void put_list(struct buf *out, const char *member, struct span items)
{
    buf_printf(out, "%s\"%s\":[", out->n > 1 ? "," : "", member);
    buf_span(out, items);
    buf_char(out, ']');
}

static void put_name(struct buf *list, struct span raw)
{
    if (list->n)
        buf_char(list, ',');
    buf_span(list, raw);
}

/* Tells of each wanted one how it stands now; what is not granted is `rest`. */
static void answer(struct browser_session *s, struct call *call, struct span wanted, bool pending)
{
    struct json_iter it = json_iter(wanted);
    struct buf granted = {0}, other = {0}, report = {0}, result = {0}, scratch = {0};

    while (json_next(&it)) {
        scratch.n = 0;
        bool has = !s->enforces || session_has(s, json_text(it.value, &scratch));
        put_name(has ? &granted : &other, it.value);
    }
    buf_char(&report, '{');
    put_list(&report, "granted", buf_view(&granted));
    put_list(&report, "denied", pending ? SPAN_EMPTY : buf_view(&other));
    put_list(&report, "pending", pending ? buf_view(&other) : SPAN_EMPTY);
    buf_char(&report, '}');
    buf_str(&result, "{\"content\":[{\"type\":\"text\",\"text\":");
    json_quote(&result, buf_view(&report));
    buf_str(&result, "}]}");
    router_done(call, &(struct outcome){.kind = OUTCOME_RESULT, .body = buf_view(&result)});
    buf_fini(&scratch);
    buf_fini(&result);
    buf_fini(&report);
    buf_fini(&other);
    buf_fini(&granted);
}

static bool is_wish(struct json_slot list)
{
    struct json_iter it = json_iter(list.value);
    struct buf scratch = {0};
    bool fine = list.type == JSON_ARRAY, any = false;

    while (fine && json_next(&it)) {
        scratch.n = 0;
        fine = it.type == JSON_STRING && capability_is_valid(json_text(it.value, &scratch));
        any = true;
    }
    buf_fini(&scratch);
    return fine && any;
}

/* What is wanted and not there yet. */
static void put_lacking(struct buf *out, const struct browser_session *s, struct span wanted)
{
    struct json_iter it = json_iter(wanted);
    struct buf scratch = {0};

    while (json_next(&it)) {
        scratch.n = 0;
        if (!session_has(s, json_text(it.value, &scratch)))
            put_name(out, it.value);
    }
    buf_fini(&scratch);
}

static struct page *consenting_page(const struct browser_session *s)
{
    struct page *found = NULL;

    LIST_EACH (&s->pages, it) {
        struct page *p = LIST_ENTRY(it, struct page, node);
        if (p->consents && page_pipe(p))
            found = p;
    }
    return found;
}

void grants_open(struct browser_session *s, struct call *call, struct span arguments)
{
    struct json_slot wanted = json_get(arguments, "capabilities");
    struct page *p = consenting_page(s);
    struct buf lacking = {0}, params = {0};

    if (!is_wish(wanted)) {
        router_done(
            call, &(struct outcome){
                      .kind = OUTCOME_ERROR,
                      .body = SPAN("{\"code\":-32602,\"message\":\"capabilities must be a list of "
                                   "names\",\"data\":{\"btcpCode\":\"INVALID_PARAMS\"}}"),
                      .text = SPAN("capabilities must be a list of names")});
        return;
    }
    put_lacking(&lacking, s, wanted.value);
    if (!lacking.n || !p || !s->enforces) {
        answer(s, call, wanted.value, false);
        buf_fini(&lacking);
        return;
    }
    buf_str(&params, "{\"capabilities\":[");
    buf_span(&params, buf_view(&lacking));
    buf_str(&params, "]}");
    struct errand *e =
        page_ask(p, ERRAND_CONSENT, "capabilities/request", buf_view(&params), CONSENT_WAIT_MS);
    e->call = call;
    buf_span(&e->wanted, wanted.value);
    call->provider_data = e;
    buf_fini(&params);
    buf_fini(&lacking);
}

/* {granted: [...]} or, as the specification has it, {granted: true, approved: [...]}. */
static void take_grants(struct errand *e, struct span result)
{
    struct browser_session *s = e->page->session;
    struct json_slot granted = json_get(result, "granted"), approved = json_get(result, "approved");
    enum grant_kind kind = grant_kind_of(result);

    if (granted.type == JSON_ARRAY)
        session_grant(s, e->page, granted.value, kind);
    else if (approved.type == JSON_ARRAY)
        session_grant(s, e->page, approved.value, kind);
    else if (granted.type == JSON_TRUE)
        session_grant(s, e->page, buf_view(&e->wanted), kind);
}

void grants_answered(struct errand *e, const struct message *m)
{
    struct browser_session *s = e->page->session;
    struct call *call = e->call;
    struct buf wanted = {0};

    if (m->result.n && json_type_of(m->result) == JSON_OBJECT)
        take_grants(e, m->result);
    else
        e->page->consents = false; /* it cannot ask after all */
    buf_span(&wanted, buf_view(&e->wanted));
    errand_free(e);
    if (call)
        answer(s, call, buf_view(&wanted), false);
    buf_fini(&wanted);
}

void grants_late(struct errand *e)
{
    struct call *call = e->call;

    e->call = NULL;
    if (call)
        answer(e->page->session, call, buf_view(&e->wanted), true);
}
