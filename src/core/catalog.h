/*
 * catalog: what one provider offers, as an immutable, numbered generation.
 *
 * A provider's family fills a fresh catalog (provider_draft, catalog_add) and publishes it whole
 * with provider_publish; after that nobody changes it. Items keep the provider's own JSON; the
 * positions of the members that a view may replace are stored, so that the core can replace them
 * without parsing JSON. A catalog is bounded in bytes (limits.catalog): items that do not fit are
 * left out, and `cut` is set.
 */
#ifndef RIALTO_CORE_CATALOG_H
#define RIALTO_CORE_CATALOG_H

#include "base/arena.h"
#include "core/peer.h"

enum item_kind { ITEM_TOOL, ITEM_RESOURCE, ITEM_TEMPLATE, ITEM_PROMPT, ITEM_KINDS };

enum {
    ITEM_READ_ONLY = 1u << 0,  /* the tool says it changes nothing */
    ITEM_IDEMPOTENT = 1u << 1, /* the tool says that a second, equal call changes nothing more */
    ITEM_MADE = 1u << 2,       /* not listed by the provider: made by the family from other items */
    ITEM_GIVES_ANY = 1u << 3,  /* the tool's structured content need not be an object */
    ITEM_TASK_MAY = 1u << 4,   /* the tool can be run as a task */
    ITEM_TASK_MUST = 1u << 5,  /* the tool can only be run as a task */
    ITEM_TASK_UNSAID = 1u << 6, /* its server may run it as a task; the list does not say so */
};

struct item {
    struct span name;  /* tool, prompt: name; resource: uri; template: uriTemplate; unescaped */
    struct span own;   /* the provider's name of the item, if different; empty = name */
    struct span label; /* another name by which a view may hide the item: a resource's or template's
                          name, the prompt that a made tool stands for; or empty */
    struct span raw;   /* the JSON object */
    struct span listed;        /* the object as the provider lists it, if different; else empty */
    struct cut name_at;        /* raw value of the name member inside `raw` */
    struct cut description_at; /* raw value of the description; n == 0 when there is none */
    unsigned flags;
};

/* What the provider can do besides tools. */
enum {
    OFFERS_RESOURCES = 1u << 0,
    OFFERS_PROMPTS = 1u << 1,
    OFFERS_COMPLETION = 1u << 2,
    OFFERS_LOGGING = 1u << 3,
    OFFERS_SUBSCRIBE = 1u << 4,
    OFFERS_TASKS = 1u << 5,
};

struct catalog {
    uint64_t generation; /* set by provider_publish */
    struct arena arena;
    struct item *items[ITEM_KINDS];
    size_t n[ITEM_KINDS], cap[ITEM_KINDS];
    struct span declares;     /* raw object: what else the provider declares, as it is; or empty */
    struct span instructions; /* plain text, or empty */
    unsigned offers;
    size_t bytes, max_bytes; /* of all items */
    bool cut;                /* items were left out: they did not fit */
    unsigned changed; /* kinds (bits) that the provider says have changed, whatever is in them */
};

enum { CATALOG_MAX = 16 * 1024 * 1024 }; /* bytes, unless configured otherwise */

/* For lists outside of a provider; a provider's catalog is made by provider_draft. */
struct catalog *catalog_new(void);
void catalog_free(struct catalog *c);
/* Copies everything the item points to. False when the item does not fit. */
bool catalog_add(struct catalog *c, enum item_kind kind, const struct item *item);
/* Count an item of `n` bytes that is kept elsewhere, without adding it. False as catalog_add. */
bool catalog_count(struct catalog *c, size_t n);
/* The catalog is complete: give unused memory back. */
void catalog_fit(struct catalog *c);
void catalog_set_declares(struct catalog *c, struct span raw);
void catalog_set_instructions(struct catalog *c, struct span text);
/* For kinds that were not fetched again: copy their items from the previous generation. */
void catalog_copy_kind(struct catalog *to, const struct catalog *from, enum item_kind kind);
/* Are both catalogs equal: the same items in the same order, offers and texts? */
bool catalog_same(const struct catalog *a, const struct catalog *b);
const struct item *catalog_find(const struct catalog *c, enum item_kind kind, struct span name);

#endif
