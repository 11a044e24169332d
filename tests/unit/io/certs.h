/*
 * certs: generates authorities and certificates as PEM files in a temporary folder.
 */
#ifndef RIALTO_TESTS_CERTS_H
#define RIALTO_TESTS_CERTS_H

#include "io_test.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

/* A key with its certificate. */
struct identity {
    EVP_PKEY *key;
    X509 *cert;
    char cert_file[128], key_file[128];
};

struct cert_spec {
    const char *name;        /* of the files, and of the subject */
    const char *sans;        /* "DNS:localhost,IP:127.0.0.1"; NULL for an authority */
    long from_s, to_s;       /* seconds from now */
    struct identity *issuer; /* NULL: self-signed */
};

static inline void add_extension(X509 *cert, int nid, const char *text)
{
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, NULL, nid, text);
    assert_non_null(e);
    assert_int_equal(X509_add_ext(cert, e, -1), 1);
    X509_EXTENSION_free(e);
}

static inline void write_pem(const struct identity *id)
{
    FILE *f = fopen(id->cert_file, "w");
    assert_non_null(f);
    assert_int_equal(PEM_write_X509(f, id->cert), 1);
    fclose(f);
    f = fopen(id->key_file, "w");
    assert_non_null(f);
    assert_int_equal(PEM_write_PrivateKey(f, id->key, NULL, NULL, 0, NULL, NULL), 1);
    fclose(f);
    chmod(id->key_file, 0600);
}

static inline void identity_init(struct identity *id, const char *dir, const struct cert_spec *spec)
{
    static long serial = 1;
    const struct identity *issuer = spec->issuer ? spec->issuer : id;

    id->key = EVP_EC_gen("P-256");
    id->cert = X509_new();
    assert_non_null(id->key);
    X509_set_version(id->cert, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(id->cert), serial++);
    X509_gmtime_adj(X509_getm_notBefore(id->cert), spec->from_s);
    X509_gmtime_adj(X509_getm_notAfter(id->cert), spec->to_s);
    X509_set_pubkey(id->cert, id->key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(id->cert), "CN", MBSTRING_ASC,
                               (const unsigned char *)spec->name, -1, -1, 0);
    X509_set_issuer_name(id->cert, X509_get_subject_name(issuer->cert));
    if (spec->sans)
        add_extension(id->cert, NID_subject_alt_name, spec->sans);
    else
        add_extension(id->cert, NID_basic_constraints, "critical,CA:TRUE");
    assert_true(X509_sign(id->cert, issuer->key, EVP_sha256()) > 0);
    snprintf(id->cert_file, sizeof id->cert_file, "%s/%s.pem", dir, spec->name);
    snprintf(id->key_file, sizeof id->key_file, "%s/%s.key", dir, spec->name);
    write_pem(id);
}

static inline void identity_fini(struct identity *id)
{
    unlink(id->cert_file);
    unlink(id->key_file);
    X509_free(id->cert);
    EVP_PKEY_free(id->key);
}

#endif
