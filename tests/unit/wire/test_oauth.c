#include "wire/oauth.h"

#include "../unit.h"
#include "base/mem.h"

/* A document, and the beginning of the error; NULL when the document is fine. */
struct doc_row {
    const char *text, *error;
};

static void test_resource(void **state)
{
    static const struct doc_row rows[] = {
        {"{\"resource\":\"https://a.example/mcp\",\"authorization_servers\":[\"https://"
         "as.example\"],"
         "\"scopes_supported\":[\"a\",\"b\",7,\"not one\"]}",
         NULL},
        {"{\"resource\":\"https://a.example/mcp\",\"authorization_servers\":[7,\"file:///x\","
         "\"http://as.example\",\"http://localhost:1\"],\"scopes_supported\":null}",
         NULL},
        {"", "the resource metadata is not a JSON object"},
        {"[]", "the resource metadata is not a JSON object"},
        {"<html>", "the resource metadata is not a JSON object"},
        {"{\"authorization_servers\":[\"https://as.example\"]}",
         "the resource metadata has no 'res"},
        {"{\"resource\":7,\"authorization_servers\":[\"https://as.example\"]}",
         "the resource metadata has a 'resource' that cannot"},
        {"{\"resource\":\"x\\u0007\",\"authorization_servers\":[\"https://as.example\"]}",
         "the resource metadata has a 'resource' that cannot"},
        {"{\"resource\":\"https://a\"}", "the resource metadata names no authorization server"},
        {"{\"resource\":\"https://a\",\"authorization_servers\":\"https://as.example\"}",
         "the resource metadata names no authorization server"},
        {"{\"resource\":\"https://a\",\"authorization_servers\":[\"http://10.0.0.1\"]}",
         "the resource metadata names no authorization server"},
        {"{\"resource\":\"https://a\",\"resource\":\"https://b\",\"authorization_servers\":[]}",
         "the resource metadata has a member twice"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct oauth_resource r;
        struct arena arena = {0};
        struct err err = {0};
        int code = oauth_read_resource(&r, span_str(rows[i].text), &arena, &err);
        assert_int_equal(code != 0, rows[i].error != NULL);
        if (rows[i].error)
            assert_true(span_starts(span_str(err.text), span_str(rows[i].error)));
        if (i == 0)
            assert_string_equal(r.scopes, "a b");
        if (i == 1) {
            assert_int_equal(r.n_servers, 1);
            assert_string_equal(r.servers[0], "http://localhost:1");
            assert_null(r.scopes);
        }
        arena_fini(&arena);
    }
}

static void test_covers(void **state)
{
    static const struct {
        const char *resource, *url;
        bool covers;
    } rows[] = {
        {"https://a.example/mcp", "https://a.example/mcp", true},
        {"https://a.example", "https://a.example/mcp", true},
        {"https://a.example/", "https://a.example/mcp", true},
        {"https://A.example/mcp/", "https://a.example/mcp", true},
        {"https://a.example/m", "https://a.example/mcp", false},
        {"https://a.example/mcp/x", "https://a.example/mcp", false},
        {"https://b.example/mcp", "https://a.example/mcp", false},
        {"http://a.example/mcp", "https://a.example/mcp", false},
        {"https://a.example:8443/mcp", "https://a.example/mcp", false},
        {"https://a.example/mcp?t=1", "https://a.example/mcp?t=1", true},
        {"https://a.example/mcp?t=2", "https://a.example/mcp?t=1", false},
        {"https://a.example@evil.example/mcp", "https://a.example/mcp", false},
        {"urn:a", "https://a.example/mcp", false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct url_parts u;
        assert_true(url_read(&u, span_str(rows[i].url)));
        assert_int_equal(oauth_resource_covers(rows[i].resource, &u), rows[i].covers);
    }
}

#define AS_HEAD "{\"issuer\":\"https://as.example\",\"token_endpoint\":\"https://as.example/t\""

static void test_server(void **state)
{
    static const struct doc_row rows[] = {
        {AS_HEAD ",\"authorization_endpoint\":\"https://other.example/a?x=1\","
                 "\"response_types_supported\":[\"code\"],"
                 "\"code_challenge_methods_supported\":[\"plain\",\"S256\"],"
                 "\"token_endpoint_auth_methods_supported\":[\"none\",\"private_key_jwt\",\"x\"],"
                 "\"scopes_supported\":[\"offline_access\"],"
                 "\"client_id_metadata_document_supported\":true,"
                 "\"authorization_response_iss_parameter_supported\":true}",
         NULL},
        {AS_HEAD ",\"registration_endpoint\":null}", NULL},
        {"{\"issuer\":\"https://as.example/\",\"token_endpoint\":\"https://as.example/t\"}", NULL},
        {"{\"issuer\":\"https://as.example\"}",
         "the metadata of the authorization server has no 'to"},
        {"{\"token_endpoint\":\"https://as.example/t\"}",
         "the metadata of the authorization server"},
        {"{\"issuer\":\"https://as.example/x\",\"token_endpoint\":\"https://as.example/t\"}",
         "the authorization server 'https://as.example' calls itself 'https://as.example/x'"},
        {"{\"issuer\":\"https://AS.example\",\"token_endpoint\":\"https://as.example/t\"}",
         "the authorization server 'https://as.example' calls itself 'https://AS.example'"},
        {AS_HEAD ",\"authorization_endpoint\":\"file:///etc/passwd\"}",
         "the metadata of the authorization server has a 'authorization_endpoint'"},
        {AS_HEAD ",\"authorization_endpoint\":\"https://as.example/`id`\"}",
         "the metadata of the authorization server has a 'authorization_endpoint'"},
        {AS_HEAD ",\"registration_endpoint\":\"http://as.example/\"}",
         "the metadata of the authorization server has a 'registration_endpoint'"},
        {AS_HEAD ",\"registration_endpoint\":[]}",
         "the metadata of the authorization server has a 'registration_endpoint'"},
        {AS_HEAD ",\"issuer\":\"https://as.example\"}",
         "the metadata of the authorization server has a member twice"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct oauth_server s;
        struct arena arena = {0};
        struct err err = {0};
        int code =
            oauth_read_server(&s, span_str(rows[i].text), "https://as.example", &arena, &err);
        assert_int_equal(code != 0, rows[i].error != NULL);
        if (rows[i].error)
            assert_true(span_starts(span_str(err.text), span_str(rows[i].error)));
        if (i == 0) {
            assert_string_equal(s.authorize, "https://other.example/a?x=1");
            assert_int_equal(s.methods, 1u << OAUTH_NONE | 1u << OAUTH_JWT);
            assert_true(s.has_code && s.has_s256 && s.says_iss && s.takes_urls && s.offers_offline);
        }
        if (i == 1) {
            assert_null(s.registration);
            assert_int_equal(s.methods, 1u << OAUTH_BASIC);
            assert_false(s.has_s256 || s.says_iss || s.takes_urls);
        }
        arena_fini(&arena);
    }
}

static void test_token(void **state)
{
    static const struct doc_row rows[] = {
        {"{\"access_token\":\"a.b-c_~+/=\",\"token_type\":\"bearer\",\"expires_in\":\"60\","
         "\"refresh_token\":\"r\",\"scope\":\"x y\"}",
         NULL},
        {"{\"access_token\":\"a\",\"token_type\":\"Bearer\",\"scope\":\"\"}", NULL},
        {"{\"access_token\":\"a\"}", "the answer to the token request has a 'token_type'"},
        {"{\"access_token\":\"a\",\"token_type\":\"mac\"}",
         "the answer to the token request has a 'token_type'"},
        {"{\"token_type\":\"Bearer\"}", "the answer to the token request has no 'access_token'"},
        {"{\"access_token\":\"a\\r\\nX: y\",\"token_type\":\"Bearer\"}",
         "the answer to the token request has a 'access_token'"},
        {"{\"access_token\":\"a b\",\"token_type\":\"Bearer\"}",
         "the answer to the token request has a 'access_token'"},
        {"{\"access_token\":\"a\",\"token_type\":\"Bearer\",\"expires_in\":-1}",
         "the answer to the token request has a 'expires_in'"},
        {"{\"access_token\":\"a\",\"token_type\":\"Bearer\",\"expires_in\":1e99}",
         "the answer to the token request has a 'expires_in'"},
        {"{\"access_token\":\"a\",\"token_type\":\"Bearer\",\"refresh_token\":\"\\u0000\"}",
         "the answer to the token request has a 'refresh_token'"},
        {"{\"access_token\":\"a\",\"token_type\":\"Bearer\",\"error\":\"x\"}",
         "the answer to the token request has an 'error'"},
        {"{\"access_token\":\"a\",\"access_token\":\"b\",\"token_type\":\"Bearer\"}",
         "the answer to the token request has a member twice"},
        {"{\"access_token\":\"a\"", "the answer to the token request is not a JSON object"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct oauth_token t;
        struct arena arena = {0};
        struct err err = {0};
        int code = oauth_read_token(&t, span_str(rows[i].text), false, &arena, &err);
        assert_int_equal(code != 0, rows[i].error != NULL);
        if (rows[i].error)
            assert_true(span_starts(span_str(err.text), span_str(rows[i].error)));
        if (i == 0) {
            assert_string_equal(t.access, "a.b-c_~+/=");
            assert_string_equal(t.scope, "x y");
            assert_int_equal(t.expires_in, 60);
        }
        if (i == 1) {
            assert_null(t.scope);
            assert_int_equal(t.expires_in, -1);
        }
        arena_fini(&arena);
    }
}

static void test_others(void **state)
{
    struct arena arena = {0};
    struct err err;
    struct oauth_client client;
    struct oauth_device device;
    struct oauth_error error;

    (void)state;
    assert_int_equal(
        oauth_read_client(&client,
                          SPAN("{\"client_id\":\"i\",\"client_secret\":\"s\","
                               "\"client_secret_expires_at\":0,"
                               "\"token_endpoint_auth_method\":\"client_secret_post\"}"),
                          &arena, &err),
        0);
    assert_int_equal(client.method, OAUTH_POST);
    assert_int_equal(oauth_read_client(&client, SPAN("{\"client_id\":\"i\"}"), &arena, &err), 0);
    assert_int_equal(client.method, -1);
    assert_true(oauth_read_client(&client, SPAN("{\"client_id\":\"\"}"), &arena, &err) < 0);
    assert_int_equal(
        oauth_read_device(&device,
                          SPAN("{\"device_code\":\"d\",\"user_code\":\"A-B\",\"verification_uri\":"
                               "\"https://as.example/device\",\"expires_in\":30,\"interval\":0}"),
                          &arena, &err),
        0);
    assert_int_equal(device.interval, 1);
    assert_true(oauth_read_device(&device,
                                  SPAN("{\"device_code\":\"d\",\"user_code\":\"A-B\","
                                       "\"verification_uri\":\"javascript:alert(1)\"}"),
                                  &arena, &err) < 0);
    oauth_read_error(
        &error, SPAN("{\"error\":\"invalid_grant\",\"error_description\":\"a\\u001b\"}"), &arena);
    assert_string_equal(error.code, "invalid_grant");
    assert_string_equal(error.description, "a?");
    oauth_read_error(&error, SPAN("<html>"), &arena);
    assert_null(error.code);
    arena_fini(&arena);
}

static void test_scopes(void **state)
{
    struct buf out = {0};

    (void)state;
    assert_true(oauth_is_scope(SPAN("a b:c")));
    assert_false(oauth_is_scope(SPAN("a  b")) || oauth_is_scope(SPAN(" a")) ||
                 oauth_is_scope(SPAN("a\"")) || oauth_is_scope(SPAN("")));
    assert_true(oauth_scope_has("a b c", "c a") && oauth_scope_has("a", "") &&
                oauth_scope_has(NULL, NULL));
    assert_false(oauth_scope_has("ab", "a") || oauth_scope_has(NULL, "a"));
    oauth_scope_join(&out, "a b");
    oauth_scope_join(&out, NULL);
    oauth_scope_join(&out, "b c");
    assert_string_equal(buf_cstr(&out), "a b c");
    buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resource), cmocka_unit_test(test_covers),
        cmocka_unit_test(test_server),   cmocka_unit_test(test_token),
        cmocka_unit_test(test_others),   cmocka_unit_test(test_scopes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
