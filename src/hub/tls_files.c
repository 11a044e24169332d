/* Loads the certificates, keys and CA files that a configuration names, and reports those that
 * cannot be used. Called by cmd/serve.c, cmd/check.c and cmd/doctor/config.c. */
#include "hub/tls_files.h"

#include "io/tls.h"

#include <stdio.h>

static void add(struct problems *problems, enum problem_level level, const char *key,
                const struct err *err)
{
    problems_add(problems, level, (struct place){0}, key, "%s%s%s", err->text,
                 err->hint[0] ? "; " : "", err->hint);
}

static void check_listen(const struct config_listen *l, size_t n, struct problems *problems)
{
    char key[64];
    struct err err;
    struct tls_context *tls = tls_context_server(l->tls_cert, l->tls_key, &err);

    snprintf(key, sizeof key, "listen[%zu].tls", n);
    if (!tls)
        add(problems, PROBLEM_ERROR, key, &err);
    else if (tls_key_is_exposed(l->tls_key))
        problems_add(problems, PROBLEM_WARNING, (struct place){0}, key,
                     "everybody on this machine may read the private key in %s; take that away: "
                     "chmod o= FILE",
                     l->tls_key);
    tls_context_free(tls);
}

static void check_authorities(const struct config_server *s, struct problems *problems)
{
    char key[128];
    struct err err;
    struct tls_context *tls = tls_context_client(s->ca, &err);

    snprintf(key, sizeof key, "servers.%s.ca", s->alias);
    if (!tls)
        add(problems, PROBLEM_WARNING, key, &err);
    tls_context_free(tls);
}

void tls_files_check(const struct config *c, struct problems *problems)
{
    for (size_t i = 0; i < c->listen.n; i++)
        if (c->listen.items[i].tls_cert)
            check_listen(&c->listen.items[i], i, problems);
    for (size_t i = 0; i < c->servers.n; i++)
        if (c->servers.items[i].enabled && c->servers.items[i].ca)
            check_authorities(&c->servers.items[i], problems);
}
