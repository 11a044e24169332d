/*
 * list: intrusive doubly linked list.
 *
 * The node lives inside the object; being on a list is the object's state, so moving an object
 * between lists happens in one named function of its owner. A node that is on no list points to
 * itself after list_init or list_remove.
 */
#ifndef RIALTO_BASE_LIST_H
#define RIALTO_BASE_LIST_H

#include "base/mem.h"

#include <stdbool.h>

struct list {
    struct list *next, *prev;
};

static inline void list_init(struct list *l)
{
    l->next = l->prev = l;
}

static inline bool list_empty(const struct list *l)
{
    return l->next == l;
}

static inline void list_append(struct list *head, struct list *node)
{
    node->prev = head->prev;
    node->next = head;
    head->prev->next = node;
    head->prev = node;
}

static inline void list_remove(struct list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    list_init(node);
}

#define LIST_ENTRY(node, type, member) CONTAINER_OF(node, type, member)
#define LIST_FIRST(head, type, member)                                                             \
    (list_empty(head) ? NULL : CONTAINER_OF((head)->next, type, member))
#define LIST_EACH(head, it) for (struct list *it = (head)->next; it != (head); it = it->next)
/* The body may remove the node `it`, but no other node. */
#define LIST_EACH_SAFE(head, it)                                                                   \
    for (struct list *it = (head)->next, *it##_next = it->next; it != (head);                      \
         it = it##_next, it##_next = it->next)

#endif
