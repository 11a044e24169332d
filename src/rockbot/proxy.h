/*
 * proxy: the agent's side of the bus. Servers of bridges elsewhere become providers here.
 *
 * The proxy joins as an agent, asks for announcements whenever the bus comes up, and learns servers
 * from the bridges' announcements; each becomes a provider that the host admits. A call becomes a
 * ToolInvokeRequest with a time limit for the bridge, and the proxy waits a little longer.
 *
 * Two proxies may join under one agent's name: each has reply topics and groups of its own, so
 * neither gets the other's replies. All callbacks come from the loop.
 *
 * Nouns: bus_proxy_, remote_. Files: remote, remote_request, remote_calls, remote_words.
 */
#ifndef RIALTO_ROCKBOT_PROXY_H
#define RIALTO_ROCKBOT_PROXY_H

#include "bus/bus.h"
#include "rockbot/host.h"

struct bus_proxy;

struct bus_proxy_options {
    const char *agent;  /* the name to join under */
    uint64_t timeout;   /* ms that a bridge may take for a call; 0 = 60 s */
    uint64_t margin;    /* ms that we wait longer than that; 0 = 5 s */
    uint64_t patience;  /* ms the bus may be away before its servers count as down; 0 = 30 s */
    bool plain_names;   /* reply topics and groups exactly as in RockBot; one proxy only */
    bool beside_worker; /* a worker of this process serves the same agent: its announced
                           servers are our own and do not become providers */
};

/* `host` and the texts of `options` must outlive the proxy, and so must the bus. */
struct bus_proxy *bus_proxy_new(struct loop *loop, struct bus *bus, const struct bus_host *host,
                                const struct bus_proxy_options *options);
/* The owner of the bus calls these when the bus goes up or down. */
void bus_proxy_up(struct bus_proxy *x);
void bus_proxy_down(struct bus_proxy *x, const char *why);
/* Servers of our own were added: a remote server with the same name gets another name, or, beside a
 * worker, is dropped. */
void bus_proxy_look(struct bus_proxy *x);
/*
 * Open calls end, and the providers are DOWN and out of the router on return, so that the bridge
 * may be stopped right after. `done` is called from the loop; the proxy is freed when it returns.
 */
void bus_proxy_stop(struct bus_proxy *x, void (*done)(void *arg), void *arg);

/* Servers known now, for status. */
size_t bus_proxy_servers(const struct bus_proxy *x);
struct bus_proxy_server {
    const char *alias;
    const char *worker; /* who announced the server, as it calls itself */
    size_t tools;
    uint64_t heard_at; /* when it was announced last, on the loop's clock */
};
/* In no particular order: start with *at = 0; false at the end. */
bool bus_proxy_next(const struct bus_proxy *x, size_t *at, struct bus_proxy_server *out);

#endif
