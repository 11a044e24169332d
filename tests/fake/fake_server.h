/*
 * fake_server: what its parts share. fake_server.c reads options and messages and sends what is
 * due; fake_tools.c is the table of tools.
 */
#ifndef RIALTO_TESTS_FAKE_SERVER_H
#define RIALTO_TESTS_FAKE_SERVER_H

#include "scan.h"

#include <stdint.h>
#include <sys/types.h>

/* A message to be sent later. */
struct later {
    struct later *next;
    int64_t due;      /* ms */
    char *id;         /* raw id of the call it belongs to */
    struct text line; /* with the newline */
};

struct server {
    const char *name, *version;
    const char *raw_result; /* file */
    long extra_tools, init_delay, huge;
    long endless, pages; /* bytes of each page of an endless list of tools; pages sent so far */
    bool junk, exit_at_once, silent, twice, ignore_eof, grandchild, reverse, odd_schemas;

    bool extra_shown; /* notify-list-changed toggles the tool `extra` */
    pid_t grandchild_pid;
    long calls, cancelled, asks;
    char *asking; /* raw id of the call that waits for the answer to our question */
    struct later *later;
    struct text in;
};

/* One tools/call. All pieces point into the line just read. */
struct call {
    struct piece id, params, arguments, token;
};

struct tool {
    const char *name, *schema;
    void (*run)(struct server *s, const struct call *c);
};

extern const struct tool fake_tools[];
extern const int fake_n_tools;

/* Write to stdout now, before all that is queued. */
void send_bytes(const char *p, size_t n);
/* Queue a finished message (without newline) for `delay` ms from now; takes the text over. */
void send_later(struct server *s, struct piece id, struct text line, long delay);
void send_result(struct server *s, struct piece id, struct piece result, long delay);
void send_error(struct server *s, struct piece id, int code, const char *message, const char *data);

void list_tools(struct server *s, struct piece id);

#endif
