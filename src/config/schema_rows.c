/* The table of all configuration keys with type, default, limits, check and help. Read by schema.c,
 * schema_doc.c, schema_dump.c, convert.c, plan.c and config.c, and by cmd/doctor/config.c. */
#include "base/mem.h"
#include "config/check.h"
#include "config/schema.h"

#define TOP(field)     .offset = offsetof(struct config, field)
#define LISTEN(field)  .offset = offsetof(struct config_listen, field)
#define SERVER(field)  .offset = offsetof(struct config_server, field)
#define TOOL(field)    .offset = offsetof(struct config_tool, field)
#define PROMPT(field)  .offset = offsetof(struct config_prompt, field)
#define CAPTURE(field) .offset = offsetof(struct config_capture, field)
#define VIEW(field)    .offset = offsetof(struct config_view, field)
#define JOIN(field)    .offset = offsetof(struct config_join, field)
#define RULE(field)    .offset = offsetof(struct config_rule, field)
#define JWT(field)     .offset = offsetof(struct config_jwt, field)
#define TOKEN(field)   .offset = offsetof(struct config_token, field)

#define SECONDS(n) ((n)*1000ull)
#define MINUTES(n) ((n)*60000ull)
#define HOURS(n)   ((n)*3600000ull)

enum {
    SERVERS_MAX = 1000,
    LISTEN_MAX = 64,
    RULES_MAX = 1000,
    JOINS_MAX = 16,
    CALLS_MAX = 100000,
    PATHS_MAX = 256,
    COUNT_MAX = 1000000
};

_Static_assert(sizeof(enum config_start) == sizeof(int), "words are stored as int");
_Static_assert(offsetof(struct config_server, alias) == 0, "an entry starts with its name");
_Static_assert(offsetof(struct config_tool, own) == 0, "an entry starts with its name");
_Static_assert(offsetof(struct config_view, name) == 0, "an entry starts with its name");

/* Each list has the order of its enum. */
static const struct schema_word expose_words[] = {
    {"full", "every tool is listed"},
    {"search", "only find_tools and call_tool are listed, for very large catalogs"},
    {"auto", "search while listing them all costs a model more than expose_above, else full"},
    {NULL},
};
static const struct schema_word view_expose_words[] = {
    {"same", "as expose at the top says"},
    {"full", "every tool is listed"},
    {"search", "only find_tools and call_tool are listed"},
    {"auto", "search while listing them all costs a model more than expose_above, else full"},
    {NULL},
};
static const struct schema_word describe_words[] = {
    {"false", "as the server describes it"},
    {"true", "with [NAME] before that"},
    {"mcp", "with [MCP: NAME] before that; the default in assistant4's manifests"},
    {NULL},
};
static const struct schema_word errors_words[] = {
    {"auto", "as results to clients known to hide errors from their models, else as errors"},
    {"protocol", "as JSON-RPC errors"},
    {"results", "as results of the tool with isError, which models read"},
    {NULL},
};
static const struct schema_word transport_words[] = {
    {"auto", "found out: the pipes for a command; for a URL by trying"},
    {"streamable-http", "today's MCP over HTTP"},
    {"sse", "the older HTTP with Server-Sent Events"},
    {"ws", "WebSocket"},
    {"stdio", "the pipes of a started program"},
    {NULL},
};
static const struct schema_word era_words[] = {
    {"auto", "found out when connecting"},
    {"legacy", "protocol revisions up to 2025-11-25"},
    {"modern", "protocol revision 2026-07-28"},
    {NULL},
};
static const struct schema_word progress_words[] = {
    {"ignore", "the timeout counts from the start of the call"},
    {"reset", "each progress message starts the timeout again, up to timeout_max"},
    {NULL},
};
static const struct schema_word start_words[] = {
    {"eager", "at once, and kept running"},
    {"lazy", "by the first call"},
    {NULL},
};
static const struct schema_word instances_words[] = {
    {"shared", "one process serves everybody"},
    {"per-session", "each session has a process of its own, which ends with the session"},
    {NULL},
};
static const struct schema_word elicitation_words[] = {
    {"decline", "every question is declined, and the server goes on without the answer"},
    {"off", "the server is told that nobody can be asked"},
    {"handback", "the agent gets the question as the reply to its call, and may answer it later; "
                 "a yes or no needs an approval besides (bus.approvals)"},
    {NULL},
};
static const struct schema_word approve_by_words[] = {
    {"operator", "'rialto approvals', the daemon's page, or a token of role: operator"},
    {"client", "the agent's program, which asks its user (MCP elicitation); else refused"},
    {"either", "the agent's program if it can ask its user; an operator may decide as well"},
    {NULL},
};
static const struct schema_word on_change_words[] = {
    {"block", "it is not offered until 'rialto lock' approves it"},
    {"ask", "it is not offered until an operator approves it ('rialto approvals', the page)"},
    {"warn", "it is offered, and the log says so"},
    {NULL},
};
static const struct schema_word then_words[] = {
    {"allow", "the call goes to its server, also if servers.*.approve names the tool"},
    {"deny", "the call is refused, and the caller is told by which rule"},
    {"ask", "a person must approve the call first, as with servers.*.approve"},
    {NULL},
};
static const struct schema_word token_role_words[] = {
    {"agent", "may use MCP and the other paths for agents"},
    {"viewer", "may look at the page, /status, /api and /metrics, and calls and changes nothing"},
    {"operator", "may also operate the daemon: /status, /api, /metrics, approvals"},
    {NULL},
};
static const struct schema_word issuer_words[] = {
    {"off", "tokens come from elsewhere"},
    {"built-in", "people sign agents in at this Rialto itself: /oauth/authorize, with a password "
                 "(auth.password) or the code of 'rialto pair'"},
    {NULL},
};
static const struct schema_word level_words[] = {
    {"error", "failures only"},
    {"warn", "also what looks wrong"},
    {"info", "also what happens"},
    {"debug", "also details"},
    {NULL},
};
static const struct schema_word format_words[] = {
    {"text", "for people"},
    {"json", "one object a line"},
    {NULL},
};
static const struct schema_word capabilities_words[] = {
    {"auto", "asked for only where the page can ask its user"},
    {"strict", "a tool is hidden until its capabilities are granted"},
    {"list", "only the capabilities in browser.granted; no user is asked"},
    {NULL},
};
static const struct schema_word origin_words[] = {
    {"operator", "the owner of this file"},
    {"agent", "an agent, over the bus; nothing is filled in for ${NAME} in its entry"},
    {NULL},
};
static const struct schema_word grant_words[] = {
    {"authorization_code",
     "a person signs in with a browser ('rialto login', or when an agent asks)"},
    {"client_credentials", "we sign in as ourselves, with client_id and a secret or private_key"},
    {"device_code", "a person enters a code in a browser on any machine"},
    {"id-jag", "the identity provider (idp) vouches for the user"},
    {"jwt-bearer", "a JWT of the platform that we run on (assertion) is exchanged"},
    {"token-exchange", "the identity provider (idp) exchanges the user's token for the server's"},
    {NULL},
};
static const struct schema_word sandbox_words[] = {
    {"off", "nothing is refused"},
    {"light", "system folders can be read and run, its own working folder and TMPDIR written; "
              "nothing else of the files, and no system calls that reach into other processes or "
              "the kernel; the network is open"},
    {"strict", "also no network, no Unix sockets, and nothing can be run where it may write"},
    {NULL},
};
static const struct schema_word scope_words[] = {
    {"user", "all projects of the user"},
    {"project", "one project: each folder has an instance, started in it (cwd)"},
    {NULL},
};
static const struct schema_word missing_words[] = {
    {"refuse", "a server whose sandbox this kernel cannot enforce is not started"},
    {"warn", "the log says what is missing, and the server runs with the rest"},
    {NULL},
};
static const struct schema_word role_words[] = {
    {"worker", "offers the tools of our servers to agents on the bus"},
    {"proxy", "offers tools of the bus to agents that connect to us"},
    {"both", "does both"},
    {NULL},
};
static const struct schema_word autostart_words[] = {
    {"false", "none is started: somebody else runs 'rialto serve'"},
    {"true", "one is started, with the defaults below"},
    {NULL},
};
static const struct schema_word audit_words[] = {
    {"off", "there is none"},
    {NULL},
};
static const struct schema_word audit_failure_words[] = {
    {"refuse", "they are refused, and a result that is not recorded is not told"},
    {"warn", "they are made; the next line that is written says how many are missing"},
    {NULL},
};
static const struct schema_word audit_arguments_words[] = {
    {"hash", "their hash, which can be compared: b2sum | cut -c-64"},
    {"redacted", "their text, with secrets hidden, at most 4 KiB"},
    {NULL},
};
static const struct schema_word discovery_words[] = {
    {"servers-indexed", "announce each server with its tools"},
    {"tools-available", "announce the tools alone"},
    {NULL},
};

const struct schema_row schema_rows[] = {
    /* --- addresses and names --- */
    {"listen", SCHEMA_LIST, TOP(listen), .preset = "127.0.0.1:8765", .max = LISTEN_MAX,
     .entry_size = sizeof(struct config_listen), .check_entry = check_listen,
     .shorthand = "address", .env = "RIALTO_LISTEN", .also = "port host address bind",
     .help = "Where to listen: one address or a list. HOST:PORT, [IPv6]:PORT, :PORT or unix:PATH; "
             "port 0 takes a free one. Everything is served on each address."},
    {"listen.*.address", SCHEMA_STRING, LISTEN(address), .check = check_address,
     .help = "The address, when the entry is written as a map."},
    {"listen.*.tls", SCHEMA_SECTION,
     .help = "Serve this address with TLS, and only so: https and wss."},
    {"listen.*.tls.cert", SCHEMA_STRING, LISTEN(tls_cert), .check = check_path,
     .help = "File in PEM with the certificate, followed by the intermediate certificates."},
    {"listen.*.tls.key", SCHEMA_STRING, LISTEN(tls_key), .check = check_path,
     .help = "File in PEM with the private key, without a passphrase."},
    {"listen.*.hosts", SCHEMA_STRINGS, LISTEN(hosts), .check = check_host,
     .help = "Names that clients may use for this address in Host and Origin: HOST for any port, "
             "or HOST:PORT. Without this key an address for other machines accepts only its IP "
             "address and loopback names; a loopback address always accepts those."},
    {"public_url", SCHEMA_STRING, TOP(public_url), .check = check_public_url,
     .help = "How others reach this Rialto, such as https://tools.example.com: the addresses that "
             "signing in names are made of this, never of what a request says. Without /mcp."},
    {"names", SCHEMA_STRING, TOP(names), .preset = "{server}__{tool}", .check = check_names_pattern,
     .help = "How tools of several servers are named: a pattern with {server} and {tool}, such as "
             "\"mcp_{server}_{tool}\", or bare for the servers' own names."},
    {"expose", SCHEMA_WORD, TOP(expose), .preset = "full", .words = expose_words,
     .help = "How tools are offered to agents that see all servers; /mcp/NAME always lists them."},
    {"expose_above", SCHEMA_NUMBER, TOP(expose_above), .preset = "20000", .min = 1,
     .max = COUNT_MAX,
     .help = "For expose: auto, in tokens as 'rialto tools' estimates them. Tools that cost more "
             "are searched for; they are listed again when they cost less than three quarters of "
             "it. Agents are told of the change, and names that they know stay callable."},
    {"describe_server", SCHEMA_WORD, TOP(describe_server), .preset = "false",
     .words = describe_words,
     .help = "Whether the description of a tool begins with its server's name."},
    {"errors", SCHEMA_WORD, TOP(errors), .preset = "auto", .words = errors_words,
     .help = "How agents are told that a call of a tool failed here: its server crashed, timed out "
             "or is not available, or the call was refused. Unknown tools and wrong parameters are "
             "always JSON-RPC errors, and what a server says itself passes as it is."},
    {"resources_as_tools", SCHEMA_BOOL, TOP(resources_as_tools), .preset = "false",
     .help = "Offer the resources of all servers as tools, too; see servers.*.resources_as_tools."},
    {"prompts_as_tools", SCHEMA_BOOL, TOP(prompts_as_tools), .preset = "false",
     .help = "Offer the prompts of all servers as tools, too; see servers.*.prompts_as_tools."},
    {"remember", SCHEMA_BOOL, TOP(remember), .preset = "true",
     .help = "Keep the lists of servers in the user's cache folder, so that agents get them at "
             "once while the servers are started the next time."},
    {"setup_instructions", SCHEMA_STRING, TOP(setup_instructions), .literal = true,
     .help = "What a user must do before this configuration works; 'rialto check' shows it."},

    /* --- rules --- */
    {"rules", SCHEMA_LIST, TOP(rules), .max = RULES_MAX, .entry_size = sizeof(struct config_rule),
     .check_entry = check_rule,
     .help = "What is done with calls of tools by their arguments, whatever way they come in. The "
             "first rule that matches a call decides; if none does, all is as without rules. "
             "Looked at is what the server would be sent, with arguments that servers.*.tools "
             "sets. A call whose arguments some servers would read in another way is refused."},
    {"rules.*.server", SCHEMA_STRING, RULE(server), .check = check_tool_pattern,
     .needs_value = true,
     .help = "Servers that the rule is about: a name or a pattern with * and ?, case is ignored. "
             "Without it: all. Web pages count as the server '@browser', too."},
    {"rules.*.tool", SCHEMA_STRING, RULE(tool), .check = check_tool_pattern, .needs_value = true,
     .help = "Tools that the rule is about, by the server's own names, in the same form. Without "
             "it: all."},
    {"rules.*.argument", SCHEMA_STRING, RULE(argument), .check = check_pointer, .needs_value = true,
     .help = "The argument that the rule looks at, as a JSON pointer: /path, /options/path, "
             "/files/0. Alone: matches if the argument is there. Without it the rule matches "
             "every call."},
    {"rules.*.matches", SCHEMA_STRING, RULE(matches), .check = check_pattern, .needs_value = true,
     .help = "Matches a text by this pattern; * stands for any characters, also '/', and ? for "
             "one byte. Case counts."},
    {"rules.*.in", SCHEMA_SCALARS, RULE(in), .needs_value = true,
     .help = "Matches any of these values; numbers are compared by value: 1e3 is 1000."},
    {"rules.*.range", SCHEMA_SCALARS, RULE(range), .needs_value = true,
     .help = "Matches a number from the first of these two numbers to the second, both included, "
             "compared exactly."},
    {"rules.*.outside", SCHEMA_STRINGS, RULE(outside), .min = 1, .max = RULES_MAX,
     .check = check_folder, .needs_value = true,
     .help = "Matches whatever is not the absolute path of one of these folders or of something "
             "in them; '.' and '..' are resolved by the text of the path alone. RockBot's "
             "path-prefix guards become such rules."},
    {"rules.*.absent", SCHEMA_BOOL, RULE(absent), .preset = "false", .needs_value = true,
     .help = "With true: matches if the argument is not there."},
    {"rules.*.then", SCHEMA_WORD, RULE(then), .words = then_words, .needs_value = true,
     .help = "What is done with a call that matches."},

    /* --- servers --- */
    {"servers", SCHEMA_ENTRIES, TOP(servers), .max = SERVERS_MAX,
     .entry_size = sizeof(struct config_server), .check = check_alias, .check_entry = check_server,
     .also = "mcpServers mcp_servers",
     .help = "The MCP servers to bring together. Each key is the server's name: letters, digits, "
             "'_', '-' and '.', at most 64. The name is part of the names of its tools and of the "
             "address /mcp/NAME."},
    {"servers.*.command", SCHEMA_STRING, SERVER(command), .check = check_path, .also = "cmd exec",
     .help = "The program to start: a path, or a name to look for in PATH. Its arguments go into "
             "args."},
    {"servers.*.args", SCHEMA_STRINGS, SERVER(args), .also = "arguments",
     .help = "The program's arguments."},
    {"servers.*.env", SCHEMA_PAIRS, SERVER(env), .check_name = check_env_name, .secret = true,
     .also = "environment",
     .help = "Environment variables for the program, besides the few it always gets (PATH, HOME, "
             "LANG and the like)."},
    {"servers.*.env_file", SCHEMA_STRING, SERVER(env_file), .check = check_path, .also = "envFile",
     .help = "A file with more variables, a line NAME=VALUE each. Those of env win."},
    {"servers.*.scope", SCHEMA_WORD, SERVER(scope), .preset = "user", .words = scope_words,
     .help =
         "Whom an instance of the server is for. The folder of a project is the first root of a "
         "host that runs 'rialto stdio', else the folder that it runs in, up to the nearest one "
         "with .git; ${PROJECT} stands for it. Callers by HTTP and bus have none."},
    {"servers.*.cwd", SCHEMA_STRING, SERVER(cwd), .check = check_path,
     .also = "workingDirectory working_directory directory",
     .help =
         "The folder to start the program in; when not given, that of the project (scope), else "
         "the one Rialto was started in, or with a sandbox a folder of the server's own."},
    {"servers.*.sandbox", SCHEMA_SECTION, SERVER(sandbox.level), .preset = "off",
     .words = sandbox_words, .needs_value = true,
     .help = "What the program may do: a word, or a map that begins as strict and whose keys open "
             "what they name. Its own working folder is cwd, or servers/NAME in the state folder. "
             "The default is light for a server with origin: agent. 'rialto sandbox NAME' shows "
             "what this machine enforces."},
    {"servers.*.sandbox.read", SCHEMA_STRINGS, SERVER(sandbox.read), .max = PATHS_MAX,
     .check = check_whole_path,
     .help = "Files and folders that may be read and run, besides the system's."},
    {"servers.*.sandbox.write", SCHEMA_STRINGS, SERVER(sandbox.write), .max = PATHS_MAX,
     .check = check_whole_path,
     .help = "Files and folders that may be read and written, and never run; a folder of read "
             "around such a folder can then only be read."},
    {"servers.*.sandbox.network", SCHEMA_STRINGS, SERVER(sandbox.network), .max = PATHS_MAX,
     .check = check_port, .zero = "none", .shorthand = "all",
     .help = "The network: none, a list of ports that TCP connections may be made to (and nothing "
             "else: no listening, no UDP, so that names are looked up only over TCP), or all. Unix "
             "sockets stay closed."},
    {"servers.*.sandbox.memory", SCHEMA_SIZE, SERVER(sandbox.memory), .preset = "0", .min = 1 << 20,
     .max = 1ull << 40, .zero = "no limit",
     .help = "How much memory: of all its processes where there is a control group with this "
             "controller, else of each process."},
    {"servers.*.sandbox.processes", SCHEMA_NUMBER, SERVER(sandbox.processes), .preset = "0",
     .min = 1, .max = COUNT_MAX, .zero = "no limit",
     .help = "How many processes and threads the server may have; those of others do not count."},
    {"servers.*.sandbox.cpu", SCHEMA_DURATION, SERVER(sandbox.cpu), .preset = "0",
     .min = SECONDS(1), .max = HOURS(24 * 30), .zero = "no limit",
     .help = "How much CPU time each of its processes may use; then the process is killed."},
    {"servers.*.sandbox.files", SCHEMA_NUMBER, SERVER(sandbox.files), .preset = "0", .min = 8,
     .max = COUNT_MAX, .zero = "no limit",
     .help = "How many files each of its processes may have open."},
    {"servers.*.url", SCHEMA_STRING, SERVER(url), .check = check_url,
     .also = "serverUrl httpUrl endpoint",
     .help = "Address of a server that runs elsewhere; instead of command."},
    {"servers.*.transport", SCHEMA_WORD, SERVER(transport), .preset = "auto",
     .words = transport_words, .also = "type transportMode", .help = "How to speak to the server."},
    {"servers.*.era", SCHEMA_WORD, SERVER(era), .preset = "auto", .words = era_words,
     .help = "Which generation of MCP the server is spoken to in. With auto, a server of both has "
             "an instance for each."},
    {"servers.*.headers", SCHEMA_PAIRS, SERVER(headers), .check_name = check_header_name,
     .check = check_header_value, .secret = true,
     .help = "HTTP headers sent with every request to a remote server."},
    {"servers.*.ca", SCHEMA_STRING, SERVER(ca), .check = check_path, .also = "cacert ca_file",
     .help = "For https and wss: a file in PEM with the certificates to trust, such as those of a "
             "private authority, in place of the system's. Certificates are always checked."},
    {"servers.*.auth", SCHEMA_SECTION,
     .help = "How we get tokens for a server with url that wants some (OAuth 2.1). Without this, a "
             "server that answers 401 is handled as with an empty section. A header Authorization "
             "in headers switches all of it off."},
    {"servers.*.auth.grant", SCHEMA_WORD, SERVER(auth.grant), .preset = "authorization_code",
     .words = grant_words, .help = "Who signs in."},
    {"servers.*.auth.client_id", SCHEMA_STRING, SERVER(auth.client_id), .check = check_not_empty,
     .help = "Our id at the authorization server, if we are registered there. When not given, we "
             "are known by client_metadata_url, or register by ourselves."},
    {"servers.*.auth.client_secret", SCHEMA_STRING, SERVER(auth.client_secret),
     .check = check_not_empty, .secret = true, .help = "The secret to client_id."},
    {"servers.*.auth.private_key", SCHEMA_STRING, SERVER(auth.private_key), .check = check_path,
     .help = "A file in PEM with the key to client_id, instead of a secret (private_key_jwt)."},
    {"servers.*.auth.client_metadata_url", SCHEMA_STRING, SERVER(auth.client_metadata_url),
     .check = check_web_url,
     .help = "The https address of a document that describes us, for authorization servers that "
             "take that for an id. With public_url, public_url + /oauth/client is one."},
    {"servers.*.auth.scopes", SCHEMA_STRINGS, SERVER(auth.scopes), .max = SERVERS_MAX,
     .check = check_scope,
     .help = "The scopes to ask for, in place of those that the server names."},
    {"servers.*.auth.issuer", SCHEMA_STRING, SERVER(auth.issuer), .check = check_web_url,
     .help = "The authorization server to use, whatever the server names."},
    {"servers.*.auth.per_user", SCHEMA_BOOL, SERVER(auth.per_user), .preset = "false",
     .help = "Each caller (the owner of a token in 'auth') signs in for itself and calls with its "
             "own token. With grant: id-jag or token-exchange nobody signs in: the token that the "
             "caller shows us is exchanged at the identity provider."},
    {"servers.*.auth.assertion", SCHEMA_STRING, SERVER(auth.assertion), .check = check_not_empty,
     .secret = true,
     .help = "For grant: jwt-bearer. The JWT, or the absolute path of the file that has it, which "
             "is read each time."},
    {"servers.*.auth.idp", SCHEMA_SECTION,
     .help = "For grant: id-jag and token-exchange. The identity provider that vouches for the "
             "user."},
    {"servers.*.auth.idp.token_endpoint", SCHEMA_STRING, SERVER(auth.idp_token_endpoint),
     .check = check_web_url, .help = "Its address for tokens."},
    {"servers.*.auth.idp.client_id", SCHEMA_STRING, SERVER(auth.idp_client_id),
     .check = check_not_empty, .help = "Our id there."},
    {"servers.*.auth.idp.client_secret", SCHEMA_STRING, SERVER(auth.idp_client_secret),
     .check = check_not_empty, .secret = true, .help = "The secret to this id, if it has one."},
    {"servers.*.auth.idp.issuer", SCHEMA_STRING, SERVER(auth.idp_issuer), .check = check_web_url,
     .help = "With per_user: the issuer of the tokens that are exchanged there, one of auth.jwt or "
             "auth.introspection. Tokens of other issuers are never sent there."},
    {"servers.*.auth.idp.subject_token", SCHEMA_STRING, SERVER(auth.idp_subject_token),
     .check = check_not_empty, .secret = true,
     .help = "Without per_user: the user's ID token, or the absolute path of the file that has "
             "it."},
    {"servers.*.auth.profile", SCHEMA_STRING, SERVER(auth.profile), .check = check_name,
     .help = "The name of a token that something else renews: the secret PROFILE_TOKEN, in upper "
             "case and with _ for other characters (WORKIQ_TOKEN for workiq), from a file of "
             "secrets.directory, from secrets.command or from the environment. It is sent as a "
             "bearer token in place of headers.Authorization, and looked up again when the server "
             "answers 401."},
    {"servers.*.id", SCHEMA_STRING, SERVER(id), .check = check_name,
     .help = "The server's id on a message bus, independent of its name. Made from the name when "
             "not given."},
    {"servers.*.origin", SCHEMA_WORD, SERVER(origin), .preset = "operator", .words = origin_words,
     .help = "Who added the server. Agents can remove servers that were registered over the bus."},
    {"servers.*.enabled", SCHEMA_BOOL, SERVER(enabled), .preset = "true", .also = "disabled",
     .help = "Whether the server is used at all."},
    {"servers.*.allow", SCHEMA_STRINGS, SERVER(allow), .min = 1, .check = check_tool_pattern,
     .also = "allowedTools tool_allowlist includeTools tool_filter", .needs_value = true,
     .help = "Tools to offer, by the server's own names; * and ? match, case is ignored. All "
             "others are hidden and cannot be called. When given, deny is ignored."},
    {"servers.*.deny", SCHEMA_STRINGS, SERVER(deny), .check = check_tool_pattern,
     .also = "deniedTools excludeTools disabledTools",
     .help = "Tools to hide and refuse, in the same form as allow."},
    {"servers.*.approve", SCHEMA_STRINGS, SERVER(approve), .check = check_tool_pattern,
     .shorthand = "always", .also = "require_approval",
     .help = "Tools whose calls a person must approve first, in the same form as allow; always "
             "stands for all of them. approve_by says who decides."},
    {"servers.*.approve_by", SCHEMA_WORD, SERVER(approve_by), .preset = "either",
     .words = approve_by_words,
     .help = "Who may approve such a call. A program that can show its user a form may as well "
             "answer by itself, without showing it. So where there are tokens (auth.tokens) or "
             "views, the default is operator."},
    {"servers.*.approve_timeout", SCHEMA_DURATION, SERVER(approve_timeout), .preset = "1m",
     .min = 100, .max = HOURS(24),
     .help = "How long such a call waits for approval; then the call is refused."},
    {"servers.*.tools", SCHEMA_ENTRIES, SERVER(tools), .max = CALLS_MAX,
     .entry_size = sizeof(struct config_tool), .check = check_name,
     .help = "Changes to single tools; each key is the server's own name of a tool."},
    {"servers.*.tools.*.name", SCHEMA_STRING, TOOL(name), .check = check_name,
     .help = "The name to offer the tool under."},
    {"servers.*.tools.*.description", SCHEMA_STRING, TOOL(description),
     .help = "The description to offer instead of the server's."},
    {"servers.*.tools.*.arguments", SCHEMA_JSON, TOOL(arguments),
     .help = "Arguments with fixed values; the caller neither sees nor sets them."},
    {"servers.*.tools.*.hide", SCHEMA_BOOL, TOOL(hide), .preset = "false",
     .help = "Neither offer the tool nor let it be called."},
    {"servers.*.resources_as_tools", SCHEMA_BOOL, SERVER(resources_as_tools), .preset = "false",
     .help = "For clients that have tools only: offer the tool read_resource, which takes the uri "
             "of a resource."},
    {"servers.*.prompts_as_tools", SCHEMA_BOOL, SERVER(prompts_as_tools), .preset = "false",
     .help = "For clients that have tools only: offer a tool get_prompt_NAME for each prompt."},
    {"servers.*.prompts_as_context", SCHEMA_LIST, SERVER(prompts_as_context), .max = CALLS_MAX,
     .entry_size = sizeof(struct config_prompt), .check_entry = check_prompt, .shorthand = "name",
     .help = "Prompts whose text is appended to the instructions that agents get when they "
             "connect. Those that need arguments are written as maps."},
    {"servers.*.prompts_as_context.*.name", SCHEMA_STRING, PROMPT(name),
     .check = check_tool_pattern, .help = "The server's own name of the prompt; * and ? match."},
    {"servers.*.prompts_as_context.*.arguments", SCHEMA_JSON, PROMPT(arguments),
     .help = "The arguments of the prompt."},
    {"servers.*.resources_as_context", SCHEMA_STRINGS, SERVER(resources_as_context),
     .max = CALLS_MAX, .check = check_not_empty,
     .help = "Addresses (URIs) of resources whose text is appended to the instructions as well; "
             "they need not be listed by the server. They are read when the server is started and "
             "when it says that its list of resources has changed."},
    {"servers.*.timeout", SCHEMA_DURATION, SERVER(timeout), .preset = "1m", .min = 1,
     .max = HOURS(24), .zero = "no limit", .also = "toolTimeoutMs timeout_ms",
     .help = "How long one call may take before the caller gets an error and the server is told "
             "to stop."},
    {"servers.*.timeout_on_progress", SCHEMA_WORD, SERVER(timeout_on_progress), .preset = "reset",
     .words = progress_words, .help = "What a progress message does to the timeout."},
    {"servers.*.timeout_max", SCHEMA_DURATION, SERVER(timeout_max), .preset = "0", .min = 1,
     .max = HOURS(24 * 30), .zero = "ten times timeout",
     .help = "How long progress messages can extend one call at most."},
    {"servers.*.ask_timeout", SCHEMA_DURATION, SERVER(ask_timeout), .preset = "10m", .min = 100,
     .max = HOURS(24),
     .help = "How long a question that the server asks during a call (a form, a sampling request) "
             "may wait for its answer. The call's timeout starts again after the answer."},
    {"servers.*.elicitation", SCHEMA_SECTION,
     .help = "What becomes of the forms that the server asks to be filled in during calls from a "
             "bus. Agents with MCP are asked as they are, and this says nothing about them."},
    {"servers.*.elicitation.mode", SCHEMA_WORD, SERVER(elicitation.mode), .preset = "decline",
     .words = elicitation_words, .help = "Who answers."},
    {"servers.*.elicitation.max_per_call", SCHEMA_NUMBER, SERVER(elicitation.max_per_call),
     .preset = "3", .min = 1, .max = CALLS_MAX, .zero = "all are declined",
     .help = "How many questions of one call are handed back; more are declined. ask_timeout is "
             "how long each stays open."},
    {"servers.*.elicitation.denied_fields", SCHEMA_STRINGS, SERVER(elicitation.denied_fields),
     .max = CALLS_MAX, .check = check_name,
     .help = "Fields that agents are never asked for; case is ignored. A form with one of them is "
             "declined, and so is one with a field that looks like a credential."},
    {"servers.*.attachments", SCHEMA_SECTION,
     .help = "Files in calls from a bus: agents name files in the folder bus.attachments, and the "
             "server gets their bytes; bytes that the server returns become files there. Agents "
             "with MCP exchange bytes as they are, and this says nothing about them."},
    {"servers.*.attachments.outbound", SCHEMA_STRINGS, SERVER(attachments.outbound),
     .max = PATHS_MAX, .check = check_name,
     .help =
         "Arguments that are lists of files. In each {path: FILE} of the list, path is replaced "
         "by name and base64Content, or from threshold on by the attachmentId that uploading "
         "the file to the server gave."},
    {"servers.*.attachments.inbound", SCHEMA_STRINGS, SERVER(attachments.inbound), .max = PATHS_MAX,
     .check = check_name,
     .help = "Tools that take the argument mode: save. They are called with stash, or with inline "
             "if the argument sizeHint is below threshold, and the file that they answer with is "
             "saved; the result is {path, name, size, mime}."},
    {"servers.*.attachments.threshold", SCHEMA_SIZE, SERVER(attachments.threshold),
     .preset = "256KiB", .min = 1, .max = 16 << 20, .zero = "every file is uploaded",
     .help = "From this size on files are uploaded to the server and downloaded from it, below "
             "they are in the messages."},
    {"servers.*.attachments.endpoint", SCHEMA_STRING, SERVER(attachments.endpoint),
     .preset = "/attachments", .check = check_endpoint,
     .help = "Where on the server's host: POST (multipart) uploads, GET and DELETE of ENDPOINT/ID "
             "download and forget."},
    {"servers.*.attachments.upload_field", SCHEMA_STRING, SERVER(attachments.upload_field),
     .preset = "file", .check = check_name, .help = "The field of the upload's form."},
    {"servers.*.attachments.capture", SCHEMA_BOOL, SERVER(attachments.capture), .preset = "true",
     .help = "Whether images, audio and binary resources in results become files, whatever their "
             "size. Without attachments only large ones do."},
    {"servers.*.attachments.capture_fields", SCHEMA_LIST, SERVER(attachments.capture_fields),
     .max = PATHS_MAX, .entry_size = sizeof(struct config_capture), .check_entry = check_capture,
     .help = "Tools that return a file in base64 inside of a JSON text. If the file is binary, its "
             "bytes are saved, and path, name, size and mime take their place."},
    {"servers.*.attachments.capture_fields.*.tools", SCHEMA_STRINGS, CAPTURE(tools), .min = 1,
     .check = check_name, .help = "The tools; case is ignored."},
    {"servers.*.attachments.capture_fields.*.content", SCHEMA_STRING, CAPTURE(content),
     .preset = "content", .check = check_name, .help = "The member with the bytes."},
    {"servers.*.attachments.capture_fields.*.name", SCHEMA_STRING, CAPTURE(name),
     .check = check_name,
     .help = "The member with the file's name; name and path are looked at as well."},
    {"servers.*.attachments.capture_fields.*.mime", SCHEMA_STRING, CAPTURE(mime),
     .check = check_name, .help = "The member with the MIME type."},
    {"servers.*.attachments.capture_fields.*.encoding", SCHEMA_STRING, CAPTURE(encoding),
     .check = check_name,
     .help = "The member that says how the bytes are written; unless that is base64, they are left "
             "alone."},
    {"servers.*.start", SCHEMA_WORD, SERVER(start), .preset = "eager", .words = start_words,
     .help = "When the program is started."},
    {"servers.*.start_timeout", SCHEMA_DURATION, SERVER(start_timeout), .preset = "30s", .min = 100,
     .max = HOURS(1), .help = "How long the program may take from its start until it is ready."},
    {"servers.*.idle_stop", SCHEMA_DURATION, SERVER(idle_stop), .preset = "0", .min = SECONDS(1),
     .max = HOURS(24), .zero = "never",
     .help = "Stop the program when nobody has called it for this long and nobody has subscribed "
             "to its resources; its tools stay listed, and the next call starts it again."},
    {"servers.*.ping", SCHEMA_DURATION, SERVER(ping), .preset = "30s", .min = SECONDS(1),
     .max = HOURS(24), .zero = "never",
     .help = "After this long without a message from the server, an MCP ping is sent, unless the "
             "server is at work. A server that does not answer within 10 s counts as gone and is "
             "started or connected again. The default holds for servers with url; a program is "
             "pinged only when this key is given, because its end is noticed anyway."},
    {"servers.*.instances", SCHEMA_WORD, SERVER(instances), .preset = "shared",
     .words = instances_words, .help = "How many processes there are."},
    {"servers.*.concurrency", SCHEMA_NUMBER, SERVER(concurrency), .preset = "0", .min = 1,
     .max = CALLS_MAX, .zero = "no limit",
     .help = "How many calls the server works on at once; more wait in the queue."},
    {"servers.*.queue", SCHEMA_NUMBER, SERVER(queue), .preset = "1024", .min = 1, .max = CALLS_MAX,
     .zero = "nobody waits",
     .help = "How many calls may wait for the server; more are refused at once, as busy."},
    {"servers.*.restarts", SCHEMA_NUMBER, SERVER(restarts), .preset = "0", .min = 1,
     .max = COUNT_MAX, .zero = "no limit",
     .help = "How many failures in a row end the attempts to start the server again."},
    {"enabled_servers", SCHEMA_STRINGS, TOP(enabled_servers), .max = SERVERS_MAX,
     .needs_value = true,
     .help = "When given, only these servers are used; the others stay in the file for later."},

    {"sandbox", SCHEMA_SECTION, .help = "The sandboxes of servers (servers.*.sandbox)."},
    {"sandbox.missing", SCHEMA_WORD, TOP(sandbox_missing), .preset = "refuse",
     .words = missing_words, .help = "What to do where this kernel cannot enforce a sandbox."},

    /* --- who may see what --- */
    {"secrets", SCHEMA_SECTION,
     .help = "Where ${NAME} in the values of servers is looked up, before the environment."},
    {"secrets.directory", SCHEMA_STRING, TOP(secrets.directory), .check = check_path,
     .help = "A folder with one file for each secret, as Docker and Kubernetes mount it."},
    {"secrets.command", SCHEMA_STRINGS, TOP(secrets.command),
     .help = "A program that prints a secret; the secret's name is added as the last argument."},
    {"views", SCHEMA_ENTRIES, TOP(views), .max = SERVERS_MAX,
     .entry_size = sizeof(struct config_view), .check = check_name,
     .help = "Selections of servers and tools, for the owners of tokens (auth.tokens.*.view), and "
             "for agents that ask for one: /mcp?view=NAME."},
    {"views.*.servers", SCHEMA_STRINGS, VIEW(servers), .min = 1, .check = check_alias,
     .needs_value = true,
     .help = "The servers in the view; when not given, all, and the tools of web pages as well."},
    {"views.*.allow", SCHEMA_STRINGS, VIEW(tools.allow), .min = 1, .check = check_tool_pattern,
     .needs_value = true,
     .help = "Tools to show, as in servers.*.allow, of those that their servers' own allow and "
             "deny let through."},
    {"views.*.deny", SCHEMA_STRINGS, VIEW(tools.deny), .check = check_tool_pattern,
     .help = "Tools to hide and refuse, as in servers.*.deny."},
    {"views.*.resources", SCHEMA_SECTION,
     .help = "Which resources and templates the view has, by address or name; when not given, all "
             "those of its servers, whatever tools the view has."},
    {"views.*.resources.allow", SCHEMA_STRINGS, VIEW(resources.allow), .min = 1,
     .check = check_pattern, .needs_value = true,
     .help = "Resources to show and let read; * and ? match, case is ignored. A template lets "
             "every address be read that fits the template. When given, deny is ignored."},
    {"views.*.resources.deny", SCHEMA_STRINGS, VIEW(resources.deny), .check = check_pattern,
     .help = "Resources to hide and refuse. Addresses with . or .. in them are refused then, too; "
             "to be sure of what can be read, use allow."},
    {"views.*.prompts", SCHEMA_SECTION,
     .help = "Which prompts the view has; when not given, all those of its servers."},
    {"views.*.prompts.allow", SCHEMA_STRINGS, VIEW(prompts.allow), .min = 1, .check = check_pattern,
     .needs_value = true, .help = "Prompts to show, by the servers' own names, as for tools."},
    {"views.*.prompts.deny", SCHEMA_STRINGS, VIEW(prompts.deny), .check = check_pattern,
     .help = "Prompts to hide and refuse."},
    {"views.*.expose", SCHEMA_WORD, VIEW(expose), .preset = "same", .words = view_expose_words,
     .help = "How the tools of this view are offered at /mcp; /mcp/NAME always lists them."},
    {"views.*.expose_above", SCHEMA_NUMBER, VIEW(expose_above), .preset = "0", .min = 1,
     .max = COUNT_MAX, .zero = "as at the top",
     .help = "The same as expose_above at the top, for the tools that this view leaves."},
    {"views.*.errors", SCHEMA_WORD, VIEW(errors), .preset = "auto", .words = errors_words,
     .help = "The same as errors at the top, for the agents of this view; auto is what the top "
             "says."},
    {"auth", SCHEMA_SECTION, .help = "Who may connect."},
    {"auth.tokens", SCHEMA_LIST, TOP(tokens), .max = SERVERS_MAX,
     .entry_size = sizeof(struct config_token), .check_entry = check_token,
     .help =
         "When given, every request over the network must show one of these, as "
         "'Authorization: Bearer TOKEN'. /healthz and /readyz need none, nor do Unix sockets. "
         "'rialto token add NAME' makes one. Changes take effect at once: what a token that "
         "is taken out has open, ends. An empty list, or nothing behind the key, lets nobody in."},
    {"auth.anonymous", SCHEMA_BOOL, TOP(anonymous), .preset = "false",
     .help = "Whether an address that other machines reach may be served without tokens. All these "
             "machines may then use every server; without this key Rialto does not start."},
    {"auth.jwt", SCHEMA_LIST, TOP(jwt), .max = PATHS_MAX, .entry_size = sizeof(struct config_jwt),
     .check_entry = check_jwt,
     .help = "Identity providers whose access tokens (JWT) are taken: one, or a list. A token must "
             "be signed with a key of its issuer (RS, PS, ES or EdDSA), be meant for this Rialto "
             "and not have expired. Its owner's name is that of issuer and subject."},
    {"auth.jwt.*.issuer", SCHEMA_STRING, JWT(issuer), .check = check_web_url,
     .help = "The issuer, exactly as in tokens (iss)."},
    {"auth.jwt.*.jwks", SCHEMA_STRING, JWT(jwks), .check = check_path,
     .help = "The issuer's public keys: a file, or a URL (https, or http on this machine), which "
             "is fetched again as its answer says, and when a token names a new key."},
    {"auth.jwt.*.audience", SCHEMA_STRING, JWT(audience), .check = check_not_empty,
     .help = "What tokens must be meant for (aud); public_url + /mcp when not given. A token for "
             "public_url + /mcp/SERVER is good at that address alone."},
    {"auth.jwt.*.views", SCHEMA_PAIRS, JWT(views), .check = check_name, .check_name = check_scope,
     .needs_value = true,
     .help = "Views by scope: the first scope here that a token has chooses its view. The scope "
             "mcp stands for everything. A token with none of them is refused (403). When not "
             "given, every valid token has everything."},
    {"auth.jwt.*.types", SCHEMA_STRINGS, JWT(types), .preset = "at+jwt", .min = 1,
     .check = check_not_empty,
     .help = "Which types (typ) of tokens are taken; JWT, for providers that send that, also "
             "takes those without a type. Without JWT, ID tokens are never taken."},
    {"auth.introspection", SCHEMA_SECTION, .needs_value = true,
     .help = "Tokens that are not JWTs: the issuer is asked about each (RFC 7662), and asked again "
             "after a minute at the latest."},
    {"auth.introspection.url", SCHEMA_STRING, TOP(introspection.url), .check = check_web_url,
     .help = "Where to ask (https, or http on this machine)."},
    {"auth.introspection.issuer", SCHEMA_STRING, TOP(introspection.issuer), .check = check_web_url,
     .help = "The issuer, for agents that want to sign in; an answer that names another one is "
             "refused."},
    {"auth.introspection.client_id", SCHEMA_STRING, TOP(introspection.client_id),
     .check = check_not_empty, .help = "How this Rialto is known there."},
    {"auth.introspection.client_secret", SCHEMA_STRING, TOP(introspection.client_secret),
     .check = check_not_empty, .secret = true,
     .help = "Its secret; ${NAME} is filled in as for servers."},
    {"auth.introspection.audience", SCHEMA_STRING, TOP(introspection.audience),
     .check = check_not_empty, .help = "As auth.jwt.*.audience."},
    {"auth.introspection.views", SCHEMA_PAIRS, TOP(introspection.views), .check = check_name,
     .check_name = check_scope, .needs_value = true, .help = "As auth.jwt.*.views."},
    {"auth.issuer", SCHEMA_WORD, TOP(issuer), .preset = "off", .words = issuer_words,
     .needs_value = true,
     .help = "Whether this Rialto is itself the place where agents such as claude.ai sign in "
             "(OAuth 2.1). Needs public_url."},
    {"auth.password", SCHEMA_STRING, TOP(password), .check = check_password, .secret = true,
     .help = "What a person types to let an agent in (auth.issuer), as 'rialto pair --password' "
             "prints it: a hash by scrypt. Without it only the code of 'rialto pair' is taken."},
    {"auth.client_hosts", SCHEMA_STRINGS, TOP(client_hosts), .check = check_host,
     .help = "Hosts on this machine or its own networks whose documents on OAuth clients may be "
             "fetched (auth.issuer); public ones always may."},
    {"auth.tokens.*.name", SCHEMA_STRING, TOKEN(name), .check = check_name,
     .help = "The owner of the token. Nobody else can use the owner's sessions and waiting calls."},
    {"auth.tokens.*.hash", SCHEMA_STRING, TOKEN(hash), .check = check_token_hash, .secret = true,
     .help = "Hash of the token, as sha256: and 64 hexadecimal digits. The token itself is not "
             "stored."},
    {"auth.tokens.*.view", SCHEMA_STRING, TOKEN(view), .check = check_name, .needs_value = true,
     .help = "The view that the owner gets; when not given, everything."},
    {"auth.tokens.*.role", SCHEMA_WORD, TOKEN(role), .preset = "operator",
     .words = token_role_words, .needs_value = true,
     .help = "What the owner may do. The default is agent for a token with a view."},
    {"auth.tokens.*.expires", SCHEMA_STRING, TOKEN(expires), .check = check_time,
     .needs_value = true,
     .help = "From when on the token is not valid any more, and what it has open ends: a time as "
             "in 2026-12-31T23:59:59Z (RFC 3339)."},
    {"auth.tokens.*.limits", SCHEMA_SECTION,
     .help = "How much the owner may use, over all its sessions and connections together. A call "
             "beyond a limit is refused at once, with the time to come again."},
    {"auth.tokens.*.limits.calls_per_minute", SCHEMA_NUMBER, TOKEN(limits.calls_per_minute),
     .preset = "0", .min = 1, .max = CALLS_MAX, .zero = "no limit",
     .help = "How many calls of tools and the like in any 60 seconds."},
    {"auth.tokens.*.limits.in_flight", SCHEMA_NUMBER, TOKEN(limits.in_flight), .preset = "0",
     .min = 1, .max = COUNT_MAX, .zero = "no limit", .help = "How many calls at once."},
    {"auth.tokens.*.limits.processes", SCHEMA_NUMBER, TOKEN(limits.processes), .preset = "0",
     .min = 1, .max = COUNT_MAX, .zero = "no limit",
     .help = "How many programs may run at once for the owner's sessions alone "
             "(servers.*.instances)."},
    {"auth.tokens.*.limits.bytes", SCHEMA_SIZE, TOKEN(limits.bytes), .preset = "0", .min = 1024,
     .max = 1ull << 40, .zero = "no limit",
     .help = "How much the arguments of the calls that are open at once may have together."},

    /* --- browser and bus --- */
    {"browser", SCHEMA_SECTION, .help = "Tools that web pages offer."},
    {"browser.capabilities", SCHEMA_WORD, TOP(browser.capabilities), .preset = "auto",
     .words = capabilities_words,
     .help = "When the tools of a page need the consent of the page's user."},
    {"browser.granted", SCHEMA_STRINGS, TOP(browser.granted), .check = check_capability,
     .help = "Capabilities that every page has without asking, such as dom:read or storage:*."},
    {"browser.consent_timeout", SCHEMA_DURATION, TOP(browser.consent_timeout), .preset = "25s",
     .min = SECONDS(1), .max = HOURS(1),
     .help = "How long an agent waits for a page's user to decide; a later decision still counts."},
    {"browser.session_ttl", SCHEMA_DURATION, TOP(browser.session_ttl), .preset = "1h",
     .min = SECONDS(1), .max = HOURS(24 * 30),
     .help = "How long a page may be away and come back."},
    {"browser.session_idle", SCHEMA_DURATION, TOP(browser.session_idle), .preset = "0",
     .min = SECONDS(1), .max = HOURS(24 * 30), .zero = "no limit",
     .help = "How long a session may go without any message though its pages are connected; then "
             "the session ends, and with it what was granted for the session."},
    {"browser.origins", SCHEMA_STRINGS, TOP(browser.origins), .check = check_origin,
     .help = "Web sites whose pages may connect, besides those on this machine, and browser "
             "extensions (chrome-extension://ID) that need not show the pairing token."},
    {"browser.pairing", SCHEMA_BOOL, TOP(browser.pairing), .preset = "false",
     .help = "Whether pages and BTCP agents must show the token that 'rialto browser pair' "
             "prints. With auth.tokens they always must, and so must browser extensions that "
             "'origins' does not name."},
    {"browser.webmcp", SCHEMA_BOOL, TOP(browser.webmcp), .preset = "false",
     .help = "Whether the tools of MCP-B's relay (webmcp_list_sources, webmcp_list_tools, "
             "webmcp_call_tool, webmcp_open_page) are listed also while no page of MCP-B is "
             "connected. An operator must approve each call of webmcp_open_page."},
    {"browser.join", SCHEMA_LIST, TOP(browser.join), .max = JOINS_MAX,
     .entry_size = sizeof(struct config_join), .shorthand = "url",
     .help = "BTCP servers that run elsewhere, whose sessions are offered as well."},
    {"browser.join.*.url", SCHEMA_STRING, JOIN(url), .check = check_url,
     .help = "The address: ws://HOST:PORT, where one session is joined, or http://HOST:PORT."},
    {"browser.join.*.session", SCHEMA_STRING, JOIN(session),
     .help = "The session to join; when not given, all sessions of a server at http://."},
    {"browser.socket", SCHEMA_STRING, TOP(browser.socket), .check = check_unix_address,
     .help = "A Unix socket for programs that speak BTCP, one JSON message a line: unix:PATH."},
    {"bus", SCHEMA_SECTION, .help = "Tools offered and called over a message bus."},
    {"bus.url", SCHEMA_STRING, TOP(bus.url), .check = check_bus_url, .env = "RIALTO_BUS_URL",
     .help = "Which bus: embedded: for our own, which is also the default when the section is "
             "there; unix:PATH for our own at another place; tcp://HOST:PORT to join our own from "
             "a container; amqp(s)://USER:PASSWORD@HOST:PORT/VHOST; nats://HOST:PORT or tls://; "
             "off for none, as without the section. ${NAME} is filled in as for servers."},
    {"bus.role", SCHEMA_WORD, TOP(bus.role), .preset = "worker", .words = role_words,
     .help = "The role of this program on the bus."},
    {"bus.agents", SCHEMA_STRINGS, TOP(bus.agents), .preset = "RockBot", .min = 1,
     .max = SERVERS_MAX, .check = check_agent,
     .help = "Names of the agents to work for, or \"*\" for all; a proxy joins as the first."},
    {"bus.name", SCHEMA_STRING, TOP(bus.name), .check = check_agent,
     .help = "The name of this worker among several that have different servers for the same "
             "agent. Workers without a name, or with the same name, share the agent's calls."},
    {"bus.discovery", SCHEMA_WORDS, TOP(bus.discovery), .preset = "servers-indexed,tools-available",
     .words = discovery_words,
     .help = "How our tools are announced: in the forms for every generation of agents, unless "
             "this key names fewer."},
    {"bus.prefetch", SCHEMA_NUMBER, TOP(bus.prefetch), .preset = "10", .min = 1, .max = 1000,
     .help = "How many calls for one agent are worked on at once."},
    {"bus.max_timeout", SCHEMA_DURATION, TOP(bus.max_timeout), .preset = "15m", .min = 100,
     .max = HOURS(24), .help = "How long a call may take, even if the agent would wait longer."},
    {"bus.timeout", SCHEMA_DURATION, TOP(bus.timeout), .preset = "1m", .min = 100, .max = HOURS(24),
     .help = "A proxy's calls: how long a bridge elsewhere may take. We wait 5 s longer, so that "
             "the bridge's error comes before our own."},
    {"bus.plain_names", SCHEMA_BOOL, TOP(bus.plain_names), .preset = "false",
     .help = "A proxy's reply topics and queues are named exactly as those of RockBot's own "
             "agents, for brokers that allow no others. Only one proxy may join as the same agent "
             "then."},
    {"bus.attachments", SCHEMA_STRING, TOP(bus.attachments), .check = check_path,
     .help = "A folder shared with the agents: images and other large contents of results are "
             "put there, and the reply names the file."},
    {"bus.events", SCHEMA_BOOL, TOP(bus.events), .preset = "true",
     .help = "Publish events on the bus, as mcp.event.KIND.SERVER, never with arguments."},
    {"bus.approvals", SCHEMA_BOOL, TOP(bus.approvals), .preset = "false",
     .help = "Ask on the bus, too, for the approval of calls (servers.*.approve): everybody on the "
             "bus may then approve calls, as an operator."},
    {"bus.gateway", SCHEMA_BOOL, TOP(bus.gateway), .preset = "false",
     .help = "Offer list_services, get_service_details and invoke_tool to agents that connect to "
             "us, beside the servers' tools, as the gateway does that RockBot's skills know."},
    {"bus.register_hosts", SCHEMA_STRINGS, TOP(bus.register_hosts), .max = SERVERS_MAX,
     .check = check_host_pattern,
     .help = "Hosts whose servers agents may register over the bus: HOST, HOST:PORT or *.DOMAIN. "
             "Without any, agents register none. Addresses of this machine and of private "
             "networks are refused, whatever name leads there, unless they are listed here "
             "themselves (localhost for this machine)."},
    {"bus.listen", SCHEMA_STRING, TOP(bus.listen), .check = check_address,
     .help = "Our own bus also listens here, for containers and the like: a loopback HOST:PORT."},
    {"bus.token", SCHEMA_STRING, TOP(bus.token), .check = check_not_empty, .secret = true,
     .help = "The token that programs show when they join over TCP; the same on both sides. "
             "${NAME} is filled in as for servers."},
    {"bus.keep", SCHEMA_DURATION, TOP(bus.keep), .preset = "1m", .min = 100, .max = HOURS(24),
     .help = "Our own bus: how long messages for an agent or worker that went away are kept."},
    {"bus.exchange", SCHEMA_STRING, TOP(bus.exchange), .preset = "rockbot", .check = check_name,
     .help = "RabbitMQ: the exchange, and the beginning of the queues' names."},
    {"bus.prefix", SCHEMA_STRING, TOP(bus.prefix), .check = check_name,
     .help = "NATS: the prefix of every subject."},
    {"bus.jetstream", SCHEMA_BOOL, TOP(bus.jetstream), .preset = "false",
     .help = "NATS: keep messages in JetStream until they are acknowledged."},
    {"bus.credentials", SCHEMA_STRING, TOP(bus.credentials), .check = check_path,
     .help = "NATS: file with the credentials of a user (.creds), or with the seed of an NKEY."},
    {"bus.ca", SCHEMA_STRING, TOP(bus.ca), .check = check_path,
     .help = "File with the certificate authorities to trust, in PEM; the system's when not "
             "given."},

    /* --- trust --- */
    {"lock", SCHEMA_SECTION,
     .help =
         "What mcp.lock beside this file means, which 'rialto lock' writes: the tools that were "
         "approved, as they were then."},
    {"lock.on_change", SCHEMA_WORD, TOP(lock.on_change), .preset = "block",
     .words = on_change_words, .help = "What happens to a tool that is new or has changed."},

    /* --- operation --- */
    {"log", SCHEMA_SECTION, .help = "The log, which is written to the standard error."},
    {"log.level", SCHEMA_WORD, TOP(log.level), .preset = "info", .words = level_words,
     .env = "RIALTO_LOG_LEVEL", .help = "How much is logged."},
    {"log.format", SCHEMA_WORD, TOP(log.format), .preset = "text", .words = format_words,
     .env = "RIALTO_LOG_FORMAT", .help = "The form of the lines."},
    {"log.keep", SCHEMA_SIZE, TOP(log.keep), .preset = "256KiB", .min = 16 * 1024,
     .max = 64 * 1024 * 1024, .zero = "none",
     .help = "How much of the log the daemon keeps in memory for 'rialto logs' and /api/logs."},
    {"control", SCHEMA_STRING, TOP(control), .preset = "auto", .check = check_control,
     .env = "RIALTO_CONTROL",
     .help =
         "The socket by which 'rialto status' and the like reach the daemon: unix:PATH, off, "
         "or auto for one that is named after this file, in rialto/ in $XDG_RUNTIME_DIR, in /run, "
         "or in a folder of the user's own in /tmp: control.sock for the user's own file, "
         "control-DIGEST.sock for others. 'rialto stdio' always comes by that one."},
    {"autostart", SCHEMA_SECTION, TOP(autostart.on), .preset = "true", .words = autostart_words,
     .env = "RIALTO_AUTOSTART",
     .help = "Whether 'rialto stdio' starts the daemon of this file when none runs."},
    {"autostart.idle", SCHEMA_DURATION, TOP(autostart.idle), .preset = "10m", .min = 100,
     .max = HOURS(24 * 365), .zero = "never",
     .help = "A daemon that was started like this ends when nobody has used it for so long. A host "
             "that is connected by 'rialto stdio' counts as use."},
    {"record", SCHEMA_SECTION, .shorthand = "size",
     .help =
         "The last calls, each with its arguments, its result and all that happened in between, "
         "for 'rialto calls', 'rialto replay' and the daemon's page. A size alone is that of "
         "record.size."},
    {"record.size", SCHEMA_SIZE, TOP(record.size), .preset = "1MiB", .min = 256 * 1024,
     .max = 1ull << 30, .zero = "nothing", .help = "How much of them is kept in memory."},
    {"record.body", SCHEMA_SIZE, TOP(record.body), .preset = "16KiB", .min = 1024,
     .max = 16ull << 20,
     .help = "How much is kept of the arguments, of the result and of each message in between; "
             "what was cut says so. At most an eighth of record.size."},
    {"record.file", SCHEMA_STRING, TOP(record.file), .check = check_path,
     .help = "Calls that have ended are also appended to this file, a line of JSON each, with "
             "secrets hidden, so that they outlive a restart. When the file reaches record.size it "
             "gets the ending .1, in place of the one that had it."},
    {"audit", SCHEMA_SECTION, TOP(audit.on), .preset = "off", .words = audit_words,
     .help = "A trail of all calls and of the decisions about them, a line of JSON each, in which "
             "every line has the hash of the line before. 'rialto audit' shows and verifies it. "
             "An empty section, audit: {}, is enough."},
    {"audit.file", SCHEMA_STRING, TOP(audit.file), .check = check_path,
     .help = "The file; older ones get the endings .1, .2 and so on, and beside it is one with "
             "the ending .head, which tells where the trail ends. audit.jsonl in the state folder "
             "when not given."},
    {"audit.syslog", SCHEMA_STRING, TOP(audit.syslog), .check = check_path,
     .help = "Send the lines to syslog in place of a file: the path of its socket, /dev/log."},
    {"audit.size", SCHEMA_SIZE, TOP(audit.size), .preset = "16MiB", .min = 64 * 1024,
     .max = 1ull << 40, .help = "How large a file may become before the next one is begun."},
    {"audit.keep", SCHEMA_NUMBER, TOP(audit.keep), .preset = "10", .min = 1, .max = 10000,
     .help = "How many older files are kept."},
    {"audit.on_failure", SCHEMA_WORD, TOP(audit.on_failure), .preset = "refuse",
     .words = audit_failure_words,
     .help = "What happens to calls while the trail cannot be written, as on a full disk."},
    {"audit.arguments", SCHEMA_WORD, TOP(audit.arguments), .preset = "hash",
     .words = audit_arguments_words, .help = "What is written of the arguments of a call."},
    {"limits", SCHEMA_SECTION, .help = "Bounds that protect this program from its peers."},
    {"limits.message", SCHEMA_SIZE, TOP(limits.message), .preset = "16MiB", .min = 1024,
     .max = 1ull << 30, .help = "The largest message or body taken from or given to anybody."},
    {"limits.memory", SCHEMA_SIZE, TOP(limits.memory), .preset = "512MiB", .min = 64ull << 20,
     .max = 1ull << 40,
     .help = "How much may be held for all peers together: output they do not read, requests they "
             "do not finish, calls that wait, events kept for clients that were cut. Above the "
             "limit, the peers that hold much for long are cut first. Make it several times "
             "limits.message."},
    {"limits.catalog", SCHEMA_SIZE, TOP(limits.catalog), .preset = "16MiB", .min = 64 * 1024,
     .max = 1ull << 30,
     .help = "How much one server (or the pages of a browser session) may list: tools, resources, "
             "templates, prompts and instructions together, over all pages of the lists. What does "
             "not fit is left out, and the log and 'rialto status' say so."},
    {"limits.batch", SCHEMA_NUMBER, TOP(limits.batch), .preset = "100", .min = 1, .max = COUNT_MAX,
     .help = "How many messages one JSON-RPC batch may hold; nothing of a larger batch is run. "
             "Once the answers to a batch are larger than limits.message, the other requests of "
             "the batch get errors."},
    {"limits.sessions", SCHEMA_NUMBER, TOP(limits.sessions), .preset = "10000", .min = 1,
     .max = COUNT_MAX,
     .help = "How many sessions there may be at once at each address (/mcp, /mcp/NAME), counted "
             "for each owner of a token and each way to speak (HTTP, SSE, WebSocket) by itself. "
             "One more takes the place of the session that is idle for longest; if all of them "
             "have something open, the new session is refused."},
    {"limits.session_ttl", SCHEMA_DURATION, TOP(limits.session_ttl), .preset = "1h",
     .min = SECONDS(1), .max = HOURS(24 * 30),
     .help = "How long a session that nobody uses is kept."},
    {"limits.connections", SCHEMA_NUMBER, TOP(limits.connections), .preset = "10000", .min = 1,
     .max = COUNT_MAX,
     .help = "How many HTTP connections may be open at once; WebSockets count as sessions, and "
             "Unix sockets are not bounded."},
    {"limits.processes", SCHEMA_NUMBER, TOP(limits.processes), .preset = "256", .min = 1,
     .max = COUNT_MAX,
     .help = "How many programs may run at once before no more are started for single sessions "
             "(servers.*.instances). Programs that their sessions do not use are stopped first; "
             "then calls that need another program are refused, as busy. Shared servers count, but "
             "are always started."},
    {"limits.head_timeout", SCHEMA_DURATION, TOP(limits.head_timeout), .preset = "10s", .min = 100,
     .max = MINUTES(10), .help = "How long the head of an HTTP request may take."},
    {"limits.body_timeout", SCHEMA_DURATION, TOP(limits.body_timeout), .preset = "30s", .min = 100,
     .max = HOURS(1), .help = "How long the body of an HTTP request may take."},
    {"limits.idle_timeout", SCHEMA_DURATION, TOP(limits.idle_timeout), .preset = "2m", .min = 100,
     .max = HOURS(24), .help = "How long a connection without a request is kept open."},
};

const size_t schema_rows_n = COUNT_OF(schema_rows);

_Static_assert(COUNT_OF(schema_rows) <= SCHEMA_ROWS_MAX, "make SCHEMA_ROWS_MAX larger");
