/* lines: the same lines in whatever pieces the input comes (layout of the input: replay_fuzzed). */
#include "../tests/unit/wire/replay_lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    replay_fuzzed(replay_lines, data, size, 24); /* small, so that over-long lines are common */
    return 0;
}
