/*
 * bus_settings: the options of a bus taken from a configuration, with secrets filled in.
 */
#ifndef RIALTO_HUB_BUS_SETTINGS_H
#define RIALTO_HUB_BUS_SETTINGS_H

#include "bus/bus.h"
#include "config/config.h"

struct bus_settings {
    struct bus_options options; /* borrows from the other members, and from the configuration */
    struct buf url, token;
};

/* Does the configuration have a bus? */
bool bus_settings_given(const struct config *c);
/* `url`: a command-line option that overrides the configuration; NULL when not given. With neither,
 * the embedded bus is used. A negative code and a reason when a secret cannot be found. */
MUST_CHECK int bus_settings_init(struct bus_settings *s, const struct config *c, const char *url,
                                 struct err *err);
void bus_settings_fini(struct bus_settings *s);

#endif
