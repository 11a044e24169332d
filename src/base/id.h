/*
 * id: randomness and the unguessable names made of it (sessions, streams, tokens).
 */
#ifndef RIALTO_BASE_ID_H
#define RIALTO_BASE_ID_H

#include <stddef.h>
#include <stdint.h>

enum { ID_TOKEN_SIZE = 33 /* 128 bits as 32 hex digits, and the NUL */, ID_UUID_SIZE = 37 };

/* From the kernel; ends the program if the kernel gives none. */
void id_random_bytes(void *p, size_t n);
uint64_t id_random_u64(void);

void id_token(char out[ID_TOKEN_SIZE]);
void id_uuid(char out[ID_UUID_SIZE]);

#endif
