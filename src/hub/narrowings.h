/*
 * narrowings: the configured views, in the form in which core/view wants them.
 *
 * They are made once and outlive whatever shows a view narrowed by them, also what is only waiting
 * to be freed: make them before the bridge and free them after it.
 */
#ifndef RIALTO_HUB_NARROWINGS_H
#define RIALTO_HUB_NARROWINGS_H

#include "config/config.h"
#include "core/view.h"

struct narrowings;

struct narrowings *narrowings_new(const struct config *c);
void narrowings_free(struct narrowings *n);
/* Of the view of this name; NULL when there is none, and for NULL. */
const struct narrowing *narrowings_find(const struct narrowings *n, const char *view);

#endif
