/*
 * tokens: how many tokens the description of a tool costs a model.
 *
 * An estimate of the count of the o200k_base tokenizer, without its vocabulary of 200,000 entries:
 * the text is cut into words, numbers and runs of punctuation where that tokenizer cuts it, and
 * each piece costs what such pieces cost on average. For tools of more than 60 tokens it is within
 * a quarter of the true count (tests/e2e/tokens_cost.test.mjs). One pass over the text.
 */
#ifndef RIALTO_WIRE_TOKENS_H
#define RIALTO_WIRE_TOKENS_H

#include "base/span.h"

/* Of the compact JSON of the tool's name, description and inputSchema. `tool` is a raw object. */
size_t tokens_of_tool(struct span tool);

#endif
