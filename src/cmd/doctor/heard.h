/*
 * heard: what the log says of each server while `rialto doctor` looks at it.
 *
 * A server's own words on stderr stand in the log as information under its name; what is wrong with
 * it stands there as a warning or an error. Both are bounded. For this folder only.
 */
#ifndef RIALTO_CMD_DOCTOR_HEARD_H
#define RIALTO_CMD_DOCTOR_HEARD_H

#include "base/log.h"

struct heard;

struct heard *heard_new(void);
void heard_free(struct heard *h);
/* For log_set_listener; `arg` is the struct. */
void heard_line(void *arg, const struct log_record *line);

/* The last lines that it said itself, oldest first; NULL past the end. */
const char *heard_said(const struct heard *h, const char *server, size_t n);
/* What there was to complain of, each once. */
const char *heard_complaint(const struct heard *h, const char *server, size_t n);
/* The last error; NULL when there was none. */
const char *heard_error(const struct heard *h, const char *server);

#endif
