/* Where the authorities' certificates are. Called by http_engine.c for libcurl and by tls.c for
 * OpenSSL. */
#include "io/authorities.h"

#include <stdlib.h>
#include <unistd.h>

#ifdef RIALTO_STATIC
static const char *find(void)
{
    static const char *const places[] = {
        "/etc/ssl/certs/ca-certificates.crt", /* Debian, Ubuntu, Arch, Alpine, NixOS */
        "/etc/pki/tls/certs/ca-bundle.crt",   /* Fedora, RHEL */
        "/etc/ssl/ca-bundle.pem",             /* openSUSE */
        "/etc/ssl/cert.pem",                  /* Alpine without the package, and others */
    };

    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        if (access(places[i], R_OK) == 0)
            return places[i];
    return NULL;
}
#endif

const char *authorities_file(void)
{
    const char *named = getenv("SSL_CERT_FILE");

    if (named && *named)
        return named;
#ifdef RIALTO_STATIC
    if (!getenv("SSL_CERT_DIR"))
        return find();
#endif
    return NULL;
}
