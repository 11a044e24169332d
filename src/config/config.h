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

#include <stdbool.h>
#include <stdint.h>

struct config_strings {
    const char **items;
    size_t n;
};
struct config_pair {
    const char *name, *value;
};
struct config_pairs {
    struct config_pair *items;
    size_t n;
};

struct config_listen {
    const char *address;
    const char *tls_cert, *tls_key;
};

/* The words of a key stand in the same order in the schema. */
enum config_expose { EXPOSE_FULL, EXPOSE_SEARCH };
enum config_transport {
    TRANSPORT_AUTO,
    TRANSPORT_STREAMABLE_HTTP,
    TRANSPORT_SSE,
    TRANSPORT_WS,
    TRANSPORT_STDIO,
};
enum config_era { ERA_AUTO, ERA_LEGACY, ERA_MODERN };
enum config_progress { PROGRESS_IGNORE, PROGRESS_RESET };
enum config_start { START_EAGER, START_LAZY };
enum config_instances { INSTANCES_SHARED, INSTANCES_PER_SESSION };
enum config_log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };
enum config_capabilities { CAPABILITIES_AUTO, CAPABILITIES_STRICT };
enum config_bus_role { BUS_WORKER, BUS_PROXY, BUS_BOTH };
enum { DISCOVERY_SERVERS_INDEXED = 1u << 0, DISCOVERY_TOOLS_AVAILABLE = 1u << 1 };
/* Changes to one tool of a server. */
struct config_tool {
    const char *own; /* the server's name for it */
    const char *name, *description;
    const char *arguments; /* a JSON object, or NULL */
    bool hide;
};

/* A prompt whose text agents get with the instructions. */
struct config_prompt {
    const char *name;      /* or a pattern */
    const char *arguments; /* a JSON object, or NULL */
};

struct config_server {
    const char *alias;
    bool enabled;

    const char *command; /* exactly one of command and url is given */
    struct config_strings args;
    struct config_pairs env;
    const char *cwd;

    const char *url;
    enum config_transport transport;
    enum config_era era;
    struct config_pairs headers;

    struct config_strings allow, deny, approve;
    struct {
        struct config_tool *items;
        size_t n;
    } tools;

    bool resources_as_tools, prompts_as_tools;
    struct {
        struct config_prompt *items;
        size_t n;
    } prompts_as_context;

    uint64_t timeout; /* ms, like all durations; 0 = none */
    enum config_progress timeout_on_progress;
    enum config_start start;
    uint64_t start_timeout, idle_stop, approve_timeout, ask_timeout;
    uint64_t ping; /* ms of silence before one; 0 = never */
    enum config_instances instances;
    uint64_t concurrency, queue, restarts;
};

struct config_view {
    const char *name;
    struct config_strings servers, allow, deny;
};

struct config_token {
    const char *name, *hash, *view;
};
struct config {
    struct arena arena;
    const char *file; /* NULL for the built-in default */

    struct {
        struct config_listen *items;
        size_t n;
    } listen;
    const char *names; /* a pattern with {tool} and something else, or "bare" */
    enum config_expose expose;
    bool describe_server;
    bool resources_as_tools, prompts_as_tools; /* of all servers; told to each of them */
    const char *setup_instructions;
    struct {
        struct config_server *items;
        size_t n;
    } servers; /* in the order of the file */
    struct config_strings enabled_servers;

    struct {
        const char *directory;
        struct config_strings command;
    } secrets;
    struct {
        struct config_view *items;
        size_t n;
    } views;
    struct {
        struct config_token *items;
        size_t n;
    } tokens;
    struct {
        enum config_capabilities capabilities;
        uint64_t session_ttl;
        struct config_strings origins;
    } browser;
    struct {
        const char *url;
        enum config_bus_role role;
        struct config_strings agents;
        unsigned discovery; /* DISCOVERY_ bits */
    } bus;
    struct {
        enum log_level level;
        enum config_log_format format;
    } log;
    const char *control; /* "auto", "off" or unix:PATH */
    struct {
        uint64_t message; /* bytes */
        uint64_t sessions, connections;
        uint64_t head_timeout, body_timeout, idle_timeout, session_ttl;
    } limits;
};

void config_free(struct config *c);
struct config_server *config_server(const struct config *c, const char *alias);
/* Do both describe the same server, so that a reload may leave it running? */
bool config_server_equal(const struct config_server *a, const struct config_server *b);

#endif
