/* SHA-256 of texts and of tools, and the canonical JSON that is hashed for a schema. Called by
 * surface.c. */
#include "rockbot/fingerprint.h"

#include "base/mem.h"
#include "base/sha.h"
#include "wire/json.h"

#include <stdlib.h>

void fingerprint_of(char out[FINGERPRINT_SIZE], struct span text)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char digest[SHA256_N];

    sha_256(digest, text);
    for (size_t i = 0; i < sizeof digest; i++) {
        out[2 * i] = digits[digest[i] >> 4];
        out[2 * i + 1] = digits[digest[i] & 15];
    }
    out[FINGERPRINT_SIZE - 1] = '\0';
}

struct hashed_member {
    struct span key, value;
};

static int by_key(const void *a, const void *b)
{
    return span_cmp(((const struct hashed_member *)a)->key, ((const struct hashed_member *)b)->key);
}

static void put_object(struct buf *out, struct span json)
{
    struct hashed_member *members = NULL;
    size_t n = 0;

    for (struct json_iter it = json_iter(json); json_next(&it);)
        n++;
    members = MEM_ARRAY(struct hashed_member, n + 1);
    n = 0;
    for (struct json_iter it = json_iter(json); json_next(&it);)
        members[n++] = (struct hashed_member){it.key, it.value};
    qsort(members, n, sizeof *members, by_key);
    buf_char(out, '{');
    for (size_t i = 0; i < n; i++) {
        buf_str(out, i ? "," : "");
        buf_span(out, members[i].key);
        buf_char(out, ':');
        fingerprint_put_canonical(out, members[i].value);
    }
    buf_char(out, '}');
    mem_free(members);
}

static void put_array(struct buf *out, struct span json)
{
    bool first = true;

    buf_char(out, '[');
    for (struct json_iter it = json_iter(json); json_next(&it); first = false) {
        buf_str(out, first ? "" : ",");
        fingerprint_put_canonical(out, it.value);
    }
    buf_char(out, ']');
}

/* Recursion is as deep as the JSON, which is JSON_MAX_DEPTH at most. */
void fingerprint_put_canonical(struct buf *out, struct span json)
{
    enum json_type type = json_type_of(json);

    if (type == JSON_OBJECT)
        put_object(out, json);
    else if (type == JSON_ARRAY)
        put_array(out, json);
    else
        buf_span(out, json);
}

void fingerprint_of_tool(char out[FINGERPRINT_SIZE], struct span name, struct span description,
                         struct span schema)
{
    BUF_SCOPED text = {0};

    buf_span(&text, name);
    buf_char(&text, FINGERPRINT_UNIT);
    buf_span(&text, description);
    buf_char(&text, FINGERPRINT_UNIT);
    if (schema.n)
        fingerprint_put_canonical(&text, schema);
    fingerprint_of(out, buf_view(&text));
}
