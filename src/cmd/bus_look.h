/*
 * bus_look: what `rialto bus` does without servers: printing messages, and sending single ones.
 *
 * Each function joins the bus, does its work, leaves, and returns the exit code of the command. An
 * embedded bus is only joined, never hosted.
 *
 * Nouns: bus_look_. Files: bus_tail, bus_dead, bus_pub.
 */
#ifndef RIALTO_CMD_BUS_LOOK_H
#define RIALTO_CMD_BUS_LOOK_H

#include "cmd/cmd.h"
#include "hub/bus_settings.h"

struct bus_tail {
    const char *pattern;
    uint64_t most; /* messages; 0 = until Ctrl-C */
    bool json;
};
int bus_look_tail(const struct command *self, struct bus_settings *s, const struct bus_tail *tail);
/* Prints the dead letters that an embedded bus keeps. */
int bus_look_dead(const struct command *self, struct bus_settings *s, bool json);

enum { BUS_PUB_HEADERS = 16 };

struct bus_pub {
    const char *topic;
    struct span body;
    const char *type, *reply_to, *source; /* NULL = none */
    struct message_header headers[BUS_PUB_HEADERS];
    size_t n_headers;
    uint64_t wait; /* ms to wait for a reply, which is printed; 0 = do not wait */
    bool json;
};
int bus_look_send(const struct command *self, struct bus_settings *s, const struct bus_pub *pub);

/* Prints a message on the standard output, as a line or two for people, or as one line of JSON. */
void bus_look_print(struct span topic, const struct message *m, bool json);
/* Append a peer's text as one line for people: secrets hidden, control characters escaped. Frees
 * `text`. */
void bus_look_put_line(struct buf *out, struct buf *text);

#endif
