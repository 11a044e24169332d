/* Who comes by the network: tokens that are known and tokens that are not, and the addresses that
 * may not be opened without any. */
#include "../config/config_test.h"
#include "../unit.h"

#include "hub/gate.h"

/* Three guests. The tokens are "apple", "pear" and "plum"; of them only hashes are known. */
static const char orchard[] =
    "auth:\n"
    "  tokens:\n"
    "    - {name: ann, hash: "
    "'sha256:3a7bd3e2360a3d29eea436fcfb7e44c735d117c42d1c1835420b6b9942dd4f1b'}\n"
    "    - {name: ben, hash: "
    "'sha256:97cfbe87531abe0c6bac7b21d616cb422faaa158a9f2ae7e8685c79eb85fc65e'}\n"
    "    - {name: cid, hash: "
    "'sha256:0467255695084cc12ffe0c55105907f74a9c189314b9fe87b878eb6fee787b99'}\n";

/* The name of the guest who sends this Authorization header; "nobody" when it is none of ours. */
static const char *name_of(const struct gate *g, const char *authorization)
{
    struct http_header headers[] = {{SPAN("Host"), SPAN("localhost")},
                                    {SPAN("Authorization"), span_str(authorization)}};
    const struct config_token *found =
        gate_find(g, &(struct http_request){.headers = headers, .n_headers = COUNT_OF(headers)});

    return found ? found->name : "nobody";
}

/* Wherever in the table a token stands, its owner is found; the scheme is a word in any case
 * (RFC 7235), and blanks around the token are none of its bytes. */
static void a_token_of_ours_is_found(void **state)
{
    struct config *c = read_config(orchard, false);
    struct gate *g = gate_new(c);

    (void)state;
    assert_string_equal(name_of(g, "Bearer apple"), "ann");
    assert_string_equal(name_of(g, "Bearer pear"), "ben");
    assert_string_equal(name_of(g, "Bearer plum"), "cid");
    assert_string_equal(name_of(g, "bEARER   pear "), "ben");
    gate_free(g);
    config_free(c);
}

static void any_other_is_nobodys(void **state)
{
    static const char *const strangers[] = {
        "", "Bearer", "Bearer ", "Bearer appl", "Bearer apples", "Bearer Apple", "apple",
        "Basic apple", "Digest apple", "Bearerapple", "Bearer apple pear",
        /* The hash is in a file that more people may read than should be let in. */
        "Bearer sha256:3a7bd3e2360a3d29eea436fcfb7e44c735d117c42d1c1835420b6b9942dd4f1b",
        "Bearer 3a7bd3e2360a3d29eea436fcfb7e44c735d117c42d1c1835420b6b9942dd4f1b"};
    struct config *c = read_config(orchard, false);
    struct gate *g = gate_new(c);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(strangers); i++)
        assert_string_equal(name_of(g, strangers[i]), "nobody");
    assert_null(gate_find(g, &(struct http_request){.n_headers = 0}));
    gate_free(g);
    config_free(c);
}

/* All 32 bytes count: two hashes that differ in their last digit alone are two. */
static void the_whole_hash_is_compared(void **state)
{
    char hash[GATE_HASH_SIZE];
    struct buf yaml = {0};

    (void)state;
    gate_hash(SPAN("apple"), hash);
    hash[70] = hash[70] == '0' ? '1' : '0';
    buf_printf(&yaml, "auth: {tokens: [{name: ann, hash: '%s'}]}", hash);
    struct config *c = read_config(buf_cstr(&yaml), false);
    struct gate *g = gate_new(c);
    assert_string_equal(name_of(g, "Bearer apple"), "nobody");
    gate_free(g);
    config_free(c);
    buf_fini(&yaml);
}

/* Without tokens there is no gate: the caller lets everybody in. */
static void without_tokens_there_is_none(void **state)
{
    struct config *c = config_default();

    (void)state;
    assert_null(gate_new(c));
    gate_free(NULL);
    config_free(c);
}

/* As it is to stand in the file: the example of the standard (FIPS 180-2), and that of nothing. */
static void a_hash_is_printed_as_the_file_wants_it(void **state)
{
    char hash[GATE_HASH_SIZE];

    (void)state;
    gate_hash(SPAN("abc"), hash);
    assert_string_equal(hash,
                        "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    gate_hash(SPAN_EMPTY, hash);
    assert_string_equal(hash,
                        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

static void check(const char *yaml, const char *expected)
{
    struct config *c = read_config(yaml, false);
    struct problems problems = {0};

    gate_check(c, &problems);
    assert_problems(&problems, expected);
    problems_fini(&problems);
    config_free(c);
}

/* Other machines reach it, and nobody has said who may come: that is an error, once for each such
 * address, which says both ways out. */
static void an_open_address_needs_tokens_or_a_word(void **state)
{
#define OPEN(address)                                                                              \
    "listen: other machines reach " address ", and there are no tokens; add auth.tokens ('rialto " \
    "config --new-token NAME' makes one), or say that everybody may use all servers, auth: "       \
    "{anonymous: true}\n"
    (void)state;
    check("listen: 0.0.0.0:7", OPEN("0.0.0.0:7"));
    check("listen: ['127.0.0.1:7', '[::]:8', '192.0.2.1:9']", OPEN("[::]:8") OPEN("192.0.2.1:9"));
    check("{listen: 0.0.0.0:7, auth: {anonymous: false}}", OPEN("0.0.0.0:7"));
#undef OPEN
}

static void with_either_it_may_be_opened(void **state)
{
    struct buf yaml = {0};

    (void)state;
    check("{listen: 0.0.0.0:7, auth: {anonymous: true}}", "");
    buf_printf(&yaml, "listen: 0.0.0.0:7\n%s", orchard);
    check(buf_cstr(&yaml), "");
    buf_fini(&yaml);
}

static void what_only_this_machine_reaches_needs_neither(void **state)
{
    (void)state;
    check("listen: ['127.0.0.1:7', '[::1]:7', 'localhost:7', 'unix:/tmp/x.sock']", "");
    check("{}", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_of_ours_is_found),
        cmocka_unit_test(any_other_is_nobodys),
        cmocka_unit_test(the_whole_hash_is_compared),
        cmocka_unit_test(without_tokens_there_is_none),
        cmocka_unit_test(a_hash_is_printed_as_the_file_wants_it),
        cmocka_unit_test(an_open_address_needs_tokens_or_a_word),
        cmocka_unit_test(with_either_it_may_be_opened),
        cmocka_unit_test(what_only_this_machine_reaches_needs_neither),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
