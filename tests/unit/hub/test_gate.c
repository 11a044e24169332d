/* Who comes by the network: tokens that are known and tokens that are not, and the addresses that
 * may not be opened without any. */
#include "../config/config_test.h"
#include "../io/io_test.h"
#include "../unit.h"

#include "config/units.h"
#include "hub/gate.h"

#include <time.h>

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

/* A gate with the tokens of one configuration after the other. */
struct keeper {
    struct loop *loop;
    struct gate *gate;
    int n_ended; /* times that the owner of the gate was told */
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
    struct config *c = config_parse(span_str(yaml), CONFIG_YAML, false, &warnings);

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

/* The name of the guest who sends this Authorization header; "nobody" when it is none of ours. */
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

/* Wherever in the table a token stands, its owner is found; the scheme is a word in any case
 * (RFC 7235), and blanks around the token are none of its bytes. */
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
        /* The hash is in a file that more people may read than should be let in. */
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

/* All 32 bytes count: two hashes that differ in their last digit alone are two. */
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

/* Without the key everybody is let in; an empty list, which is what revoking the last token leaves,
 * lets nobody in. */
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
    assert_int_equal(k.n_ended, 1); /* those who came without a token */
    leave(&k);
}

#define APPLE "'sha256:3a7bd3e2360a3d29eea436fcfb7e44c735d117c42d1c1835420b6b9942dd4f1b'"
#define PEAR  "'sha256:97cfbe87531abe0c6bac7b21d616cb422faaa158a9f2ae7e8685c79eb85fc65e'"

/* The same token is the same principal after a reload, with its counts, and gets the new limits;
 * one that is taken out, gets another token or another view is at its end, and the owner of the
 * gate hears of it once. */
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

/* At its time a token ends by itself; one whose time is over is nobody's from the start. */
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
