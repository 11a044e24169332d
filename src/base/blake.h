/*
 * blake: the digest BLAKE2b (RFC 7693), for the chain of the audit trail.
 *
 * On 64-bit machines it takes a third of the instructions of SHA-256, and every recorded call needs
 * a digest (docs/decisions/017-audit.md). b2sum prints the same digest.
 */
#ifndef RIALTO_BASE_BLAKE_H
#define RIALTO_BASE_BLAKE_H

#include "base/span.h"

enum { BLAKE_2B_N = 64 };

void blake_2b(unsigned char out[BLAKE_2B_N], struct span text);

#endif
