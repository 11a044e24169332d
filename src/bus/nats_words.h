/*
 * nats_words: addresses, subjects, names, messages and signatures as NATS wants them. Only
 * nats_login.c does more than compute: it reads a file.
 *
 * A topic is a subject, behind the configured prefix if there is one. In patterns `*` means the
 * same for both. `#` becomes `>`, which needs at least one segment, so one pattern may need two
 * subjects. A `#` in the middle has no counterpart: we subscribe to a wider subject, and the engine
 * drops what does not match.
 */
#ifndef RIALTO_BUS_NATS_WORDS_H
#define RIALTO_BUS_NATS_WORDS_H

#include "base/buf.h"
#include "base/err.h"
#include "base/id.h"
#include "bus/message.h"

#include <stdint.h>

enum { NATS_MAX_SERVERS = 16, NATS_MAX_SUBJECTS = 2 };

/* "nats://user:password@host:port,host2": credentials of the first server that has some. */
struct nats_address {
    char *servers[NATS_MAX_SERVERS]; /* "host:port" */
    int n;
    char *user, *password; /* NULL = none; a user without a password is a token */
    bool secure;           /* TLS, or nothing is sent */
    bool tls_first;        /* TLS begins before the server sends its INFO */
    struct buf label;      /* "host:port, host2:port" */
};

MUST_CHECK int nats_address_parse(struct nats_address *a, const char *url, struct err *err);
void nats_address_fini(struct nats_address *a);

/* "host:port" with NATS' own port when there is none, for the caller to free; NULL = no host. */
char *nats_host_port(struct span host);

/* NULL = no prefix, which is valid. */
bool nats_prefix_is_valid(const char *prefix);
void nats_put_subject(struct buf *out, const char *prefix, struct span topic);
/* The topic of a subject; empty when the subject does not begin with our prefix. */
struct span nats_topic(const char *prefix, struct span subject);

/* What to subscribe to for a pattern of topics. */
struct nats_plan {
    char *subjects[NATS_MAX_SUBJECTS];
    size_t n;
    bool wider;    /* the subjects match more than the pattern: compare each topic with it */
    bool rootless; /* the first segment is a wildcard: no single stream can hold it */
};
void nats_plan_init(struct nats_plan *p, const char *prefix, struct span pattern);
void nats_plan_fini(struct nats_plan *p);

/* Subjects that the server and its clients use among themselves. */
bool nats_is_internal(struct span subject);

/*
 * The part of a subject that chooses its stream: the prefix and the first segment behind it.
 * Patterns must not be rootless.
 */
struct span nats_root(const char *prefix, struct span subject);
/* A name of letters, digits, `_` and `-` for a stream or a consumer. */
void nats_put_stream_name(struct buf *out, struct span root);
/* The same group and subject give the same name in every process; others give another name. */
void nats_put_consumer_name(struct buf *out, const char *group, const char *subject);

/* How often a message was delivered, read from its acknowledgement subject; 0 = it is none. */
uint64_t nats_delivery_count(struct span ack_subject);

/* --- nats_message.c --- */
/* The headers of the message, as a block. `once`: JetStream keeps only the first message with this
 * text; may be empty. */
void nats_message_put(struct buf *headers, const struct message *m, struct span once);
/*
 * `m` points into the spans and `made_id`. What is missing is filled in as RockBot's reader does.
 * Negative when a field is longer than allowed.
 */
MUST_CHECK int nats_message_read(struct message *m, struct span headers, struct span payload,
                                 char made_id[ID_TOKEN_SIZE], struct err *err);

/* --- nats_login.c --- */
/* Appends the members of CONNECT that sign the nonce with the key in the file. */
MUST_CHECK int nats_login_put(struct buf *json, const char *file, struct span nonce,
                              struct err *err);

#endif
