/*
 * config_server: one server of the configuration, with everything that can be set for it.
 *
 * A part of struct config (config/config.h), in whose arena it lives. Enums have the order of the
 * words in the schema.
 */
#ifndef RIALTO_CONFIG_CONFIG_SERVER_H
#define RIALTO_CONFIG_CONFIG_SERVER_H

#include "core/policy.h"

#include <stdbool.h>
#include <stddef.h>
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
enum config_origin { ORIGIN_OPERATOR, ORIGIN_AGENT };
enum config_scope { SCOPE_USER, SCOPE_PROJECT };
enum config_instances { INSTANCES_SHARED, INSTANCES_PER_SESSION };
enum config_cage { SANDBOX_OFF, SANDBOX_LIGHT, SANDBOX_STRICT, SANDBOX_MAP };

enum config_elicitation_mode { ELICITATION_DECLINE, ELICITATION_OFF, ELICITATION_HANDBACK };

/* How the server's questions (elicitation) during calls from a bus are handled. */
struct config_elicitation {
    enum config_elicitation_mode mode;
    uint64_t max_per_call;
    struct config_strings denied_fields;
};

/* For tools that return a file in base64 inside a JSON text: where the file is in that text. */
struct config_capture {
    struct config_strings tools;
    const char *content;                /* the member with the bytes */
    const char *name, *mime, *encoding; /* members that describe the file, or NULL */
};

/* Files in arguments and results of calls from a bus. */
struct config_attachments {
    bool given; /* the key is in the file */
    uint64_t threshold;
    const char *endpoint, *upload_field;
    struct config_strings outbound; /* arguments */
    struct config_strings inbound;  /* tools */
    bool capture;
    struct {
        struct config_capture *items;
        size_t n;
    } capture_fields;
};

/* What the server's program may do; the lists and limits are for SANDBOX_MAP. */
struct config_sandbox {
    enum config_cage level;
    struct config_strings read, write;      /* paths */
    struct config_strings network;          /* ports; "*" = everything; none = nothing */
    uint64_t memory, processes, cpu, files; /* 0 = no limit */
    bool warns;                             /* sandbox.missing is "warn"; copied to each server */
};

enum config_grant {
    GRANT_AUTHORIZATION_CODE,
    GRANT_CLIENT_CREDENTIALS,
    GRANT_DEVICE_CODE,
    GRANT_ID_JAG,
    GRANT_JWT_BEARER,
    GRANT_TOKEN_EXCHANGE,
};

/* How we obtain tokens for the server. */
struct config_auth {
    const char *profile; /* a secret that something else renews; if set, no other member is */
    enum config_grant grant;
    const char *issuer;
    const char *client_id, *client_secret, *client_metadata_url;
    const char *private_key;
    struct config_strings scopes;
    const char *assertion;
    const char *idp_token_endpoint, *idp_client_id, *idp_client_secret;
    const char *idp_issuer, *idp_subject_token;
    bool per_user;
};

/* Changes to one tool of a server. */
struct config_tool {
    const char *own; /* the tool's name at the server */
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
    const char *unset; /* the server is left out: these variables have no value; or NULL */
    const char *id;    /* the server's id on a bus; may be NULL */
    enum config_origin origin;

    const char *command; /* exactly one of command and url is given */
    struct config_strings args;
    struct config_pairs env;
    const char *env_file; /* more variables; those of env win */
    const char *cwd;
    enum config_scope scope;
    struct config_sandbox sandbox;

    const char *url;
    const char *socket; /* not in files: connect to this Unix socket instead of the url's host */
    enum config_transport transport;
    enum config_era era;
    struct config_pairs headers;
    const char *ca;
    struct config_auth auth;

    struct config_strings allow, deny, approve;
    enum approve_by approve_by;
    bool own_approve_by; /* the key is in the file */
    struct {
        struct config_tool *items;
        size_t n;
    } tools;

    bool resources_as_tools, prompts_as_tools;
    struct {
        struct config_prompt *items;
        size_t n;
    } prompts_as_context;
    struct config_strings resources_as_context;
    struct config_elicitation elicitation;
    struct config_attachments attachments;

    uint64_t timeout; /* ms, like all durations; 0 = none */
    bool own_timeout; /* the key is in the file */
    enum config_progress timeout_on_progress;
    uint64_t timeout_max; /* 0 = ten times the timeout */
    enum config_start start;
    uint64_t start_timeout, idle_stop, approve_timeout, ask_timeout;
    uint64_t ping; /* ms of silence before a ping; 0 = never */
    enum config_instances instances;
    uint64_t concurrency, queue, restarts;
};

/* Do both describe the same server, so that a reload may leave the server running? */
bool config_server_equal(const struct config_server *a, const struct config_server *b);

#endif
