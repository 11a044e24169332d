/*
 * lock: the tools that a person approved, as listed in mcp.lock beside the configuration.
 *
 * Where that file exists, each tool that a server lists is compared with it (lock_admits, the judge
 * of every provider of the bridge). A tool that is new or has changed is withheld, waits for an
 * operator, or is only logged, as `lock.on_change` says. The bridge owns the lock; admin/ shows
 * what is held and decides; `rialto lock` creates a lock that records all tools, and writes it.
 */
#ifndef RIALTO_HUB_GRAPH_LOCK_H
#define RIALTO_HUB_GRAPH_LOCK_H

#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "config/config.h"
#include "mcp/server/tool_text.h"

struct lock;

/* A tool that is not the approved one. */
struct lock_held {
    struct list node;
    uint64_t id;
    char *server, *tool;
    char digest[TOOL_TEXT_DIGEST];
    char *text; /* as the server lists it now; tool_text.h */
    bool known; /* another version of the tool was approved */
    bool refused;
};

/* Reads the file; if it exists but cannot be read, the log says so, and no tool is let in. */
struct lock *lock_new(const struct config *c);
void lock_free(struct lock *l);
/* The path of mcp.lock beside this file; the caller frees it. */
char *lock_path(const char *config_file);
/* Read the file again, or for the first time. If it cannot be read, what was read before holds; if
 * nothing was read before, no tool is let in. */
void lock_read(struct lock *l, const struct config *c);
/* Is there a file, or is this a recording lock? */
bool lock_in_force(const struct lock *l);
bool lock_is_readable(const struct lock *l);
/* The judge of providers; `lock` is the struct lock. */
bool lock_admits(void *lock, const char *server, struct span name, struct span tool);

/* --- for operators --- */
/* The held tool after `h`, in the order in which they were found; `h` NULL: the first. */
const struct lock_held *lock_next(const struct lock *l, const struct lock_held *h);
/* Are held tools withheld from agents, or only logged? */
bool lock_withholds(const struct lock *l);
/* Does the tool wait for an operator's decision? */
bool lock_is_waiting(const struct lock *l, const struct lock_held *h);
/* Append the lines in which the tool differs from the approved one. */
void lock_put_difference(struct buf *out, const struct lock *l, const struct lock_held *h);
/*
 * Approve the tool exactly as shown, and write it into the file; or withhold it until it changes.
 * 0, -ENOENT when nothing of this id waits, or another code with the reason in `err`. The caller
 * then asks the server for its list again. `by`: for the log.
 */
int lock_decide(struct lock *l, uint64_t id, bool approved, const char *by, struct err *err);

/* --- for `rialto lock` --- */
/* Write all recorded tools as the file. */
MUST_CHECK int lock_write(struct lock *recorded, struct err *err);
size_t lock_count(const struct lock *l);
/* Append a line for each tool of `recorded` that is new or changed, and for each that is gone. */
void lock_put_comparison(struct buf *out, const struct lock *recorded, const struct lock *approved);

#endif
