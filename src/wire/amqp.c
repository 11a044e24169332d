/* The reading half of AMQP: bytes cut into frames, methods and message properties decoded, tables
 * checked for depth. Called by bus/amqp.c, bus/amqp_channel.c and bus/amqp_words.c. */
#include "wire/amqp.h"

#include "base/mem.h"

#include <amqp.h>
#include <amqp_framing.h>

enum {
    HEAD = 7,              /* type, channel, size */
    PROPERTIES_HEAD = 12,  /* class, weight, body size */
    POOL_PAGE = 4096,      /* librabbitmq's pool grows by pages of this size */
    KEEP = 64 * 1024,      /* an assembly buffer above this goes back after its frame */
    FRAME_LIMIT = 1 << 24, /* frames are never larger, whatever was agreed */
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
    *r = (struct amqp_reader){.frame_max = AMQP_MIN_FRAME, .pool = MEM_NEW(amqp_pool_t)};
    init_amqp_pool(r->pool, POOL_PAGE);
}

void amqp_reader_fini(struct amqp_reader *r)
{
    empty_amqp_pool(r->pool);
    mem_free(r->pool);
    buf_fini(&r->partial);
    *r = (struct amqp_reader){.stopped = true};
}

void amqp_reader_stop(struct amqp_reader *r)
{
    r->stopped = true;
}

/* The size of the frame at the start of `in`; 0 = more bytes are needed to say. */
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
    if ((unsigned char)whole.p[whole.n - 1] != AMQP_FRAME_END)
        return ERR_PROTOCOL;
    struct amqp_frame f = {
        .kind = (enum amqp_kind)whole.p[0],
        .channel = get16(whole.p + 1),
        .payload = span_of(whole.p + HEAD, whole.n - HEAD - 1),
    };
    on_frame(owner, &f);
    return 0;
}

/* Moves bytes of `chunk` behind the partial frame until that is complete; true when it is. */
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
        /* The first byte is looked at before the rest is waited for: a peer that speaks another
         * protocol may never send seven. */
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

/* Bytes of a field's value by its kind; 0 = a length of four bytes and so many bytes. */
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

/*
 * `in` begins with a table. librabbitmq goes down into each table inside a table by calling itself,
 * so a message of one frame could exhaust our stack: the nesting is measured here without that.
 */
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
        bool counted = kind == 'S' || kind == 'x' || kind == 'F' || kind == 'A';
        if (counted) {
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

/* --- methods --- */

static struct span text_of(amqp_bytes_t b)
{
    return span_of(b.bytes, b.len);
}

static void take_start(const void *decoded, struct amqp_method *m)
{
    const amqp_connection_start_t *d = decoded;
    m->text = text_of(d->mechanisms);
}

static void take_tune(const void *decoded, struct amqp_method *m)
{
    const amqp_connection_tune_t *d = decoded;
    m->channel_max = d->channel_max;
    m->frame_max = d->frame_max;
    m->heartbeat = d->heartbeat;
}

static void take_close(const void *decoded, struct amqp_method *m)
{
    const amqp_connection_close_t *d = decoded;
    m->code = d->reply_code;
    m->text = text_of(d->reply_text);
}

static void take_channel_close(const void *decoded, struct amqp_method *m)
{
    const amqp_channel_close_t *d = decoded;
    m->code = d->reply_code;
    m->text = text_of(d->reply_text);
}

static void take_blocked(const void *decoded, struct amqp_method *m)
{
    m->text = text_of(((const amqp_connection_blocked_t *)decoded)->reason);
}

static void take_flow(const void *decoded, struct amqp_method *m)
{
    m->active = ((const amqp_channel_flow_t *)decoded)->active;
}

static void take_declared(const void *decoded, struct amqp_method *m)
{
    m->messages = ((const amqp_queue_declare_ok_t *)decoded)->message_count;
}

static void take_deleted(const void *decoded, struct amqp_method *m)
{
    m->messages = ((const amqp_queue_delete_ok_t *)decoded)->message_count;
}

static void take_deliver(const void *decoded, struct amqp_method *m)
{
    const amqp_basic_deliver_t *d = decoded;
    m->tag = d->delivery_tag;
    m->redelivered = d->redelivered;
    m->routing_key = text_of(d->routing_key);
}

static void take_ack(const void *decoded, struct amqp_method *m)
{
    const amqp_basic_ack_t *d = decoded;
    m->tag = d->delivery_tag;
    m->multiple = d->multiple;
}

static void take_nack(const void *decoded, struct amqp_method *m)
{
    const amqp_basic_nack_t *d = decoded;
    m->tag = d->delivery_tag;
    m->multiple = d->multiple;
}

static void take_nothing(const void *decoded, struct amqp_method *m)
{
    (void)decoded;
    (void)m;
}

static const struct row {
    amqp_method_number_t number;
    enum amqp_method_id id;
    void (*take)(const void *decoded, struct amqp_method *m);
} rows[] = {
    {AMQP_BASIC_DELIVER_METHOD, AMQP_DELIVER, take_deliver},
    {AMQP_BASIC_ACK_METHOD, AMQP_ACK, take_ack},
    {AMQP_BASIC_NACK_METHOD, AMQP_NACK, take_nack},
    {AMQP_CONNECTION_START_METHOD, AMQP_START, take_start},
    {AMQP_CONNECTION_TUNE_METHOD, AMQP_TUNE, take_tune},
    {AMQP_CONNECTION_OPEN_OK_METHOD, AMQP_OPEN_OK, take_nothing},
    {AMQP_CONNECTION_CLOSE_METHOD, AMQP_CLOSE, take_close},
    {AMQP_CONNECTION_CLOSE_OK_METHOD, AMQP_CLOSE_OK, take_nothing},
    {AMQP_CONNECTION_BLOCKED_METHOD, AMQP_BLOCKED, take_blocked},
    {AMQP_CONNECTION_UNBLOCKED_METHOD, AMQP_UNBLOCKED, take_nothing},
    {AMQP_CHANNEL_OPEN_OK_METHOD, AMQP_CHANNEL_OPEN_OK, take_nothing},
    {AMQP_CHANNEL_FLOW_METHOD, AMQP_CHANNEL_FLOW, take_flow},
    {AMQP_CHANNEL_CLOSE_METHOD, AMQP_CHANNEL_CLOSE, take_channel_close},
    {AMQP_CHANNEL_CLOSE_OK_METHOD, AMQP_CHANNEL_CLOSE_OK, take_nothing},
    {AMQP_EXCHANGE_DECLARE_OK_METHOD, AMQP_EXCHANGE_DECLARE_OK, take_nothing},
    {AMQP_QUEUE_DECLARE_OK_METHOD, AMQP_QUEUE_DECLARE_OK, take_declared},
    {AMQP_QUEUE_BIND_OK_METHOD, AMQP_QUEUE_BIND_OK, take_nothing},
    {AMQP_QUEUE_DELETE_OK_METHOD, AMQP_QUEUE_DELETE_OK, take_deleted},
    {AMQP_BASIC_QOS_OK_METHOD, AMQP_QOS_OK, take_nothing},
    {AMQP_BASIC_CONSUME_OK_METHOD, AMQP_CONSUME_OK, take_nothing},
    {AMQP_BASIC_CANCEL_METHOD, AMQP_CANCEL, take_nothing},
    {AMQP_BASIC_CANCEL_OK_METHOD, AMQP_CANCEL_OK, take_nothing},
    {AMQP_CONFIRM_SELECT_OK_METHOD, AMQP_CONFIRM_OK, take_nothing},
};

static const struct row *find_row(amqp_method_number_t number)
{
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (rows[i].number == number)
            return &rows[i];
    return NULL;
}

static amqp_bytes_t bytes_of(struct span s)
{
    return (amqp_bytes_t){.len = s.n, .bytes = (void *)(uintptr_t)s.p};
}

int amqp_read_method(struct amqp_reader *r, struct span payload, struct amqp_method *m)
{
    *m = (struct amqp_method){.id = AMQP_OTHER};
    if (payload.n < 4)
        return ERR_PROTOCOL;
    const struct row *row = find_row(get32(payload.p));
    if (!row)
        return 0;
    struct span arguments = span_from(payload, 4);
    /* The only one of these methods that has a table: behind the two bytes of the version. */
    if (row->id == AMQP_START && check_table(span_from(arguments, 2)))
        return ERR_PROTOCOL;

    void *decoded;
    recycle_amqp_pool(r->pool);
    if (amqp_decode_method(row->number, r->pool, bytes_of(arguments), &decoded) < 0)
        return ERR_PROTOCOL;
    m->id = row->id;
    row->take(decoded, m);
    return 0;
}

/* --- properties --- */

int amqp_read_body_size(struct span payload, uint64_t *size)
{
    if (payload.n < PROPERTIES_HEAD || get16(payload.p) != AMQP_BASIC_CLASS)
        return ERR_PROTOCOL;
    *size = get64(payload.p + 4);
    return 0;
}

/* The table of headers stands behind the flags and two words. */
static int check_headers(struct span raw)
{
    size_t at = 2;
    if (raw.n < 2)
        return ERR_PROTOCOL;
    unsigned flags = get16(raw.p);
    if (flags & 1) /* a second word of flags, for properties that do not exist */
        return ERR_PROTOCOL;
    if (!(flags & AMQP_BASIC_HEADERS_FLAG))
        return 0;
    for (unsigned word = AMQP_BASIC_CONTENT_TYPE_FLAG; word > AMQP_BASIC_HEADERS_FLAG; word >>= 1)
        if (flags & word) {
            if (at >= raw.n)
                return ERR_PROTOCOL;
            at += 1 + (unsigned char)raw.p[at];
        }
    return at < raw.n ? check_table(span_from(raw, at)) : ERR_PROTOCOL;
}

static void take_headers(const amqp_table_t *table, struct amqp_properties *p)
{
    for (int i = 0; i < table->num_entries && p->n_headers < AMQP_HEADERS; i++) {
        const amqp_table_entry_t *e = &table->entries[i];
        if (e->value.kind == AMQP_FIELD_KIND_UTF8 || e->value.kind == AMQP_FIELD_KIND_BYTES)
            p->headers[p->n_headers++] =
                (struct amqp_header){text_of(e->key), text_of(e->value.value.bytes)};
    }
}

int amqp_read_properties(struct amqp_reader *r, struct span payload, struct amqp_properties *p)
{
    struct span raw = span_from(payload, PROPERTIES_HEAD);
    void *decoded;

    memset(p, 0, offsetof(struct amqp_properties, headers));
    p->n_headers = 0;
    int code = check_headers(raw);
    if (code)
        return code;
    recycle_amqp_pool(r->pool);
    if (amqp_decode_properties(AMQP_BASIC_CLASS, r->pool, bytes_of(raw), &decoded) < 0)
        return ERR_PROTOCOL;

    const amqp_basic_properties_t *d = decoded;
    const struct {
        unsigned flag;
        struct span *to;
        amqp_bytes_t from;
    } words[] = {
        {AMQP_BASIC_CONTENT_TYPE_FLAG, &p->content_type, d->content_type},
        {AMQP_BASIC_CORRELATION_ID_FLAG, &p->correlation_id, d->correlation_id},
        {AMQP_BASIC_REPLY_TO_FLAG, &p->reply_to, d->reply_to},
        {AMQP_BASIC_MESSAGE_ID_FLAG, &p->message_id, d->message_id},
        {AMQP_BASIC_TYPE_FLAG, &p->type, d->type},
    };
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (d->_flags & words[i].flag)
            *words[i].to = text_of(words[i].from);
    if (d->_flags & AMQP_BASIC_TIMESTAMP_FLAG)
        p->timestamp = d->timestamp;
    if (d->_flags & AMQP_BASIC_HEADERS_FLAG)
        take_headers(&d->headers, p);
    return 0;
}
