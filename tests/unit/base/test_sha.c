/* Digests and HMAC: the examples of the standards, and texts of every length around the block
 * boundaries compared with OpenSSL. */
#include "../unit.h"

#include "base/blake.h"
#include "base/sha.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

static void expect_hex(const unsigned char *digest, size_t n, const char *hex)
{
    char text[2 * SHA256_N + 1];

    for (size_t i = 0; i < n; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
    assert_string_equal(text, hex);
}

/* The examples of FIPS 180-4, and the empty text. */
static void test_examples(void **state)
{
    unsigned char digest[SHA256_N];

    (void)state;
    sha_1(digest, SPAN("abc"));
    expect_hex(digest, SHA1_N, "a9993e364706816aba3e25717850c26c9cd0d89d");
    sha_1(digest, SPAN_EMPTY);
    expect_hex(digest, SHA1_N, "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    sha_256(digest, SPAN("abc"));
    expect_hex(digest, SHA256_N,
               "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    sha_256(digest, SPAN_EMPTY);
    expect_hex(digest, SHA256_N,
               "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    sha_256(digest, SPAN("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"));
    expect_hex(digest, SHA256_N,
               "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

static void test_every_length(void **state)
{
    unsigned char ours[SHA256_N], theirs[EVP_MAX_MD_SIZE];
    char text[300];

    (void)state;
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)(i * 37 + 11);
    for (size_t n = 0; n <= sizeof text; n++) {
        struct span part = span_of(text, n);
        unsigned length;
        sha_1(ours, part);
        assert_true(EVP_Digest(text, n, theirs, NULL, EVP_sha1(), NULL));
        assert_memory_equal(ours, theirs, SHA1_N);
        sha_256(ours, part);
        assert_true(EVP_Digest(text, n, theirs, NULL, EVP_sha256(), NULL));
        assert_memory_equal(ours, theirs, SHA256_N);
        /* The text is also the key: so keys are shorter than a block, as long, and longer. */
        sha_hmac(ours, part, part);
        assert_non_null(
            HMAC(EVP_sha256(), text, (int)n, (unsigned char *)text, n, theirs, &length));
        assert_memory_equal(ours, theirs, SHA256_N);
    }
}

static void test_same(void **state)
{
    const unsigned char a[] = "secret", b[] = "secreT";

    (void)state;
    assert_true(sha_same(a, a, sizeof a));
    assert_false(sha_same(a, b, sizeof a));
    assert_true(sha_same(a, b, 5));
}

/* BLAKE2b at every length around its block boundaries, compared with OpenSSL. */
static void test_blake(void **state)
{
    unsigned char ours[BLAKE_2B_N], theirs[EVP_MAX_MD_SIZE];
    char text[400];

    (void)state;
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)(i * 7);
    for (size_t n = 0; n < sizeof text; n++) {
        blake_2b(ours, span_of(text, n));
        assert_int_equal(EVP_Digest(text, n, theirs, NULL, EVP_blake2b512(), NULL), 1);
        assert_memory_equal(ours, theirs, sizeof ours);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_examples),
        cmocka_unit_test(test_blake),
        cmocka_unit_test(test_every_length),
        cmocka_unit_test(test_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
