/* sse: the same events whatever the cuts, and what the encoder writes is read back as it was. */
#include "../tests/unit/wire/replay_sse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The data with each kind of line end turned into LF, as it must come back. */
static void plain_lines(struct buf *out, struct span data)
{
    for (size_t i = 0; i < data.n; i++) {
        bool crlf = data.p[i] == '\r' && i + 1 < data.n && data.p[i + 1] == '\n';
        if (!crlf)
            buf_char(out, data.p[i] == '\r' ? '\n' : data.p[i]);
    }
}

static void expect_event(void *expected, const struct sse_event *event)
{
    struct buf *left = expected;
    if (!event->has_data || !span_eq(event->data, buf_view(left)) || !span_is(event->name, "n") ||
        !span_is(event->id, "7"))
        abort();
    buf_fini(left);
    buf_str(left, "seen");
}

static void round_trip(struct span data)
{
    struct buf text = {0}, expected = {0};
    struct sse_decoder d;

    plain_lines(&expected, data);
    sse_put_event(&text, SPAN("n\ndata: x"), SPAN("7\rid: 8"), data);
    sse_decoder_init(&d, SIZE_MAX / 2);
    if (sse_feed(&d, buf_view(&text), expect_event, &expected) != 0 ||
        !span_is(buf_view(&expected), "seen"))
        abort();
    sse_decoder_fini(&d);
    buf_fini(&text);
    buf_fini(&expected);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    replay_fuzzed(replay_sse, data, size, 64);
    round_trip(span_of((const char *)data, size));
    return 0;
}
