/*
 * keyset: the public keys of one token issuer (a JWKS, RFC 7517), from a file or a URL.
 *
 * Fetched without waiting: a caller that needs a key which is not here yet gets KEYSET_WAIT, and
 * `changed` is called when the answer has come, whatever it is. A set from a URL is fetched again
 * when it is not fresh any more, and when a token names a key that is not in it, once a minute at
 * most. While that fails, the old keys hold for a day. A set from a file is read again when the
 * file changes. A key that is not in a new set any more is gone at once: the owner of the keyset
 * asks for its keys (keyset_has) when `changed` is called.
 */
#ifndef RIALTO_HUB_AUTH_KEYSET_H
#define RIALTO_HUB_AUTH_KEYSET_H

#include "io/http_client.h"
#include "io/jws.h"

struct keyset;

enum keyset_answer {
    KEYSET_FOUND,
    KEYSET_UNKNOWN, /* there are keys, but none that fits */
    KEYSET_WAIT,    /* being fetched */
    KEYSET_DOWN,    /* there are no keys, and none can be fetched now */
};

/* `source` is a URL (http or https) or the path of a file. */
struct keyset *keyset_new(struct loop *l, struct http_client *client, const char *source,
                          void (*changed)(void *arg), void *arg);
void keyset_free(struct keyset *s);

/*
 * The key with this id that may check signatures by this algorithm; without an id (p == NULL) the
 * only one that may. `*mark` identifies the key, for keyset_has.
 */
enum keyset_answer keyset_find(struct keyset *s, struct span kid, const struct jws_alg *alg,
                               struct span alg_name, const struct jws_key **key, uint64_t *mark);
/* Is the key of this mark in the set? */
bool keyset_has(const struct keyset *s, uint64_t mark);

/* Reads the keys of a JWKS; for tests and the fuzzer. The number of usable keys, or negative. */
int keyset_read(struct keyset *s, struct span json, struct err *err);

#endif
