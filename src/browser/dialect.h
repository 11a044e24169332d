/*
 * dialect: how the variants of BTCP differ; docs/browser.md says who speaks them.
 *
 * A dialect is a row. Every member says one thing about those who speak it, and code asks for the
 * member, never for the row.
 */
#ifndef RIALTO_BROWSER_DIALECT_H
#define RIALTO_BROWSER_DIALECT_H

#include "base/buf.h"

struct browser;
struct outcome;
struct sender;

/* Whose numbers stand for BTCP's words in errors: the two programs that have any contradict. */
enum error_numbers { NUMBERS_CLIENT, NUMBERS_SERVER };

struct dialect {
    const char *name;
    const struct dialect *after_hello; /* what it turns out to be by a `hello`; NULL: itself */

    /* Its pages: */
    const char *request_event; /* the event of SSE that a request is sent as; NULL = unnamed */
    bool ping_is_event;        /* an idle stream is kept alive by an event `ping`, not a comment */
    bool answers_list;         /* they answer tools/list */
    bool answers_ping;         /* they answer a ping: it asks them for a sign of life */
    bool asks_users;           /* they are asked for capabilities, and may say that they cannot */
    bool answers_by_id;        /* an answer carries nothing but the id of the call */
    bool has_relay_tools;      /* agents that look for such pages know the tools webmcp_* */

    /* Our replies: */
    bool reply_has_success; /* those to tools/register and session/join have "success": true */
    bool reply_omits_count; /* that to tools/register does not say how many */
    bool reply_on_stream;   /* one to a POST is sent on the stream of its sender as well */
    bool reply_has_status;  /* a refused POST has the status 400: its clients read nothing else */
    bool pong_has_time;     /* that to ping has a timestamp */

    /* Its agents: */
    bool list_is_array;  /* tools/list gives them the bare array */
    bool result_is_bare; /* tools/call gives them what the tool returned, not in MCP's form */
    bool lists_nothing;  /* tools/list outside of a session is an empty list, no error */
    bool error_words;    /* codes of errors are words, as the specification has them */
    enum error_numbers numbers; /* and where they are not, these */
    bool pushes_ask;            /* changes are told by requests, which nobody answers */

    /* For one that is no JSON-RPC: */
    const char *ping;   /* what it has in place of our request `ping` */
    const char *reload; /* tells a page to reload; NULL: there is no such message */
    void (*put_call)(struct buf *out, uint64_t n, struct span params);
    bool (*receive)(struct sender *s, struct span text);     /* see sender_receive */
    void (*put_changed)(struct buf *out, struct browser *b); /* all tools: they changed */
    void (*put_result)(struct buf *out, struct span id, const struct outcome *outcome);
};
extern const struct dialect dialect_d1, dialect_d2, dialect_d3, dialect_d4a, dialect_d4b,
    dialect_d5, dialect_d6, dialect_d7, dialect_d8, dialect_relay, dialect_relay_peer,
    dialect_joined;

/* The number that this dialect has for one of BTCP's words for errors. */
int dialect_number(const struct dialect *d, struct span word);

#endif
