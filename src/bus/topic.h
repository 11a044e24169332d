/*
 * topic: names made of segments between dots, and the patterns that select them.
 *
 * In a pattern `*` stands for exactly one segment and `#` for any number of them, none included. A
 * topic_tree finds all patterns that match a topic in one walk along its segments, whatever the
 * number of patterns; each step of the walk visits a node at most once, however many `#` a pattern
 * has.
 */
#ifndef RIALTO_BUS_TOPIC_H
#define RIALTO_BUS_TOPIC_H

#include "base/list.h"
#include "base/map.h"

/* 1 to 255 bytes of printable ASCII without blanks, no segment empty; `*` and `#` only as whole
 * segments and only in patterns. */
bool topic_is_valid(struct span topic);
bool topic_is_pattern(struct span pattern);
bool topic_matches(struct span pattern, struct span topic);

struct topic_node;

struct topic_tree {
    struct topic_node *root;
    struct topic_node **now, **next; /* scratch of the walk */
    size_t cap;
    uint64_t step;
    size_t n_nodes;
};

/* A member of the struct that is to be found. */
struct topic_entry {
    struct list node;
    struct topic_node *at;
};

void topic_tree_init(struct topic_tree *t);
/* All entries must have been removed. */
void topic_tree_fini(struct topic_tree *t);
void topic_tree_add(struct topic_tree *t, struct span pattern, struct topic_entry *e);
void topic_tree_remove(struct topic_tree *t, struct topic_entry *e);
/* Calls `found` once for each entry whose pattern matches. `found` must not change the tree. */
void topic_tree_match(struct topic_tree *t, struct span topic,
                      void (*found)(void *arg, struct topic_entry *e), void *arg);

#endif
