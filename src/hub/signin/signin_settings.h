/*
 * signin_settings: how we sign in to one server, as its entry says (servers.*.auth), with secrets
 * filled in.
 *
 * A part of the server's plan (hub/graph/server.h), which outlives everything that borrows it.
 */
#ifndef RIALTO_HUB_SIGNIN_SIGNIN_SETTINGS_H
#define RIALTO_HUB_SIGNIN_SIGNIN_SETTINGS_H

#include "config/config_server.h"

/* Texts that are not given are NULL. */
struct signin_settings {
    const char *alias, *url;
    const char *ca;             /* file with the authorities to trust; NULL = the system's */
    const char *const *headers; /* for the server itself; NULL ends the list */
    enum config_grant grant;
    const char *issuer;
    const char *client_id, *client_secret, *client_metadata_url;
    const char *private_key; /* path of a PEM file */
    const char *scopes;      /* with blanks between */
    const char *assertion;   /* a JWT, or the path of the file that has it */
    const char *idp_token_endpoint, *idp_client_id, *idp_client_secret;
    const char *idp_issuer;        /* of the callers' tokens that are exchanged */
    const char *idp_subject_token; /* like `assertion` */
    bool per_user;
};

#endif
