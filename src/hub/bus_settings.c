/* The options for opening a bus, taken from the configuration and the command line, with secrets
 * filled in. Called by bus_role.c and cmd/bus.c; hub.c asks whether a bus is configured. */
#include "hub/bus_settings.h"

#include "base/log.h"
#include "config/secret.h"

bool bus_settings_given(const struct config *c)
{
    return c->bus.url && strcmp(c->bus.url, "off") != 0;
}

int bus_settings_init(struct bus_settings *s, const struct config *c, const char *url,
                      struct err *err)
{
    struct secrets *secrets = secrets_new(c);
    BUF_SCOPED missing = {0};
    int code = 0;

    *s = (struct bus_settings){0};
    if (!url)
        url = bus_settings_given(c) ? c->bus.url : "embedded:";
    secrets_fill(secrets, url, &s->url, &missing);
    if (c->bus.token)
        secrets_fill(secrets, c->bus.token, &s->token, &missing);
    if (missing.n)
        code = err_set(err, ERR_CONFIG, "bus: nothing is known for %s", buf_cstr(&missing));
    secrets_free(secrets);
    if (s->token.n)
        log_add_secret(buf_view(&s->token));
    s->options = (struct bus_options){.url = buf_cstr(&s->url),
                                      .name = c->bus.name ? c->bus.name : "rialto",
                                      .token = c->bus.token ? buf_cstr(&s->token) : NULL,
                                      .listen = c->bus.listen,
                                      .keep_ms = c->bus.keep,
                                      .exchange = c->bus.exchange,
                                      .prefix = c->bus.prefix,
                                      .jetstream = c->bus.jetstream,
                                      .credentials = c->bus.credentials,
                                      .ca = c->bus.ca,
                                      .max_message = c->limits.message};
    if (code < 0)
        bus_settings_fini(s);
    return code;
}

void bus_settings_fini(struct bus_settings *s)
{
    buf_fini(&s->url);
    buf_fini(&s->token);
}
