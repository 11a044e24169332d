/* challenge: never reads too far, and the values found are no longer than the header. */
#include "wire/challenge.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf scratch = {0};
    struct challenge c;

    bool found = challenge_read(span_of((const char *)data, size), &c, &scratch);
    if (c.error.n + c.scope.n + c.resource_metadata.n > size)
        abort();
    if (!found && (c.error.p || c.scope.p || c.resource_metadata.p))
        abort();
    buf_fini(&scratch);
    return 0;
}
