/* registration: metadata of OAuth clients. Every redirect address that is accepted is one that the
 * client has registered, and can be put into a header as it is. */
#include "base/mem.h"
#include "hub/auth/registration.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct registration *r = MEM_NEW(struct registration);
    struct err err;
    int code = registration_read(r, span_of((const char *)data, size), &err);

    if (code && !err.text[0])
        abort();
    for (size_t i = 0; i < r->n_redirects; i++) {
        struct span uri = span_str(r->redirects[i]);
        BUF_SCOPED host = {0};
        if (!registration_has_redirect(r, uri) || !uri.n)
            abort();
        for (size_t k = 0; k < uri.n; k++)
            if (uri.p[k] <= ' ' || uri.p[k] > '~' || uri.p[k] == '#')
                abort();
        registration_put_redirect_host(&host, uri);
        if (!host.n || span_starts(uri, SPAN("javascript:")) || span_starts(uri, SPAN("data:")))
            abort();
        (void)registration_is_local(uri);
    }
    if (!code && (!r->n_redirects || r->n_redirects > REGISTRATION_REDIRECTS))
        abort();
    registration_free(r);
    return 0;
}
