/* Checks topics and patterns, matches one with the other, and the tree that finds all patterns for
 * a topic. Called by broker.c (the tree), the other files of bus/, rockbot/job.c and cmd/bus.c. */
#include "bus/topic.h"

#include "bus/message.h"

static const struct span one = {"*", 1}, any = {"#", 1};

/* Moves the first segment of *rest into *segment. False when no segment is left. */
static bool next_segment(struct span *rest, struct span *segment)
{
    if (!rest->p)
        return false;
    size_t dot = span_find(*rest, '.');
    *segment = span_cut(*rest, 0, dot);
    *rest = dot == rest->n ? SPAN_EMPTY : span_from(*rest, dot + 1);
    return true;
}

static bool is_segment(struct span s, bool pattern)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (c <= ' ' || c > '~' || ((c == '*' || c == '#') && !(pattern && s.n == 1)))
            return false;
    }
    return s.n > 0;
}

static bool is_valid(struct span text, bool pattern)
{
    struct span rest = text, segment;

    if (!text.n || text.n > MESSAGE_MAX_WORD)
        return false;
    while (next_segment(&rest, &segment))
        if (!is_segment(segment, pattern))
            return false;
    return true;
}

bool topic_is_valid(struct span topic)
{
    return is_valid(topic, false);
}

bool topic_is_pattern(struct span pattern)
{
    return is_valid(pattern, true);
}

/* As in any glob: at a mismatch go back to the last `#` and let it swallow one segment more. */
bool topic_matches(struct span pattern, struct span topic)
{
    struct span p = pattern, t = topic, back_p = SPAN_EMPTY, back_t = SPAN_EMPTY, ps, ts;
    bool can_go_back = false;

    while (t.p) {
        bool has = next_segment(&p, &ps);
        if (has && span_eq(ps, any)) {
            can_go_back = true;
            back_p = p;
            back_t = t;
            continue;
        }
        next_segment(&t, &ts);
        if (has && (span_eq(ps, one) || span_eq(ps, ts)))
            continue;
        if (!can_go_back)
            return false;
        p = back_p;
        t = back_t;
        next_segment(&t, &ts);
        back_t = t;
    }
    while (next_segment(&p, &ps))
        if (!span_eq(ps, any))
            return false;
    return true;
}

/* --- the tree --- */

struct topic_node {
    struct topic_node *parent;
    struct map children; /* by segment, `*` and `#` among them */
    struct topic_node *star, *hash;
    bool is_hash;
    struct list entries;
    uint64_t step; /* the step of a walk that reached this node last */
    size_t name_n;
    char name[];
};

static struct topic_node *node_new(struct topic_tree *t, struct topic_node *parent,
                                   struct span name)
{
    struct topic_node *n = mem_zalloc(sizeof *n + name.n);

    n->parent = parent;
    n->is_hash = span_eq(name, any);
    n->name_n = name.n;
    if (name.n)
        memcpy(n->name, name.p, name.n);
    list_init(&n->entries);
    t->n_nodes++;
    if (t->n_nodes > t->cap) {
        t->cap = t->cap ? t->cap * 2 : 16;
        t->now = mem_resize(t->now, t->cap * sizeof(struct topic_node *));
        t->next = mem_resize(t->next, t->cap * sizeof(struct topic_node *));
    }
    return n;
}

void topic_tree_init(struct topic_tree *t)
{
    *t = (struct topic_tree){0};
    t->root = node_new(t, NULL, SPAN_EMPTY);
}

void topic_tree_fini(struct topic_tree *t)
{
    map_fini(&t->root->children);
    mem_free(t->root);
    mem_free(t->now);
    mem_free(t->next);
}

static struct topic_node *child_of(struct topic_tree *t, struct topic_node *n, struct span name)
{
    struct topic_node *child = map_get(&n->children, name);

    if (child)
        return child;
    child = node_new(t, n, name);
    map_put(&n->children, name, child);
    if (span_eq(name, one))
        n->star = child;
    if (child->is_hash)
        n->hash = child;
    return child;
}

void topic_tree_add(struct topic_tree *t, struct span pattern, struct topic_entry *e)
{
    struct topic_node *n = t->root;
    struct span rest = pattern, segment;

    while (next_segment(&rest, &segment))
        n = child_of(t, n, segment);
    e->at = n;
    list_append(&n->entries, &e->node);
}

void topic_tree_remove(struct topic_tree *t, struct topic_entry *e)
{
    struct topic_node *n = e->at;

    list_remove(&e->node);
    while (n != t->root && list_empty(&n->entries) && !n->children.n) {
        struct topic_node *parent = n->parent;
        map_del(&parent->children, span_of(n->name, n->name_n));
        if (parent->star == n)
            parent->star = NULL;
        if (parent->hash == n)
            parent->hash = NULL;
        map_fini(&n->children);
        mem_free(n);
        t->n_nodes--;
        n = parent;
    }
}

/* Adds the node to those of the next step, once; its child `#` too, because `#` also stands for no
 * segment. */
static void reach(struct topic_tree *t, struct topic_node *n, size_t *count)
{
    for (; n && n->step != t->step; n = n->hash) {
        n->step = t->step;
        t->next[(*count)++] = n;
    }
}

static size_t swap_steps(struct topic_tree *t, size_t count)
{
    struct topic_node **now = t->now;

    t->now = t->next;
    t->next = now;
    t->step++;
    return count;
}

void topic_tree_match(struct topic_tree *t, struct span topic,
                      void (*found)(void *arg, struct topic_entry *e), void *arg)
{
    struct span rest = topic, segment;
    size_t n = 0;

    t->step++;
    reach(t, t->root, &n);
    n = swap_steps(t, n);
    while (n && next_segment(&rest, &segment)) {
        size_t count = 0;
        for (size_t i = 0; i < n; i++) {
            struct topic_node *at = t->now[i];
            reach(t, map_get(&at->children, segment), &count);
            reach(t, at->star, &count);
            if (at->is_hash)
                reach(t, at, &count);
        }
        n = swap_steps(t, count);
    }
    for (size_t i = 0; i < n; i++)
        LIST_EACH (&t->now[i]->entries, it)
            found(arg, LIST_ENTRY(it, struct topic_entry, node));
}
