/*
 * bus_settings: the options of a bus out of a configuration, secrets filled in.
 */
#ifndef RIALTO_HUB_BUS_SETTINGS_H
#define RIALTO_HUB_BUS_SETTINGS_H

#include "bus/bus.h"
#include "config/config.h"

struct bus_settings {
    struct bus_options options; /* borrows from the rest, and from the configuration */
    struct buf url, token;
};

/* Is there a bus in the configuration? */
bool bus_settings_given(const struct config *c);
/* `url`: what an option put in the place of the configuration's; NULL when none did. Without either
 * it is our own bus. A negative code and a reason when a secret is not to be found. */
MUST_CHECK int bus_settings_init(struct bus_settings *s, const struct config *c, const char *url,
                                 struct err *err);
void bus_settings_fini(struct bus_settings *s);

#endif
