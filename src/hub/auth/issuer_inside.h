/*
 * issuer_inside: what the files of the issuer share.
 */
#ifndef RIALTO_HUB_AUTH_ISSUER_INSIDE_H
#define RIALTO_HUB_AUTH_ISSUER_INSIDE_H

#include "hub/auth/issuer.h"
#include "hub/auth/permits.h"
#include "io/document.h"

enum { ISSUER_ADDRESSES = 64 };

struct issuer {
    struct loop *loop;
    struct passes *passes;
    bool on;
    char *public_url;
    struct buf settings;         /* as text, to see whether they change */
    struct arena arena;          /* of `views`, `servers` and `reach` */
    struct config_strings views; /* names: scopes mcp:NAME */
    struct config_strings servers;
    struct reach reach;         /* for documents about clients */
    struct http_client *client; /* NULL until a document must be fetched */
    struct permits *permits;    /* NULL until switched on */
    struct pairing *pairing;
    struct list documents; /* of struct registration, by address, for as long as they are fresh */
    struct list fetches;   /* of documents, with the requests that wait for them */
    struct list asked;     /* requests that a person is to answer, oldest first */
    size_t n_documents, n_fetches, n_asked;
    struct {
        char peer[64];
        uint64_t since;
        unsigned n;
    } registering[ISSUER_ADDRESSES]; /* who has registered clients in the last hour */
};

/* {"error", "error_description"} with no-store; `description` may be NULL. */
void issuer_refuse(struct http_exchange *x, int status, const char *error, const char *description);
/* Is it "mcp", or "mcp:VIEW" with a view of ours? `*view` is its name, or NULL for everything. */
bool issuer_knows_scope(const struct issuer *i, struct span scope, const char **view);
/* The path of a resource of ours: "/mcp", "/mcp/SERVER" or "/sse"; empty if it is none. */
struct span issuer_resource(const struct issuer *i, struct span resource);

void issuer_handle_register(struct issuer *i, struct http_exchange *x,
                            const struct http_request *req);
void issuer_handle_authorize(struct issuer *i, struct http_exchange *x,
                             const struct http_request *req);
void issuer_handle_token(struct issuer *i, struct http_exchange *x, const struct http_request *req);
void issuer_handle_revoke(struct issuer *i, struct http_exchange *x,
                          const struct http_request *req);
/* Drop the requests that wait for a person; drop the documents, and cancel their fetches. */
void issuer_forget_asked(struct issuer *i);
void issuer_forget_documents(struct issuer *i);

#endif
