/* Callers from the network: known and unknown tokens, and addresses that may not be opened without
 * tokens. */
#include "../config/config_test.h"
#include "../io/io_test.h"
#include "../unit.h"

#include "config/units.h"
#include "hub/auth/gate.h"

#include <time.h>

/* Three owners. Their tokens are "apple", "pear" and "plum"; the file has only hashes. */
static const char orchard[] =
    "auth:\n"
    "  tokens:\n"
    "    - {name: ann, hash: "
    "'sha256:3a7bd3e2360a3d29eea436fcfb7e44c735d117c42d1c1835420b6b9942dd4f1b'}\n"
    "    - {name: ben, hash: "
    "'sha256:97cfbe87531abe0c6bac7b21d616cb422faaa158a9f2ae7e8685c79eb85fc65e'}\n"
    "    - {name: cid, hash: "
    "'sha256:0467255695084cc12ffe0c55105907f74a9c189314b9fe87b878eb6fee787b99'}\n";

/* A gate to which tests apply one configuration after the other. */
struct keeper {
    struct loop *loop;
    struct gate *gate;
    int n_ended; /* calls of the callback of gate_on_change */
};

static void note_ended(void *arg)
{
    struct keeper *k = arg;

    k->n_ended++;
}

static void keep(struct keeper *k)
{
    *k = (struct keeper){.loop = loop_new()};
    k->gate = gate_new(k->loop);
    gate_on_change(k->gate, note_ended, NULL, k);
}

static void follow(struct keeper *k, const char *yaml)
{
    struct problems warnings = {0};
    struct config *c = config_parse(span_str(yaml), CONFIG_YAML, &warnings);

    assert_non_null(c);
    gate_apply(k->gate, c);
    config_free(c);
    problems_fini(&warnings);
}

static void leave(struct keeper *k)
{
    gate_free(k->gate);
    loop_free(k->loop);
}

/* The pass for this Authorization header; NULL if the token is not known. */
static const struct pass *find(struct gate *g, const char *authorization)
{
    struct http_header headers[] = {{SPAN("Host"), SPAN("localhost")},
                                    {SPAN("Authorization"), span_str(authorization)}};

    return gate_judge(g, NULL,
                      &(struct http_request){.headers = headers, .n_headers = COUNT_OF(headers)})
        .pass;
}

static const char *name_of(struct gate *g, const char *authorization)
{
    const struct pass *found = find(g, authorization);

    return found ? found->who->name : "nobody";
}

/* The owner is found wherever the token is in the table; the scheme ignores case (RFC 7235), and
 * blanks around the token are not part of it. */
static void a_token_of_ours_is_found(void **state)
{
    struct keeper k;

    (void)state;
    keep(&k);
    follow(&k, orchard);
    struct gate *g = k.gate;
    assert_string_equal(name_of(g, "Bearer apple"), "ann");
    assert_string_equal(name_of(g, "Bearer pear"), "ben");
    assert_string_equal(name_of(g, "Bearer plum"), "cid");
    assert_string_equal(name_of(g, "bEARER   pear "), "ben");
    leave(&k);
}

static void any_other_is_nobodys(void **state)
{
    static const char *const strangers[] = {
        "", "Bearer", "Bearer ", "Bearer appl", "Bearer apples", "Bearer Apple", "apple",
        "Basic apple", "Digest apple", "Bearerapple", "Bearer apple pear",
        /* A hash is no token: more people may read the file than should have access. */
        "Bearer sha256:3a7bd3e2360a3d29eea436fcfb7e44c735d117c42d1c1835420b6b9942dd4f1b",
        "Bearer 3a7bd3e2360a3d29eea436fcfb7e44c735d117c42d1c1835420b6b9942dd4f1b"};
    struct keeper k;

    (void)state;
    keep(&k);
    follow(&k, orchard);
    struct gate *g = k.gate;
    for (size_t i = 0; i < COUNT_OF(strangers); i++)
        assert_string_equal(name_of(g, strangers[i]), "nobody");
    assert_null(gate_judge(g, NULL, &(struct http_request){.n_headers = 0}).pass);
    leave(&k);
}

/* All 32 bytes count: two hashes that differ only in the last digit are different. */
static void the_whole_hash_is_compared(void **state)
{
    char hash[GATE_HASH_SIZE];
    struct buf yaml = {0};
    struct keeper k;

    (void)state;
    keep(&k);
    gate_hash(SPAN("apple"), hash);
    hash[70] = hash[70] == '0' ? '1' : '0';
    buf_printf(&yaml, "auth: {tokens: [{name: ann, hash: '%s'}]}", hash);
    follow(&k, buf_cstr(&yaml));
    assert_string_equal(name_of(k.gate, "Bearer apple"), "nobody");
    leave(&k);
    buf_fini(&yaml);
}

/* Without auth.tokens everybody is admitted; an empty list, which is left when the last token is
 * revoked, admits nobody. */
static void an_empty_list_lets_nobody_in(void **state)
{
    struct keeper k;

    (void)state;
    keep(&k);
    follow(&k, "{}");
    assert_false(gate_asks(k.gate));
    assert_string_equal(name_of(k.gate, "Bearer apple"), "nobody");
    follow(&k, "auth: {tokens: []}");
    assert_true(gate_asks(k.gate));
    assert_string_equal(name_of(k.gate, "Bearer apple"), "nobody");
    assert_int_equal(k.n_ended, 1); /* for the callers without a token */
    leave(&k);
}

#define APPLE "'sha256:3a7bd3e2360a3d29eea436fcfb7e44c735d117c42d1c1835420b6b9942dd4f1b'"
#define PEAR  "'sha256:97cfbe87531abe0c6bac7b21d616cb422faaa158a9f2ae7e8685c79eb85fc65e'"

/* After a reload the same token has the same principal, with its counts and the new limits. The
 * principal of a token that is removed, or gets another hash or view, ends; the callback is called
 * once for all of them. */
static void tokens_come_and_go_while_it_runs(void **state)
{
    struct keeper k;

    (void)state;
    keep(&k);
    follow(&k, "auth: {tokens: [{name: ann, hash: " APPLE "}, {name: ben, hash: " PEAR "}]}");
    struct principal *ann = principal_hold(find(k.gate, "Bearer apple")->who);
    struct principal *ben = principal_hold(find(k.gate, "Bearer pear")->who);
    k.n_ended = 0;

    follow(&k, "auth: {tokens: [{name: ben, hash: " PEAR ", limits: {in_flight: 2}}, "
               "{name: ann, hash: " APPLE "}]}");
    assert_ptr_equal(find(k.gate, "Bearer apple")->who, ann);
    assert_ptr_equal(find(k.gate, "Bearer pear")->who, ben);
    assert_int_equal(ben->limits.in_flight, 2);
    assert_int_equal(k.n_ended, 0);

    follow(&k, "{views: {v: {}}, auth: {tokens: [{name: ben, hash: " PEAR ", view: v}]}}");
    assert_true(ann->ended);
    assert_true(ben->ended);
    assert_int_equal(k.n_ended, 1);
    assert_string_equal(name_of(k.gate, "Bearer apple"), "nobody");
    assert_string_equal(find(k.gate, "Bearer pear")->view, "v");
    assert_int_equal(find(k.gate, "Bearer pear")->role, ROLE_AGENT);
    principal_release(ann);
    principal_release(ben);
    leave(&k);
}

/* A token expires at its time without a reload; an expired token is refused from the start. */
static void a_token_expires_at_its_time(void **state)
{
    struct keeper k;
    struct timespec now;
    struct buf yaml = {0};

    (void)state;
    keep(&k);
    clock_gettime(CLOCK_REALTIME, &now);
    buf_str(&yaml,
            "auth: {tokens: [{name: ann, hash: " APPLE
            ", expires: '2024-02-29T12:00:00+01:00'}, {name: ben, hash: " PEAR ", expires: '");
    units_put_time(&yaml, (int64_t)now.tv_sec * 1000 + 3000);
    buf_str(&yaml, "'}]}");
    follow(&k, buf_cstr(&yaml));
    k.n_ended = 0;
    assert_string_equal(name_of(k.gate, "Bearer apple"), "nobody");
    assert_string_equal(name_of(k.gate, "Bearer pear"), "ben");
    struct principal *ben = principal_hold(find(k.gate, "Bearer pear")->who);
    WAIT(k.loop, ben->ended);
    assert_int_equal(k.n_ended, 1);
    assert_string_equal(name_of(k.gate, "Bearer pear"), "nobody");
    principal_release(ben);
    leave(&k);
    buf_fini(&yaml);
}

/* The form that the file wants: the example of the standard (FIPS 180-2), and the empty text. */
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
    struct config *c = read_config(yaml);
    struct problems problems = {0};

    gate_check(c, &problems);
    assert_problems(&problems, expected);
    problems_fini(&problems);
    config_free(c);
}

/* An address that other machines can reach, without a rule who may use it, is an error. There is
 * one error for each such address, and it names both solutions. */
static void an_open_address_needs_tokens_or_a_word(void **state)
{
#define OPEN(address)                                                                              \
    "listen: other machines reach " address ", and there are no tokens; add auth.tokens ('rialto " \
    "token add NAME' makes one), or say that everybody may use all servers, auth: "                \
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
        cmocka_unit_test(an_empty_list_lets_nobody_in),
        cmocka_unit_test(tokens_come_and_go_while_it_runs),
        cmocka_unit_test(a_token_expires_at_its_time),
        cmocka_unit_test(a_hash_is_printed_as_the_file_wants_it),
        cmocka_unit_test(an_open_address_needs_tokens_or_a_word),
        cmocka_unit_test(with_either_it_may_be_opened),
        cmocka_unit_test(what_only_this_machine_reaches_needs_neither),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
