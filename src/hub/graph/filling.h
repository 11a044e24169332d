/*
 * filling: how ${NAME} is replaced by values in the texts of one entry, and which values were
 * missing.
 *
 * Embedded in the plan of a server (server.c), whose arena the texts are in. Entries that agents
 * have registered have no secrets here: their texts stay as they are.
 */
#ifndef RIALTO_HUB_GRAPH_FILLING_H
#define RIALTO_HUB_GRAPH_FILLING_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/sha.h"
#include "config/config.h"
#include "config/secret.h"

struct filling {
    struct arena *arena;
    struct secrets *secrets;        /* NULL: nothing is filled in */
    const char *alias;              /* of the server, for the log */
    struct buf missing;             /* names without a value; server.c frees it */
    bool fills;                     /* there is a ${NAME} */
    unsigned char digest[SHA256_N]; /* of the values, to compare two plans */
};

/* NULL stays NULL. */
const char *filling_text(struct filling *f, const char *text);
/* The same, and an empty text is NULL. */
const char *filling_some(struct filling *f, const char *text);
/* NULL at the end. */
const char *const *filling_texts(struct filling *f, const struct config_strings *list);
const struct span *filling_spans(struct filling *f, const struct config_strings *list);
/* "NAME<separator>VALUE" texts, NULL at the end, with room for one more. With `omits`, pairs
 * whose variable has no value are left out. */
const char **filling_pairs(struct filling *f, const struct config_pairs *pairs,
                           const char *separator, bool omits);
/* Fills in all strings of this JSON; the values are escaped. */
const char *filling_json(struct filling *f, const char *json);
/* Add a value from elsewhere to the digest: plans that differ in it are not the same. */
void filling_note(struct filling *f, struct span text);
/* Append the names without a value that `out` does not have yet: "A, B". */
void filling_put_missing(const struct filling *f, struct buf *out);

#endif
