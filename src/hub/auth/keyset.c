/* Key sets of token issuers: fetching, reading, finding a key. Called by trust.c. */
#include "hub/auth/keyset.h"

#include "base/file.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "io/document.h"
#include "io/watch.h"
#include "wire/json.h"

#include <errno.h>

enum {
    BYTES_MAX = 512 * 1024,
    KEYS_MAX = 100,
    DEPTH_MAX = 8,
    FETCH_MS = 10 * 1000,
    UNKNOWN_MS = 60 * 1000, /* between two fetches for keys that are not in the set */
    RETRY_MS = 5 * 1000,    /* after a fetch that failed */
    FRESH_MIN = 5 * 60 * 1000,
    DAY_MS = 24 * 3600 * 1000,
};

struct named_key {
    struct jws_key *key;
    char *kid, *alg; /* NULL: the key has none */
    uint64_t mark;
};

struct keyset {
    struct loop *loop;
    struct http_client *client;
    char *source;
    struct fetched_document *fetch; /* under way; or NULL */
    struct watch *watch;            /* of the file; NULL for a URL */
    struct named_key *keys;
    size_t n;
    uint64_t fetched, tried; /* when a set was last taken, and a fetch last ended; 0: never */
    uint64_t fresh;          /* ms for which the set is fresh */
    uint64_t sought;         /* when it was last fetched for a key that is not in it; 0: never */
    void (*changed)(void *arg);
    void *arg;
};

/* --- reading --- */

enum { K_NONE, K_KID, K_USE, K_OPS, K_ALG, K_SLOTS };

static const struct json_shape_row key_rows[] = {
    {"kid", K_KID, NULL},
    {"use", K_USE, NULL},
    {"key_ops", K_OPS, NULL},
    {"alg", K_ALG, NULL},
};
static const struct json_shape key_shape = JSON_SHAPE(key_rows);

static bool allows_checking(const struct json_slot *slots)
{
    struct json_iter it = json_iter(slots[K_OPS].value);
    bool verifies = slots[K_OPS].type == JSON_NONE;

    while (slots[K_OPS].type == JSON_ARRAY && json_next(&it))
        verifies |= json_string_is(it.value, SPAN("verify"));
    return verifies &&
           (slots[K_USE].type == JSON_NONE || json_string_is(slots[K_USE].value, SPAN("sig")));
}

static char *text_of(const struct json_slot *slot)
{
    BUF_SCOPED scratch = {0};

    return slot->type == JSON_STRING ? mem_span(json_text(slot->value, &scratch)) : NULL;
}

/* Keys that cannot be used are left out: a set may have some for other purposes. */
static bool read_key(struct named_key *k, struct span jwk)
{
    struct json_slot slots[K_SLOTS] = {{0}};
    struct err err;

    if (json_skim(jwk, &key_shape, slots, NULL, NULL) || !allows_checking(slots))
        return false;
    k->key = jws_key_read(jwk, &err);
    if (!k->key)
        return false;
    k->kid = text_of(&slots[K_KID]);
    k->alg = text_of(&slots[K_ALG]);
    k->mark = map_hash(jwk);
    return true;
}

static void free_keys(struct named_key *keys, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        jws_key_free(keys[i].key);
        mem_free(keys[i].kid);
        mem_free(keys[i].alg);
    }
    mem_free(keys);
}

int keyset_read(struct keyset *s, struct span json, struct err *err)
{
    enum json_type type;
    size_t n = 0, listed = 0;

    if (json_skim(json, NULL, NULL, &type, NULL) || type != JSON_OBJECT ||
        json_depth(json) > DEPTH_MAX)
        return err_set(err, ERR_SYNTAX, "it is not a JSON object, or is nested too deeply");
    struct json_slot list = json_get(json, "keys");
    if (list.type != JSON_ARRAY)
        return err_set(err, ERR_SYNTAX, "it has no list 'keys'");
    for (struct json_iter it = json_iter(list.value); json_next(&it);)
        if (++listed > KEYS_MAX)
            return err_set(err, ERR_SIZE, "it has more than %d keys", KEYS_MAX);
    struct named_key *keys = MEM_ARRAY(struct named_key, listed + 1);
    for (struct json_iter it = json_iter(list.value); json_next(&it);)
        if (it.type == JSON_OBJECT && read_key(&keys[n], it.value))
            n++;
    if (!n) {
        mem_free(keys);
        return err_set(err, ERR_SYNTAX, "it has no key that can check signatures");
    }
    free_keys(s->keys, s->n);
    s->keys = keys;
    s->n = n;
    return (int)n;
}

/* --- getting --- */

static void take(struct keyset *s, struct span json)
{
    struct err err;
    int n = keyset_read(s, json, &err);

    if (n < 0) {
        log_warn("auth", "the keys at %s are not taken: %s", s->source, err.text);
        return;
    }
    s->fetched = loop_now(s->loop);
    log_debug("auth", "%d keys from %s", n, s->source);
}

static void on_fetched(void *owner, const struct document_answer *a)
{
    struct keyset *s = owner;

    s->fetch = NULL;
    s->tried = loop_now(s->loop);
    if (a->code) {
        log_warn("auth", "cannot fetch the keys at %s: %s", s->source, a->why);
    } else if (a->head.status != 200) {
        log_warn("auth", "cannot fetch the keys at %s: the answer is HTTP %d", s->source,
                 a->head.status);
    } else {
        s->fresh = document_freshness(a, FRESH_MIN, DAY_MS);
        take(s, a->body);
    }
    s->changed(s->arg);
}

static void start_fetch(struct keyset *s)
{
    static const char *const headers[] = {"Accept: application/jwk-set+json, application/json",
                                          NULL};

    s->fetch = document_fetch(
        s->loop, s->client,
        &(struct document_spec){.fetch = {.method = "GET", .url = s->source, .headers = headers},
                                .max = BYTES_MAX,
                                .timeout = FETCH_MS},
        on_fetched, s);
}

static void read_file(struct keyset *s)
{
    BUF_SCOPED text = {0};
    int code = file_read(&text, s->source, BYTES_MAX);

    if (code)
        log_error("auth", "cannot read the keys in %s: %s", s->source, err_name(code));
    else
        take(s, buf_view(&text));
}

static void on_file_changed(void *arg)
{
    struct keyset *s = arg;

    read_file(s);
    s->changed(s->arg);
}

static bool is_url(const char *source)
{
    return strncmp(source, "http://", 7) == 0 || strncmp(source, "https://", 8) == 0;
}

struct keyset *keyset_new(struct loop *l, struct http_client *client, const char *source,
                          void (*changed)(void *arg), void *arg)
{
    struct keyset *s = MEM_NEW(struct keyset);

    s->loop = l;
    s->client = client;
    s->source = mem_str(source);
    s->changed = changed;
    s->arg = arg;
    if (is_url(source)) {
        start_fetch(s);
    } else {
        s->watch = watch_open(l, source, on_file_changed, s);
        read_file(s);
    }
    return s;
}

void keyset_free(struct keyset *s)
{
    if (s->fetch)
        document_cancel(s->fetch);
    if (s->watch)
        watch_close(s->watch);
    free_keys(s->keys, s->n);
    mem_free(s->source);
    mem_free(s);
}

/* --- finding --- */

static const struct named_key *find(const struct keyset *s, struct span kid,
                                    const struct jws_alg *alg, struct span alg_name)
{
    const struct named_key *found = NULL;

    for (size_t i = 0; i < s->n; i++) {
        const struct named_key *k = &s->keys[i];
        if (!jws_key_fits(k->key, alg) || (k->alg && !span_is(alg_name, k->alg)) ||
            (kid.p && !(k->kid && span_is(kid, k->kid))))
            continue;
        if (found)
            return NULL; /* more than one key fits */
        found = k;
    }
    return found;
}

/* Keys that could not be fetched again for a day are not used any more. */
static void drop_stale(struct keyset *s, uint64_t now)
{
    if (!s->n || s->watch || now - s->fetched <= DAY_MS)
        return;
    log_error("auth", "the keys from %s are too old and are not used any more", s->source);
    free_keys(s->keys, s->n);
    s->keys = NULL;
    s->n = 0;
}

/* Fetch the set if that is needed, and the last fetch is long enough ago. */
static void look_after(struct keyset *s, bool found, uint64_t now)
{
    bool unknown = s->n && !found, due = !s->n || now - s->fetched > s->fresh;

    if (s->watch || s->fetch)
        return;
    if (unknown && (!s->sought || now - s->sought >= UNKNOWN_MS))
        s->sought = now;
    else if (!due || now - s->tried < RETRY_MS)
        return;
    start_fetch(s);
}

enum keyset_answer keyset_find(struct keyset *s, struct span kid, const struct jws_alg *alg,
                               struct span alg_name, const struct jws_key **key, uint64_t *mark)
{
    uint64_t now = loop_now(s->loop);

    drop_stale(s, now);
    const struct named_key *k = find(s, kid, alg, alg_name);
    look_after(s, k != NULL, now);
    if (!k)
        return s->fetch ? KEYSET_WAIT : s->n ? KEYSET_UNKNOWN : KEYSET_DOWN;
    *key = k->key;
    *mark = k->mark;
    return KEYSET_FOUND;
}

bool keyset_has(const struct keyset *s, uint64_t mark)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->keys[i].mark == mark)
            return true;
    return false;
}
