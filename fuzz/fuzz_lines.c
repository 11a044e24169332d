/* lines: the same lines whatever the cuts (how the input is laid out: replay_fuzzed). */
#include "../tests/unit/wire/replay_lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    replay_fuzzed(replay_lines, data, size, 24); /* small, so that over-long lines are common */
    return 0;
}
