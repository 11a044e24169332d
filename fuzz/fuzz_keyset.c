/* keyset: sets of keys (JWKS). A set that is accepted has at most a hundred keys, and a set
 * that is refused leaves the previous one as it was. */
#include "base/log.h"
#include "hub/auth/keyset.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void nothing(void *arg)
{
    (void)arg;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct keyset *s;
    struct err err;
    const struct jws_key *key;
    uint64_t mark;

    if (!s) {
        log_set_muted(true);
        s = keyset_new(loop_new(), NULL, "/nonexistent/keys.json", nothing, NULL);
    }
    int n = keyset_read(s, span_of((const char *)data, size), &err);
    if (n == 0 || n > 100 || (n < 0 && !err.text[0]))
        abort();
    keyset_find(s, SPAN_EMPTY, jws_alg_find(SPAN("RS256")), SPAN("RS256"), &key, &mark);
    if (keyset_find(s, SPAN("a"), jws_alg_find(SPAN("ES256")), SPAN("ES256"), &key, &mark) ==
            KEYSET_FOUND &&
        !keyset_has(s, mark))
        abort();
    return 0;
}
