/* oauth: documents of OAuth. Whatever is accepted is fit for a URL, a header or a form. */
#include "base/mem.h"
#include "wire/oauth.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const char *text)
{
    for (; text && *text; text++)
        if (*text < 0x20 || *text > 0x7e)
            abort();
}

static void check_endpoint(const char *text)
{
    struct url_parts u;

    if (text && (!url_read(&u, span_str(text)) || !url_is_safe(&u)))
        abort();
}

static void check_server(struct span text, struct arena *arena, struct err *err)
{
    struct oauth_server s;

    if (oauth_read_server(&s, text, "https://as.example", arena, err))
        return;
    const char *const endpoints[] = {s.authorize, s.token, s.registration, s.revocation, s.device};
    for (size_t i = 0; i < COUNT_OF(endpoints); i++)
        check_endpoint(endpoints[i]);
    check_text(s.algs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span text = span_of((const char *)data, size);
    struct arena arena = {0};
    struct err err;
    struct oauth_resource resource;
    struct oauth_client client;
    struct oauth_device device;
    struct oauth_token token;
    struct oauth_error error;

    if (oauth_read_resource(&resource, text, &arena, &err) == 0) {
        check_text(resource.resource);
        check_text(resource.scopes);
        for (size_t i = 0; i < resource.n_servers; i++)
            check_endpoint(resource.servers[i]);
    }
    check_server(text, &arena, &err);
    if (oauth_read_client(&client, text, &arena, &err) == 0)
        check_text(client.id);
    if (oauth_read_device(&device, text, &arena, &err) == 0)
        check_endpoint(device.uri);
    if (oauth_read_token(&token, text, size & 1, &arena, &err) == 0) {
        check_text(token.access);
        check_text(token.refresh);
        check_text(token.scope);
    }
    oauth_read_error(&error, text, &arena);
    check_text(error.description);
    arena_fini(&arena);
    return 0;
}
