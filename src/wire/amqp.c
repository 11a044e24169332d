/* The reading half of AMQP: bytes cut into frames, methods and message properties decoded, tables
 * checked for depth. Called by bus/amqp.c, bus/amqp_channel.c and bus/amqp_words.c. */
#include "wire/amqp.h"

#include "base/mem.h"

enum {
    HEAD = 7,              /* type, channel, size */
    PROPERTIES_HEAD = 12,  /* class, weight, body size */
    KEEP = 64 * 1024,      /* a `partial` buffer larger than this is freed after its frame */
    FRAME_LIMIT = 1 << 24, /* frames are never larger, whatever frame_max was negotiated */
    BASIC = 60,            /* the method class of messages (basic) */
    FRAME_END = 0xce,
};

static uint16_t get16(const char *p)
{
    const unsigned char *b = (const unsigned char *)p;
    return (uint16_t)(b[0] << 8 | b[1]);
}

static uint32_t get32(const char *p)
{
    return (uint32_t)get16(p) << 16 | get16(p + 2);
}

static uint64_t get64(const char *p)
{
    return (uint64_t)get32(p) << 32 | get32(p + 4);
}

/* --- frames --- */

void amqp_reader_init(struct amqp_reader *r)
{
    *r = (struct amqp_reader){.frame_max = AMQP_MIN_FRAME};
}

void amqp_reader_fini(struct amqp_reader *r)
{
    buf_fini(&r->partial);
    *r = (struct amqp_reader){.stopped = true};
}

void amqp_reader_stop(struct amqp_reader *r)
{
    r->stopped = true;
}

/* The size of the frame at the start of `in`; 0 = more bytes are needed to tell. */
static int frame_size(const struct amqp_reader *r, struct span in, size_t *size)
{
    *size = 0;
    if (!in.n)
        return 0;
    if (in.p[0] != AMQP_METHOD && in.p[0] != AMQP_HEADER && in.p[0] != AMQP_BODY &&
        in.p[0] != AMQP_BEAT)
        return ERR_PROTOCOL;
    if (in.n < HEAD)
        return 0;
    size_t payload = get32(in.p + 3);
    if (payload > FRAME_LIMIT || payload + HEAD + 1 > r->frame_max)
        return ERR_SIZE;
    *size = HEAD + payload + 1;
    return 0;
}

static int give_frame(struct span whole, amqp_frame_fn *on_frame, void *owner)
{
    if ((unsigned char)whole.p[whole.n - 1] != FRAME_END)
        return ERR_PROTOCOL;
    struct amqp_frame f = {
        .kind = (enum amqp_kind)whole.p[0],
        .channel = get16(whole.p + 1),
        .payload = span_of(whole.p + HEAD, whole.n - HEAD - 1),
    };
    on_frame(owner, &f);
    return 0;
}

/* Moves bytes of `chunk` to the partial frame until the frame is complete; *whole tells whether it
 * is. */
static int complete(struct amqp_reader *r, struct span *chunk, bool *whole)
{
    size_t size;
    *whole = false;
    for (;;) {
        int code = frame_size(r, buf_view(&r->partial), &size);
        if (code)
            return code;
        size_t wanted = size ? size : HEAD;
        if (r->partial.n == wanted && size) {
            *whole = true;
            return 0;
        }
        struct span piece = span_cut(*chunk, 0, wanted - r->partial.n);
        if (!piece.n)
            return 0;
        /* The first byte is checked before the rest of the head is there: a peer that speaks
         * another protocol may never send seven bytes. */
        if (!r->partial.n)
            piece.n = 1;
        buf_span(&r->partial, piece);
        *chunk = span_from(*chunk, piece.n);
    }
}

int amqp_reader_feed(struct amqp_reader *r, struct span chunk, amqp_frame_fn *on_frame, void *owner)
{
    while (!r->stopped) {
        size_t size = 0;
        int code = 0;
        if (!r->partial.n && (code = frame_size(r, chunk, &size)) != 0)
            return code;
        if (size && size <= chunk.n) {
            struct span whole = span_cut(chunk, 0, size);
            chunk = span_from(chunk, size);
            if ((code = give_frame(whole, on_frame, owner)) != 0)
                return code;
            continue;
        }
        bool whole;
        if ((code = complete(r, &chunk, &whole)) != 0)
            return code;
        if (!whole)
            return 0;
        code = give_frame(buf_view(&r->partial), on_frame, owner);
        buf_reset(&r->partial, KEEP);
        if (code)
            return code;
    }
    return 0;
}

/* --- tables: how deep, and are they well formed? --- */

/* The size of a field's value by its kind; 0: no value ('V'), or its size precedes it (is_counted).
 * False: unknown kind. */
static bool fixed_size(char kind, size_t *size)
{
    static const struct {
        char kind;
        uint8_t size;
    } rows[] = {{'t', 1}, {'b', 1}, {'B', 1}, {'s', 2}, {'u', 2}, {'I', 4},
                {'i', 4}, {'l', 8}, {'L', 8}, {'f', 4}, {'d', 8}, {'D', 5},
                {'T', 8}, {'V', 0}, {'S', 0}, {'x', 0}, {'F', 0}, {'A', 0}};
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (rows[i].kind == kind) {
            *size = rows[i].size;
            return true;
        }
    return false;
}

static bool is_counted(char kind)
{
    return kind == 'S' || kind == 'x' || kind == 'F' || kind == 'A';
}

/* `in` begins with a table. A sender can nest tables as deep as it likes, so this does not
 * recurse. */
static int check_table(struct span in)
{
    struct {
        size_t end;
        bool array;
    } level[AMQP_DEPTH];
    size_t depth = 1, at = 4;

    if (in.n < 4 || get32(in.p) > in.n - 4)
        return ERR_PROTOCOL;
    level[0].end = 4 + get32(in.p);
    level[0].array = false;
    while (depth) {
        size_t end = level[depth - 1].end, size;
        if (at == end) {
            depth--;
            continue;
        }
        if (!level[depth - 1].array)
            at += 1 + (unsigned char)in.p[at];
        if (at >= end || !fixed_size(in.p[at], &size))
            return ERR_PROTOCOL;
        char kind = in.p[at++];
        if (is_counted(kind)) {
            if (end - at < 4)
                return ERR_PROTOCOL;
            size = get32(in.p + at);
            at += 4;
        }
        if (size > end - at)
            return ERR_PROTOCOL;
        if (kind == 'F' || kind == 'A') {
            if (depth == AMQP_DEPTH)
                return ERR_DEPTH;
            level[depth].end = at + size;
            level[depth++].array = kind == 'A';
        } else {
            at += size;
        }
    }
    return 0;
}

/* --- fields --- */

/*
 * Cuts off the field at the start of `rest`: '1', '2', '4' and '8' are numbers of that many bytes,
 * 's' is a short text, 'S' a long text, 'T' a table. Gives the number, or the bytes of the text or
 * table.
 */
static bool take_field(struct span *rest, char kind, uint64_t *number, struct span *text)
{
    size_t head = kind == 's' ? 1 : kind == 'S' || kind == 'T' ? 4 : (size_t)(kind - '0');

    *number = 0;
    *text = SPAN_EMPTY;
    if (rest->n < head)
        return false;
    for (size_t i = 0; i < head; i++)
        *number = *number << 8 | (unsigned char)rest->p[i];
    *rest = span_from(*rest, head);
    if (kind >= '1' && kind <= '8')
        return true;
    *text = span_cut(*rest, 0, *number);
    *rest = span_from(*rest, text->n);
    return text->n == *number;
}

/* --- methods --- */

/* A field of a method, and the member of struct amqp_method that receives it; 0: it is skipped. */
struct method_field {
    char kind;
    uint8_t to;
};
#define TO(member) offsetof(struct amqp_method, member)

/* The methods that a server sends, field by field. */
static const struct method_row {
    uint16_t class, method;
    enum amqp_method_id id;
    struct method_field fields[5];
} rows[] = {
    {60,
     60,
     AMQP_DELIVER,
     {{'s'}, {'8', TO(tag)}, {'1', TO(redelivered)}, {'s'}, {'s', TO(routing_key)}}},
    {60, 80, AMQP_ACK, {{'8', TO(tag)}, {'1', TO(multiple)}}},
    {60, 120, AMQP_NACK, {{'8', TO(tag)}, {'1', TO(multiple)}}},
    {10, 10, AMQP_START, {{'1'}, {'1'}, {'T'}, {'S', TO(text)}, {'S'}}},
    {10, 30, AMQP_TUNE, {{'2', TO(channel_max)}, {'4', TO(frame_max)}, {'2', TO(heartbeat)}}},
    {10, 41, AMQP_OPEN_OK, {{'s'}}},
    {10, 50, AMQP_CLOSE, {{'2', TO(code)}, {'s', TO(text)}, {'2'}, {'2'}}},
    {10, 51, AMQP_CLOSE_OK, {{0}}},
    {10, 60, AMQP_BLOCKED, {{'s', TO(text)}}},
    {10, 61, AMQP_UNBLOCKED, {{0}}},
    {20, 11, AMQP_CHANNEL_OPEN_OK, {{'S'}}},
    {20, 20, AMQP_CHANNEL_FLOW, {{'1', TO(active)}}},
    {20, 40, AMQP_CHANNEL_CLOSE, {{'2', TO(code)}, {'s', TO(text)}, {'2'}, {'2'}}},
    {20, 41, AMQP_CHANNEL_CLOSE_OK, {{0}}},
    {40, 11, AMQP_EXCHANGE_DECLARE_OK, {{0}}},
    {50, 11, AMQP_QUEUE_DECLARE_OK, {{'s'}, {'4', TO(messages)}, {'4'}}},
    {50, 21, AMQP_QUEUE_BIND_OK, {{0}}},
    {50, 41, AMQP_QUEUE_DELETE_OK, {{'4', TO(messages)}}},
    {60, 11, AMQP_QOS_OK, {{0}}},
    {60, 21, AMQP_CONSUME_OK, {{'s'}}},
    {60, 30, AMQP_CANCEL, {{'s'}, {'1'}}},
    {60, 31, AMQP_CANCEL_OK, {{'s'}}},
    {85, 11, AMQP_CONFIRM_OK, {{0}}},
};
#undef TO

static void keep_field(struct amqp_method *m, struct method_field f, uint64_t number,
                       struct span text)
{
    void *to = (char *)m + f.to;

    if (!f.to)
        return;
    if (f.kind == '1')
        *(bool *)to = number & 1;
    else if (f.kind == '2')
        *(uint16_t *)to = (uint16_t)number;
    else if (f.kind == '4')
        *(uint32_t *)to = (uint32_t)number;
    else if (f.kind == '8')
        *(uint64_t *)to = number;
    else
        *(struct span *)to = text;
}

static const struct method_row *find_row(struct span payload)
{
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (rows[i].class == get16(payload.p) && rows[i].method == get16(payload.p + 2))
            return &rows[i];
    return NULL;
}

int amqp_read_method(struct span payload, struct amqp_method *m)
{
    *m = (struct amqp_method){.id = AMQP_OTHER};
    if (payload.n < 4)
        return ERR_PROTOCOL;
    const struct method_row *row = find_row(payload);
    struct span rest = span_from(payload, 4);
    for (size_t i = 0; row && i < COUNT_OF(row->fields) && row->fields[i].kind; i++) {
        uint64_t number;
        struct span text;
        char kind = row->fields[i].kind;
        if ((kind == 'T' && check_table(rest)) || !take_field(&rest, kind, &number, &text))
            return ERR_PROTOCOL;
        keep_field(m, row->fields[i], number, text);
    }
    m->id = row ? row->id : AMQP_OTHER;
    return 0;
}

/* --- properties --- */

int amqp_read_body_size(struct span payload, uint64_t *size)
{
    if (payload.n < PROPERTIES_HEAD || get16(payload.p) != BASIC)
        return ERR_PROTOCOL;
    *size = get64(payload.p + 4);
    return 0;
}

/* Takes the entries that are texts from a table that was checked. */
static void take_headers(struct span table, struct amqp_properties *p)
{
    while (table.n && p->n_headers < AMQP_HEADERS) {
        struct span key, value = SPAN_EMPTY;
        uint64_t number;
        size_t size = 0;

        take_field(&table, 's', &number, &key);
        char kind = table.p[0];
        table = span_from(table, 1);
        if (is_counted(kind))
            take_field(&table, 'S', &number, &value);
        else if (fixed_size(kind, &size))
            table = span_from(table, size);
        if (kind == 'S' || kind == 'x')
            p->headers[p->n_headers++] = (struct amqp_header){key, value};
    }
}

int amqp_read_properties(struct span payload, struct amqp_properties *p)
{
    /* The properties in the order of their flags, from the highest bit down. */
    const struct {
        char kind;
        struct span *to;
    } fields[] = {
        {'s', &p->content_type},
        {'s', NULL},
        {'T', NULL},
        {'1', NULL},
        {'1', NULL},
        {'s', &p->correlation_id},
        {'s', &p->reply_to},
        {'s', NULL},
        {'s', &p->message_id},
        {'8', NULL},
        {'s', &p->type},
        {'s', NULL},
        {'s', NULL},
        {'s', NULL},
    };
    struct span rest = span_from(payload, PROPERTIES_HEAD), text;
    uint64_t flags, number;

    memset(p, 0, offsetof(struct amqp_properties, headers));
    p->n_headers = 0;
    /* Bit 0 announces a second word of flags, for properties that AMQP 0-9-1 does not define. */
    if (!take_field(&rest, '2', &flags, &text) || flags & 1)
        return ERR_PROTOCOL;
    for (size_t i = 0; i < COUNT_OF(fields); i++) {
        if (!(flags & (0x8000u >> i)))
            continue;
        int code = fields[i].kind == 'T' ? check_table(rest) : 0;
        if (code)
            return code;
        if (!take_field(&rest, fields[i].kind, &number, &text))
            return ERR_PROTOCOL;
        if (fields[i].to)
            *fields[i].to = text;
        if (fields[i].kind == 'T')
            take_headers(text, p);
        if (fields[i].kind == '8')
            p->timestamp = number;
    }
    return 0;
}
