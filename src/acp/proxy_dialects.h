/*
 * proxy_dialects: the four generations of the proxy protocol, as a table.
 *
 * The generations differ in how a proxy is initialised and in the names of the successor envelope.
 * Envelopes of all four are understood from every proxy at any time. The name of the first envelope
 * that a proxy sends shows its dialect; only the dialect of the first message to the proxy has to
 * be guessed (questions.c).
 *
 * Nouns: proxy_dialect_.
 */
#ifndef RIALTO_ACP_PROXY_DIALECTS_H
#define RIALTO_ACP_PROXY_DIALECTS_H

#include "base/buf.h"

enum proxy_dialect { P0, P1, P2, P3, P_COUNT, P_UNKNOWN = P_COUNT };

struct proxy_row {
    const char *name;
    const char *initialize; /* the method that makes a component a proxy */
    bool offers;            /* that method is plain initialize with an offer in it (offer.h) */
    const char *forward_request, *forward_notification; /* proxy -> conductor */
    const char *deliver_request, *deliver_notification; /* conductor -> proxy */
};

extern const struct proxy_row proxy_rows[P_COUNT];

/* The dialect that has an envelope of this raw method (with quotes); P_UNKNOWN for any other
 * method. */
enum proxy_dialect proxy_dialect_of_envelope(struct span method);
/* The dialect that has this method for initialising a proxy; P_UNKNOWN for any other method and for
 * plain initialize. */
enum proxy_dialect proxy_dialect_of_initialize(struct span method);
/* "p2" -> P2, in upper or lower case; P_UNKNOWN for other words. */
enum proxy_dialect proxy_dialect_parse(struct span word);

/* The dialects in which a proxy of unknown dialect is asked, in this order. */
extern const enum proxy_dialect proxy_order[3];

#endif
