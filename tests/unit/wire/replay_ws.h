/* What comes out of the WebSocket decoder, as text: see replay.h. */
#ifndef RIALTO_TESTS_REPLAY_WS_H
#define RIALTO_TESTS_REPLAY_WS_H

#include "replay.h"
#include "wire/ws.h"

static inline void replay_frame(void *log, enum ws_opcode op, struct span payload)
{
    static const char *const names[] = {
        [WS_TEXT] = "text", [WS_BINARY] = "binary", [WS_CLOSE] = "close",
        [WS_PING] = "ping", [WS_PONG] = "pong",
    };
    replay_put(log, names[op], payload);
}

static inline void replay_ws(struct buf *log, struct span in, struct cuts cuts, size_t cap,
                             enum ws_role role)
{
    struct ws_decoder d;
    int rc = 0;

    ws_decoder_init(&d, role, cap);
    while (in.n && !rc) {
        char *memory;
        struct span piece = cuts_next(&cuts, &in, &memory);
        rc = ws_decoder_feed(&d, piece, replay_frame, log);
        mem_free(memory);
    }
    if (rc)
        buf_printf(log, "%s, close with %u\n", err_name(rc), d.close_code);
    ws_decoder_fini(&d);
}

static inline void replay_ws_server(struct buf *log, struct span in, struct cuts cuts, size_t cap)
{
    replay_ws(log, in, cuts, cap, WS_SERVER);
}

static inline void replay_ws_client(struct buf *log, struct span in, struct cuts cuts, size_t cap)
{
    replay_ws(log, in, cuts, cap, WS_CLIENT);
}

#endif
