/* amqp: the same frames, methods and properties in whatever pieces the input comes (layout of the
 * input: replay_fuzzed). */
#include "../tests/unit/wire/replay_amqp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    replay_fuzzed(replay_amqp, data, size, 8192);
    return 0;
}
