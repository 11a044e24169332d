/*
 * consent_page: the page on which a person lets an agent in, the page on which a person starts a
 * sign-in to a server, and the page that says why that is not possible.
 *
 * Plain HTML made by the server: no script, nothing from elsewhere, readable in light and dark. All
 * text that an agent has chosen is escaped, and invisible characters are made visible.
 */
#ifndef RIALTO_HUB_AUTH_CONSENT_PAGE_H
#define RIALTO_HUB_AUTH_CONSENT_PAGE_H

#include "config/config.h"
#include "io/http_server.h"

struct consent_question {
    const char *name, *client; /* of the agent; `name` may be NULL */
    struct span redirect;
    bool registered;                    /* the client gave itself the name: nobody has checked it */
    struct span scope;                  /* what the agent asks for */
    const struct config_strings *views; /* that the agent may be given instead */
    bool has_password;
    const char *request, *csrf; /* go into the form */
    const char *problem;        /* with the last try; or NULL */
};

/* `cookie` is a header line, or empty. */
void consent_page_ask(struct http_exchange *x, int status, struct span cookie,
                      const struct consent_question *q);
struct consent_sign_in {
    const char *server;
    const char *user;  /* whose sign-in it is; NULL: everybody's */
    struct span to;    /* the site where the person signs in */
    const char *login; /* goes into the form */
};
void consent_page_begin(struct http_exchange *x, const struct consent_sign_in *s);
/* What went wrong, and what to do. */
void consent_page_refuse(struct http_exchange *x, int status, const char *title, const char *text);

#endif
