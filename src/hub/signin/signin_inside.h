/*
 * signin_inside: the structs of hub/signin/signin.h, shared by the files that implement it:
 * signin.c (tokens and logins), renewal.c (new tokens without a person, and logging out).
 */
#ifndef RIALTO_HUB_SIGNIN_SIGNIN_INSIDE_H
#define RIALTO_HUB_SIGNIN_SIGNIN_INSIDE_H

#include "base/backoff.h"
#include "hub/signin/discovery.h"
#include "hub/signin/login.h"
#include "hub/signin/signin.h"

struct callback;

struct signin {
    struct loop *loop;
    const struct config *config;
    struct http_client *client;
    struct signin_file *file; /* NULL until it is needed (signin_store) */
    bool no_file;             /* there is no state folder */
    char *redirect;           /* NULL: each login listens by itself */
    char *begin;              /* where browsers start; NULL: at the authorization server */
    struct watch *watch;      /* on the file, once somebody has to sign in */
    struct list identities;
    struct list callbacks; /* of struct callback: those that are open, or being closed */
};

struct identity {
    struct list node;
    struct signin *all;
    unsigned holders;
    struct http_signer signer;
    struct server_plan *plan; /* has the settings */
    const struct signin_settings *settings;
    char *user;               /* NULL: everybody */
    struct principal *caller; /* the user, held; NULL: everybody */

    char *token;
    char *previous;         /* the token before; or NULL */
    uint64_t number;        /* of the token; never used twice */
    int64_t since, expires; /* Unix time; expires 0: not known */
    bool renewable;         /* there is a refresh token, or no person is needed */
    bool loaded;            /* the file was looked at */
    bool failed;            /* the last try to get a token without a person failed */
    char *dead;             /* a token that the server refuses; or NULL */
    char why[256];          /* why there is no token; empty: nobody has signed in yet */
    struct list watches;

    /* renewal.c */
    struct list waits; /* struct http_signer_wait: requests that wait for a token */
    bool renewing, claimed;
    struct timer turn;     /* another process renews the token: look again */
    unsigned turns;        /* how often we have looked */
    struct timer tell_now; /* tells `waits` that the renewal is over, from the loop */
    uint64_t not_before;   /* loop time of the next try, after one that failed */
    struct backoff backoff;
    struct discovery *discovery;
    const struct discovered *found;
    struct grant_request *grant;
    struct reach reach;
    char *proof;        /* what is exchanged for a token now, hidden from the log; or NULL */
    uint64_t exchanged; /* how many tokens the caller had shown at the last exchange */
    void (*logged_out)(void *arg, const struct err *err);
    void *logged_out_arg;

    struct login *login; /* under way; NULL: none */
    struct callback *callback;
    struct list logins; /* struct identity_wait */
    struct timer tell, refuse;
    struct err refusal;
    bool logged_in;  /* the last login did not fail, whatever became of the token */
    struct err last; /* why the last login failed; empty: it did not */
};

/* --- signin.c --- */
/* NULL: there is no state folder. */
struct signin_file *signin_store(struct signin *s);
void identity_tell_changed(struct identity *id);
void identity_load(struct identity *id);
/* The same for all identities, of the struct signin `arg`; those that watch them are told. */
void signin_load_all(void *arg);
/* As the file was read last; NULL: there is none. */
const struct signin_record *identity_record(const struct identity *id);
void identity_set_token(struct identity *id, const char *token, int64_t since, int64_t expires,
                        bool renewable);

/* --- renewal.c --- */
void identity_init_renewal(struct identity *id);
void identity_end_renewal(struct identity *id);
bool identity_is_renewing(const struct identity *id);
/* May we try again? Not too soon after a failure, unless the caller has shown a newer token. */
bool identity_may_renew(const struct identity *id);
/* Get another token, unless that is under way; `waits` are told at the end. */
void identity_renew(struct identity *id);
/* Remember to ask for the scope at the next login. False: the last login asked for it already. */
bool identity_note_scope(struct identity *id, const char *scope);

#endif
