/*
 * sandbox: the rules of a server's cage (io/cage.h), made from its entry in the configuration.
 */
#ifndef RIALTO_HUB_GRAPH_SANDBOX_H
#define RIALTO_HUB_GRAPH_SANDBOX_H

#include "base/arena.h"
#include "config/config.h"
#include "io/cage.h"

/* Where things are on this machine. */
struct sandbox_places {
    const char *server;    /* the server's name */
    const char *home;      /* of the user; NULL when there is none */
    const char *own;       /* the server's own folder */
    const char *installed; /* what was installed for the server, to read and run; or NULL */
};

/*
 * Pure. `read` and `write` are those of the entry, with variables filled in; ~ is filled in here.
 * All texts are copied to the arena. NULL when the entry's sandbox is off.
 */
const struct cage_rules *sandbox_rules(struct arena *a, const struct config_sandbox *s,
                                       const char *const *read, const char *const *write,
                                       const struct sandbox_places *places);
/* The same rules for the step that installs the server: with the network, and with `installed`
 * writable. */
const struct cage_rules *sandbox_rules_to_install(struct arena *a, const struct cage_rules *rules,
                                                  const char *installed);
/* The word for a level: "off", "light", "strict" or "map". */
const char *sandbox_word(enum config_cage level);

#endif
