/* sse: the same events in whatever pieces the input comes. */
#include "../tests/unit/wire/replay_sse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    replay_fuzzed(replay_sse, data, size, 64);
    return 0;
}
