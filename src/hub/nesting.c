/* Which configuration files the Rialtos above this process use, by device and inode. Called by
 * server.c when it makes the plan of a server that is a program, and by cmd/stdio.c. */
#include "hub/nesting.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>

#define VARIABLE "RIALTO_INSIDE"

/* Device and inode: the same for every path that leads to the file. */
static bool put_place(struct buf *out, const char *file)
{
    struct stat st;

    if (!file || stat(file, &st) < 0)
        return false;
    buf_printf(out, "%jx.%jx", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
    return true;
}

bool nesting_has(const char *file)
{
    struct span above = span_str(getenv(VARIABLE));
    struct buf own = {0};
    bool has = false;

    if (above.n && put_place(&own, file)) {
        for (size_t n; above.n && !has; above = span_from(above, n + 1)) {
            n = span_find(above, ',');
            has = span_eq(span_cut(above, 0, n), buf_view(&own));
        }
    }
    buf_fini(&own);
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
