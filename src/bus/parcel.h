/*
 * parcel: a message inside the broker, one copy however many queues it is in.
 *
 * Reference-counted: the queues, the ring of dead letters and the retained messages each hold a
 * reference.
 */
#ifndef RIALTO_BUS_PARCEL_H
#define RIALTO_BUS_PARCEL_H

#include "base/mem.h"
#include "bus/message.h"

struct parcel {
    unsigned refs;
    size_t size;     /* bytes that it takes */
    size_t *account; /* the sum of all sizes */
    struct span topic;
    struct message_pack *pack;
};

static inline size_t parcel_size(struct span topic, const struct message *m)
{
    return sizeof(struct parcel) + topic.n + message_pack_size(m);
}

static inline struct parcel *parcel_new(struct span topic, const struct message *m, size_t *account)
{
    struct parcel *p = mem_zalloc(sizeof *p + topic.n);

    memcpy((char *)(p + 1), topic.p, topic.n);
    p->topic = span_of((char *)(p + 1), topic.n);
    p->pack = message_pack_new(m);
    p->size = parcel_size(topic, m);
    p->account = account;
    *account += p->size;
    p->refs = 1;
    return p;
}

static inline struct parcel *parcel_ref(struct parcel *p)
{
    p->refs++;
    return p;
}

static inline void parcel_unref(struct parcel *p)
{
    if (--p->refs)
        return;
    *p->account -= p->size;
    message_pack_free(p->pack);
    mem_free(p);
}

#endif
