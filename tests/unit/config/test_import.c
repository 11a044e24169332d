/* Other programs' files: VS Code, the manifest of assistant4, comments in JSON, and converting all
 * of them to our format. */
#include "config_test.h"

static struct config *read_foreign(const char *text, enum config_format format,
                                   const char *expected_problems)
{
    struct problems ps = {0};
    struct span exact = unit_exact(span_str(text));

    problems_set_file(&ps, "f");
    struct config *c = config_parse(exact, format, &ps);
    assert_problems(&ps, expected_problems);
    problems_fini(&ps);
    unit_free(exact);
    return c;
}

/* --- comments --- */

static void test_relax(void **state)
{
    static const struct {
        const char *text, *relaxed; /* NULL: not JSON either */
    } rows[] = {
        {"{}", "{}"},
        {"{ // x\n}", "{     \n}"},
        {"/**/{}/* a\nb */", "    {}    \n    "},
        {"[1,]", "[1 ]"},
        {"{\"a\":1 , // x\n }", "{\"a\":1       \n }"},
        {"{\"//\":\"/* \\\" ,] */\",}", "{\"//\":\"/* \\\" ,] */\" }"},
        {"[1,2 /* , */ , ]", "[1,2           ]"},
        {"[,]", "[ ]"}, /* tolerated */
        {"[1,,]", NULL},
        {"{} /* open", NULL},
        {"\"open", NULL},
        {"\"open\\", NULL},
        {"/", NULL},
        {"{#x\n}", NULL},
        {"", NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct span text = unit_exact(span_str(rows[i].text));
        struct buf out = {0};
        bool fine = json_doc_relax(&out, text);
        assert_int_equal(fine, rows[i].relaxed != NULL);
        if (rows[i].relaxed)
            assert_string_equal(buf_cstr(&out), rows[i].relaxed);
        buf_fini(&out);
        unit_free(text);
    }
}

/* Comments and trailing commas are fine in every JSON file. */
static void test_comments(void **state)
{
    (void)state;
    config_free(read_foreign("{// Cursor\n\"mcpServers\": {\"a\": {\"command\": \"x\",},}}",
                             CONFIG_JSON, ""));
    config_free(read_foreign("{\"servers\": {\"a\": {\"command\": \"x\"}} /* VS Code */}",
                             CONFIG_JSON, ""));
    config_free(read_foreign("{\"servers\": {\"a\": {\"command\": \"x\"}}, // ours\n"
                             " \"listen\": \":0\",}",
                             CONFIG_JSON, ""));
    assert_null(read_foreign("{\"listen\": \":0\",, }", CONFIG_JSON,
                             "f:1:19: not valid JSON: there is a comma too much before the "
                             "bracket\n"));
    assert_null(read_foreign("{\"listen\": \":0\" /* open", CONFIG_JSON,
                             "f:1:17: not valid JSON: this is not expected here\n"));
    /* Lines and columns are those of the file, not of the text without its comments. */
    config_free(
        read_foreign("{/* a\n */ \"mcpServers\": {\"a\": {\"command\": \"x\", \"odd\": 1}}}",
                     CONFIG_JSON, "f:2:42: warning: mcpServers.a.odd: unknown key, ignored\n"));
}

/* --- VS Code --- */

static void test_vscode(void **state)
{
    (void)state;
    struct problems ps = {0};
    struct config *c = config_load(EXAMPLES "/vscode-mcp.json", &ps);
    static const char expected[] =
        EXAMPLES "/vscode-mcp.json:10:18: warning: servers.docs.headers: '${input:search-key}' is "
                 "not asked for here: set the secret or variable SEARCH_KEY\n";

    assert_problems(&ps, expected);
    problems_fini(&ps);
    const struct config_server *files = config_server(c, "files");
    assert_int_equal(c->servers.n, 2);
    assert_string_equal(c->names, "{server}__{tool}");
    assert_string_equal(config_server(c, "docs")->headers.items[0].value, "${SEARCH_KEY}");
    assert_string_equal(files->args.items[2], "${PROJECT}/docs");
    assert_string_equal(files->env.items[1].value, "${env:FILES_TOKEN}");
    config_free(c);
}

static void test_vscode_variables(void **state)
{
    (void)state;
    struct config *c = read_foreign(
        "{\"servers\": {\"a\": {\"type\": \"stdio\", \"command\": \"${workspaceFolder}/run\",\n"
        "\"args\": [\"${userHome}${/}x\", \"${env:A}${B}$${C}\", \"${unclosed\", "
        "\"${command:x}\"],\n"
        "\"envFile\": \"${workspaceFolder}/.env\"}}}",
        CONFIG_JSON, "f:2:9: warning: servers.a.args: '${command:x}' has no meaning here\n");
    const struct config_server *s = config_server(c, "a");
    assert_string_equal(s->command, "${PROJECT}/run");
    assert_string_equal(s->env_file, "${PROJECT}/.env");
    assert_int_equal(s->scope, SCOPE_PROJECT);
    assert_string_equal(s->args.items[0], "${HOME}/x");
    assert_string_equal(s->args.items[1], "${env:A}${B}$${C}");
    assert_string_equal(s->args.items[2], "${unclosed");
    config_free(c);
}

/* VS Code's format is recognised by keys that only it has; with a key of ours the file is ours. */
static void test_vscode_recognised(void **state)
{
    static const struct {
        const char *text;
        enum config_format format;
        bool vscode;
    } rows[] = {
        {"{\"servers\":{\"a\":{\"type\":\"http\",\"url\":\"http://x.example/\",\"odd\":1}}}",
         CONFIG_JSON, true},
        {"{\"servers\":{\"a\":{\"command\":\"x\",\"odd\":1}},\"inputs\":[]}", CONFIG_JSON, true},
        {"{\"servers\":{\"a\":{\"command\":\"x\",\"odd\":1,\"dev\":{\"watch\":\"*\"}}}}",
         CONFIG_JSON, true},
        {"{\"servers\":{\"a\":{\"command\":\"${workspaceFolder}/x\",\"odd\":1}}}", CONFIG_JSON,
         true},
        {"{\"mcp\":{\"servers\":{\"a\":{\"command\":\"x\",\"type\":\"stdio\",\"odd\":1}}},"
         "\"editor.fontSize\":12}",
         CONFIG_JSON, true},
        {"{\"servers\":{\"a\":{\"command\":\"x\",\"odd\":1}}}", CONFIG_JSON, false},
        {"{\"servers\":{\"a\":{\"command\":\"x\",\"type\":\"stdio\",\"odd\":1}},\"listen\":\":0\"}",
         CONFIG_JSON, false},
        {"servers: {a: {command: x, type: stdio, odd: 1}}", CONFIG_YAML, false},
        {"{\"servers\":5,\"inputs\":[]}", CONFIG_JSON, false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct problems ps = {0};
        struct config *c = config_parse(span_str(rows[i].text), rows[i].format, &ps);
        assert_int_equal(c != NULL, rows[i].vscode);
        if (c)
            assert_int_equal(c->servers.n, 1);
        problems_fini(&ps);
        config_free(c);
    }
}

static void test_ways(void **state)
{
    (void)state;
    struct config *c = read_foreign("mcpServers:\n"
                                    "  a: {url: 'http://x.example/', transportMode: streamable}\n"
                                    "  b: {url: 'http://x.example/', transport: SSE}\n"
                                    "  c: {url: 'http://x.example/', type: streamableHttp}\n"
                                    "  d: {url: 'http://x.example/', type: carrier-pigeon}\n",
                                    CONFIG_YAML,
                                    "f:5:39: warning: mcpServers.d.type: 'carrier-pigeon' is not a "
                                    "known way to speak to servers: it is found "
                                    "out\n");
    assert_int_equal(config_server(c, "a")->transport, TRANSPORT_STREAMABLE_HTTP);
    assert_int_equal(config_server(c, "b")->transport, TRANSPORT_SSE);
    assert_int_equal(config_server(c, "c")->transport, TRANSPORT_AUTO);
    assert_int_equal(config_server(c, "d")->transport, TRANSPORT_AUTO);
    config_free(c);
}

/* An empty list of tools to offer was left out, so that all of them were offered. Goose writes an
 * empty `available_tools` for all of them. */
static void test_no_tools_at_all(void **state)
{
    (void)state;
    struct config *c = read_foreign("mcpServers:\n"
                                    "  a: {command: x, tools: []}\n"
                                    "  b: {command: x, includeTools: [], excludeTools: [drop]}\n"
                                    "  c: {command: x, enabled_tools: [], disabled_tools: []}\n"
                                    "  d: {command: x, allowedTools: []}\n"
                                    "  e: {command: x, tools: ['*']}\n"
                                    "  f: {command: x, available_tools: []}\n",
                                    CONFIG_YAML, "");
    static const char *const closed[] = {"a", "b", "c", "d"}, *const open[] = {"e", "f"};
    for (size_t i = 0; i < COUNT_OF(closed); i++) {
        const struct config_server *s = config_server(c, closed[i]);
        assert_int_equal(s->allow.n, 0);
        if (!s->deny.n || strcmp(s->deny.items[s->deny.n - 1], "*") != 0)
            fail_msg("%s offers its tools", closed[i]);
    }
    for (size_t i = 0; i < COUNT_OF(open); i++)
        assert_int_equal(config_server(c, open[i])->deny.n, 0);
    config_free(c);
}

/* Codex writes its seconds as numbers with a fraction: its whole file was refused. */
static void test_seconds_with_a_fraction(void **state)
{
    (void)state;
    struct config *c = read_foreign("[mcp_servers.a]\ncommand = \"x\"\n"
                                    "startup_timeout_sec = 20.0\ntool_timeout_sec = 1.5\n",
                                    CONFIG_TOML, "");
    assert_int_equal(config_server(c, "a")->start_timeout, 20000);
    assert_int_equal(config_server(c, "a")->timeout, 1500);
    config_free(c);
}

/* Claude Code's file was not recognised when only its projects have servers. */
static void test_projects_alone(void **state)
{
    (void)state;
    struct config *c = read_foreign("{\"numStartups\": 3, \"projects\": {\"/home/x/one\": {},\n"
                                    "\"/home/x/two\": {\"mcpServers\": {\"a\": {\"command\": "
                                    "\"x\"}}}}}",
                                    CONFIG_JSON, "");
    assert_int_equal(c->servers.n, 1);
    assert_int_equal(config_server(c, "a")->scope, SCOPE_PROJECT);
    config_free(c);
}

/* --- assistant4 --- */

/* The manifest of seed 003 (docs/seeds.md): its values are read as they are. */
static void test_manifest(void **state)
{
    (void)state;
    struct problems ps = {0};
    struct config *c = config_load(EXAMPLES "/manifest.yaml", &ps);

    assert_problems(&ps, "");
    problems_fini(&ps);
    const struct config_server *search = config_server(c, "web_search");
    const struct config_server *files = config_server(c, "filesystem");
    const struct config_server *github = config_server(c, "github");
    assert_int_equal(c->servers.n, 3);
    assert_string_equal(c->names, "mcp_{server}_{tool}");
    assert_string_equal(c->setup_instructions,
                        "Put the token for api.example.com into the environment variable "
                        "GITHUB_TOKEN.\n");
    assert_string_equal(search->url, "http://localhost:8000/mcp");
    assert_int_equal(search->transport, TRANSPORT_STREAMABLE_HTTP);
    assert_string_equal(files->command, "npx");
    assert_string_equal(files->args.items[1], "@modelcontextprotocol/server-filesystem");
    assert_int_equal(files->transport, TRANSPORT_STDIO);
    assert_int_equal(github->transport, TRANSPORT_SSE);
    assert_string_equal(github->headers.items[0].name, "Authorization");
    assert_string_equal(github->headers.items[0].value, "Bearer ${GITHUB_TOKEN}");
    assert_true(github->enabled);
    config_free(c);
}

static const char full_manifest[] =
    "id: mcp\n"
    "config:\n"
    "  servers:\n"
    "    - {alias: a, transport: stdio, command: x, args: [1], tool_allowlist: [read, list],\n"
    "       require_approval: always, cache_tools: true, prompts: auto, env: {K: '${SECRET}'}}\n"
    "    - {alias: b, transport: sse, url: 'http://x.example/', tool_filter: [search],\n"
    "       require_approval: {always: [delete]}, prompts: [style, {name: tone, args: {of: me}}]}\n"
    "    - alias: c\n"
    "      transport: stdio\n"
    "      command: y\n"
    "      tool_filter: {allowed_tool_names: [], blocked_tool_names: [drop]}\n"
    "      require_approval: {always: {tool_names: [w1, w2]}, never: {tool_names: [r]}}\n"
    "    - {alias: d, transport: stdio, command: z, require_approval: never}\n"
    "  enabled_servers: [a, b]\n"
    "  names: bare\n"
    "  prompts_cache_ttl: 300\n"
    "  odd: 1\n";

static void test_manifest_members(void **state)
{
    (void)state;
    struct config *c = read_foreign(full_manifest, CONFIG_YAML,
                                    "f:17:3: warning: config.odd: unknown key, ignored\n");
    const struct config_server *a = config_server(c, "a"), *b = config_server(c, "b");
    const struct config_server *cc = config_server(c, "c"), *d = config_server(c, "d");

    assert_string_equal(c->names, "bare");
    assert_int_equal(a->allow.n, 2);
    assert_string_equal(a->approve.items[0], "*");
    assert_string_equal(a->prompts_as_context.items[0].name, "*");
    assert_null(a->prompts_as_context.items[0].arguments);
    assert_string_equal(b->allow.items[0], "search");
    assert_string_equal(b->approve.items[0], "delete");
    assert_string_equal(b->prompts_as_context.items[0].name, "style");
    assert_string_equal(b->prompts_as_context.items[1].arguments, "{\"of\":\"me\"}");
    assert_int_equal(cc->allow.n, 0);
    assert_string_equal(cc->deny.items[0], "drop");
    assert_string_equal(cc->approve.items[1], "w2");
    assert_int_equal(d->approve.n, 0);
    assert_true(a->enabled && b->enabled && !cc->enabled && !d->enabled);
    config_free(c);
}

static void test_manifest_allowlist(void **state)
{
    (void)state;
    struct config *c = read_foreign("config:\n"
                                    "  tool_allowlist: {a: [read]}\n"
                                    "  servers: [{alias: a, transport: stdio, command: x},\n"
                                    "    {alias: b, transport: stdio, command: x}]\n",
                                    CONFIG_YAML, "");
    assert_string_equal(config_server(c, "a")->allow.items[0], "read");
    assert_int_equal(config_server(c, "b")->allow.n, 0);
    config_free(c);
    c = read_foreign(
        "config:\n"
        "  servers: [{alias: a, transport: stdio, command: x, tool_allowlist: [own]},\n"
        "    {alias: b, transport: stdio, command: x}]\n"
        "  tool_allowlist: [read]\n",
        CONFIG_YAML, "");
    assert_string_equal(config_server(c, "a")->allow.items[0], "own");
    assert_string_equal(config_server(c, "b")->allow.items[0], "read");
    config_free(c);
}

static void test_manifest_empty(void **state)
{
    (void)state;
    struct config *c = read_foreign("id: mcp\nconfig:\n  servers: []\n", CONFIG_YAML, "");
    assert_int_equal(c->servers.n, 0);
    config_free(c);
    c = read_foreign(
        "config: {servers: [{alias: a, transport: stdio, command: x, enabled: true}]}\n"
        "enabled: false\n",
        CONFIG_YAML,
        "f:2:1: warning: enabled: the whole extension is switched off, and so are all "
        "servers\n");
    assert_false(config_server(c, "a")->enabled);
    config_free(c);
}

/* Errors in a manifest are refused, with their lines. */
static void test_manifest_refused(void **state)
{
    (void)state;
    assert_null(read_foreign(
        "config:\n"
        "  servers:\n"
        "    - {transport: stdio, command: x}\n"
        "    - {alias: a, transport: stdio, command: x}\n"
        "    - {alias: a, transport: stdio, command: y}\n"
        "    - {alias: b, transport: hosted, url: 'http://x.example/'}\n"
        "    - {alias: c, transport: stdio}\n"
        "    - {alias: d, transport: sse}\n"
        "    - {alias: e, transport: stdio, url: 'http://x.example/'}\n"
        "    - just text\n"
        "    - {alias: A, command: z}\n"
        "    - {alias: f, transport: '', command: z}\n",
        CONFIG_YAML,
        "f:3:7: config.servers[0]: expected the key 'alias' with a short name for the server\n"
        "f:5:15: config.servers[2]: the alias 'a' is used twice, first on line 4; choose another\n"
        "f:6:29: config.servers.b.transport: unknown transport 'hosted'; expected stdio, sse "
        "or streamable-http\n"
        "f:7:15: config.servers.c: expected the key 'command' with the program to start, or "
        "'url'\n"
        "f:8:15: config.servers.d: expected the key 'command' with the program to start, or "
        "'url'\n"
        "f:9:29: config.servers.e: this 'transport' needs 'command'\n"
        "f:10:7: config.servers[7]: expected a map of keys such as 'alias'\n"
        "f:11:15: config.servers.A: expected the key 'transport': stdio, sse or streamable-http\n"
        "f:11:15: config.servers.A: too much like 'a' on line 4; choose another name\n"
        "f:12:15: config.servers.f: expected the key 'transport': stdio, sse or "
        "streamable-http\n"));
    assert_null(read_foreign("config: {servers: {a: {command: x}}}", CONFIG_YAML,
                             "f:1:19: config.servers: expected a list of servers, each with an "
                             "'alias'\n"));
    assert_null(read_foreign(
        "config: {servers: [{alias: a, transport: stdio, command: x, tool_filter: {some: [x]},\n"
        "  require_approval: {sometimes: [x]}}], tool_allowlist: {b: [x]}}",
        CONFIG_YAML,
        "f:1:74: config.servers.a.tool_filter: expected a list of tools, or "
        "allowed_tool_names and blocked_tool_names\n"
        "f:2:21: config.servers.a.require_approval: expected 'always' with a "
        "list of tools\n"
        "f:2:58: config.b: there is no server with this alias\n"));
}

/* --- converted to our format --- */

/* Converts the document to our format, which must then be read without a single warning. */
static void expect_converted(const char *text, enum config_format format, const char *expected)
{
    struct problems ps = {0}, none = {0};
    struct buf out = {0};

    assert_true(config_convert(span_str(text), format, NULL, "some\nfile", &out, &ps));
    struct config *c = config_parse(buf_view(&out), CONFIG_YAML, &none);
    assert_problems(&none, "");
    assert_non_null(c);
    config_free(c);
    assert_string_equal(buf_cstr(&out), expected);
    problems_fini(&ps);
    problems_fini(&none);
    buf_fini(&out);
}

static void test_convert_mcp_servers(void **state)
{
    (void)state;
    /* The mcp.json of seed 002 (docs/seeds.md). */
    expect_converted("{\"mcpServers\": {\n"
                     " \"filesystem\": {\"command\": \"mcp-server-filesystem\", \"args\": "
                     "[\"/data\"],\n"
                     "  \"allowedTools\": [\"read_file\", \"list_directory\"]},\n"
                     " \"database\": {\"type\": \"sse\", \"url\": \"http://mcp-db:8080/sse\",\n"
                     "  \"deniedTools\": [\"drop_table\"]}}}",
                     CONFIG_JSON,
                     "# Made from some?file.\n"
                     "servers:\n"
                     "  filesystem:\n"
                     "    command: mcp-server-filesystem\n"
                     "    args:\n"
                     "      - /data\n"
                     "    allow:\n"
                     "      - read_file\n"
                     "      - list_directory\n"
                     "  database:\n"
                     "    url: \"http://mcp-db:8080/sse\"\n"
                     "    deny:\n"
                     "      - drop_table\n");
    expect_converted("{\"mcpServers\": {\"a b\": {\"command\": \"x\", \"disabled\": true,\n"
                     "\"autoApprove\": [\"y\"], \"toolTimeoutMs\": 2500, \"odd\\u2028key: 1\": 1}},"
                     "\"theme\": \"dark\"}",
                     CONFIG_JSON,
                     "# Made from some?file. What could not be carried over as it was:\n"
                     "# - line 1, mcpServers.a b: this server is called 'a-b' here\n"
                     "# - line 2, mcpServers.a b.autoApprove: left out: it has no meaning here\n"
                     "# - line 2, mcpServers.a b.odd?key: 1: unknown key, ignored\n"
                     "# - line 2, theme: unknown key, ignored\n"
                     "servers:\n"
                     "  a-b:\n"
                     "    command: x\n"
                     "    enabled: false\n"
                     "    timeout: 2500ms\n");
}

static void test_convert_manifest(void **state)
{
    (void)state;
    expect_converted(full_manifest, CONFIG_YAML,
                     "# Made from some?file. What could not be carried over as it was:\n"
                     "# - line 5, config.servers.a.cache_tools: left out: it has no meaning here\n"
                     "# - line 16, config.prompts_cache_ttl: left out: it has no meaning here\n"
                     "# - line 17, config.odd: unknown key, ignored\n"
                     "servers:\n"
                     "  a:\n"
                     "    transport: stdio\n"
                     "    command: x\n"
                     "    args:\n"
                     "      - 1\n"
                     "    allow:\n"
                     "      - read\n"
                     "      - list\n"
                     "    approve: always\n"
                     "    prompts_as_context:\n"
                     "      - \"*\"\n"
                     "    env:\n"
                     "      K: \"${SECRET}\"\n"
                     "  b:\n"
                     "    transport: sse\n"
                     "    url: \"http://x.example/\"\n"
                     "    allow:\n"
                     "      - search\n"
                     "    prompts_as_context:\n"
                     "      - style\n"
                     "      -\n"
                     "        name: tone\n"
                     "        arguments:\n"
                     "          of: me\n"
                     "    approve:\n"
                     "      - delete\n"
                     "  c:\n"
                     "    transport: stdio\n"
                     "    command: \"y\"\n"
                     "    deny:\n"
                     "      - drop\n"
                     "    approve:\n"
                     "      - w1\n"
                     "      - w2\n"
                     "  d:\n"
                     "    transport: stdio\n"
                     "    command: z\n"
                     "enabled_servers:\n"
                     "  - a\n"
                     "  - b\n"
                     "names: bare\n"
                     "describe_server: mcp\n"
                     "errors: results\n");
}

static void test_convert_ours(void **state)
{
    (void)state;
    expect_converted("x-mine: &m {timeout: 5s}\nlisten: [':0', {address: ':1'}]\n"
                     "servers: {a: {<<: *m, command: x, tools: {t: {hide: true}}}}\n",
                     CONFIG_YAML,
                     "# Made from some?file.\n"
                     "listen:\n"
                     "  - \":0\"\n"
                     "  -\n"
                     "    address: \":1\"\n"
                     "servers:\n"
                     "  a:\n"
                     "    command: x\n"
                     "    tools:\n"
                     "      t:\n"
                     "        hide: true\n"
                     "    timeout: 5s\n");
}

static void test_convert_refused(void **state)
{
    (void)state;
    struct problems ps = {0};
    struct buf out = {0};

    assert_false(
        config_convert(SPAN("{mcpServers: {a: {command: 5}}}"), CONFIG_YAML, NULL, "f", &out, &ps));
    assert_int_equal(ps.errors, 1);
    assert_int_equal(out.n, 0);
    problems_fini(&ps);
    /* Found by fuzzing: a member with an empty name. */
    config_free(read_foreign("mcpServers: {a: {command: x, '': 600}}", CONFIG_YAML,
                             "f:1:30: warning: mcpServers.a.: unknown key, ignored\n"));
    /* Two names of the same key are refused, in either order. */
    assert_null(
        read_foreign("mcpServers: {a: {command: x, allowedTools: [a], allow: [b]}}", CONFIG_YAML,
                     "f:1:49: mcpServers.a.allow: this says the same as 'allow'; keep one\n"));
    assert_null(read_foreign("names: bare\nconfig: {servers: [], names: '{tool}'}", CONFIG_YAML,
                             "f:2:23: names: this says the same as 'names'; keep one\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_relax),
        cmocka_unit_test(test_comments),
        cmocka_unit_test(test_vscode),
        cmocka_unit_test(test_vscode_variables),
        cmocka_unit_test(test_vscode_recognised),
        cmocka_unit_test(test_ways),
        cmocka_unit_test(test_no_tools_at_all),
        cmocka_unit_test(test_seconds_with_a_fraction),
        cmocka_unit_test(test_projects_alone),
        cmocka_unit_test(test_manifest),
        cmocka_unit_test(test_manifest_members),
        cmocka_unit_test(test_manifest_allowlist),
        cmocka_unit_test(test_manifest_empty),
        cmocka_unit_test(test_manifest_refused),
        cmocka_unit_test(test_convert_mcp_servers),
        cmocka_unit_test(test_convert_manifest),
        cmocka_unit_test(test_convert_ours),
        cmocka_unit_test(test_convert_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
