/*
 * service: what a service manager such as systemd gives a daemon, and what the daemon tells it.
 *
 * The manager may hand over sockets that listen already (LISTEN_FDS), wait for the message that the
 * daemon is ready (NOTIFY_SOCKET), and want a regular sign of life (WATCHDOG_USEC). Without a
 * service manager none of this does anything. `rialto serve` makes the struct service and owns it;
 * before listen.c opens a socket, it asks the loop's service for one.
 */
#ifndef RIALTO_IO_SERVICE_H
#define RIALTO_IO_SERVICE_H

#include "base/err.h"
#include "io/loop.h"

struct service;

/* Reads the variables and removes them: they are not for children. Call it before anything is
 * opened, because the sockets have fixed numbers. One for each loop. */
struct service *service_new(struct loop *l);
void service_free(struct service *s);

/* The handed-over socket on this address ("127.0.0.1:8765", "unix:PATH"), or -1. The caller owns
 * it. `ours`: a Unix socket's file is ours to remove. `s` may be NULL. */
int service_take_socket(struct service *s, const char *address, bool *ours);
bool service_has_socket(const struct service *s, const char *address);
/* The daemon before us (io/successor.h) has opened this socket for that address. Takes it over. */
void service_give_socket(struct service *s, const char *address, int fd, bool ours);
/* Negative when a socket of the manager is left that nobody took: its clients would wait for
 * ever. */
MUST_CHECK int service_check_sockets(const struct service *s, struct err *err);

/* Put the variables back for a program that takes our place and keeps our process id. */
void service_restore_variables(const struct service *s);
/* Another process speaks with the manager from now on. */
void service_fall_silent(struct service *s);

/* The daemon is ready. From now on signs of life are sent, as long as the loop runs. */
void service_ready(struct service *s);
void service_stopping(struct service *s);

#endif
