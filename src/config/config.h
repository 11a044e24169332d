/*
 * config: the configuration as the program uses it.
 *
 * Every field is filled in: by the file, by the environment, or by the default that the schema
 * gives for its key (config/schema.h, where each key is also explained). Absent texts are NULL.
 * All of it lives in the config's own arena and does not change once loaded.
 */
#ifndef RIALTO_CONFIG_CONFIG_H
#define RIALTO_CONFIG_CONFIG_H

#include "base/arena.h"
#include "base/log.h"
#include "config/config_server.h"
#include "core/principal.h"
#include "core/rules.h"

struct config_listen {
    const char *address;
    const char *tls_cert, *tls_key;
    struct config_strings hosts;
    bool open; /* not a loopback address, nor a Unix socket */
};

/* A BTCP server to join. */
struct config_join {
    const char *url, *session;
};

/* Enums have the order of the words in the schema. */
enum config_expose { EXPOSE_FULL, EXPOSE_SEARCH, EXPOSE_AUTO };
/* "same", then the values of config_expose in their order. */
enum config_view_expose { VIEW_EXPOSE_SAME, VIEW_EXPOSE_FIRST };
enum config_on_change {
    ON_CHANGE_BLOCK,
    ON_CHANGE_ASK,
    ON_CHANGE_WARN,
    ON_CHANGE_RECORD, /* not in files: set by 'rialto lock', which records all changes */
};
enum config_describe { DESCRIBE_NOT, DESCRIBE_NAME, DESCRIBE_MCP };
enum config_errors { ERRORS_AUTO, ERRORS_PROTOCOL, ERRORS_RESULTS };
enum config_missing { MISSING_REFUSE, MISSING_WARN };
enum config_log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };
enum config_capabilities { CAPABILITIES_AUTO, CAPABILITIES_STRICT, CAPABILITIES_LIST };
enum config_autostart { AUTOSTART_NOT, AUTOSTART_ON, AUTOSTART_MAP };
enum config_audit { AUDIT_OFF, AUDIT_MAP };
enum config_audit_failure { AUDIT_REFUSE, AUDIT_WARN };
enum config_audit_arguments { AUDIT_HASH, AUDIT_REDACTED };
enum config_bus_role { BUS_WORKER, BUS_PROXY, BUS_BOTH };
enum { DISCOVERY_SERVERS_INDEXED = 1u << 0, DISCOVERY_TOOLS_AVAILABLE = 1u << 1 };
struct config_filter {
    struct config_strings allow, deny;
};
/* Where secrets are looked up, before the environment. */
struct config_secrets {
    const char *directory;
    struct config_strings command;
};
struct config_view {
    const char *name;
    struct config_strings servers;
    struct config_filter tools, resources, prompts;
    enum config_view_expose expose;
    uint64_t expose_above; /* tokens; 0 = as the top-level key */
    enum config_errors errors;
};

/* A rule on arguments (core/rules.h). `in` and `range` are lists in JSON. */
struct config_rule {
    const char *server, *tool, *argument;
    const char *matches, *in, *range;
    struct config_strings outside;
    bool absent;
    enum rule_then then;
};

enum config_role { ROLE_AGENT, ROLE_VIEWER, ROLE_OPERATOR };
struct config_token {
    const char *name, *hash, *view;
    enum config_role role;
    const char *expires; /* a time of RFC 3339, or NULL */
    struct principal_limits limits;
};
/* An issuer whose JWTs are accepted. */
struct config_jwt {
    const char *issuer, *jwks;
    const char *audience;      /* NULL: public_url + /mcp */
    struct config_pairs views; /* scope -> view */
    struct config_strings types;
};
enum config_issuer { ISSUER_OFF, ISSUER_BUILT_IN };
struct config {
    struct arena arena;
    const char *file;    /* NULL for the built-in default */
    bool fixed;          /* given on a command line: no file is read, now or later */
    const char *project; /* what ${PROJECT} stands for; NULL: each caller has one of its own */
    bool omits_headers;  /* an unset variable leaves out its header, not the whole server */

    struct {
        struct config_listen *items;
        size_t n;
    } listen;
    const char *names; /* a pattern with {tool} and something else, or "bare" */
    enum config_expose expose;
    uint64_t expose_above; /* tokens, for EXPOSE_AUTO */
    enum config_describe describe_server;
    enum config_errors errors;
    bool resources_as_tools, prompts_as_tools; /* for all servers; copied to each of them */
    bool remember;
    const char *setup_instructions;
    struct {
        struct config_server *items;
        size_t n;
    } servers; /* in the order of the file */
    struct config_strings enabled_servers;
    struct {
        struct config_rule *items;
        size_t n;
    } rules;
    enum config_missing sandbox_missing;

    struct config_secrets secrets;
    struct {
        struct config_view *items;
        size_t n;
    } views;
    struct {
        struct config_token *items;
        size_t n;
    } tokens;
    bool asks_tokens; /* `auth` lists who is let in (maybe nobody): all others are refused */
    bool anonymous;
    const char *public_url; /* without a slash at its end; NULL: not known */
    struct {
        struct config_jwt *items;
        size_t n;
    } jwt;
    struct {
        const char *url, *issuer, *client_id, *client_secret, *audience;
        struct config_pairs views;
    } introspection;
    enum config_issuer issuer;
    const char *password; /* "scrypt:...", or NULL */
    struct config_strings client_hosts;
    struct {
        enum config_on_change on_change;
    } lock;
    struct {
        enum config_capabilities capabilities;
        struct config_strings granted;
        uint64_t consent_timeout;
        uint64_t session_ttl, session_idle;
        struct config_strings origins;
        bool pairing;
        bool webmcp;
        const char *socket;
        struct {
            struct config_join *items;
            size_t n;
        } join;
    } browser;
    struct {
        const char *url; /* "off" = none */
        enum config_bus_role role;
        struct config_strings agents;
        const char *name;
        unsigned discovery; /* DISCOVERY_ bits */
        uint64_t prefetch, max_timeout, timeout;
        bool plain_names;
        const char *attachments;
        bool events, approvals, gateway;
        struct config_strings register_hosts;
        const char *listen, *token;
        uint64_t keep;
        const char *exchange;
        const char *prefix;
        bool jetstream;
        const char *credentials;
        const char *ca;
    } bus;
    struct {
        enum log_level level;
        enum config_log_format format;
        uint64_t keep; /* bytes of log lines kept for inspection; 0 = none */
    } log;
    const char *control; /* "auto", "off" or unix:PATH */
    struct {
        enum config_autostart on;
        uint64_t idle; /* ms; 0 = for ever */
    } autostart;
    struct {
        uint64_t size, body; /* bytes of calls kept for inspection; 0 = none */
        const char *file;    /* or NULL */
    } record;
    struct {
        enum config_audit on;
        const char *file;   /* NULL: audit.jsonl in the state folder */
        const char *syslog; /* path of syslog's socket, instead of a file; or NULL */
        uint64_t size, keep;
        enum config_audit_failure on_failure;
        enum config_audit_arguments arguments;
    } audit;
    struct {
        uint64_t message, memory, catalog; /* bytes */
        uint64_t batch;                    /* messages */
        uint64_t sessions, connections, processes;
        uint64_t head_timeout, body_timeout, idle_timeout, session_ttl;
    } limits;
};

void config_free(struct config *c);
struct config_server *config_server(const struct config *c, const char *alias);

#endif
