/* Collects the answers to one JSON-RPC batch, and writes the array when the last holder releases
 * the batch. Called by hop.c, conductor.c and questions.c. */
#include "acp/batch.h"

#include "acp/hop.h"
#include "base/mem.h"

/* If the answers together are larger than this, they go out as several arrays: peers have limits on
 * the size of a message as well. */
enum { ARRAY_MAX = HOP_MAX_MESSAGE / 2 };

struct batch {
    struct hop *hop;
    struct buf answers; /* separated by commas */
    unsigned holders;
};

struct batch *batch_new(struct hop *hop)
{
    struct batch *b = MEM_NEW(struct batch);

    b->hop = hop;
    b->holders = 1;
    return b;
}

static void write_array(struct batch *b)
{
    if (b->answers.n && b->hop->stream) {
        struct buf *out = hop_begin(b->hop);
        buf_char(out, '[');
        buf_span(out, buf_view(&b->answers));
        buf_char(out, ']');
        hop_end(b->hop);
    }
    buf_reset(&b->answers, 0);
}

void batch_hold(struct batch *b)
{
    if (b)
        b->holders++;
}

void batch_release(struct batch *b)
{
    if (!b || --b->holders)
        return;
    write_array(b);
    buf_fini(&b->answers);
    mem_free(b);
}

struct buf *batch_begin(struct batch *b, struct hop *hop)
{
    if (!b)
        return hop_begin(hop);
    if (b->answers.n)
        buf_char(&b->answers, ',');
    return &b->answers;
}

void batch_end(struct batch *b, struct hop *hop)
{
    if (!b)
        hop_end(hop);
    else if (b->answers.n > ARRAY_MAX)
        write_array(b);
}
