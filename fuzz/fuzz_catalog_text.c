/* catalog_text: a catalog that was read can be written and read again as the same catalog. */
#include "mcp/server/catalog_text.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct catalog *c = catalog_text_read(span_of((const char *)data, size));
    struct buf once = {0}, twice = {0};

    if (!c)
        return 0;
    catalog_text_put(&once, c);
    struct catalog *back = catalog_text_read(buf_view(&once));
    if (!back)
        abort();
    catalog_text_put(&twice, back);
    if (!span_eq(buf_view(&once), buf_view(&twice)))
        abort();
    catalog_free(c);
    catalog_free(back);
    buf_fini(&once);
    buf_fini(&twice);
    return 0;
}
