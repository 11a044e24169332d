/*
 * search: which of many texts fit a question best.
 *
 * A document is a tool: name, description and other details as plain text. Words are compared
 * without case and plural; createIssue and create_issue are both split into their words, and text
 * in scripts without blanks into characters. The rank is BM25 over weighted fields. A word of the
 * question also matches, with less weight, the words that begin with it.
 *
 * Fill the index with search_add, call search_finish once, then search_find any number of times.
 */
#ifndef RIALTO_CORE_SEARCH_H
#define RIALTO_CORE_SEARCH_H

#include "base/span.h"

enum search_field { SEARCH_NAME, SEARCH_DESCRIPTION, SEARCH_DETAILS, SEARCH_FIELDS };

struct search;

struct search_hit {
    size_t document; /* numbered from 0 in the order they were added */
    double score;
};

struct search *search_new(void);
void search_free(struct search *s);
/* Only the words of the texts are kept. */
void search_add(struct search *s, const struct span fields[SEARCH_FIELDS]);
void search_finish(struct search *s);

/* The best hits first, equal ones in the order of the documents; returns how many there are. */
size_t search_find(struct search *s, struct span question, struct search_hit *hits, size_t max);

#endif
