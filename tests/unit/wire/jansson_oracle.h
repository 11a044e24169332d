/*
 * What another parser (jansson) makes of a text. It lives behind its own header because its names
 * (JSON_NULL, JSON_STRING, ...) are also ours.
 */
#ifndef RIALTO_TESTS_JANSSON_ORACLE_H
#define RIALTO_TESTS_JANSSON_ORACLE_H

#include "base/buf.h"

/* Appends an account of the value when the text is accepted; the account's form is at the .c. */
bool oracle_read(struct span text, struct buf *account);

#endif
