/* amqp: the same frames, methods and properties whatever the cuts (layout: replay_fuzzed). */
#include "../tests/unit/wire/replay_amqp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    replay_fuzzed(replay_amqp, data, size, 8192);
    return 0;
}
