/*
 * hub_rig: a bridge on a real loop, with its own folder for the configuration file and for the
 * remembered catalogs, and test callers.
 *
 * The servers are real processes: FAKE in a configuration stands for the program of tests/fake.
 * A test that is only about lists lets the rig remember them instead (rig_remember): a lazy server
 * with a remembered catalog is listed without being started.
 */
#ifndef RIALTO_TESTS_HUB_RIG_H
#define RIALTO_TESTS_HUB_RIG_H

#include "../io/io_test.h"
#include "../unit.h"

#include "hub/graph/bridge.h"

struct hub_rig {
    struct loop *loop;
    char folder[32];
    char *file;            /* the configuration */
    struct config *config; /* of the start; a test may set it before rig_build */
    struct bridge *bridge;
    struct bridge_watch watch;
    int n_changes; /* calls of the watch */
    bool stopped;
    struct buf log;  /* warnings and errors, "WHO: TEXT" a line */
    struct buf text; /* what rig_names returned last */
};

/* Makes the loop, the folder and the configuration file, and reads the file; no bridge yet. */
void rig_prepare(struct hub_rig *r, const char *yaml);
/* Makes the bridge of r->config without starting it. */
void rig_build(struct hub_rig *r);
/* Prepares, builds and starts the bridge, and waits until every server that should run is ready. */
void rig_set_up(struct hub_rig *r, const char *yaml);
/* Stops the bridge, with a deadline; none of its processes may be left. */
void rig_stop(struct hub_rig *r);
/* Stops the bridge, if the test has not, and frees all; no call and no timer may be left. */
void rig_tear_down(struct hub_rig *r);
/* The part of rig_tear_down for tests that have freed the bridge themselves. */
void rig_clean(struct hub_rig *r);

/* Replaces the contents of the file. */
void rig_write(struct hub_rig *r, const char *yaml);
/* Reads this configuration, which must have no problems; the caller frees it. */
struct config *rig_load(struct hub_rig *r, const char *yaml);
/* Applies a configuration; `expected` is the result, as in "kept a, b; added c". */
void rig_apply(struct hub_rig *r, const char *yaml, const char *expected);
/* Remembers a catalog, in the words of catalog_of_words, as if this server had run with this
 * configuration. */
void rig_remember(struct hub_rig *r, const struct config *c, const char *alias, const char *words);

/* --- what is there --- */
/* The server with this alias, which must exist. */
struct provider *rig_server(struct hub_rig *r, const char *alias);
bool rig_has_server(struct hub_rig *r, const char *alias);
/* The provider's process; 0 if it has none. */
int rig_pid(const struct provider *p);
bool rig_is_running(int pid);
/* How many children this process has. */
int rig_children(void);
/* The names of this kind in the view, separated by blanks; valid until the next call. */
const char *rig_names(struct hub_rig *r, struct view *v, enum item_kind kind);
bool rig_heard(const struct hub_rig *r, const char *text);

/* "read p:greet r:file:///a t:file:///{x}": tools, prompts, resources and templates. */
struct catalog *catalog_of_words(const char *words);

/* --- a caller --- */

struct rig_agent {
    struct peer peer;
    struct mcp_host host;
    struct view *view; /* the host's, or the caller's own */
    void *lease;       /* may be NULL */
    struct router *router;
    size_t n_done;
    struct buf said; /* a line for each list that changed and each call that ended */
};

/* Enters as a session does, with a standing call for changes. */
void rig_agent_enter(struct rig_agent *c, const struct mcp_host *host);
/* Ends the caller's calls and its own instances. */
void rig_agent_leave(struct rig_agent *c);
/* `arguments` NULL: none. */
struct call *rig_agent_call(struct rig_agent *c, const char *tool, const char *arguments);
/* The same, and runs the loop until the call has ended; returns how it ended. */
const char *rig_agent_ask(struct rig_agent *c, struct hub_rig *r, const char *tool,
                          const char *arguments);
bool rig_agent_heard(const struct rig_agent *c, const char *text);

#endif
