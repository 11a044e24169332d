/*
 * pairing: how a person proves to be the owner of this Rialto when an agent is to be let in: by the
 * password of the configuration (auth.password), or by a code that 'rialto pair' has printed, which
 * is valid once and for ten minutes.
 *
 * After five wrong tries in a row, only one try in half a minute is accepted, from anybody.
 */
#ifndef RIALTO_HUB_AUTH_PAIRING_H
#define RIALTO_HUB_AUTH_PAIRING_H

#include "base/buf.h"
#include "io/loop.h"

struct pairing;

enum { PAIRING_CODE_SIZE = 10 }; /* "K7QD-M2XF" and the NUL */

struct pairing *pairing_new(struct loop *l);
void pairing_free(struct pairing *p);
/* `kept` is auth.password, or NULL. */
void pairing_set_password(struct pairing *p, const char *kept);
bool pairing_has_password(const struct pairing *p);
/* A new code; the code before it is no longer valid. */
void pairing_put_code(struct pairing *p, char out[PAIRING_CODE_SIZE]);

enum pairing_answer {
    PAIRING_RIGHT,
    PAIRING_WRONG,
    PAIRING_CHECKING, /* `done` will be called, unless pairing_forget is called first */
    PAIRING_TOO_SOON, /* too many wrong tries, or another try is being checked */
};
enum pairing_answer pairing_try(struct pairing *p, struct span typed,
                                void (*done)(void *owner, bool right), void *owner);
void pairing_forget(struct pairing *p, const void *owner);

#endif
