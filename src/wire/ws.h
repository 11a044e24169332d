/*
 * ws: RFC 6455 framing, either role, without I/O.
 *
 * The decoder is fed bytes and gives whole messages (fragments joined) and control frames. A masked
 * payload is unmasked while it is copied; an unmasked one that lies whole in a chunk is not copied.
 * The decoder checks what the RFC makes the receiver check: masking by role, reserved bits,
 * opcodes, control frame length and fragmentation, UTF-8 of text, close codes, and a cap on the
 * size of a message. Nothing behind a close frame is read.
 *
 * Nouns: ws_decoder_, ws_frame_, ws_key_.
 */
#ifndef RIALTO_WIRE_WS_H
#define RIALTO_WIRE_WS_H

#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"

#include <stdint.h>

enum ws_role { WS_SERVER, WS_CLIENT };
enum ws_opcode { WS_TEXT = 1, WS_BINARY = 2, WS_CLOSE = 8, WS_PING = 9, WS_PONG = 10 };

struct ws_decoder {
    enum ws_role role; /* which side *we* are */
    size_t cap;
    struct buf head;    /* an incomplete frame header */
    struct buf message; /* payload collected so far */
    struct buf control; /* payload of an incomplete control frame */
    uint64_t left;      /* payload bytes of the current frame still to come */
    uint8_t mask[4];
    unsigned mask_at;
    uint8_t opcode, message_opcode;
    bool in_frame, fin, masked, stopped;
    uint16_t close_code; /* after ERR_: the code to close with (1002, 1007, 1009) */
};

/* `op` is WS_TEXT, WS_BINARY, WS_CLOSE (payload: 2-byte code and reason), WS_PING or WS_PONG. */
typedef void ws_frame_fn(void *owner, enum ws_opcode op, struct span payload);

void ws_decoder_init(struct ws_decoder *d, enum ws_role role, size_t cap);
void ws_decoder_fini(struct ws_decoder *d);
/* 0 or ERR_PROTOCOL / ERR_SIZE / ERR_UTF8 with d->close_code set. */
MUST_CHECK int ws_decoder_feed(struct ws_decoder *d, struct span chunk, ws_frame_fn *on_frame,
                               void *owner);

/* One unfragmented frame. Clients mask (with fresh random keys), servers do not. */
void ws_frame_put(struct buf *out, enum ws_role role, enum ws_opcode op, struct span payload);
/*
 * The same for a payload that is appended to `out` itself: begin leaves room for the head and
 * returns where the frame starts, end fills the head in (and masks). Nothing is copied unless the
 * payload has more than 64 KiB or less than 126 bytes; then the payload is moved once.
 */
size_t ws_frame_begin(struct buf *out, enum ws_role role);
void ws_frame_end(struct buf *out, enum ws_role role, enum ws_opcode op, size_t at);
/* A reason that is too long is cut. Code 1005, "none given", makes a close frame without
 * payload. */
void ws_frame_put_close(struct buf *out, enum ws_role role, uint16_t code, struct span reason);
uint16_t ws_frame_close_code(struct span payload); /* 1005 when the frame has none */

/* A fresh Sec-WebSocket-Key; `out` takes 25 bytes with the NUL. */
void ws_key_new(char out[25]);
/* Is this a key, 16 bytes in base64? */
bool ws_key_is_valid(struct span key);
/* Sec-WebSocket-Accept for a key; `out` takes 29 bytes with the NUL. */
void ws_key_answer(struct span key, char out[29]);

#endif
