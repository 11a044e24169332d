/* The schema table and what uses it: reading, defaults, messages, documentation, comparison. */
#include "config_test.h"

#include "config/schema.h"

#include <stdio.h>

static void expect_yaml(const char *text, const char *expected)
{
    expect_problems(text, CONFIG_YAML, expected);
}

/* Every row is complete, and its default is a value that the row itself accepts. */
static void test_table(void **state)
{
    (void)state;
    struct problems ps = {0};
    struct config *c = config_parse(SPAN("{}"), CONFIG_YAML, &ps);

    assert_problems(&ps, "");
    assert_non_null(c);
    config_free(c);
    problems_fini(&ps);
    for (size_t i = 0; i < schema_rows_n; i++) {
        const struct schema_row *row = &schema_rows[i];
        const char *dot = strrchr(row->path, '.');
        assert_non_null(row->help);
        assert_true(strlen(row->help) > 5);
        assert_int_equal(row->help[strlen(row->help) - 1], '.');
        assert_ptr_equal(schema_find(row->path), row);
        if (row->type != SCHEMA_SECTION) /* a section may also be written as a word */
            assert_int_equal(row->words != NULL,
                             row->type == SCHEMA_WORD || row->type == SCHEMA_WORDS);
        assert_int_equal(row->entry_size != 0,
                         row->type == SCHEMA_ENTRIES || row->type == SCHEMA_LIST);
        /* The parent of each row is a row too. */
        if (dot) {
            char *parent = mem_span(span_of(row->path, (size_t)(dot - row->path)));
            if (strcmp(dot - 2, "*") != 0 && strlen(parent) > 2 &&
                strcmp(parent + strlen(parent) - 2, ".*") == 0)
                parent[strlen(parent) - 2] = '\0';
            assert_non_null(schema_find(parent));
            mem_free(parent);
        }
    }
}

static void test_defaults(void **state)
{
    (void)state;
    struct config *c = read_config("servers: {a: {command: x}}");
    const struct config_server *s = &c->servers.items[0];

    assert_int_equal(c->listen.n, 1);
    assert_string_equal(c->listen.items[0].address, "127.0.0.1:8765");
    assert_string_equal(c->names, "{server}__{tool}");
    assert_int_equal(c->expose, EXPOSE_FULL);
    assert_int_equal(c->log.level, LOG_INFO);
    assert_int_equal(c->limits.message, 16 << 20);
    assert_int_equal(c->limits.batch, 100);
    assert_int_equal(c->limits.memory, 512 << 20);
    assert_int_equal(c->limits.sessions, 10000);
    assert_int_equal(c->limits.body_timeout, 30000);
    assert_int_equal(c->bus.discovery, DISCOVERY_SERVERS_INDEXED | DISCOVERY_TOOLS_AVAILABLE);
    assert_string_equal(s->alias, "a");
    assert_string_equal(s->command, "x");
    assert_null(s->url);
    assert_null(s->cwd);
    assert_true(s->enabled);
    assert_int_equal(s->timeout, 60000);
    assert_int_equal(s->ask_timeout, 600000);
    assert_int_equal(s->start, START_EAGER);
    assert_int_equal(s->concurrency, 0);
    assert_int_equal(s->queue, 1024);
    assert_int_equal(s->args.n, 0);
    assert_int_equal(s->ping, 0); /* programs are not pinged by default */
    assert_int_equal(s->approve.n, 0);
    assert_int_equal(s->approve_timeout, 60000);
    assert_string_equal(c->control, "auto");
    config_free(c);
}

static const char every_key[] =
    "listen: ['[::1]:80', {address: ':0', tls: {cert: c.pem, key: k.pem}}, 'unix:/run/r']\n"
    "names: mcp_{server}_{tool}\n"
    "expose: search\n"
    "servers:\n"
    "  files:\n"
    "    command: prog\n"
    "    args: [-p, 8080, true, '']\n"
    "    env: {A: b, PORT: 1, E: ''}\n"
    "    cwd: /srv\n"
    "    allow: [read_*]\n"
    "    deny: [x, y]\n"
    "    approve: [z]\n"
    "    approve_timeout: 5s\n"
    "    ping: 20s\n"
    "    tools: {t: {name: u, description: D, arguments: {k: [1, x]}, hide: true}, v: }\n"
    "    timeout: 0\n"
    "    timeout_on_progress: reset\n"
    "    ask_timeout: 90s\n"
    "    start: lazy\n"
    "    start_timeout: 1m\n"
    "    idle_stop: 10m\n"
    "    instances: per-session\n"
    "    concurrency: 16\n"
    "    queue: 0\n"
    "    restarts: 5\n"
    "    enabled: false\n"
    "  far: {url: 'https://x.example/mcp', transport: sse, era: modern, headers: {A: 'b c'}}\n"
    "enabled_servers: [files, far]\n"
    "secrets: {directory: /run/secrets, command: [pass, show]}\n"
    "views: {lap: {servers: [files], allow: [a], deny: [b], resources: {allow: ['x://*'], deny: "
    "[r]},\n"
    "              prompts: {allow: [p], deny: [q]}}}\n"
    "auth: {tokens: [{name: n, view: lap, hash: 'sha256:"
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef'}]}\n"
    "browser: {capabilities: strict, session_ttl: 2h, origins: ['https://a.example']}\n"
    "bus: {url: 'unix:/b', role: both, agents: [R], discovery: [tools-available]}\n"
    "log: {level: debug, format: json}\n"
    "limits: {message: 1MiB, sessions: 5, body_timeout: 1s, head_timeout: 2s,\n"
    "         idle_timeout: 3s, session_ttl: 4s, connections: 7, batch: 9,\n"
    "         memory: 65MiB, catalog: 1MiB}\n";

static void test_every_server_key(void **state)
{
    (void)state;
    struct config *c = read_config(every_key);
    const struct config_server *s = config_server(c, "files");
    const struct config_server *far = config_server(c, "far");

    assert_int_equal(s->args.n, 4);
    assert_string_equal(s->args.items[1], "8080");
    assert_string_equal(s->args.items[2], "true");
    assert_string_equal(s->args.items[3], "");
    assert_int_equal(s->env.n, 3);
    assert_string_equal(s->env.items[1].name, "PORT");
    assert_string_equal(s->env.items[1].value, "1");
    assert_string_equal(s->cwd, "/srv");
    assert_int_equal(s->deny.n, 2);
    assert_int_equal(s->tools.n, 2);
    assert_string_equal(s->tools.items[0].own, "t");
    assert_string_equal(s->tools.items[0].arguments, "{\"k\":[1,\"x\"]}");
    assert_true(s->tools.items[0].hide);
    assert_string_equal(s->tools.items[1].own, "v");
    assert_false(s->tools.items[1].hide);
    assert_int_equal(s->timeout, 0);
    assert_int_equal(s->timeout_on_progress, PROGRESS_RESET);
    assert_int_equal(s->ask_timeout, 90000);
    assert_int_equal(s->start, START_LAZY);
    assert_int_equal(s->start_timeout, 60000);
    assert_int_equal(s->idle_stop, 600000);
    assert_string_equal(s->approve.items[0], "z");
    assert_int_equal(s->approve_timeout, 5000);
    assert_int_equal(s->ping, 20000);
    assert_int_equal(far->ping, 30000);
    assert_int_equal(s->instances, INSTANCES_PER_SESSION);
    assert_int_equal(s->concurrency, 16);
    assert_int_equal(s->queue, 0);
    assert_int_equal(s->restarts, 5);
    assert_false(s->enabled);
    assert_string_equal(far->url, "https://x.example/mcp");
    assert_int_equal(far->transport, TRANSPORT_SSE);
    assert_int_equal(far->era, ERA_MODERN);
    assert_string_equal(far->headers.items[0].value, "b c");
    config_free(c);
}

static void test_every_other_key(void **state)
{
    (void)state;
    struct config *c = read_config(every_key);

    assert_int_equal(c->listen.n, 3);
    assert_string_equal(c->listen.items[1].address, ":0");
    assert_string_equal(c->listen.items[1].tls_key, "k.pem");
    assert_int_equal(c->expose, EXPOSE_SEARCH);
    assert_string_equal(c->secrets.command.items[1], "show");
    assert_string_equal(c->views.items[0].name, "lap");
    assert_string_equal(c->views.items[0].tools.deny.items[0], "b");
    assert_string_equal(c->views.items[0].resources.allow.items[0], "x://*");
    assert_string_equal(c->views.items[0].prompts.deny.items[0], "q");
    assert_string_equal(c->tokens.items[0].view, "lap");
    assert_int_equal(c->browser.capabilities, CAPABILITIES_STRICT);
    assert_string_equal(c->bus.url, "unix:/b");
    assert_int_equal(c->bus.role, BUS_BOTH);
    assert_int_equal(c->bus.discovery, DISCOVERY_TOOLS_AVAILABLE);
    assert_int_equal(c->log.level, LOG_DEBUG);
    assert_int_equal(c->log.format, LOG_FORMAT_JSON);
    assert_int_equal(c->limits.session_ttl, 4000);
    assert_int_equal(c->limits.connections, 7);
    assert_int_equal(c->limits.batch, 9);
    assert_int_equal(c->limits.memory, 65 << 20);
    assert_int_equal(c->limits.catalog, 1 << 20);
    config_free(c);
}

/* An empty bus section means our own bus; without the section there is no bus. */
static void test_bus(void **state)
{
    (void)state;
    struct config *c = read_config("servers: {a: {command: x}}");

    assert_string_equal(c->bus.url, "off");
    config_free(c);
    c = read_config("bus: {}\nservers: {a: {command: x}}");
    assert_string_equal(c->bus.url, "embedded:");
    assert_int_equal(c->bus.role, BUS_WORKER);
    assert_int_equal(c->bus.agents.n, 1);
    assert_string_equal(c->bus.agents.items[0], "RockBot");
    assert_int_equal(c->bus.prefetch, 10);
    assert_true(c->bus.events);
    assert_false(c->bus.approvals);
    config_free(c);
    expect_yaml(
        "bus: {agents: [refresh]}\n"
        "servers: {a: {command: x}}\n",
        "f:1:16: bus.agents: 'refresh' cannot be the name of an agent: the topic of that name "
        "means something else\n");
    expect_yaml("bus: {url: 'nats://h:1', listen: ':0'}\n"
                "servers: {a: {command: x}}\n",
                "f:1:34: bus: 'listen' is for our own bus: 'url' must be embedded: or unix:PATH\n"
                "f:1:34: bus: 'listen' needs a 'token' that those who join must show\n");
}

/* `approve: always` is for every tool. */
static void test_approve_always(void **state)
{
    (void)state;
    struct config *c = read_config("servers: {a: {command: x, approve: always}, b: {command: x, "
                                   "approve: [read, always]}}");
    assert_int_equal(config_server(c, "a")->approve.n, 1);
    assert_string_equal(config_server(c, "a")->approve.items[0], "*");
    assert_string_equal(config_server(c, "b")->approve.items[0], "read");
    assert_string_equal(config_server(c, "b")->approve.items[1], "*");
    config_free(c);
    expect_yaml("servers: {a: {command: x, approve: sometimes}}",
                "f:1:36: servers.a.approve: expected a list of texts or always, not text\n");
}

static void test_control(void **state)
{
    (void)state;
    struct config *c = read_config("control: unix:/run/x.sock");
    assert_string_equal(c->control, "unix:/run/x.sock");
    config_free(c);
    expect_yaml("control: /run/x.sock", "f:1:10: control: expected auto, off or unix:/PATH\n");
}

static void test_unknown_keys(void **state)
{
    (void)state;
    expect_yaml(
        "lsten: x\nservers: {a: {command: x, cmd: y, tiemout: 1s, allowedTools: [a]}}\n"
        "log: {levle: info, qqqqqq: 1}\nqqqqqq: 2\nx-mine: {anything: goes}\n",
        "f:1:1: lsten: unknown key; did you mean 'listen'?\n"
        "f:2:27: servers.a.cmd: unknown key; did you mean 'command'?\n"
        "f:2:35: servers.a.tiemout: unknown key; did you mean 'timeout'?\n"
        "f:2:48: servers.a.allowedTools: unknown key; did you mean 'allow'?\n"
        "f:3:7: log.levle: unknown key; did you mean 'level'?\n"
        "f:3:20: log.qqqqqq: unknown key; 'rialto config --explain log' lists those that "
        "are known\n"
        "f:4:1: qqqqqq: unknown key; 'rialto config --explain' lists those that are known\n");
}

static void test_wrong_types(void **state)
{
    (void)state;
    expect_yaml("names: [a]\nexpose: 5\nlog: loud\nservers: [a]\n",
                "f:1:8: names: expected text, not a list\n"
                "f:2:9: expose: '5' is not known here; expected full, search or auto\n"
                "f:3:6: log: expected a map of keys, not text\n"
                "f:4:10: servers: expected a map of names to maps of keys, not a list\n");
    expect_yaml("servers:\n  a:\n    command: 5\n    args: -x\n    env: [a]\n    enabled: yes\n"
                "    allow: [[x], a]\n    queue: many\n    timeout: [1s]\n    start: Lazy\n",
                "f:3:14: servers.a.command: expected text; put quotes around it\n"
                "f:4:11: servers.a.args: expected a list of texts, not text\n"
                "f:5:10: servers.a.env: expected a map of names to texts, not a list\n"
                "f:6:14: servers.a.enabled: expected true or false\n"
                "f:7:13: servers.a.allow: expected text here, not a list\n"
                "f:8:12: servers.a.queue: expected a whole number, not text\n"
                "f:9:14: servers.a.timeout: expected a duration such as 30s, not a list\n"
                "f:10:12: servers.a.start: 'Lazy' is not known here; expected eager or lazy; did "
                "you mean 'lazy'?\n");
    expect_yaml("5\n", "f:1:1: expected a map of keys such as 'servers', not a number\n");
    expect_yaml(
        "listen: 8765\n",
        "f:1:9: listen: expected an address: HOST:PORT, [IPv6]:PORT, :PORT or unix:PATH, as "
        "in 127.0.0.1:8765\n");
}

static void test_bounds(void **state)
{
    (void)state;
    expect_yaml("limits: {message: 10B, sessions: 0, body_timeout: 30, connections: 1.5,\n"
                "         head_timeout: 2h, session_ttl: -1s}\n"
                "servers: {a: {command: x, concurrency: -1, timeout: 25h, allow: []}}\n",
                "f:1:19: limits.message: too small, it must be at least 1KiB\n"
                "f:1:34: limits.sessions: too small, it must be at least 1\n"
                "f:1:51: limits.body_timeout: a duration needs a unit: ms, s, m or h, as in 30s\n"
                "f:1:68: limits.connections: expected a whole number\n"
                "f:2:24: limits.head_timeout: too large, it must be at most 10m\n"
                "f:2:41: limits.session_ttl: expected a duration like 500ms, 30s, 10m or 2h\n"
                "f:3:40: servers.a.concurrency: expected a whole number\n"
                "f:3:53: servers.a.timeout: too large, it must be at most 24h\n"
                "f:3:65: servers.a.allow: the list is empty; leave the key out, or name "
                "something\n");
}

/* C functions would silently cut a text with NUL: another program would be started. */
static void test_nul(void **state)
{
    (void)state;
    expect_yaml("servers:\n  a: {command: \"sh\\0x\", args: [\"a\\0\"], env: {\"A\\0\": b}}\n"
                "  \"b\\0c\": {command: x}\n",
                "f:2:16: servers.a.command: it cannot contain a NUL character\n"
                "f:2:32: servers.a.args: it cannot contain a NUL character\n"
                "f:2:46: servers.a.env: it cannot contain a NUL character\n"
                "f:3:3: servers.b: a name cannot contain a NUL character\n");
}

static void test_server_checks(void **state)
{
    (void)state;
    expect_yaml("servers:\n"
                "  none: {args: [x]}\n"
                "  empty: {command: ''}\n"
                "  '': {command: x}\n"
                "  .dot: {command: x}\n"
                "  sp ace: {command: x}\n"
                "  null1:\n"
                "  line: {command: npx -y thing}\n"
                "  sse: {command: x, args: ['${A}'], env: {B: 'x${C}'}}\n",
                "f:2:3: servers.none: expected the key 'command' with the program to start, "
                "or 'url'\n"
                "f:3:20: servers.empty.command: it must not be empty\n"
                "f:4:3: servers.: a server's name has 1 to 64 characters\n"
                "f:5:3: servers..dot: a server's name starts with a letter or a digit\n"
                "f:6:3: servers.sp ace: a server's name is made of letters, digits, '_', '-' and "
                "'.'\n"
                "f:7:3: servers.null1: expected the key 'command' with the program to start, "
                "or 'url'\n"
                "f:8:19: warning: servers.line: 'command' is the program alone; what follows it "
                "belongs in 'args'\n"
                "f:9:3: warning: servers.sse: /mcp/sse is taken, so this server has no address of "
                "its own\n");
    expect_problems("servers: {a: {command: x, url: 'http://y', headers: {A: b}},\n"
                    " b: {url: 'http://y', args: [z]}}",
                    CONFIG_YAML,
                    "f:1:32: servers.a: 'command' and 'url' exclude each other; keep one\n"
                    "f:1:53: servers.a: 'headers' makes no sense for a server with 'command'\n"
                    "f:2:29: servers.b: 'args' makes no sense for a server with 'url'\n");
    expect_problems("servers:\n"
                    "  a: {command: x, transport: sse}\n"
                    "  b: {url: 'http://y', transport: stdio}\n"
                    "  c: {url: 'http://y', transport: ws}\n"
                    "  d: {url: 'ws://y', transport: streamable-http}\n"
                    "  e: {url: 'wss://y', headers: {Authorization: 'Bearer ${TOKEN}'}}\n"
                    "  f: {url: 'ws://y', transport: ws}\n",
                    CONFIG_YAML,
                    "f:2:30: servers.a: this 'transport' needs an http or https URL\n"
                    "f:3:35: servers.b: this 'transport' needs 'command'\n"
                    "f:4:35: servers.c: this 'transport' needs a ws or wss URL\n"
                    "f:5:33: servers.d: this 'transport' needs an http or https URL\n");
}

/* A number instead of a name was refused with "(null)" in the message. */
static void test_a_number_for_a_name(void **state)
{
    (void)state;
    expect_yaml(
        "listen: 8765\n"
        "servers: {a: {command: x, prompts_as_context: [5, six]}}\n",
        "f:1:9: listen: expected an address: HOST:PORT, [IPv6]:PORT, :PORT or unix:PATH, as "
        "in 127.0.0.1:8765\n"
        "f:2:48: servers.a.prompts_as_context[0]: expected text; put quotes around it\n");
}

static void test_private_authorities(void **state)
{
    (void)state;
    expect_yaml("servers:\n"
                "  a: {url: 'https://x', ca: ca.pem}\n"
                "  b: {url: 'wss://x', ca: ca.pem}\n"
                "  c: {url: 'http://x', ca: ca.pem}\n"
                "  d: {url: 'ws://x', ca: ca.pem}\n"
                "  e: {command: x, ca: ca.pem}\n",
                "f:4:28: servers.c: 'ca' is for https and wss URLs, whose servers have "
                "certificates\n"
                "f:5:26: servers.d: 'ca' is for https and wss URLs, whose servers have "
                "certificates\n"
                "f:6:23: servers.e: 'ca' makes no sense for a server with 'command'\n");
}

static void test_tls_addresses(void **state)
{
    (void)state;
    expect_yaml("listen:\n"
                "  - {address: ':1', tls: {cert: c.pem}}\n"
                "  - {address: ':2', tls: {key: k.pem}}\n"
                "  - {address: 'unix:/r', tls: {cert: c.pem, key: k.pem}}\n"
                "  - {address: ':3', tls: {}}\n"
                "  - {address: ':4', tls: {cert: null, key: null}}\n",
                "f:2:26: listen[0]: 'tls' needs both 'cert' and 'key'\n"
                "f:3:26: listen[1]: 'tls' needs both 'cert' and 'key'\n"
                "f:4:31: listen[2]: a Unix socket does not leave this machine and has no TLS\n"
                "f:5:26: listen[3]: 'tls' needs both 'cert' and 'key'\n");
}

#define HASH_A "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

#define HASH_B "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

/* Mistakes that would give more access than the author meant are errors. */
static void test_views_and_tokens(void **state)
{
    (void)state;
    expect_yaml("servers: {files: {command: x}}\n"
                "views:\n"
                "  one: {servers: [files, filse]}\n"
                "  two: {servers: []}\n"
                "  six: {allow: []}\n"
                "auth:\n"
                "  tokens:\n"
                "    - {name: a, hash: '" HASH_A "', view: tow}\n"
                "    - {name: a, hash: 'sha256:12'}\n"
                "    - {name: b}\n"
                "    - {hash: '" HASH_A "'}\n"
                "    - {name: c, hash: '" HASH_A "'}\n"
                "    - {name: a, hash: '" HASH_B "'}\n",
                "f:3:18: views.one: there is no server 'filse'\n"
                "f:4:18: views.two.servers: the list is empty; leave the key out, or name "
                "something\n"
                "f:5:16: views.six.allow: the list is empty; leave the key out, or name "
                "something\n"
                "f:8:5: auth.tokens: the token of 'a' names the view 'tow', and there is none\n"
                "f:8:5: auth.tokens: 'a' and 'c' have the same hash\n"
                "f:8:5: auth.tokens: the name 'a' is used twice\n"
                "f:9:23: auth.tokens[1].hash: expected sha256: and the hash in 64 hexadecimal "
                "digits\n"
                "f:10:7: auth.tokens[2]: expected the key 'hash'; 'rialto token add NAME' makes a "
                "token\n"
                "f:11:7: auth.tokens[3]: expected the key 'name'\n");
    expect_yaml(
        "auth: {tokens: []}",
        "f:1:16: warning: auth.tokens: there is no token, so nobody is let in over the network; "
        "'rialto token add NAME' makes one, and without 'auth' everybody on this machine is "
        "let in\n");
    expect_yaml("auth: {tokens: [{name: a, hash: "
                "'sha256:3a7bd3e2360a3d29eea436fcfb7e44c735d117c42d1c1835420b6b9942dd4f1b', "
                "expires: '2026-02-30T00:00:00Z'}]}",
                "f:1:117: auth.tokens[0].expires: there is no such day\n");
    expect_yaml("auth: {tokens: [{name: a, hash: "
                "'sha256:3a7bd3e2360a3d29eea436fcfb7e44c735d117c42d1c1835420b6b9942dd4f1b', "
                "expires: tomorrow}]}",
                "f:1:117: auth.tokens[0].expires: expected a time as in 2026-12-31T23:59:59Z\n");
}

/* The last item of a list was commented out: the key without a value counted as not given, and the
 * server, the view, the token or the rule was open to everybody. */
static void test_keys_that_keep_out_have_values(void **state)
{
    static const char *const rows[] = {
        "servers: {a: {command: x, allow: }}",
        "servers: {a: {command: x, sandbox: }}",
        "enabled_servers:",
        "views: {v: {servers: }}",
        "views: {v: {allow: }}",
        "views: {v: {resources: {allow: }}}",
        "views: {v: {prompts: {allow: }}}",
        "auth: {introspection: }",
        "auth: {issuer: }",
        "auth: {jwt: {issuer: 'https://i', jwks: /k, audience: a, views: }}",
        "views: {v: {}}\nauth: {tokens: [{name: a, hash: '" HASH_A "', view: }]}",
        "auth: {tokens: [{name: a, hash: '" HASH_A "', role: }]}",
        "auth: {tokens: [{name: a, hash: '" HASH_A "', expires: }]}",
        "rules: [{server: , then: allow}]",
        "rules: [{tool: , then: allow}]",
        "rules: [{argument: , then: allow}]",
        "rules: [{argument: /a, matches: , then: allow}]",
        "rules: [{argument: /a, in: , then: allow}]",
        "rules: [{argument: /a, range: , then: allow}]",
        "rules: [{argument: /a, outside: , then: allow}]",
        "rules: [{argument: /a, absent: , then: allow}]",
        "rules: [{tool: a, then: }]",
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct problems ps = {0};
        struct config *c = config_parse(span_str(rows[i]), CONFIG_YAML, &ps);
        if (c || !strstr(problem_lines(&ps), ": there is no value"))
            fail_msg("%s: %s", rows[i], problem_lines(&ps));
        problems_fini(&ps);
    }
    expect_yaml("views: {v: {servers: }}\nrules:\n  - {tool: a, server: , then: deny}\n",
                "f:1:22: views.v.servers: there is no value; leave the key out, or name "
                "something\n"
                "f:3:23: rules[0].server: there is no value; leave the key out, or name "
                "something\n");
}

/* A list of those who are let in that has nobody in it lets nobody in. The output of
 * `rialto config` had no such list, so that everybody was let in by it. */
static void test_nobody_is_listed(void **state)
{
    static const char *const rows[] = {"auth: {tokens: }", "auth: {tokens: []}", "auth: {jwt: }",
                                       "auth: {jwt: []}"};
    struct problems ps = {0};
    struct arena a = {0};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        BUF_SCOPED dumped = {0};
        struct config *c = config_parse(span_str(rows[i]), CONFIG_YAML, &ps);
        assert_non_null(c);
        assert_true(c->asks_tokens);
        assert_int_equal(ps.warnings, 2 * i + 1);
        value_put_yaml(&dumped, schema_dump(&a, c));
        config_free(c);
        c = config_parse(buf_view(&dumped), CONFIG_YAML, &ps);
        assert_non_null(c);
        assert_true(c->asks_tokens);
        assert_int_equal(ps.warnings, 2 * i + 2);
        config_free(c);
    }
    arena_fini(&a);
    assert_non_null(strstr(problem_lines(&ps), "nobody is let in"));
    problems_fini(&ps);
}

/* With tokens or views, clients do not approve their own calls unless the file says so. */
static void test_whose_word_counts(void **state)
{
    static const struct {
        const char *more;
        enum approve_by unsaid;
    } rows[] = {
        {"", APPROVE_BY_EITHER},
        {"views: {one: {}}\n", APPROVE_BY_OPERATOR},
        {"auth: {tokens: [{name: a, hash: '" HASH_A "'}]}\n", APPROVE_BY_OPERATOR},
    };
    struct problems ps = {0};
    struct buf text = {0};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        text.n = 0;
        buf_printf(&text, "servers: {a: {command: x}, b: {command: x, approve_by: client}}\n%s",
                   rows[i].more);
        struct config *c = config_parse(buf_view(&text), CONFIG_YAML, &ps);
        assert_int_equal(config_server(c, "a")->approve_by, rows[i].unsaid);
        assert_int_equal(config_server(c, "b")->approve_by, APPROVE_BY_CLIENT);
        config_free(c);
    }
    buf_fini(&text);
    problems_fini(&ps);
}

static void test_roles_of_tokens(void **state)
{
    struct problems ps = {0};
    struct config *c = config_parse(SPAN("views: {v: {}}\n"
                                         "auth:\n"
                                         "  tokens:\n"
                                         "    - {name: a, hash: '" HASH_A "'}\n"
                                         "    - {name: b, hash: '" HASH_B "', view: v}\n"),
                                    CONFIG_YAML, &ps);

    (void)state;
    assert_int_equal(c->tokens.items[0].role, ROLE_OPERATOR);
    assert_int_equal(c->tokens.items[1].role, ROLE_AGENT);
    config_free(c);
    c = config_parse(SPAN("views: {v: {}}\n"
                          "auth:\n"
                          "  tokens:\n"
                          "    - {name: a, hash: '" HASH_A "', role: agent}\n"
                          "    - {name: b, hash: '" HASH_B "', view: v, role: operator}\n"),
                     CONFIG_YAML, &ps);
    assert_int_equal(c->tokens.items[0].role, ROLE_AGENT);
    assert_int_equal(c->tokens.items[1].role, ROLE_OPERATOR);
    config_free(c);
    assert_problems(&ps, "");
    problems_fini(&ps);
}

/* A misspelt server in a rule that denies: the rule was about nobody, and nobody was told. */
static void test_rules_name_servers(void **state)
{
    (void)state;
    expect_yaml("servers: {bank: {command: x}, off: {command: x, enabled: false}}\n"
                "rules:\n"
                "  - {tool: a, then: deny}\n"
                "  - {server: bnak, tool: a, then: deny}\n"
                "  - {server: BANK, then: deny}\n"
                "  - {server: off, then: deny}\n"
                "  - {server: 'x*', then: deny}\n"
                "  - {server: '@browser', then: deny}\n",
                "f:4:14: warning: rules[1].server: no server is called 'bnak'; unless that is a "
                "session of web pages, no call matches this rule\n");
    /* A proxy's servers are found on the bus. */
    config_free(read_config("bus: {role: proxy}\nrules: [{server: far, then: deny}]\n"));
}

static void test_aliases_differ(void **state)
{
    (void)state;
    expect_yaml("servers:\n  files: {command: x}\n  Files: {command: y}\n",
                "f:3:3: servers.Files: too much like 'files' on line 2; choose another name\n");
}

static void test_enabled_servers(void **state)
{
    (void)state;
    struct config *c = read_config("enabled_servers: [b]\n"
                                   "servers: {a: {command: x}, b: {command: y}}");
    assert_false(config_server(c, "a")->enabled);
    assert_true(config_server(c, "b")->enabled);
    config_free(c);
    /* An empty list counts: no server is enabled. */
    c = read_config("enabled_servers: []\nservers: {a: {command: x}}");
    assert_false(config_server(c, "a")->enabled);
    config_free(c);
    expect_yaml("enabled_servers: [c]\nservers: {a: {command: x}}\n",
                "f:1:19: enabled_servers: there is no server 'c'\n");
}

static void test_addresses(void **state)
{
    (void)state;
    static const char *const good[] = {"127.0.0.1:0", "localhost:65535", "[::1]:1",
                                       ":80",         "unix:x",          "a-b.example:9"};
    static const char *const bad[] = {
        "",           "127.0.0.1", "x:",   "x:65536", "x:1a", "::1:80",
        "http://x:1", "unix:",     "[]:1", "a b:1",   "x:-1"};
    static const char wanted[] = "expected an address";

    for (size_t i = 0; i < COUNT_OF(good); i++)
        assert_null(schema_find("listen.*.address")->check(span_str(good[i])));
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_non_null(schema_find("listen.*.address")->check(span_str(bad[i])));
    assert_memory_equal(schema_find("listen.*.address")->check(SPAN("x")), wanted,
                        sizeof wanted - 1);
    expect_yaml("listen: [':1', ':1']", "f:1:9: listen: the address :1 is listed twice\n");
    expect_yaml("listen: []", "f:1:9: listen: expected at least one address\n");
    expect_problems("listen: [{tls: {cert: a, key: b}}]", CONFIG_YAML,
                    "f:1:10: listen[0]: expected the key 'address'\n");
}

static void test_names_pattern(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "{server}",
                                      "x",
                                      "{tool}{tool}",
                                      "a.{tool}",
                                      "{server}/{tool}",
                                      "{tools}",
                                      "{tool} ",
                                      "{server}{server}{tool}"};
    schema_check_fn *check = schema_find("names")->check;

    assert_null(check(SPAN("{server}__{tool}")));
    assert_null(check(SPAN("mcp_{server}_{tool}")));
    assert_null(check(SPAN("{tool}")));
    assert_null(check(SPAN("{tool}-of-{server}")));
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_non_null(check(span_str(bad[i])));
    struct config *c = read_config("names: '{tool}'");
    assert_string_equal(c->names, "bare");
    config_free(c);
}

static void test_other_checks(void **state)
{
    (void)state;
    static const struct {
        const char *key, *good, *bad;
    } cases[] = {
        {"servers.*.url", "https://x.example/mcp", "ftp://x"},
        {"servers.*.url", "ws://x", "https://"},
        {"servers.*.url", "http://x", "http:///path"},
        {"servers.*.url", "http://x", "http://x y"},
        {"bus.url", "embedded:", "embedded"},
        {"bus.url", "amqp://u:p@h:1/v", "http://x"},
        {"bus.url", "tcp://127.0.0.1:1", "unix:"},
        {"bus.agents", "Rock-Bot_1", "-x"},
        {"bus.agents", "*", "a.b"},
        {"browser.origins", "https://a.example", "https://a.example/"},
        {"browser.origins", "safari-web-extension://4F0E4EE5-0D5B", "safari-web-extension://"},
        {"browser.origins", "chrome-extension://abcdefghijklmnop", "extension://abcdefghijklmnop"},
        {"listen.*.hosts", "a.example", "https://a.example"},
        {"listen.*.hosts", "a_b.example:8443", "a.example:99999"},
        {"listen.*.hosts", "[2001:db8::7]:80", "2001:db8::7"},
        {"listen.*.hosts", "192.0.2.7", "*.example"},
        {"listen.*.hosts", "localhost", ""},
        {"auth.tokens.*.hash",
         "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
         "sha256:0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef"},
        {"servers.*.headers", "plain\tvalue", "two\r\nlines"},
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_null(schema_find(cases[i].key)->check(span_str(cases[i].good)));
        assert_non_null(schema_find(cases[i].key)->check(span_str(cases[i].bad)));
    }
    assert_null(schema_find("servers.*.headers")->check_name(SPAN("X-Key")));
    assert_non_null(schema_find("servers.*.headers")->check_name(SPAN("X Key")));
    assert_non_null(schema_find("servers.*.env")->check_name(SPAN("A=B")));
}

/* The output of `rialto config` reads back to the same configuration, and hides secrets. */
/* A rule is written with "absent: false" beside its test, and that is the same as without it. */
static void test_dump(void **state)
{
    (void)state;
    struct config *c = read_config("listen: [':1', 'unix:/x']\nnames: bare\n"
                                   "servers:\n"
                                   "  a: {command: x, args: [a, ''], allow: ['*'], timeout: 90s}\n"
                                   "  b: {command: y, enabled: false, cwd: /z, queue: 5}\n"
                                   "limits: {message: 3MiB}\nlog: {format: json}\n"
                                   "rules:\n"
                                   "  - {server: a, then: deny}\n"
                                   "  - {tool: t, argument: /a, in: [x, 1], then: ask}\n"
                                   "  - {argument: /b, matches: 'x*', absent: false, then: deny}\n"
                                   "  - {argument: /c, absent: true, then: allow}\n");
    struct arena a = {0};
    struct buf yaml = {0};

    value_put_yaml(&yaml, schema_dump(&a, c));
    struct config *again = read_config(buf_cstr(&yaml));
    assert_true(schema_equal("", c, again));
    again->limits.message++;
    assert_false(schema_equal("", c, again));
    config_free(again);
    config_free(c);

    yaml.n = 0;
    c = read_config("servers: {a: {command: x, env: {TOKEN: hush-hush}}}");
    value_put_yaml(&yaml, schema_dump(&a, c));
    assert_null(strstr(buf_cstr(&yaml), "hush"));
    assert_non_null(strstr(buf_cstr(&yaml), "TOKEN: \"***\""));
    config_free(c);
    buf_fini(&yaml);
    arena_fini(&a);
}

/* Each of these entries differs in one thing; a reload must notice every one of them. */
static void test_server_equal(void **state)
{
    (void)state;
    static const char *const base = "command: x, args: [a], env: {A: b}, tools: {t: {name: n}}";
    static const char *const others[] = {
        "command: y, args: [a], env: {A: b}, tools: {t: {name: n}}",
        "command: x, args: [b], env: {A: b}, tools: {t: {name: n}}",
        "command: x, args: [a, b], env: {A: b}, tools: {t: {name: n}}",
        "command: x, args: [a], env: {A: c}, tools: {t: {name: n}}",
        "command: x, args: [a], env: {B: b}, tools: {t: {name: n}}",
        "command: x, args: [a], env: {A: b}, tools: {u: {name: n}}",
        "command: x, args: [a], env: {A: b}, tools: {t: {name: m}}",
        "command: x, args: [a], env: {A: b}, tools: {t: {name: n, hide: true}}",
        "command: x, args: [a], env: {A: b}, tools: {t: {name: n}}, cwd: /",
        "command: x, args: [a], env: {A: b}, tools: {t: {name: n}}, start: lazy",
        "command: x, args: [a], env: {A: b}, tools: {t: {name: n}}, enabled: false",
        "command: x, args: [a], env: {A: b}, tools: {t: {name: n}}, queue: 7",
    };
    struct buf text = {0};

    buf_printf(&text, "servers: {s: {%s}, t: {%s}}", base, base);
    struct config *first = read_config(buf_cstr(&text));
    struct config *same = read_config(buf_cstr(&text));
    assert_true(config_server_equal(&first->servers.items[0], &same->servers.items[0]));
    assert_false(config_server_equal(&first->servers.items[0], &same->servers.items[1]));
    config_free(same);
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        text.n = 0;
        buf_printf(&text, "servers: {s: {%s}}", others[i]);
        struct config *other = read_config(buf_cstr(&text));
        assert_false(config_server_equal(&first->servers.items[0], &other->servers.items[0]));
        config_free(other);
    }
    config_free(first);
    buf_fini(&text);
}

static void test_explain(void **state)
{
    (void)state;
    static const char idle_stop[] =
        "servers.*.idle_stop: a duration such as 30s\n"
        "    Stop the program when nobody has called it for this long and nobody has\n"
        "    subscribed to its resources; its tools stay listed, and the next call\n"
        "    starts it again.\n"
        "    Default: 0. From 1s to 24h. 0 means never.\n";
    static const char *const same[] = {"idle_stop", "servers.*.idle_stop",
                                       "servers.files.idle_stop"};
    struct buf out = {0};
    struct span near = SPAN_EMPTY;

    for (size_t i = 0; i < COUNT_OF(same); i++) {
        out.n = 0;
        assert_true(schema_explain(&out, same[i], false, &near));
        assert_span(buf_view(&out), idle_stop);
    }
    out.n = 0;
    assert_true(schema_explain(&out, "log", false, &near));
    assert_non_null(strstr(buf_cstr(&out), "log.format: text or json\n"));
    assert_null(strstr(buf_cstr(&out), "limits"));
    out.n = 0;
    assert_true(schema_explain(&out, NULL, true, &near));
    struct arena a = {0};
    struct problems ps = {0};
    struct value *rows = json_doc_read(&a, buf_view(&out), &ps);
    assert_problems(&ps, "");
    assert_int_equal(rows->n, schema_rows_n);
    problems_fini(&ps);
    arena_fini(&a);

    out.n = 0;
    assert_false(schema_explain(&out, "timeuot", false, &near));
    assert_span(near, "timeout");
    assert_false(schema_explain(&out, "servers.*.timeout.more", false, &near));
    assert_int_equal(out.n, 0);
    buf_fini(&out);
}

/* Every line of help fits into 80 columns. */
static void test_explain_width(void **state)
{
    (void)state;
    struct buf out = {0};
    struct span near;

    assert_true(schema_explain(&out, NULL, false, &near));
    for (struct span rest = buf_view(&out); rest.n;) {
        size_t n = span_find(rest, '\n');
        assert_true(n < 80);
        rest = span_from(rest, n + 1);
    }
    buf_fini(&out);
}

static void test_man(void **state)
{
    (void)state;
    struct buf out = {0};

    schema_put_man(&out);
    for (size_t i = 0; i < schema_rows_n; i++) {
        struct buf key = {0};
        buf_printf(&key, "\\fB%s\\fR", schema_rows[i].path);
        assert_non_null(strstr(buf_cstr(&out), buf_cstr(&key)));
        buf_fini(&key);
    }
    /* Only troff requests that we write start a line with a dot. */
    for (struct span rest = buf_view(&out); rest.n;) {
        size_t n = span_find(rest, '\n');
        if (rest.p[0] == '.')
            assert_true(span_starts(rest, SPAN(".TP\n")) || span_starts(rest, SPAN(".br\n")) ||
                        span_starts(rest, SPAN(".SH CONFIGURATION\n")));
        rest = span_from(rest, n + 1);
    }
    buf_fini(&out);
}

/* The sandbox is a word, or a map with strict defaults; the default depends on who added the
 * server. */
static void test_sandbox(void **state)
{
    (void)state;
    static const struct {
        const char *entry;
        enum config_cage level;
    } rows[] = {{"command: x", SANDBOX_OFF},
                {"command: x, origin: agent", SANDBOX_LIGHT},
                {"command: x, origin: agent, sandbox: off", SANDBOX_OFF},
                {"url: 'http://h/', origin: agent", SANDBOX_OFF},
                {"command: x, sandbox: light", SANDBOX_LIGHT},
                {"command: x, sandbox: strict", SANDBOX_STRICT},
                {"command: x, sandbox: {}", SANDBOX_MAP},
                {"command: x, sandbox: {network: none}", SANDBOX_MAP}};
    char text[256];

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        snprintf(text, sizeof text, "servers: {a: {%s}}", rows[i].entry);
        struct config *c = read_config(text);
        assert_int_equal(c->servers.items[0].sandbox.level, rows[i].level);
        assert_int_equal(c->servers.items[0].sandbox.network.n, 0);
        assert_false(c->servers.items[0].sandbox.warns);
        config_free(c);
    }
    struct config *c =
        read_config("sandbox: {missing: warn}\n"
                    "servers: {a: {command: x, sandbox: {read: [/a, ~/b], write: ['~'], network: "
                    "[443, 80], memory: 1GiB, processes: 8, cpu: 1m, files: 99}}, b: {command: x, "
                    "sandbox: {network: all}}}");
    const struct config_sandbox *s = &c->servers.items[0].sandbox;
    assert_int_equal(s->read.n, 2);
    assert_string_equal(s->read.items[1], "~/b");
    assert_string_equal(s->write.items[0], "~");
    assert_int_equal(s->network.n, 2);
    assert_string_equal(s->network.items[1], "80");
    assert_int_equal(s->memory, 1 << 30);
    assert_int_equal(s->processes, 8);
    assert_int_equal(s->cpu, 60000);
    assert_int_equal(s->files, 99);
    assert_true(s->warns);
    assert_string_equal(c->servers.items[1].sandbox.network.items[0], "*");

    /* The dump reads back to the same configuration. */
    BUF_SCOPED json = {0};
    struct arena a = {0};
    value_put_json(&json, schema_dump(&a, c), false);
    struct problems ps = {0};
    struct config *again = config_parse(buf_view(&json), CONFIG_JSON, &ps);
    assert_problems(&ps, "");
    for (size_t i = 0; i < 2; i++)
        assert_true(config_server_equal(&c->servers.items[i], &again->servers.items[i]));
    assert_false(schema_equal("servers.*", &c->servers.items[0], &c->servers.items[1]));
    problems_fini(&ps);
    config_free(again);
    arena_fini(&a);
    config_free(c);

    expect_yaml(
        "servers: {a: {command: x, sandbox: ligth}}",
        "f:1:36: servers.a.sandbox: 'ligth' is not known here; expected a map of keys, or off, "
        "light or strict; did you mean 'light'?\n");
    expect_yaml("servers: {a: {command: x, sandbox: {read: [b], network: [0]}}}",
                "f:1:44: servers.a.sandbox.read: expected a whole path, or one that begins with "
                "~/\n"
                "f:1:58: servers.a.sandbox.network: expected a port from 1 to 65535, none or "
                "all\n");
    expect_yaml("servers: {a: {url: 'http://h/', sandbox: light}}",
                "f:1:42: servers.a: 'sandbox' makes no sense for a server with 'url'\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_every_server_key),
        cmocka_unit_test(test_every_other_key),
        cmocka_unit_test(test_bus),
        cmocka_unit_test(test_approve_always),
        cmocka_unit_test(test_control),
        cmocka_unit_test(test_unknown_keys),
        cmocka_unit_test(test_wrong_types),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_nul),
        cmocka_unit_test(test_server_checks),
        cmocka_unit_test(test_a_number_for_a_name),
        cmocka_unit_test(test_private_authorities),
        cmocka_unit_test(test_tls_addresses),
        cmocka_unit_test(test_views_and_tokens),
        cmocka_unit_test(test_keys_that_keep_out_have_values),
        cmocka_unit_test(test_nobody_is_listed),
        cmocka_unit_test(test_whose_word_counts),
        cmocka_unit_test(test_roles_of_tokens),
        cmocka_unit_test(test_rules_name_servers),
        cmocka_unit_test(test_aliases_differ),
        cmocka_unit_test(test_enabled_servers),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_names_pattern),
        cmocka_unit_test(test_other_checks),
        cmocka_unit_test(test_dump),
        cmocka_unit_test(test_server_equal),
        cmocka_unit_test(test_explain),
        cmocka_unit_test(test_explain_width),
        cmocka_unit_test(test_man),
        cmocka_unit_test(test_sandbox),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
