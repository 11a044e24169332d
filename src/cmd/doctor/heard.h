/*
 * heard: the log lines about each server while `rialto doctor` starts the servers.
 *
 * A server's output on stderr is logged as information under its name; problems with the server are
 * logged as warnings or errors. Both are bounded. For this folder only.
 */
#ifndef RIALTO_CMD_DOCTOR_HEARD_H
#define RIALTO_CMD_DOCTOR_HEARD_H

#include "base/log.h"

struct heard;

struct heard *heard_new(void);
void heard_free(struct heard *h);
/* For log_set_listener; `arg` is the struct heard. */
void heard_line(void *arg, const struct log_record *line);

/* The server's last lines on stderr, oldest first; NULL past the end. */
const char *heard_said(const struct heard *h, const char *server, size_t n);
/* Warnings about the server, each once; NULL past the end. */
const char *heard_complaint(const struct heard *h, const char *server, size_t n);
/* The last error; NULL when there was none. */
const char *heard_error(const struct heard *h, const char *server);

#endif
