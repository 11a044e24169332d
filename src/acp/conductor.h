/*
 * conductor: a chain client -> proxy 0 .. proxy n-1 -> agent, relayed by one process.
 *
 * The conductor speaks ACP on a stream of its own (to the client, or to the conductor around this
 * one), starts the components with the first initialize, and from then on passes messages between
 * neighbours: raw, in order, ids remapped on each hop. MCP servers that components declare with ACP
 * as transport are given to the agent as ordinary servers (port.h). Agents that connect to such a
 * server are handed to the `host`, which makes the server a provider on the core: a family knows no
 * other family.
 */
#ifndef RIALTO_ACP_CONDUCTOR_H
#define RIALTO_ACP_CONDUCTOR_H

#include "acp/channel.h"
#include "acp/command_line.h"
#include "acp/trace.h"
#include "io/stream.h"

enum conductor_mode { CONDUCT_AGENT, CONDUCT_PROXY };
enum bridge_mode { BRIDGE_AUTO, BRIDGE_STDIO, BRIDGE_HTTP };

struct conductor;
struct acp_server;

/* How an agent is told to reach a server over HTTP. */
struct acp_http_place {
    char url[96];
    char token[40];
};

/* The functions that the conductor needs from the layer above. */
struct acp_host {
    void *arg;
    /* An MCP client of the agent has connected to this server's port and has sent `early` so far.
     * The host owns the stream from now on, and must start and resume reading. */
    void (*accept)(void *arg, struct acp_server *server, struct stream *stream, struct span early);
    /* Offer this server over HTTP; false when that is not possible. `*handle` is the host's. */
    bool (*http_open)(void *arg, struct acp_server *server, struct acp_http_place *place,
                      void **handle);
    void (*http_close)(void *arg, void *handle);
    /* The name of a server of the host's own that every session gets; NULL: none. */
    const char *extra_name;
    /* As accept and http_open, for clients of the host's own server. */
    void (*extra_accept)(void *arg, struct stream *stream, struct span early);
    bool (*extra_http)(void *arg, struct acp_http_place *place);
    /* Everything is closed; free the conductor in a later turn of the loop. */
    void (*ended)(void *arg, int status);
};

struct conductor_options {
    enum conductor_mode mode;
    const char *name;                /* for the log */
    struct command_line *components; /* borrowed, must outlive the conductor */
    size_t n_components;
    enum proxy_dialect dialect; /* for components without one of their own; P_UNKNOWN = find out */
    size_t max_batch;           /* messages in a batch */
    uint64_t start_timeout;     /* ms that a component has to answer initialize; 0 = no limit */
    uint64_t stall_timeout;     /* ms that a hop may hold up others without reading; 0 = no limit */
    bool strict;                /* an agent conductor refuses to be made a proxy */
    enum bridge_mode bridge;
    bool open_port;          /* the ports of bridged servers ask for no secret */
    const char *const *shim; /* argv before the port: {"/usr/bin/conductor", "mcp", NULL} */
    struct acp_trace *trace; /* NULL = none */
};

struct conductor *conductor_new(struct loop *loop, const struct conductor_options *options,
                                const struct acp_host *host, struct stream *upstream);
/* Stop everything; `ended` follows from the loop. May be called twice. */
void conductor_end(struct conductor *c, int status);
void conductor_free(struct conductor *c);

#endif
