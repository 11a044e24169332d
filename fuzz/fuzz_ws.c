/* ws: the same frames in whatever pieces the input comes, in both roles; a frame that we write is
 * read back unchanged. */
#include "../tests/unit/wire/replay_ws.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void round_trip(struct span payload, enum ws_role from, enum ws_role to)
{
    struct buf frame = {0}, log = {0}, expected = {0};
    struct cuts whole = {0};

    ws_frame_put(&frame, from, WS_BINARY, payload);
    replay_put(&expected, "binary", payload);
    replay_ws(&log, buf_view(&frame), whole, payload.n, to);
    if (!span_eq(buf_view(&log), buf_view(&expected)))
        abort();
    buf_fini(&frame);
    buf_fini(&log);
    buf_fini(&expected);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span payload = span_of((const char *)data, size);

    replay_fuzzed(replay_ws_server, data, size, 200);
    replay_fuzzed(replay_ws_client, data, size, 200);
    round_trip(payload, WS_SERVER, WS_CLIENT);
    round_trip(payload, WS_CLIENT, WS_SERVER);
    return 0;
}
