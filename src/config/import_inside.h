/*
 * import_inside: declarations that the files of import share. import.c knows the dialects and the
 * members of a server, import_guards.c RockBot's members that restrict a server, import_manifest.c
 * manifests, import_shapes.c members of other shapes, import_hosts.c documents of host programs,
 * import_variables.c the ${...} in texts.
 */
#ifndef RIALTO_CONFIG_IMPORT_INSIDE_H
#define RIALTO_CONFIG_IMPORT_INSIDE_H

#include "config/import.h"

struct importing {
    struct arena *arena;
    struct problems *problems;
    const char *servers; /* key of the map of servers */
    struct value *rules; /* what the guards of servers became; NULL when there are none */
    const struct host_program *host; /* whose file it is; NULL when that is not known */
    bool manifest; /* a manifest: has members of its own, and must name every transport */
    bool thorough;
};

/* Adds a problem about a member of a server, or with NULL about the server. */
void import_say(struct importing *im, enum problem_level level, const struct value *server,
                const struct value *member, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

/* Turn the keys of a server's entry into ours. False when the entry is to be left out. */
bool import_server(struct importing *im, struct value *server);
/* A member of a server's entry that means our key `ours` and is not empty; NULL when there is none.
 */
const struct value *import_member(const struct importing *im, const struct value *server,
                                  const char *ours);
/* Adds `v` to `map` under our key `ours`. */
void import_add(struct value *map, const char *ours, struct value *v);
/* Is the value empty? Some programs write every key that they know, used or not. */
bool import_is_empty(const struct value *v);

/* Rewrite the members of a server that other programs write in other shapes than ours. */
void import_shapes(struct importing *im, struct value *server);
/* The servers of a host's document, with im->host set; NULL when it is no host's document. */
struct value *import_host_servers(struct importing *im, struct value *root,
                                  const struct import_hints *hints);
/* Turn that document into one of ours. */
void import_host(struct importing *im, struct value *root, struct value *servers);

/* Turn a member that restricts a server into our keys. Returns NULL, or what is not understood:
 * then the server must not run. */
typedef const char *import_bound_fn(struct importing *im, struct value *server, struct value *v);
import_bound_fn import_guards, import_elicitation, import_auth, import_attachments;
/* Put the rules of the guards into the document, before the rules that it has. */
void import_guards_end(struct importing *im, struct value *root);

/* Rewrite the variables of editors in all texts of a server. */
void import_variables(struct importing *im, struct value *server);
/* Does a text in the tree have a variable that only VS Code knows? */
bool import_has_variables(const struct value *v);

/* Turn the keys of a whole manifest into ours; `config` is its member of that name. */
void import_manifest(struct importing *im, struct value *root, struct value *config);

#endif
