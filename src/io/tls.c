/* OpenSSL: contexts from certificate files, one connection between memory buffers, errors in words
 * for people. Connections are called by stream_tls.c; contexts are made by http_server.c,
 * ws_connect.c, bus/amqp.c, bus/nats_link.c and hub/tls_files.c. */
#include "io/tls.h"

#include "base/library.h"
#include "base/log.h"
#include "base/mem.h"
#include "io/authorities.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { READ_ENOUGH = 16 * 1024 }; /* room for one whole record */

struct tls_context {
    SSL_CTX *ssl;
    unsigned holders;
};

struct tls {
    SSL *ssl;
    BIO *in, *out; /* owned by ssl */
    bool ended;    /* the peer has closed its side */
    bool broken;
    bool plain_http;
    char why[256];
};

/* --- why a connection failed --- */

/* What is wrong with a server's certificate, by OpenSSL's verification code. */
static const struct {
    long code;
    const char *text;
} verdicts[] = {
    {X509_V_ERR_CERT_HAS_EXPIRED, "the server's certificate has expired"},
    {X509_V_ERR_CERT_NOT_YET_VALID, "the server's certificate is not valid yet"},
    {X509_V_ERR_HOSTNAME_MISMATCH,
     "the hostname does not match the server's certificate, which is for another one"},
    {X509_V_ERR_IP_ADDRESS_MISMATCH,
     "the address does not match the server's certificate, which is for another one"},
    {X509_V_ERR_CERT_REVOKED, "the server's certificate was revoked"},
    {X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT,
     "the server's certificate is signed by itself; to trust it, name its file in 'ca'"},
    {X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN,
     "the server's certificate is from an unknown authority; to trust that, name its file in "
     "'ca'"},
    {X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
     "the server's certificate is from an unknown authority; to trust that, name its file in "
     "'ca'"},
};

static const struct {
    int reason;
    const char *text;
} failures[] = {
    {SSL_R_HTTP_REQUEST, "the client speaks HTTP without TLS"},
    {SSL_R_WRONG_VERSION_NUMBER, "the peer does not speak TLS"},
    {SSL_R_UNSUPPORTED_PROTOCOL, "the peer's version of TLS is too old: 1.2 or newer is needed"},
    {SSL_R_TLSV1_ALERT_PROTOCOL_VERSION, "the peer knows no version of TLS that we take"},
    {SSL_R_NO_SHARED_CIPHER, "the peer knows no cipher that we take"},
    {SSL_R_NO_APPLICATION_PROTOCOL, "the client takes no HTTP/1.1 (ALPN)"},
    {SSL_R_TLSV1_ALERT_UNKNOWN_CA, "the peer does not know who signed our certificate"},
    {SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED, "to the peer our certificate has expired"},
    {SSL_R_SSLV3_ALERT_BAD_CERTIFICATE, "the peer does not accept our certificate"},
    {SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN, "the peer does not accept our certificate"},
    {SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED, "the server wants a certificate of its clients"},
};

static const char *verdict_of(const SSL *ssl)
{
    long code = SSL_get_verify_result(ssl);

    for (size_t i = 0; i < COUNT_OF(verdicts); i++)
        if (verdicts[i].code == code)
            return verdicts[i].text;
    return X509_verify_cert_error_string(code);
}

/* OpenSSL keeps a queue of errors for the whole thread: the oldest is the cause, and the queue must
 * be empty for the next connection. */
static void set_broken(struct tls *t)
{
    unsigned long error = ERR_peek_error();
    int reason = ERR_GET_REASON(error);
    const char *text = error ? ERR_reason_error_string(error) : NULL;

    for (size_t i = 0; i < COUNT_OF(failures); i++)
        if (ERR_GET_LIB(error) == ERR_LIB_SSL && failures[i].reason == reason)
            text = failures[i].text;
    if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED)
        text = verdict_of(t->ssl);
    snprintf(t->why, sizeof t->why, "TLS: %s", text ? text : "the connection broke");
    t->broken = true;
    t->plain_http = ERR_GET_LIB(error) == ERR_LIB_SSL && reason == SSL_R_HTTP_REQUEST;
    ERR_clear_error();
}

/* --- contexts --- */

static SSL_CTX *new_context(const SSL_METHOD *method)
{
    SSL_CTX *ssl = SSL_CTX_new(method);

    if (!ssl)
        abort(); /* no memory */
    SSL_CTX_set_min_proto_version(ssl, TLS1_2_VERSION);
    SSL_CTX_set_options(ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    /* An idle connection then holds no record buffers: 18 KB instead of 50. */
    SSL_CTX_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    return ssl;
}

static const unsigned char our_protocols[] = "\x08http/1.1";

/* A client that offers protocols without http/1.1 is refused: we could not read its requests. */
static int choose_protocol(SSL *ssl, const unsigned char **chosen, unsigned char *n,
                           const unsigned char *offered, unsigned n_offered, void *arg)
{
    unsigned char *found;

    (void)ssl, (void)arg;
    int rc = SSL_select_next_proto(&found, n, our_protocols, sizeof our_protocols - 1, offered,
                                   n_offered);
    *chosen = found;
    return rc == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* Never ask for a passphrase at the terminal. */
static int no_passphrase(char *text, int size, int writing, void *asked)
{
    (void)text, (void)size, (void)writing;
    *(bool *)asked = true;
    return -1;
}

static int cannot_use(struct err *err, const char *what, const char *file)
{
    FILE *f = fopen(file, "re");
    unsigned long error = ERR_peek_last_error();
    const char *why = ERR_reason_error_string(error);

    if (!f)
        why = strerror(errno);
    else if (ERR_GET_REASON(error) == PEM_R_NO_START_LINE && ERR_GET_LIB(error) == ERR_LIB_PEM)
        why = "there is none in PEM form in it";
    if (f)
        fclose(f);
    err_set(err, ERR_CONFIG, "cannot use the %s in %s: %s", what, file, why ? why : "it is broken");
    ERR_clear_error();
    return ERR_CONFIG;
}

static int load_identity(SSL_CTX *ssl, const char *cert, const char *key, struct err *err)
{
    bool asked = false;

    SSL_CTX_set_default_passwd_cb(ssl, no_passphrase);
    SSL_CTX_set_default_passwd_cb_userdata(ssl, &asked);
    if (SSL_CTX_use_certificate_chain_file(ssl, cert) != 1) {
        cannot_use(err, "certificate", cert);
        err_hint(err, "it takes the server's certificate, and those between it and its authority");
        return ERR_CONFIG;
    }
    int loaded = SSL_CTX_use_PrivateKey_file(ssl, key, SSL_FILETYPE_PEM);
    SSL_CTX_set_default_passwd_cb_userdata(ssl, NULL);
    SSL_CTX_set_default_passwd_cb(ssl, NULL);
    if (loaded == 1)
        return 0;
    if (asked) {
        ERR_clear_error();
        err_set(err, ERR_CONFIG, "cannot use the private key in %s: it needs a passphrase", key);
        err_hint(err, "write it without one: openssl pkey -in %.100s -out NEW", key);
        return ERR_CONFIG;
    }
    if (ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH ||
        ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_TYPE_MISMATCH) {
        ERR_clear_error();
        err_set(err, ERR_CONFIG, "the private key in %s does not belong to the certificate in %s",
                key, cert);
        err_hint(err, "both must come from the same request");
        return ERR_CONFIG;
    }
    return cannot_use(err, "private key", key);
}

static struct tls_context *wrap(SSL_CTX *ssl)
{
    struct tls_context *c = MEM_NEW(struct tls_context);

    c->ssl = ssl;
    c->holders = 1;
    return c;
}

struct tls_context *tls_context_server(const char *cert_file, const char *key_file, struct err *err)
{
    *err = (struct err){0};
    if (library_load(LIBRARY_TLS, err))
        return NULL;
    SSL_CTX *ssl = new_context(TLS_server_method());

    ERR_clear_error();
    SSL_CTX_set_alpn_select_cb(ssl, choose_protocol, NULL);
    /* Forward secrecy: recorded traffic must stay unreadable to somebody who gets the key later.
     * All ciphers of TLS 1.3 have it. */
    if (SSL_CTX_set_cipher_list(ssl, "ECDHE+AESGCM:ECDHE+CHACHA20") != 1)
        abort(); /* an OpenSSL without these ciphers */
    /* Tickets let clients resume sessions; a session cache here would only cost memory. */
    SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
    if (load_identity(ssl, cert_file, key_file, err) == 0)
        return wrap(ssl);
    SSL_CTX_free(ssl);
    return NULL;
}

struct tls_context *tls_context_client(const char *ca_file, struct err *err)
{
    *err = (struct err){0};
    if (library_load(LIBRARY_TLS, err))
        return NULL;
    SSL_CTX *ssl = new_context(TLS_client_method());

    ERR_clear_error();
    SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_alpn_protos(ssl, our_protocols, sizeof our_protocols - 1);
    if (!ca_file) {
        SSL_CTX_set_default_verify_paths(ssl);
        if (authorities_file() && SSL_CTX_load_verify_file(ssl, authorities_file()) != 1)
            log_warn("tls", "cannot use the authorities in %s", authorities_file());
        ERR_clear_error(); /* a missing store shows later, when no certificate can be verified */
        return wrap(ssl);
    }
    if (SSL_CTX_load_verify_file(ssl, ca_file) == 1)
        return wrap(ssl);
    cannot_use(err, "certificates", ca_file);
    SSL_CTX_free(ssl);
    return NULL;
}

struct tls_context *tls_context_hold(struct tls_context *c)
{
    c->holders++;
    return c;
}

void tls_context_free(struct tls_context *c)
{
    if (!c || --c->holders)
        return;
    SSL_CTX_free(c->ssl);
    mem_free(c);
}

bool tls_key_is_exposed(const char *key_file)
{
    struct stat st;

    return stat(key_file, &st) == 0 && (st.st_mode & S_IROTH);
}

/* --- connections --- */

/* The host we connect to: sent to the server (SNI, names only) and checked in its certificate. */
static void expect_host(SSL *ssl, const char *host)
{
    unsigned char binary[sizeof(struct in6_addr)];

    if (inet_pton(AF_INET, host, binary) == 1 || inet_pton(AF_INET6, host, binary) == 1) {
        X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host);
        return;
    }
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    SSL_set_tlsext_host_name(ssl, host);
    SSL_set1_host(ssl, host);
}

struct tls *tls_new(const struct tls_context *c, const char *host)
{
    struct tls *t = MEM_NEW(struct tls);

    t->ssl = SSL_new(c->ssl);
    t->in = BIO_new(BIO_s_mem());
    t->out = BIO_new(BIO_s_mem());
    if (!t->ssl || !t->in || !t->out)
        abort();                       /* no memory */
    BIO_set_mem_eof_return(t->in, -1); /* an empty buffer means: wait, not EOF */
    SSL_set_bio(t->ssl, t->in, t->out);
    if (host) {
        expect_host(t->ssl, host);
        SSL_set_connect_state(t->ssl);
        ERR_clear_error();
        SSL_do_handshake(t->ssl); /* writes the ClientHello; nothing else can happen yet */
    } else {
        SSL_set_accept_state(t->ssl);
    }
    return t;
}

void tls_free(struct tls *t)
{
    if (!t)
        return;
    SSL_free(t->ssl);
    mem_free(t);
}

void tls_feed(struct tls *t, struct span bytes)
{
    for (size_t at = 0; at < bytes.n && !t->broken && !t->ended;) {
        int n = (int)(bytes.n - at < INT_MAX ? bytes.n - at : INT_MAX);
        int written = BIO_write(t->in, bytes.p + at, n);
        if (written <= 0)
            abort(); /* no memory */
        at += (size_t)written;
    }
}

static void read_failed(struct tls *t, int result)
{
    int error = SSL_get_error(t->ssl, result);

    if (error == SSL_ERROR_ZERO_RETURN)
        t->ended = true;
    else if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE)
        set_broken(t);
}

ssize_t tls_read(struct tls *t, char *room, size_t n)
{
    size_t got = 0;

    while (!t->broken && !t->ended && (got == 0 || n - got >= READ_ENOUGH)) {
        ERR_clear_error();
        int part = SSL_read(t->ssl, room + got, (int)(n - got));
        if (part <= 0) {
            read_failed(t, part);
            break;
        }
        got += (size_t)part;
    }
    if (got)
        return (ssize_t)got;
    return t->broken ? TLS_BROKEN : t->ended ? TLS_END : TLS_MORE;
}

bool tls_is_ready(const struct tls *t)
{
    return !t->broken && SSL_is_init_finished(t->ssl);
}

size_t tls_write(struct tls *t, struct span plain)
{
    size_t n = 0;

    if (!tls_is_ready(t) || !plain.n)
        return 0;
    ERR_clear_error();
    if (SSL_write_ex(t->ssl, plain.p, plain.n, &n) != 1)
        set_broken(t);
    return n;
}

void tls_end(struct tls *t)
{
    if (!tls_is_ready(t))
        return;
    ERR_clear_error();
    SSL_shutdown(t->ssl);
    ERR_clear_error();
}

void tls_take_output(struct tls *t, struct buf *out)
{
    size_t n = tls_output(t);

    if (!n)
        return;
    int taken = BIO_read(t->out, buf_room(out, n), (int)n);
    out->n += taken > 0 ? (size_t)taken : 0;
}

size_t tls_output(const struct tls *t)
{
    return BIO_ctrl_pending(t->out);
}

bool tls_has_input(const struct tls *t)
{
    return !t->broken && !t->ended && (SSL_has_pending(t->ssl) || BIO_ctrl_pending(t->in));
}

const char *tls_why(const struct tls *t)
{
    return t->why;
}

bool tls_is_plain_http(const struct tls *t)
{
    return t->plain_http;
}
