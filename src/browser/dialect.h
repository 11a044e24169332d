/*
 * dialect: how the variants of BTCP differ; docs/browser.md says who speaks them.
 *
 * A dialect is a row. Each member says one thing about the clients that speak it; code tests the
 * member, never which row it is.
 */
#ifndef RIALTO_BROWSER_DIALECT_H
#define RIALTO_BROWSER_DIALECT_H

#include "base/buf.h"

struct browser;
struct outcome;
struct sender;

/* Whose error numbers replace BTCP's words: btcp-client and btcp-server contradict each other. */
enum error_numbers { NUMBERS_CLIENT, NUMBERS_SERVER };

struct dialect {
    const char *name;
    const struct dialect *after_hello; /* the dialect after a `hello`; NULL: the same */

    /* Pages that speak it: */
    const char *request_event; /* the SSE event name of our requests; NULL = unnamed */
    bool ping_is_event;        /* an idle stream is kept alive by an event `ping`, not a comment */
    bool answers_list;         /* they answer tools/list */
    bool answers_ping;         /* they answer a ping, so we use it as a sign of life */
    bool asks_users;           /* they get capabilities/request, and may answer with an error */
    bool answers_by_id;        /* an answer carries nothing but the id of the call */
    bool has_relay_tools;      /* the tools webmcp_* are listed while such a page has tools */

    /* Our replies: */
    bool reply_has_success; /* to tools/register and session/join: have "success": true */
    bool reply_omits_count; /* to tools/register: do not say how many tools */
    bool reply_on_stream;   /* to a POST: are sent on the sender's event stream as well */
    bool reply_has_status;  /* to a refused POST: have status 400, all that clients look at */
    bool pong_has_time;     /* to ping: have a timestamp */

    /* Agents that speak it: */
    bool list_is_array;  /* tools/list gives them the bare array */
    bool result_is_bare; /* tools/call gives them what the tool returned, not in MCP's form */
    bool lists_nothing;  /* tools/list outside of a session is an empty list, no error */
    bool error_words;    /* error codes are words, as in the specification */
    enum error_numbers numbers; /* error codes, if they are not words */
    bool pushes_ask;            /* changes are sent as requests, which agents do not answer */

    /* For dialects that are not JSON-RPC: */
    const char *ping;   /* the message instead of our request `ping` */
    const char *reload; /* tells a page to reload; NULL: there is no such message */
    void (*put_call)(struct buf *out, uint64_t n, struct span params);
    bool (*receive)(struct sender *s, struct span text);     /* see sender_receive */
    void (*put_changed)(struct buf *out, struct browser *b); /* all tools, after a change */
    void (*put_result)(struct buf *out, struct span id, const struct outcome *outcome);
};
extern const struct dialect dialect_d1, dialect_d2, dialect_d3, dialect_d4a, dialect_d4b,
    dialect_d5, dialect_d6, dialect_d7, dialect_d8, dialect_relay, dialect_relay_peer,
    dialect_joined;

/* The dialect's number for one of BTCP's words for errors. */
int dialect_number(const struct dialect *d, struct span word);

#endif
