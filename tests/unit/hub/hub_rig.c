/* The bridge, its folder and the test callers, for most tests in this folder. */
#include "hub_rig.h"

#include "base/log.h"
#include "config/load.h"
#include "hub/graph/memory.h"
#include "hub/graph/server.h"

#include <ftw.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>

/* The time for all servers to end: 400 ms after EOF, as much after SIGTERM, and a second for their
 * orphans. The rest is for a busy machine. */
enum { STOP_MS = 4000 };

/* --- the folder --- */

static void put_file(const char *path, struct span text)
{
    FILE *f = fopen(path, "we");

    assert_non_null(f);
    assert_int_equal(fwrite(text.p, 1, text.n, f), text.n);
    assert_int_equal(fclose(f), 0);
}

void rig_write(struct hub_rig *r, const char *yaml)
{
    struct buf text = {0};
    struct span rest = span_str(yaml);

    for (const char *at; (at = memmem(rest.p, rest.n, "FAKE", 4));) {
        size_t before = (size_t)(at - rest.p);
        buf_span(&text, span_cut(rest, 0, before));
        buf_str(&text, "'" FAKE_SERVER "'");
        rest = span_from(rest, before + strlen("FAKE"));
    }
    buf_span(&text, rest);
    put_file(r->file, buf_view(&text));
    buf_fini(&text);
}

struct config *rig_load(struct hub_rig *r, const char *yaml)
{
    struct problems problems = {0};
    struct buf lines = {0};

    rig_write(r, yaml);
    struct config *c = config_load(r->file, &problems);
    for (size_t i = 0; i < problems.n; i++)
        problem_put(&lines, &problems.items[i]);
    assert_string_equal(buf_cstr(&lines), "");
    assert_non_null(c);
    buf_fini(&lines);
    problems_fini(&problems);
    return c;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *where)
{
    (void)st, (void)flag, (void)where;
    return remove(path);
}

void rig_remember(struct hub_rig *r, const struct config *c, const char *alias, const char *words)
{
    char *path = memory_path(c, config_server(c, alias));
    struct catalog *known = catalog_of_words(words);

    (void)r;
    assert_non_null(path);
    memory_keep(path, known, 0);
    catalog_free(known);
    mem_free(path);
}

/* --- life --- */

static void hear(void *arg, const struct log_record *line)
{
    struct hub_rig *r = arg;

    if (line->level <= LOG_WARN)
        buf_printf(&r->log, "%s: " SPAN_FMT "\n", line->who, SPAN_ARG(line->text));
}

void rig_prepare(struct hub_rig *r, const char *yaml)
{
    struct buf path = {0};

    *r = (struct hub_rig){0};
    make_folder(r->folder);
    buf_printf(&path, "%s/cache", r->folder);
    setenv("XDG_CACHE_HOME", buf_cstr(&path), 1);
    setenv("XDG_STATE_HOME", buf_cstr(&path), 1);
    path.n = 0;
    buf_printf(&path, "%s/rialto.yaml", r->folder);
    r->file = buf_take(&path);
    log_set_muted(true);
    log_set_listener(hear, r);
    r->loop = loop_new();
    r->config = rig_load(r, yaml);
}

static void on_changed(struct bridge_watch *w)
{
    CONTAINER_OF(w, struct hub_rig, watch)->n_changes++;
}

void rig_build(struct hub_rig *r)
{
    r->bridge = bridge_new(r->loop, r->config);
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); /* the leak checker must be able to read this process */
    r->watch.changed = on_changed;
    bridge_watch(r->bridge, &r->watch);
}

void rig_set_up(struct hub_rig *r, const char *yaml)
{
    rig_prepare(r, yaml);
    rig_build(r);
    bridge_start(r->bridge);
    WAIT(r->loop, bridge_settled(r->bridge));
}

static void on_stopped(void *arg)
{
    ((struct hub_rig *)arg)->stopped = true;
}

void rig_stop(struct hub_rig *r)
{
    bridge_stop(r->bridge, on_stopped, r);
    assert_false(r->stopped); /* the callback comes from the loop */
    WAIT_MS(r->loop, r->stopped, STOP_MS);
    assert_int_equal(rig_children(), 0);
}

void rig_tear_down(struct hub_rig *r)
{
    if (!r->stopped)
        rig_stop(r);
    assert_int_equal(router_call_count(bridge_router(r->bridge)), 0);
    bridge_unwatch(&r->watch);
    bridge_free(r->bridge);
    rig_clean(r);
}

void rig_clean(struct hub_rig *r)
{
    assert_int_equal(loop_timers(r->loop)->n, 0);
    config_free(r->config);
    loop_free(r->loop);
    log_set_listener(NULL, NULL);
    log_forget_secrets();
    assert_int_equal(nftw(r->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
    mem_free(r->file);
    buf_fini(&r->log);
    buf_fini(&r->text);
}

static void put_changes(struct buf *out, const struct bridge_changes *changes)
{
    for (int act = 0; act < PLAN_ACTS; act++) {
        struct span names = buf_view(&changes->names[act]);
        if (!names.n)
            continue;
        buf_printf(out, "%s%s ", out->n ? "; " : "", plan_act_name((enum plan_act)act));
        for (size_t i = 0; i < names.n; i++) {
            if (names.p[i] == ',')
                buf_str(out, ", ");
            else if (names.p[i] != '"')
                buf_char(out, names.p[i]);
        }
    }
}

void rig_apply(struct hub_rig *r, const char *yaml, const char *expected)
{
    struct bridge_changes changes = {0};
    struct buf said = {0};

    bridge_apply(r->bridge, rig_load(r, yaml), &changes);
    put_changes(&said, &changes);
    assert_string_equal(buf_cstr(&said), expected);
    bridge_changes_fini(&changes);
    buf_fini(&said);
}

/* --- what is there --- */

static bool has_text(const struct buf *b, const char *text)
{
    return b->n && memmem(b->p, b->n, text, strlen(text));
}

static struct provider *find_server(struct hub_rig *r, const char *alias)
{
    for (struct provider *p = NULL; (p = bridge_next(r->bridge, p));)
        if (strcmp(p->alias, alias) == 0)
            return p;
    return NULL;
}

struct provider *rig_server(struct hub_rig *r, const char *alias)
{
    struct provider *p = find_server(r, alias);

    assert_non_null(p);
    return p;
}

bool rig_has_server(struct hub_rig *r, const char *alias)
{
    return find_server(r, alias) != NULL;
}

int rig_pid(const struct provider *p)
{
    return provider_describe(p).pid;
}

bool rig_is_running(int pid)
{
    return kill(pid, 0) == 0;
}

int rig_children(void)
{
    char path[64];
    int pid, n = 0;

    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    while (fscanf(f, "%d", &pid) == 1)
        n++;
    fclose(f);
    return n;
}

const char *rig_names(struct hub_rig *r, struct view *v, enum item_kind kind)
{
    const struct target *t;

    r->text.n = 0;
    for (size_t i = 0; (t = view_item(v, kind, i)); i++)
        buf_printf(&r->text, "%s" SPAN_FMT, i ? " " : "", SPAN_ARG(t->public_name));
    return buf_cstr(&r->text);
}

bool rig_heard(const struct hub_rig *r, const char *text)
{
    return has_text(&r->log, text);
}

static void add_word(struct catalog *c, struct span word)
{
    static const struct {
        const char *prefix;
        enum item_kind kind;
        const char *member;
    } kinds[] = {{"p:", ITEM_PROMPT, "name"},
                 {"r:", ITEM_RESOURCE, "uri"},
                 {"t:", ITEM_TEMPLATE, "uriTemplate"},
                 {"", ITEM_TOOL, "name"}};
    size_t i = 0;
    struct buf raw = {0};

    while (!span_starts(word, span_str(kinds[i].prefix)))
        i++;
    word = span_from(word, strlen(kinds[i].prefix));
    buf_printf(&raw, "{\"%s\":\"" SPAN_FMT "\"}", kinds[i].member, SPAN_ARG(word));
    catalog_add(c, kinds[i].kind,
                &(struct item){.name = word,
                               .raw = buf_view(&raw),
                               .name_at = {strlen(kinds[i].member) + 4, word.n + 2}});
    buf_fini(&raw);
}

struct catalog *catalog_of_words(const char *words)
{
    struct catalog *c = catalog_new();
    struct span rest = span_str(words);

    while (rest.n) {
        struct span word = span_cut(rest, 0, span_find(rest, ' '));
        add_word(c, word);
        rest = span_from(rest, word.n + 1);
    }
    return c;
}

/* --- a caller --- */

static void on_event(struct peer *self, struct call *call, const struct event *event)
{
    static const char *const words[ITEM_KINDS] = {"tools", "resources", "templates", "prompts"};
    struct rig_agent *c = CONTAINER_OF(self, struct rig_agent, peer);

    (void)call;
    if (event->kind != EVENT_CHANGED)
        return;
    buf_str(&c->said, "changed");
    for (int kind = 0; kind < ITEM_KINDS; kind++)
        if (event->changed & (1u << kind))
            buf_printf(&c->said, " %s", words[kind]);
    buf_char(&c->said, '\n');
}

static void on_done(struct peer *self, struct call *call, const struct outcome *outcome)
{
    static const char *const words[] = {
        [OUTCOME_RESULT] = "result", [OUTCOME_ERROR] = "error", [OUTCOME_FAILED] = "failed"};
    struct rig_agent *c = CONTAINER_OF(self, struct rig_agent, peer);
    bool failed = outcome->kind == OUTCOME_FAILED;

    if (call->op == OP_STANDING)
        return;
    c->n_done++;
    buf_printf(&c->said, "%s " SPAN_FMT "\n", words[outcome->kind],
               SPAN_ARG(failed ? outcome->text : outcome->body));
}

static const struct peer_verbs verbs = {.event = on_event, .done = on_done};

void rig_agent_enter(struct rig_agent *c, const struct mcp_host *host)
{
    *c = (struct rig_agent){.host = *host, .view = host->view, .router = host->router};
    peer_init(&c->peer, &verbs);
    if (host->wake)
        host->wake(host->arg);
    struct view *own = host->enter(host->arg, host->view, host->principal, 0, &c->lease);
    if (own)
        c->view = own;
    router_attach(c->router, &c->peer, c->view, 0, c);
}

void rig_agent_leave(struct rig_agent *c)
{
    call_cancel_all(&c->peer);
    if (c->lease)
        c->host.leave(c->host.arg, c->lease);
    buf_fini(&c->said);
}

struct call *rig_agent_call(struct rig_agent *c, const char *tool, const char *arguments)
{
    struct buf params = {0};

    buf_printf(&params, "{\"name\":\"%s\",\"arguments\":%s}", tool, arguments ? arguments : "{}");
    struct request request = {.op = OP_CALL_TOOL,
                              .name = span_str(tool),
                              .params = buf_view(&params),
                              .name_at = {strlen("{\"name\":"), strlen(tool) + 2}};
    struct call *call = call_open(c->router, &c->peer, c->view, &request, c);
    buf_fini(&params);
    return call;
}

const char *rig_agent_ask(struct rig_agent *c, struct hub_rig *r, const char *tool,
                          const char *arguments)
{
    size_t before = c->n_done, at;

    rig_agent_call(c, tool, arguments);
    WAIT(r->loop, c->n_done > before);
    for (at = c->said.n - 1; at && c->said.p[at - 1] != '\n';)
        at--;
    return buf_cstr(&c->said) + at;
}

bool rig_agent_heard(const struct rig_agent *c, const char *text)
{
    return has_text(&c->said, text);
}
