/*
 * surface: what a server shows to agents on the bus: names, counts, fingerprints.
 *
 * Read from the server's own view, where filters and overrides are applied already.
 */
#ifndef RIALTO_ROCKBOT_SURFACE_H
#define RIALTO_ROCKBOT_SURFACE_H

#include "rockbot/fingerprint.h"
#include "rockbot/host.h"

struct surface {
    struct buf tools, prompts, resources; /* JSON arrays of names */
    struct buf tool_prints;               /* JSON object: name -> fingerprint */
    struct buf first_tools;               /* the first ten names, for people */
    size_t n_tools, n_prompts, n_resources;
    char fingerprint[FINGERPRINT_SIZE]; /* of all lists together */
};

void surface_read(struct surface *s, struct view *v);
void surface_fini(struct surface *s);

/* Append an entry of McpServersIndexed; `prints` false leaves out the tools' fingerprints. */
void surface_put_server(struct buf *out, const struct surface *s, const char *alias,
                        const struct bus_server_facts *facts, bool prints);
/* Append one tool, as in McpToolsAvailable and in a server's details. */
void surface_put_tool(struct buf *out, const struct target *tool);
/* Append JSON arrays: prompts with their arguments; resources or templates. */
void surface_put_prompts(struct buf *out, struct view *v);
void surface_put_resources(struct buf *out, struct view *v, enum item_kind kind);

#endif
