/* What we tell authorization servers about ourselves. Called by login.c, which registers us, and by
 * callback.c, which serves a document about us. */
#include "hub/signin/client_metadata.h"

#include "wire/json_out.h"

void client_metadata_put(struct buf *out, const char *redirect_uri, enum oauth_method method,
                         bool device)
{
    bool web = span_starts(span_str(redirect_uri), SPAN("https:"));

    json_out_str(out, "client_name", "Rialto");
    json_out_open(out, "redirect_uris", '[');
    json_out_str(out, NULL, redirect_uri);
    buf_char(out, ']');
    json_out_open(out, "grant_types", '[');
    json_out_str(out, NULL, "authorization_code");
    json_out_str(out, NULL, "refresh_token");
    if (device)
        json_out_str(out, NULL, "urn:ietf:params:oauth:grant-type:device_code");
    buf_str(out, "],\"response_types\":[\"code\"]");
    json_out_str(out, "application_type", web ? "web" : "native");
    json_out_str(out, "token_endpoint_auth_method", oauth_method_name(method));
    json_out_str(out, "software_id", "rialto");
    json_out_str(out, "software_version", RIALTO_VERSION);
}
