/*
 * rulebook: the rules of a configuration as the router uses them (core/rules.h), with the texts
 * that name each rule to people. The bridge has one at a time and replaces it at a reload.
 */
#ifndef RIALTO_HUB_GRAPH_RULEBOOK_H
#define RIALTO_HUB_GRAPH_RULEBOOK_H

#include "config/config.h"

struct rulebook;

struct rulebook *rulebook_new(const struct config *c);
void rulebook_free(struct rulebook *b);
const struct rules *rulebook_rules(const struct rulebook *b);

#endif
