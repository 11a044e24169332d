/*
 * hub_rig: a bridge on a real loop, with a folder of its own for its configuration file and for
 * what it remembers, and the callers that the tests play.
 *
 * Its servers are real processes: FAKE in a configuration stands for the program of tests/fake.
 * Where a test is about lists only it lets the rig remember them instead (rig_remember): a lazy
 * server that is known is shown, and none is started.
 */
#ifndef RIALTO_TESTS_HUB_RIG_H
#define RIALTO_TESTS_HUB_RIG_H

#include "../io/io_test.h"
#include "../unit.h"

#include "hub/bridge.h"

struct hub_rig {
    struct loop *loop;
    char folder[32];
    char *file;            /* the configuration */
    struct config *config; /* of the start; a test may set it before rig_build */
    struct bridge *bridge;
    struct bridge_watch watch;
    int n_changes; /* times the watch was told */
    bool stopped;
    struct buf log;  /* warnings and errors, "WHO: TEXT" a line */
    struct buf text; /* what rig_names returned last */
};

/* The loop, the folder and the file with this configuration, read; no bridge yet. */
void rig_prepare(struct hub_rig *r, const char *yaml);
/* The bridge of r->config, not started. */
void rig_build(struct hub_rig *r);
/* All of it, started, and every server that is to run is ready. */
void rig_set_up(struct hub_rig *r, const char *yaml);
/* Stops the bridge, which has a deadline; no process of it may be left. */
void rig_stop(struct hub_rig *r);
/* Also stops it, if the test has not; no call and no timer may be left. */
void rig_tear_down(struct hub_rig *r);
/* What is left to do for one who has made and freed the bridge without the rig. */
void rig_clean(struct hub_rig *r);

/* What the file reads from now on. */
void rig_write(struct hub_rig *r, const char *yaml);
/* This configuration, which must be fine; the caller frees it. */
struct config *rig_load(struct hub_rig *r, const char *yaml);
/* What came of it, as in "kept a, b; added c". */
void rig_apply(struct hub_rig *r, const char *yaml, const char *expected);
/* The server of this configuration is known to have offered this when it last ran, in the words of
 * catalog_of_words. */
void rig_remember(struct hub_rig *r, const struct config *c, const char *alias, const char *words);

/* --- looking --- */
/* The server of this name, which must be there. */
struct provider *rig_server(struct hub_rig *r, const char *alias);
bool rig_has_server(struct hub_rig *r, const char *alias);
/* Its process; 0 when it has none. */
int rig_pid(const struct provider *p);
bool rig_is_running(int pid);
/* How many children this process has. */
int rig_children(void);
/* What the view lists of this kind, parted by blanks; valid until the next time. */
const char *rig_names(struct hub_rig *r, struct view *v, enum item_kind kind);
bool rig_heard(const struct hub_rig *r, const char *text);

/* "read p:greet r:file:///a t:file:///{x}": tools, prompts, resources and templates. */
struct catalog *catalog_of_words(const char *words);

/* --- one who calls --- */

struct rig_agent {
    struct peer peer;
    struct mcp_host host;
    struct view *view; /* the host's, or one of its own */
    void *lease;       /* NULL: it has none */
    struct router *router;
    size_t n_done;
    struct buf said; /* a line for each list that changed and each call that ended */
};

/* Enters as a session does, and looks at what changes. */
void rig_agent_enter(struct rig_agent *c, const struct mcp_host *host);
/* Its calls end, and its own instances with it. */
void rig_agent_leave(struct rig_agent *c);
/* `arguments` NULL: none. */
struct call *rig_agent_call(struct rig_agent *c, const char *tool, const char *arguments);
/* The same, and the loop until it has ended; how it ended. */
const char *rig_agent_ask(struct rig_agent *c, struct hub_rig *r, const char *tool,
                          const char *arguments);
bool rig_agent_heard(const struct rig_agent *c, const char *text);

#endif
