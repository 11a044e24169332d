/*
 * Compares what we decide on with what others read. A request is skimmed, decided on and written
 * for a server as the bridge does it; then the readers of several languages, by their own rules for
 * case, duplicates, escapes and NULs, look up the same members in what was written. If one of them
 * finds something else than what was decided on, every rule about tools can be bypassed.
 *
 * The input is either the message itself or, to get further than random bytes do, the choices of a
 * generator that writes members whose names nearly match those that matter.
 */
#include "mcp/protocol.h"
#include "mcp/server/upstream.h"
#include "wire/json_pointer.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

/* --- lenient readers, which share nothing with ours --- */

struct rules {
    const char *language;
    bool folds_ascii;   /* "Name" is "name" */
    bool folds_unicode; /* U+017F is an s, U+212A a k: Go's encoding/json */
    bool folds_further; /* also U+0131 is an i, U+00DF two s: upper() and casefold() */
    bool stops_at_nul;
    bool first_counts; /* of duplicate members */
};

static const struct rules readers[] = {
    {"JavaScript, Python", false, false, false, false, false},
    {"Go", true, true, false, false, false},
    {"C#", true, false, false, false, false},
    {"folding by casefold or equalsIgnoreCase", true, true, true, false, false},
    {"C strings", false, false, false, true, false},
    {"C strings without case, the first counts", true, false, false, true, true},
    {"the first counts", false, false, false, false, true},
};

static const char *skip_space(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r'))
        p++;
    return p;
}

static const char *skip_string(const char *p, const char *end)
{
    for (p++; p < end && *p != '"'; p++)
        p += *p == '\\';
    return p + 1;
}

static const char *skip_value(const char *p, const char *end)
{
    int depth = 0;

    do {
        if (*p == '"') {
            p = skip_string(p, end);
            continue;
        }
        depth += *p == '{' || *p == '[';
        depth -= *p == '}' || *p == ']';
        p++;
    } while (p < end && (depth > 0 || (*p != ',' && *p != '}' && *p != ']')));
    return p;
}

static uint32_t hex4(const char *p)
{
    char digits[5] = {p[0], p[1], p[2], p[3], 0};

    return (uint32_t)strtoul(digits, NULL, 16);
}

/* One character of a string; *p moves past it. */
static uint32_t take(const char **p)
{
    const unsigned char *s = (const unsigned char *)*p;

    if (s[0] == '\\' && s[1] == 'u') {
        *p += 6;
        return hex4((const char *)s + 2);
    }
    if (s[0] == '\\') {
        static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
        const char *at = strchr(from, s[1]);
        *p += 2;
        return at ? (uint32_t)to[at - from] : s[1];
    }
    size_t n = s[0] < 0x80 ? 1 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    uint32_t code = n == 1 ? s[0] : s[0] & (0xffu >> (n + 1));
    for (size_t i = 1; i < n; i++)
        code = code << 6 | (s[i] & 0x3fu);
    *p += n;
    return code;
}

static size_t fold(const struct rules *r, uint32_t c, uint32_t out[3])
{
    out[0] = c;
    if (r->folds_ascii && c >= 'A' && c <= 'Z')
        out[0] = c + 32;
    if (r->folds_unicode && c == 0x17f)
        out[0] = 's';
    if (r->folds_unicode && c == 0x212a)
        out[0] = 'k';
    if (r->folds_further && (c == 0x130 || c == 0x131))
        out[0] = 'i';
    if (r->folds_further && (c == 0xdf || c == 0x1e9e)) {
        out[0] = out[1] = 's';
        return 2;
    }
    if (r->folds_further && (c == 0xfb05 || c == 0xfb06)) {
        out[0] = 's';
        out[1] = 't';
        return 2;
    }
    return 1;
}

/* `p` is at the opening quote of a key. */
static bool reads_as(const struct rules *r, const char *p, const char *name)
{
    uint32_t got[3], want[3];

    for (p++; *p != '"';) {
        uint32_t c = take(&p);
        if (!c && r->stops_at_nul)
            break;
        size_t n = fold(r, c, got);
        for (size_t i = 0; i < n; i++) {
            fold(r, (unsigned char)*name, want);
            if (!*name++ || got[i] != want[0])
                return false;
        }
    }
    return !*name;
}

/* The value of a member of a valid object, or an empty span. */
static struct span read_member(const struct rules *r, struct span object, const char *name)
{
    struct span found = SPAN_EMPTY;

    if (!object.n || object.p[0] != '{')
        return found;
    const char *end = object.p + object.n, *p = skip_space(object.p + 1, end);
    while (p < end && *p == '"') {
        const char *key = p;
        p = skip_space(skip_string(p, end), end);
        const char *value = skip_space(p + 1, end);
        p = skip_value(value, end);
        const char *behind = p;
        while (behind > value && strchr(" \t\r\n", behind[-1]))
            behind--;
        if (reads_as(r, key, name) && !(r->first_counts && found.n))
            found = span_of(value, (size_t)(behind - value));
        p = skip_space(p, end);
        p = p < end && *p == ',' ? skip_space(p + 1, end) : p;
    }
    return found;
}

/* --- the generator --- */

struct choices {
    const uint8_t *p, *end;
};

static unsigned choose(struct choices *c, unsigned n)
{
    return c->p < c->end ? *c->p++ % n : 0;
}

static void put_key_letter(struct buf *out, struct choices *c, char letter)
{
    static const struct {
        char letter;
        const char *text;
    } alike[] = {{'s', "\u017f"}, {'s', "\\u017f"}, {'k', "\u212a"}, {'k', "\\u212A"},
                 {'i', "\u0131"}, {'i', "\\u0130"}, {'s', "\\u0073"}};
    unsigned way = choose(c, 8);

    if (way == 5)
        buf_char(out, letter >= 'a' && letter <= 'z' ? (char)(letter - 32) : letter);
    else if (way == 6)
        buf_printf(out, "\\u%04x", (unsigned)(letter >= 'a' ? letter - 32 : letter));
    else if (way == 7) {
        size_t i = choose(c, COUNT_OF(alike));
        if (alike[i].letter == letter)
            buf_str(out, alike[i].text);
        else
            buf_char(out, letter);
    } else {
        buf_char(out, letter);
    }
}

static void put_key(struct buf *out, struct choices *c, const char *name)
{
    static const char *const ends[] = {"",         "",  "", "\\u0000", "\\u0000\\u0000",
                                       "\\u0000x", "s", " "};
    bool exact = choose(c, 3) == 0;

    buf_char(out, '"');
    for (; *name; name++) {
        if (exact)
            buf_char(out, *name);
        else
            put_key_letter(out, c, *name);
    }
    buf_str(out, exact ? "" : ends[choose(c, COUNT_OF(ends))]);
    buf_str(out, choose(c, 8) ? "\":" : "\" :\n");
}

static void put_object(struct buf *out, struct choices *c, const char *const *names, unsigned n,
                       int depth)
{
    static const char *const values[] = {"\"a\"", "\"b\"", "{}", "1", "null", "{\"name\":\"c\"}",
                                         "[]"};
    static const char *const inner[] = {"name", "uri", "progressToken", "type", "kiss", "path"};
    unsigned members = choose(c, 6);

    buf_char(out, '{');
    for (unsigned i = 0; i < members; i++) {
        buf_str(out, i ? "," : "");
        put_key(out, c, names[choose(c, n)]);
        unsigned value = choose(c, COUNT_OF(values) + 2);
        if (value < COUNT_OF(values) || depth > 1)
            buf_str(out, values[value % COUNT_OF(values)]);
        else
            put_object(out, c, inner, COUNT_OF(inner), depth + 1);
    }
    buf_char(out, '}');
}

static void generate(struct buf *out, struct choices *c)
{
    static const char *const methods[] = {"tools/call", "resources/read", "prompts/get",
                                          "completion/complete", "tasks/get"};
    static const char *const names[] = {"name",  "arguments",    "uri",  "ref",
                                        "_meta", "requestState", "task", "taskId"};

    buf_printf(out, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":",
               methods[choose(c, COUNT_OF(methods))]);
    put_object(out, c, names, COUNT_OF(names), 0);
    buf_char(out, '}');
}

/* --- the comparison --- */

/* The same value, except line ends, which a line-framed link cannot carry? */
static bool is_same(struct span read, struct span decided)
{
    struct buf line = {0};

    json_one_line(&line, decided);
    bool same = span_eq(read, buf_view(&line));
    buf_fini(&line);
    return same;
}

/* A rule about the argument /kiss/path decides on the value that the pointer gives: every reader
 * must find that value, or none where there is none. */
static void compare_argument(const struct rules *r, struct span arguments, struct span decided_on)
{
    struct json_slot slot;

    if (json_type_of(decided_on) != JSON_OBJECT ||
        !json_pointer_find(decided_on, SPAN("/kiss/path"), &slot))
        return; /* such a call is refused */
    struct span read = read_member(r, read_member(r, arguments, "kiss"), "path");
    CHECK(slot.type == JSON_NONE ? !read.n : is_same(read, slot.value));
}

/* What was decided on, and where readers find it in what goes out. */
static void compare(const struct rules *r, struct span params, const struct json_slot *slots)
{
    struct span ref = read_member(r, params, "ref"), meta = read_member(r, params, "_meta");

    CHECK(is_same(read_member(r, params, "name"), slots[SLOT_NAME].value));
    CHECK(is_same(read_member(r, params, "uri"), slots[SLOT_URI].value));
    CHECK(is_same(read_member(r, params, "arguments"), slots[SLOT_ARGUMENTS].value));
    compare_argument(r, read_member(r, params, "arguments"), slots[SLOT_ARGUMENTS].value);
    CHECK(is_same(read_member(r, params, "task"), slots[SLOT_TASK].value));
    CHECK(is_same(read_member(r, params, "taskId"), slots[SLOT_TASK_ID].value));
    CHECK(is_same(read_member(r, ref, "name"), slots[SLOT_REF_NAME].value));
    CHECK(is_same(read_member(r, ref, "uri"), slots[SLOT_REF_URI].value));
    /* The token of this hop is ours, whatever the agent called its own. */
    CHECK(span_is(read_member(r, meta, "progressToken"), "7"));
    CHECK(!slots[SLOT_REF_NAME].value.n || !slots[SLOT_REF_URI].value.n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf text = {0}, why = {0}, keep = {0}, sent = {0};
    struct choices c = {data + (size > 0), data + size};
    struct mcp_message m;

    if (size && data[0] % 4 == 0)
        buf_bytes(&text, (const char *)data + 1, size - 1);
    else
        generate(&text, &c);
    if (mcp_skim(buf_view(&text), &m) == 0 && m.rpc.kind == RPC_REQUEST &&
        json_type_of(m.rpc.params) == JSON_OBJECT && mcp_is_own_method(&m.rpc) &&
        !mcp_params_mislead(&m, &why)) {
        const struct json_slot *meta = &m.slots[SLOT_META];
        if (meta->type == JSON_OBJECT)
            mcp_put_foreign_meta(&keep, meta->value);
        params_put(&sent,
                   &(struct request){.params = m.rpc.params,
                                     .meta_at = mcp_cut(m.rpc.params, meta),
                                     .meta_keep = buf_view(&keep)},
                   SPAN("\"progressToken\":7"), SPAN_EMPTY);
        for (size_t i = 0; i < COUNT_OF(readers); i++)
            compare(&readers[i], buf_view(&sent), m.slots);
    }
    buf_fini(&sent);
    buf_fini(&keep);
    buf_fini(&why);
    buf_fini(&text);
    return 0;
}
