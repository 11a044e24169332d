/* Random bytes from the kernel, and random numbers, tokens and UUIDs made of them. Called by
 * browser/, bus/, hub/, mcp/, rockbot/, cmd/ and others, and by map.c for the hash key. */
#include "base/id.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

void id_random_bytes(void *p, size_t n)
{
    unsigned char *at = p;

    while (n) {
        ssize_t got = getrandom(at, n, 0);
        if (got < 0) {
            if (errno == EINTR)
                continue;
            perror("rialto: getrandom");
            abort();
        }
        at += got;
        n -= (size_t)got;
    }
}

uint64_t id_random_u64(void)
{
    uint64_t v;
    id_random_bytes(&v, sizeof v);
    return v;
}

void id_token(char out[ID_TOKEN_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char raw[16];

    id_random_bytes(raw, sizeof raw);
    for (size_t i = 0; i < sizeof raw; i++) {
        out[2 * i] = digits[raw[i] >> 4];
        out[2 * i + 1] = digits[raw[i] & 15];
    }
    out[ID_TOKEN_SIZE - 1] = '\0';
}

void id_uuid(char out[ID_UUID_SIZE])
{
    unsigned char b[16];

    id_random_bytes(b, sizeof b);
    b[6] = (unsigned char)((b[6] & 0x0f) | 0x40); /* version 4 */
    b[8] = (unsigned char)((b[8] & 0x3f) | 0x80); /* RFC 4122 variant */
    snprintf(out, ID_UUID_SIZE,
             "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
             b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
             b[15]);
}
