/*
 * How another parser (jansson) reads a text. Only jansson_oracle.c includes jansson.h, because its
 * names (JSON_NULL, JSON_STRING, ...) are also ours.
 */
#ifndef RIALTO_TESTS_JANSSON_ORACLE_H
#define RIALTO_TESTS_JANSSON_ORACLE_H

#include "base/buf.h"

/* Appends an account of the value if jansson accepts the text; jansson_oracle.c describes it. */
bool oracle_read(struct span text, struct buf *account);

#endif
