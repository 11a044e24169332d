/*
 * narrowings: the configured views, in the form that core/view wants.
 *
 * They are created once and must outlive every view that they narrow, including views that are only
 * waiting to be freed: create them before the bridge and free them after it.
 */
#ifndef RIALTO_HUB_NARROWINGS_H
#define RIALTO_HUB_NARROWINGS_H

#include "config/config.h"
#include "core/view.h"

struct narrowings;

struct narrowings *narrowings_new(const struct config *c);
void narrowings_free(struct narrowings *n);
/* The narrowing of this name; NULL when there is none, and for NULL. */
const struct narrowing *narrowings_find(const struct narrowings *n, const char *view);

#endif
