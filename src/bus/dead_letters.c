/* The ring of dead letters: adding one, dropping the oldest beyond the limits, finding the next by
 * number. Called by broker.c. */
#include "bus/dead_letters.h"

#include "bus/stamp.h"

struct kept_letter {
    struct list node;
    uint64_t number, at_ms;
    const char *why;
    char *group;
    struct parcel *parcel;
};

static void drop(struct dead_letters *d, struct kept_letter *c)
{
    list_remove(&c->node);
    d->n--;
    d->bytes -= c->parcel->size;
    parcel_unref(c->parcel);
    mem_free(c->group);
    mem_free(c);
}

static void drop_oldest(struct dead_letters *d)
{
    drop(d, LIST_FIRST(&d->letters, struct kept_letter, node));
}

static struct kept_letter *find(const struct dead_letters *d, uint64_t number)
{
    LIST_EACH (&d->letters, it)
        if (LIST_ENTRY(it, struct kept_letter, node)->number == number)
            return LIST_ENTRY(it, struct kept_letter, node);
    return NULL;
}

struct parcel *dead_letters_find(const struct dead_letters *d, uint64_t number)
{
    const struct kept_letter *c = find(d, number);

    return c ? parcel_ref(c->parcel) : NULL;
}

void dead_letters_drop(struct dead_letters *d, uint64_t number)
{
    struct kept_letter *c = find(d, number);

    if (c)
        drop(d, c);
}

void dead_letters_init(struct dead_letters *d)
{
    *d = (struct dead_letters){0};
    list_init(&d->letters);
}

void dead_letters_fini(struct dead_letters *d)
{
    while (d->n)
        drop_oldest(d);
}

void dead_letters_add(struct dead_letters *d, struct parcel *p, const char *group, const char *why)
{
    struct kept_letter *c = MEM_NEW(struct kept_letter);

    c->number = ++d->last_number;
    c->at_ms = stamp_now();
    c->why = why;
    c->group = mem_str(group);
    c->parcel = parcel_ref(p);
    list_append(&d->letters, &c->node);
    d->n++;
    d->bytes += p->size;
    while (d->n > DEAD_LETTERS_MOST || (d->bytes > DEAD_LETTERS_BYTES && d->n > 1))
        drop_oldest(d);
}

bool dead_letters_next(const struct dead_letters *d, uint64_t after, struct dead_letter *out)
{
    LIST_EACH (&d->letters, it) {
        const struct kept_letter *c = LIST_ENTRY(it, struct kept_letter, node);
        if (c->number <= after)
            continue;
        *out = (struct dead_letter){.number = c->number,
                                    .at_ms = c->at_ms,
                                    .why = c->why,
                                    .topic = c->parcel->topic,
                                    .group = span_str(c->group)};
        message_pack_read(c->parcel->pack, &out->message);
        return true;
    }
    return false;
}
