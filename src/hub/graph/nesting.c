/* Which configuration files the Rialtos above this process use, by their real paths. Called by
 * server.c when it makes the plan of a server that is a program, and by cmd/stdio.c. */
#include "hub/graph/nesting.h"

#include "base/sha.h"

#include <stdlib.h>

#define VARIABLE "RIALTO_INSIDE"
enum { PLACE_N = 8 };

/* A short digest of the file's real path. It stays the same when an editor saves by replacing the
 * file. */
static bool put_place(struct buf *out, const char *file)
{
    char *real = file ? realpath(file, NULL) : NULL;
    unsigned char digest[SHA256_N];

    if (!real)
        return false;
    sha_256(digest, span_str(real));
    for (size_t i = 0; i < PLACE_N; i++)
        buf_printf(out, "%02x", digest[i]);
    free(real);
    return true;
}

bool nesting_has(const char *file)
{
    struct span above = span_str(getenv(VARIABLE));
    BUF_SCOPED own = {0};
    bool has = false;

    if (above.n && put_place(&own, file)) {
        for (size_t n; above.n && !has; above = span_from(above, n + 1)) {
            n = span_find(above, ',');
            has = span_eq(span_cut(above, 0, n), buf_view(&own));
        }
    }
    return has;
}

bool nesting_is_inside(void)
{
    return span_str(getenv(VARIABLE)).n > 0;
}

void nesting_put(struct buf *out, const char *file)
{
    const char *above = getenv(VARIABLE);

    buf_str(out, VARIABLE "=");
    buf_str(out, above ? above : "");
    if (above && *above)
        buf_char(out, ',');
    put_place(out, file);
}
