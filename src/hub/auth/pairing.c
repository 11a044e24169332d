/* Codes and passwords of the person who owns this Rialto. Called by issuer.c, through which
 * admin/api.c gets codes, and by issuer_authorize.c. */
#include "hub/auth/pairing.h"

#include "base/ascii.h"
#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "io/scrypt.h"

enum {
    CODE_N = 8,
    CODE_MS = 10 * 60 * 1000,
    TRIES = 5,
    PAUSE_MS = 30 * 1000,
};

struct pairing {
    struct loop *loop;
    char *password;        /* auth.password (a hash); or NULL */
    char code[CODE_N + 1]; /* empty: no code is valid */
    uint64_t code_until;
    unsigned wrong; /* tries in a row */
    uint64_t wrong_at;
    struct scrypt *check; /* under way, for `owner`; or NULL */
    void (*done)(void *owner, bool right);
    void *owner;
};

struct pairing *pairing_new(struct loop *l)
{
    struct pairing *p = MEM_NEW(struct pairing);

    p->loop = l;
    return p;
}

void pairing_free(struct pairing *p)
{
    if (p->check)
        scrypt_cancel(p->check);
    explicit_bzero(p->code, sizeof p->code);
    mem_free(p->password);
    mem_free(p);
}

void pairing_set_password(struct pairing *p, const char *kept)
{
    mem_free(p->password);
    p->password = kept ? mem_str(kept) : NULL;
}

bool pairing_has_password(const struct pairing *p)
{
    return p->password != NULL;
}

/* A code of 40 random bits, in letters and digits that are not mistaken for each other. */
void pairing_put_code(struct pairing *p, char out[PAIRING_CODE_SIZE])
{
    static const char letters[] = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789";
    unsigned char random[CODE_N];

    id_random_bytes(random, sizeof random);
    for (size_t i = 0; i < CODE_N; i++)
        p->code[i] = letters[random[i] & 31];
    p->code_until = loop_now(p->loop) + CODE_MS;
    p->wrong = 0; /* only the owner can ask for a code */
    memcpy(out, p->code, 4);
    out[4] = '-';
    memcpy(out + 5, p->code + 4, CODE_N - 4);
    out[9] = '\0';
}

/* Blanks, dashes and case are ignored. */
static bool is_code(const struct pairing *p, struct span typed)
{
    BUF_SCOPED plain = {0};

    for (size_t i = 0; i < typed.n && typed.n < 32; i++)
        if (typed.p[i] != '-' && typed.p[i] != ' ')
            buf_char(&plain, ascii_to_upper(typed.p[i]));
    return p->code[0] && p->code_until > loop_now(p->loop) && plain.n == CODE_N &&
           span_eq_secret(buf_view(&plain), span_of(p->code, CODE_N));
}

static void count(struct pairing *p, bool right)
{
    p->wrong = right ? 0 : p->wrong + 1;
    p->wrong_at = loop_now(p->loop);
    if (!right)
        log_warn("auth", "a wrong password or code was typed (%u in a row)", p->wrong);
}

static void on_checked(void *owner, bool same)
{
    struct pairing *p = owner;
    void *who = p->owner;

    p->check = NULL;
    p->owner = NULL;
    count(p, same);
    if (who)
        p->done(who, same);
}

enum pairing_answer pairing_try(struct pairing *p, struct span typed,
                                void (*done)(void *owner, bool right), void *owner)
{
    struct err err;

    if (p->check || (p->wrong >= TRIES && loop_now(p->loop) - p->wrong_at < PAUSE_MS))
        return PAIRING_TOO_SOON;
    if (is_code(p, typed)) {
        p->code[0] = '\0';
        count(p, true);
        return PAIRING_RIGHT;
    }
    if (p->password && typed.n) {
        p->done = done;
        p->owner = owner;
        p->check = scrypt_check(p->loop, p->password, typed, on_checked, p, &err);
        if (p->check)
            return PAIRING_CHECKING;
        log_error("auth", "auth.password: %s", err.text);
    }
    count(p, false);
    return PAIRING_WRONG;
}

void pairing_forget(struct pairing *p, const void *owner)
{
    if (p->owner == owner)
        p->owner = NULL; /* the check goes on, and its result counts */
}
