/*
 * rules: which calls of tools the configuration allows, denies or leaves to a person, by argument.
 *
 * One table for every way in: the router asks rules_decide about each call of a tool before the
 * call is queued or held, whatever family brought it. The first rule that matches decides; if none
 * matches, the call goes on as if there were no rules. The core knows no JSON, so the table comes
 * with a function that finds an argument among those that will be sent to the server
 * (mcp/judged.c).
 *
 * The table is borrowed and replaced as a whole (hub/graph/rulebook.c, at a start and a reload).
 */
#ifndef RIALTO_CORE_RULES_H
#define RIALTO_CORE_RULES_H

#include "base/buf.h"

struct provider;
struct request;
struct router;

enum rule_then { RULE_ALLOW, RULE_DENY, RULE_ASK };

enum rule_test {
    RULE_ALWAYS,  /* no argument is looked at */
    RULE_THERE,   /* the argument is there */
    RULE_ABSENT,  /* the argument is not there */
    RULE_MATCHES, /* a text that matches a pattern; case-sensitive, * also matches '/' */
    RULE_IN,      /* one of `values` */
    RULE_RANGE,   /* a number from the first value to the second, both included */
    RULE_OUTSIDE, /* anything but a path inside one of the folders in `values` */
};

enum argument_kind {
    ARGUMENT_ABSENT,
    ARGUMENT_TEXT,     /* unescaped */
    ARGUMENT_NUMBER,   /* as it was written */
    ARGUMENT_OTHER,    /* true, false, null, an object or a list: raw */
    ARGUMENT_MISLEADS, /* parsers may read the argument differently; the text says why */
};

struct argument {
    enum argument_kind kind;
    struct span text;
};

struct rule {
    struct span name;         /* for people: "rule 2 (/path matches /etc/\*)" */
    struct span server, tool; /* patterns; empty = all */
    struct span pointer;      /* JSON pointer of the argument; not for RULE_ALWAYS */
    enum rule_test test;
    const struct argument *values; /* what the test compares with */
    size_t n_values;
    enum rule_then then;
};

/* Finds an argument of a call of a tool. The returned text may point into `scratch`. */
typedef struct argument rules_find_fn(const struct provider *p, const struct request *request,
                                      struct span pointer, struct buf *scratch);

struct rules {
    const struct rule *rows;
    size_t n;
    rules_find_fn *find;
};

/* NULL, which is also the initial state: no rules. */
void rules_set(struct router *r, const struct rules *rules);
/* May a rule concern calls to this provider? */
bool rules_concern(const struct provider *p);

struct ruling {
    const struct rule *by; /* NULL: no rule matched */
    struct span misleads;  /* not empty: why the call cannot be judged */
};
/* `request` has the tool's own name; texts of the ruling may be in `scratch`. */
struct ruling rules_decide(const struct rules *rules, const struct provider *p,
                           const struct request *request, struct buf *scratch);

#endif
