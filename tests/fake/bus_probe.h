/*
 * bus_probe: a client of a message bus for tests and measurements; it uses only bus.h.
 *
 *   bus_probe [OPTIONS] URL drive                      commands on stdin, events on stdout, as JSON
 *   bus_probe [OPTIONS] URL echo TOPIC GROUP PREFETCH  answers every message with itself
 *   bus_probe [OPTIONS] URL bench TOPIC SECONDS IN_FLIGHT BYTES
 *                                                      calls an echo; prints one line of figures
 *   OPTIONS: --name N  --exchange X  --prefix P  --ca FILE  --token T  --listen A  --jetstream
 *            --credentials FILE  --max-message BYTES  --max-outbox BYTES
 */
#ifndef RIALTO_TESTS_BUS_PROBE_H
#define RIALTO_TESTS_BUS_PROBE_H

#include "bus/bus.h"

struct probe {
    struct loop *loop;
    struct bus *bus;
    struct bus_options options;
    char **arguments; /* after the role's name */
    int n_arguments;
    bool closing;
};

struct probe_role {
    const char *name;
    int n_arguments;
    struct bus_events on;
    int (*start)(struct probe *p); /* before the loop runs; 0 or an exit status */
    void (*end)(struct probe *p);  /* after the bus is closed */
};

extern const struct probe_role probe_drive, probe_echo, probe_bench;

/* Leave the bus; the program ends when that is done. */
void probe_close(struct probe *p);
/* A callback `closed`: stops the loop. */
void probe_closed(void *owner);
/* A callback `down`: prints a line on stderr and goes on. */
void probe_down(void *owner, const char *why);

#endif
