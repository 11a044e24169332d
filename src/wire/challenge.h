/*
 * challenge: what a server demands in WWW-Authenticate (RFC 9110, 6750 and 9728).
 *
 * A header may hold several challenges of several schemes. Only the first one of the scheme Bearer
 * counts here.
 */
#ifndef RIALTO_WIRE_CHALLENGE_H
#define RIALTO_WIRE_CHALLENGE_H

#include "base/buf.h"

enum { CHALLENGE_MAX = 8 * 1024 }; /* longer headers are not looked at */

/* Of a Bearer challenge; p == NULL for what is absent. */
struct challenge {
    struct span error, scope, resource_metadata;
};

/*
 * Reads the value of the header; join several headers with commas. The texts are unescaped into
 * `scratch` and valid until it changes. False, with `out` empty, when there is no valid Bearer
 * challenge (one with a parameter that occurs twice is not valid).
 */
bool challenge_read(struct span value, struct challenge *out, struct buf *scratch);

#endif
