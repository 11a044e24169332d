/* What callers see: all servers, one server alone, or a configured view; with prefixed or bare
 * names, listed or searched, and after a reload. No server runs here: all are lazy and have
 * remembered catalogs. */
#include "hub_rig.h"

#include "hub/graph/narrowings.h"

#define WIKI  "read write p:summary p:draft r:wiki:///home r:wiki:///secret/keys t:wiki:///{page}"
#define FILES "read list r:file:///etc p:tidy"
#define BOTH  "servers: {wiki: {command: FAKE, start: lazy}, files: {command: FAKE, start: lazy}}"

/* A bridge whose servers have remembered catalogs, and its configured views. */
struct gallery {
    struct hub_rig rig;
    struct narrowings *narrowings;
};

static void remember_both(struct gallery *g, const struct config *c)
{
    rig_remember(&g->rig, c, "wiki", WIKI);
    rig_remember(&g->rig, c, "files", FILES);
}

static void gallery_open(struct gallery *g, const char *yaml)
{
    rig_prepare(&g->rig, yaml);
    remember_both(g, g->rig.config);
    g->narrowings = narrowings_new(g->rig.config);
    rig_build(&g->rig);
    bridge_start(g->rig.bridge);
}

static void gallery_close(struct gallery *g)
{
    assert_int_equal(rig_children(), 0); /* listing starts no server */
    rig_tear_down(&g->rig);
    narrowings_free(g->narrowings);
}

/* All servers, or the server `s` alone, narrowed by the configured view of this name. */
static struct exposure *narrow(struct gallery *g, const struct bridge_server *s, const char *view)
{
    const struct narrowing *n = narrowings_find(g->narrowings, view);

    assert_non_null(n);
    return bridge_narrow(g->rig.bridge, s, n);
}

static void check_view(struct gallery *g, struct view *v, const char *tools, const char *resources,
                       const char *templates, const char *prompts)
{
    const char *const expected[ITEM_KINDS] = {[ITEM_TOOL] = tools,
                                              [ITEM_RESOURCE] = resources,
                                              [ITEM_TEMPLATE] = templates,
                                              [ITEM_PROMPT] = prompts};

    for (int kind = 0; kind < ITEM_KINDS; kind++)
        assert_string_equal(rig_names(&g->rig, v, (enum item_kind)kind), expected[kind]);
}

/* --- all servers --- */

static void names_are_made_by_the_pattern_or_left_bare(void **state)
{
    struct gallery g;

    (void)state;
    gallery_open(&g, BOTH);
    check_view(&g, exposure_view(bridge_all(g.rig.bridge)),
               "wiki__read wiki__write files__read files__list",
               "wiki:///home wiki:///secret/keys file:///etc", "wiki:///{page}",
               "wiki__summary wiki__draft files__tidy");
    check_view(&g, exposure_view(bridge_one(g.rig.bridge, SPAN("files"))), "read list",
               "file:///etc", "", "tidy");
    assert_null(bridge_one(g.rig.bridge, SPAN("nobody")));
    gallery_close(&g);

    gallery_open(&g, "{names: '{tool}_of_{server}', " BOTH "}");
    assert_string_equal(rig_names(&g.rig, exposure_view(bridge_all(g.rig.bridge)), ITEM_PROMPT),
                        "summary_of_wiki draft_of_wiki tidy_of_files");
    gallery_close(&g);

    /* Bare: of two tools with one name the first keeps it, and the other is renamed. */
    gallery_open(&g, "{names: bare, " BOTH "}");
    const char *names = rig_names(&g.rig, exposure_view(bridge_all(g.rig.bridge)), ITEM_TOOL);
    assert_true(span_starts(span_str(names), SPAN("read write read-")));
    assert_non_null(strstr(names, " list"));
    gallery_close(&g);
}

/* --- a configured view --- */

#define VIEWS                                                                                      \
    "views: {\n"                                                                                   \
    "  reader: {allow: [read], resources: {deny: ['*secret*', 'wiki:///{*']},\n"                   \
    "           prompts: {deny: [draft]}},\n"                                                      \
    "  clerk: {servers: [files], deny: [list]}},\n"

/* Each kind has its own filter; the filter for resources also applies to templates. Filters match
 * the servers' own names, not the names that the pattern makes. */
static void a_view_leaves_what_it_says(void **state)
{
    struct gallery g;

    (void)state;
    gallery_open(&g, "{" VIEWS BOTH "}");
    struct exposure *reader = narrow(&g, NULL, "reader"), *clerk = narrow(&g, NULL, "clerk");
    check_view(&g, exposure_view(reader), "wiki__read files__read", "wiki:///home file:///etc", "",
               "wiki__summary files__tidy");
    check_view(&g, exposure_view(clerk), "files__read", "file:///etc", "", "files__tidy");
    exposure_free(reader);
    exposure_free(clerk);
    gallery_close(&g);
}

/* A hidden tool cannot be called either, by a caller that knows its name from elsewhere. */
static void what_a_view_hides_is_not_called(void **state)
{
    struct gallery g;
    struct rig_agent c;

    (void)state;
    gallery_open(&g, "{" VIEWS BOTH "}");
    struct exposure *s = narrow(&g, NULL, "reader");
    struct mcp_host host = bridge_host(g.rig.bridge, s);
    host.wake = NULL;
    rig_agent_enter(&c, &host);
    assert_null(rig_agent_call(&c, "wiki__write", NULL));
    assert_true(rig_agent_heard(&c, "failed "));
    assert_int_equal(c.n_done, 1);
    rig_agent_leave(&c);
    exposure_free(s);
    gallery_close(&g);
}

/* /mcp/files for the owner of a token with a view: only that server, with bare names, narrowed by
 * the view. */
static void a_view_of_one_server_has_its_own_names(void **state)
{
    struct gallery g;

    (void)state;
    gallery_open(&g, "{" VIEWS BOTH "}");
    struct bridge_server *wiki = bridge_server_hold(g.rig.bridge, SPAN("wiki"));
    struct bridge_server *files = bridge_server_hold(g.rig.bridge, SPAN("files"));
    struct exposure *reader = narrow(&g, wiki, "reader"), *clerk = narrow(&g, files, "clerk");
    struct exposure *none = narrow(&g, wiki, "clerk");
    check_view(&g, exposure_view(reader), "read", "wiki:///home", "", "summary");
    check_view(&g, exposure_view(clerk), "read", "file:///etc", "", "tidy");
    check_view(&g, exposure_view(none), "", "", "", "");
    exposure_free(reader);
    exposure_free(clerk);
    exposure_free(none);
    bridge_server_release(wiki);
    bridge_server_release(files);
    gallery_close(&g);
}

static void a_view_is_found_by_its_name(void **state)
{
    struct gallery g;

    (void)state;
    gallery_open(&g, "{" VIEWS BOTH "}");
    const struct narrowing *clerk = narrowings_find(g.narrowings, "clerk");
    assert_non_null(clerk);
    assert_int_equal(clerk->n_providers, 1);
    assert_span(clerk->providers[0], "files");
    assert_ptr_not_equal(clerk, narrowings_find(g.narrowings, "reader"));
    assert_null(narrowings_find(g.narrowings, "Clerk"));
    assert_null(narrowings_find(g.narrowings, NULL)); /* a token without a view sees all */
    gallery_close(&g);
}

/* --- searched --- */

/* Two tools of our own replace all others in the list; resources and prompts are listed as usual.
 * The search is in the full view, which is narrowed like the listed one. */
static void searched_for_they_are_not_listed(void **state)
{
    struct gallery g;

    (void)state;
    gallery_open(&g, "{expose: search, " VIEWS BOTH "}");
    struct view *seen = exposure_view(bridge_all(g.rig.bridge));
    check_view(&g, seen, "find_tools call_tool", "wiki:///home wiki:///secret/keys file:///etc",
               "wiki:///{page}", "wiki__summary wiki__draft files__tidy");
    assert_ptr_not_equal(seen, bridge_full_view(g.rig.bridge));
    assert_string_equal(rig_names(&g.rig, bridge_full_view(g.rig.bridge), ITEM_TOOL),
                        "wiki__read wiki__write files__read files__list");

    struct exposure *s = narrow(&g, NULL, "reader");
    struct mcp_host host = bridge_host(g.rig.bridge, s);
    check_view(&g, host.view, "find_tools call_tool", "wiki:///home file:///etc", "",
               "wiki__summary files__tidy");
    struct rig_agent c;
    host.wake = NULL;
    rig_agent_enter(&c, &host);
    const char *found = rig_agent_ask(&c, &g.rig, "find_tools", "{\"query\":\"read write list\"}");
    assert_non_null(strstr(found, "wiki__read"));
    assert_null(strstr(found, "wiki__write"));
    assert_null(strstr(found, "files__list"));
    rig_agent_leave(&c);
    exposure_free(s);
    /* The view of one server lists its tools. */
    assert_string_equal(
        rig_names(&g.rig, exposure_view(bridge_one(g.rig.bridge, SPAN("files"))), ITEM_TOOL),
        "read list");
    gallery_close(&g);
}

/* --- after a reload --- */

/* Views follow a reload: an added server is seen through them, a removed one is not, a replaced one
 * is seen with its new catalog; and clients are told of the change. */
static void views_follow_the_bridge(void **state)
{
    static const char later[] =
        "{views: {reader: {allow: [read]}}, servers: {notes: {command: FAKE, start: lazy},"
        " wiki: {command: FAKE, start: lazy, args: [--twice], deny: [read]}}}";
    struct gallery g;
    struct rig_agent c;

    (void)state;
    gallery_open(&g, "{" VIEWS BOTH "}");
    struct exposure *reader = narrow(&g, NULL, "reader");
    struct bridge_server *wiki = bridge_server_hold(g.rig.bridge, SPAN("wiki"));
    struct exposure *alone = narrow(&g, wiki, "reader");
    struct mcp_host host = bridge_host(g.rig.bridge, reader);
    host.wake = NULL;
    rig_agent_enter(&c, &host);

    struct config *next = rig_load(&g.rig, later);
    rig_remember(&g.rig, next, "notes", "read note");
    rig_remember(&g.rig, next, "wiki", "read write p:summary p:outline r:wiki:///index");
    config_free(next);
    rig_apply(&g.rig, later, "replaced wiki; added notes; removed files");

    check_view(&g, host.view, "notes__read", "wiki:///index", "", "wiki__summary wiki__outline");
    check_view(&g, exposure_view(alone), "", "wiki:///index", "", "summary outline");
    check_view(&g, exposure_view(bridge_all(g.rig.bridge)), "notes__read notes__note wiki__write",
               "wiki:///index", "", "wiki__summary wiki__outline");
    assert_true(rig_agent_heard(&c, "changed tools resources prompts\n"));
    rig_agent_leave(&c);
    exposure_free(reader);
    exposure_free(alone);
    bridge_server_release(wiki);
    gallery_close(&g);
}

/* --- one more provider --- */

/* The functions of a provider that is no server of the configuration, such as a web page. */
static void start_nothing(struct provider *p)
{
    (void)p;
}

static void lose_at_once(struct provider *p)
{
    provider_lost(p, "the test is over");
}

/* An admitted provider is in all views, also narrowed ones, and stays after a reload. */
static void one_that_was_admitted_stays(void **state)
{
    static const struct peer_verbs verbs = {0};
    static const struct provider_ops ops = {.start = start_nothing, .stop = lose_at_once};
    struct gallery g;
    struct provider page;

    (void)state;
    gallery_open(&g, "{" VIEWS BOTH "}");
    struct exposure *reader = narrow(&g, NULL, "reader");
    provider_init(&page, &verbs, &ops, "page");
    router_add_provider(bridge_router(g.rig.bridge), &page);
    bridge_admit(g.rig.bridge, &page);
    provider_want(&page);
    provider_publish(&page, catalog_of_words("read click"));
    provider_up(&page);
    assert_string_equal(rig_names(&g.rig, exposure_view(reader), ITEM_TOOL),
                        "wiki__read files__read page__read");

    rig_apply(&g.rig, "{" VIEWS "servers: {files: {command: FAKE, start: lazy}}}",
              "kept files; removed wiki");
    assert_string_equal(rig_names(&g.rig, exposure_view(bridge_all(g.rig.bridge)), ITEM_TOOL),
                        "files__read files__list page__read page__click");
    assert_null(bridge_mcp_provider(&page));
    provider_unwant(&page);
    router_remove_provider(bridge_router(g.rig.bridge), &page);
    assert_string_equal(rig_names(&g.rig, exposure_view(reader), ITEM_TOOL), "files__read");
    provider_fini(&page);
    exposure_free(reader);
    gallery_close(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_made_by_the_pattern_or_left_bare),
        cmocka_unit_test(a_view_leaves_what_it_says),
        cmocka_unit_test(what_a_view_hides_is_not_called),
        cmocka_unit_test(a_view_of_one_server_has_its_own_names),
        cmocka_unit_test(a_view_is_found_by_its_name),
        cmocka_unit_test(searched_for_they_are_not_listed),
        cmocka_unit_test(views_follow_the_bridge),
        cmocka_unit_test(one_that_was_admitted_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
