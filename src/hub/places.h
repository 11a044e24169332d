/*
 * places: where files of ours are kept, by the rules of the XDG base directories.
 *
 * Nouns: place_.
 */
#ifndef RIALTO_HUB_PLACES_H
#define RIALTO_HUB_PLACES_H

enum home {
    PLACE_STATE, /* what must not be lost: grants, tokens */
    PLACE_CACHE, /* what can be found out again */
};

/* .../rialto/NAME, with its folders created (0700); NULL when there is no home. The caller frees
 * it. */
char *place_path(enum home home, const char *name);
/* The same without creating folders. */
char *place_name(enum home home, const char *name);

#endif
