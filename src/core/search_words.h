/*
 * search_words: a text as the words that search compares; private to search.
 */
#ifndef RIALTO_CORE_SEARCH_WORDS_H
#define RIALTO_CORE_SEARCH_WORDS_H

#include "base/span.h"

/* Longer runs are not words but keys, hashes and the like. */
enum { SEARCH_WORD_MAX = 48 };

/* `word` is lower case, without a plural s, and valid only during the call. */
typedef void search_word_fn(void *arg, struct span word);

void search_words(struct span text, search_word_fn *fn, void *arg);

#endif
