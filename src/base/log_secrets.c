/* The one redactor: finds known secrets in a text, plain, escaped or in base64. log_redact is
 * called by log_line for every line, and by all code that shows peers' bytes to people. */
#include "base/ascii.h"
#include "base/base64.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/utf8.h"

enum {
    SECRET_MIN = 4,
    LINE_MIN = 8,    /* bytes of the shortest line of a secret that is hidden by itself */
    CUT_MIN = 8,     /* bytes of the shortest beginning of a secret that is hidden at the end */
    ESCAPE_MAX = 12, /* bytes of an escaped character: \ud83d\ude00 */
    PORT_DIGITS = 5, /* a number of so few digits is a port or a count */
    SIGNS_MAX = 16,  /* bytes of the sign of one escape, escaped several times */
    BASE64_ALPHABET = 64,
};

enum { KEPT = 1, HOLD = 2 };

/* A text to search for: a secret, a line of it, or the inside of its base64 form. */
struct pattern {
    struct pattern *next; /* pattern with the same first byte */
    size_t n;
    unsigned holders; /* secrets that have this form */
    bool base64;
    char bytes[];
};

static struct {
    struct pattern *by_first[256];
    struct map known; /* pattern -> itself */
    struct map held;  /* secret -> HOLD for each that holds it, plus KEPT */
} secrets;

/* --- what is a secret --- */

bool log_names_secret(struct span name)
{
    static const char *const signs[] = {"*auth*",    "*token*",
                                        "*key*",     "*secret*",
                                        "*cookie*",  "*pass*",
                                        "*pwd*",     "*cred*",
                                        "*dsn*",     "*jwt*",
                                        "*session*", "*bearer*",
                                        "*private*", "*connection*string*",
                                        "sig",       "*signature*"};
    /* A variable with the path of a secret does not contain the secret. */
    static const char *const places[] = {"*file", "*path", "*dir"};

    for (size_t i = 0; i < COUNT_OF(places); i++)
        if (span_glob(span_str(places[i]), name))
            return false;
    for (size_t i = 0; i < COUNT_OF(signs); i++)
        if (span_glob(span_str(signs[i]), name))
            return true;
    return false;
}

/* Hiding these words would make most lines unreadable and protect nothing. */
static bool is_common(struct span s)
{
    static const char *const words[] = {"true",  "false", "null",   "none",    "auto",
                                        "basic", "guest", "bearer", "default", "localhost"};
    size_t digits = 0;

    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (span_eq_nocase(s, span_str(words[i])))
            return true;
    while (digits < s.n && ascii_is_digit(s.p[digits]))
        digits++;
    return digits == s.n && digits <= PORT_DIGITS;
}

typedef void form_fn(struct span bytes, bool base64);

static void add_pattern(struct span bytes, bool base64)
{
    struct pattern *p = map_get(&secrets.known, bytes);

    if (p)
        p->holders++;
    if (p || bytes.n < SECRET_MIN)
        return;
    struct pattern **first = &secrets.by_first[(unsigned char)bytes.p[0]];
    p = mem_alloc(sizeof *p + bytes.n);
    *p = (struct pattern){.next = *first, .n = bytes.n, .holders = 1, .base64 = base64};
    memcpy(p->bytes, bytes.p, bytes.n);
    *first = p;
    map_put(&secrets.known, bytes, p);
}

static void drop_pattern(struct span bytes, bool base64)
{
    struct pattern *p = map_get(&secrets.known, bytes);

    (void)base64;
    if (!p || --p->holders)
        return;
    struct pattern **at = &secrets.by_first[(unsigned char)bytes.p[0]];
    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    map_del(&secrets.known, bytes);
    mem_free(p);
}

/*
 * The base64 digits that the secret alone determines when it stands behind `before` other bytes of
 * a group of three, as a password does in "user:password".
 */
static void each_base64(struct span secret, size_t before, form_fn *fn)
{
    BUF_SCOPED bytes = {0}, text = {0};
    size_t first = (before * 8 + 5) / 6, end = (before + secret.n) * 8 / 6;

    buf_bytes(&bytes, "\0\0", before);
    buf_span(&bytes, secret);
    base64_put(&text, buf_view(&bytes));
    fn(span_cut(buf_view(&text), first, end - first), true);
}

/* Base64 is broken into lines of 64 or 76 digits, and each of these may be in another line of the
 * log. */
static void each_wrapped_base64(struct span secret, form_fn *fn)
{
    static const size_t widths[] = {48, 57};

    for (size_t i = 0; i < COUNT_OF(widths); i++)
        for (size_t at = 0; secret.n > widths[i] && at < secret.n; at += widths[i])
            if (secret.n - at >= LINE_MIN)
                each_base64(span_cut(secret, at, widths[i]), 0, fn);
}

/* A key of many lines is printed line by line. The secret may have its line ends written as \n. */
static void each_line(struct span secret, form_fn *fn)
{
    for (size_t at = 0, n; at < secret.n; at += n + 1) {
        struct span rest = span_from(secret, at);
        for (n = 0; n < rest.n && rest.p[n] != '\n' && rest.p[n] != '\r'; n++)
            if (span_starts(span_from(rest, n), SPAN("\\n")))
                break;
        struct span line = span_trim(span_cut(rest, 0, n));
        n += n < rest.n && rest.p[n] == '\\';
        if (line.n >= LINE_MIN && line.n < secret.n && !span_starts(line, SPAN("-----")))
            fn(line, false);
    }
}

/* Calls `fn` with each text that shows the secret or a part of it. */
static void each_form(struct span secret, form_fn *fn)
{
    fn(secret, false);
    each_line(secret, fn);
    for (size_t before = 0; before < 3; before++)
        each_base64(secret, before, fn);
    each_wrapped_base64(secret, fn);
}

static uintptr_t holds_of(struct span secret)
{
    return (uintptr_t)map_get(&secrets.held, secret);
}

static void set_holds(struct span secret, uintptr_t holds)
{
    uintptr_t before = holds_of(secret);

    if (holds == before || secret.n < SECRET_MIN || is_common(secret))
        return;
    if (holds)
        map_put(&secrets.held, secret, (void *)holds); // NOLINT(performance-no-int-to-ptr)
    else
        map_del(&secrets.held, secret);
    if (!before)
        each_form(secret, add_pattern);
    else if (!holds)
        each_form(secret, drop_pattern);
}

/* Every reload adds the same secrets again: they are not counted, so that one drop is enough. */
void log_add_secret(struct span secret)
{
    set_holds(secret, holds_of(secret) | KEPT);
}

void log_drop_secret(struct span secret)
{
    set_holds(secret, holds_of(secret) & ~(uintptr_t)KEPT);
}

void log_hold_secret(struct span secret)
{
    set_holds(secret, holds_of(secret) + HOLD);
}

void log_release_secret(struct span secret)
{
    uintptr_t holds = holds_of(secret);

    set_holds(secret, holds < HOLD ? holds : holds - HOLD);
}

size_t log_secret_count(void)
{
    return secrets.known.n;
}

void log_forget_secrets(void)
{
    size_t at = 0;
    void *pattern;

    while (map_next(&secrets.known, &at, NULL, &pattern))
        mem_free(pattern);
    map_fini(&secrets.known);
    map_fini(&secrets.held);
    memset(&secrets, 0, sizeof secrets);
}

/* --- escaped forms --- */

/* Reads up to `max` digits of `base`; returns how many there were. */
static size_t read_digits(struct span text, size_t max, uint32_t base, uint32_t *value)
{
    size_t n = 0;

    *value = 0;
    for (; n < max && n < text.n; n++) {
        int digit = ascii_hex(text.p[n]);
        if (digit < 0 || (uint32_t)digit >= base)
            break;
        *value = *value * base + (uint32_t)digit;
    }
    return n;
}

/* One character as an escape shows it. */
struct shown {
    size_t n; /* bytes of the text; 0: no escape */
    uint32_t code;
    bool is_byte; /* `code` is one byte of a character that may have several */
};

/* What follows "\u": XXXX, {X...}, or a surrogate pair. */
static struct shown read_unicode(struct span text)
{
    uint32_t code, low;
    size_t n;

    if (text.n && text.p[0] == '{') {
        n = read_digits(span_from(text, 1), 6, 16, &code);
        bool closed = n && n + 1 < text.n && text.p[n + 1] == '}';
        return (struct shown){closed ? n + 2 : 0, code, false};
    }
    if (read_digits(text, 4, 16, &code) < 4)
        return (struct shown){0};
    struct span next = span_from(text, 4);
    n = 0;
    while (n < SIGNS_MAX && n < next.n && next.p[n] == '\\')
        n++;
    if (code >> 10 == 0xd800 >> 10 && n && n < next.n && next.p[n] == 'u' &&
        read_digits(span_from(next, n + 1), 4, 16, &low) == 4 && low >> 10 == 0xdc00 >> 10)
        return (struct shown){n + 9, 0x10000 + ((code & 0x3ff) << 10 | (low & 0x3ff)), false};
    return (struct shown){4, code, false};
}

/* The rest of an escape behind backslashes, in JSON, C, Python and shells. */
static struct shown read_backslashed(struct span text)
{
    static const char letters[] = "ntrbfaveE0", controls[] = "\n\t\r\b\f\a\v\033\033";
    uint32_t code;

    if (!text.n)
        return (struct shown){0};
    struct span digits = span_from(text, 1);
    if (text.p[0] == 'u') {
        struct shown c = read_unicode(digits);
        return (struct shown){c.n ? c.n + 1 : 0, c.code, false};
    }
    if (text.p[0] == 'U' && read_digits(digits, 8, 16, &code) == 8)
        return (struct shown){9, code, false};
    if (text.p[0] == 'x' && read_digits(digits, 2, 16, &code) == 2)
        return (struct shown){3, code, true};
    if (read_digits(text, 3, 8, &code) == 3)
        return (struct shown){3, code & 0xff, true};
    const char *at = memchr(letters, text.p[0], sizeof letters - 1);
    return at ? (struct shown){1, (unsigned char)controls[at - letters], true} : (struct shown){0};
}

/* The rest of an escape behind "&" in HTML and XML. */
static struct shown read_entity(struct span text)
{
    static const struct {
        struct span name;
        uint32_t code;
    } names[] = {{{"quot;", 5}, '"'}, {{"apos;", 5}, '\''}, {{"lt;", 3}, '<'}, {{"gt;", 3}, '>'}};
    uint32_t code;

    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (span_starts(text, names[i].name))
            return (struct shown){names[i].name.n, names[i].code, false};
    if (!span_starts(text, SPAN("#")))
        return (struct shown){0};
    bool hex = text.n > 1 && (text.p[1] == 'x' || text.p[1] == 'X');
    size_t from = hex ? 2 : 1;
    size_t n = read_digits(span_from(text, from), 7, hex ? 16 : 10, &code);
    bool closed = n && from + n < text.n && text.p[from + n] == ';';
    return (struct shown){closed ? from + n + 1 : 0, code, false};
}

static struct shown read_percent(struct span text)
{
    uint32_t code;
    size_t n = read_digits(text, 2, 16, &code);

    return (struct shown){n == 2 ? 2 : 0, code, true};
}

/*
 * A sign that begins escapes, and the bytes that follow when the sign itself is escaped, once for
 * each level of nesting: "\\\\n" is a line end in JSON in JSON in JSON.
 */
static const struct escape {
    char sign;
    struct span again;
    struct shown (*read)(struct span text);
} escapes[] = {
    {'\\', {"\\", 1}, read_backslashed},
    {'%', {"25", 2}, read_percent},
    {'&', {"amp;", 4}, read_entity},
};

static const struct escape *escape_at(struct span text)
{
    for (size_t i = 0; i < COUNT_OF(escapes); i++)
        if (text.n && text.p[0] == escapes[i].sign)
            return &escapes[i];
    return NULL;
}

/* Length of the sign at the front of `text`, with the bytes that escape the sign; or 0. */
static size_t sign_length(struct span text, const struct escape *e)
{
    size_t n = text.n && text.p[0] == e->sign;

    while (n && n < SIGNS_MAX && span_starts(span_from(text, n), e->again))
        n += e->again.n;
    return n;
}

/* Removes the character from the front of text and secret, if the secret begins with it. */
static bool take_shown(struct span *text, struct span *secret, const struct shown *c)
{
    char bytes[4];
    size_t n = 1;

    if (!c->n || c->code > 0x10ffff)
        return false;
    bytes[0] = (char)c->code;
    if (!c->is_byte)
        n = utf8_put(bytes, c->code);
    if (!span_starts(*secret, span_of(bytes, n)))
        return false;
    *text = span_from(*text, c->n);
    *secret = span_from(*secret, n);
    return true;
}

/* Removes an escape from the front of the text, which begins with the sign of an escape, and its
 * character from the front of the secret. */
static bool take_escaped(struct span *text, struct span *secret, const struct escape *e)
{
    size_t n = sign_length(*text, e), own = sign_length(*secret, e);
    struct span behind = span_from(*text, n), after = span_from(*secret, own);
    struct shown c = e->read(behind);

    if (take_shown(&behind, secret, &c)) {
        *text = behind;
        return true;
    }
    if (own > n)
        return false;
    /* The secret may have such signs itself. If the text has more of them, the last may belong to
     * an escape that follows; a shell ignores a backslash before any other character. */
    bool more = n > own && e->sign == '\\' && after.n;
    bool took = more && take_shown(&behind, &after, &c);
    if (more && !took && behind.n && behind.p[0] == after.p[0]) {
        behind = span_from(behind, 1);
        after = span_from(after, 1);
        took = true;
    }
    *text = behind;
    *secret = after;
    return own || took;
}

/* The ways in which shells and SQL write a quote inside quotes. */
static size_t quoted_quote(struct span text, struct span secret)
{
    static const struct span ways[] = {{"'\\''", 4}, {"'\"'\"'", 5}, {"''", 2}};

    for (size_t i = 0; i < COUNT_OF(ways); i++)
        if (span_starts(text, ways[i]) && !span_starts(secret, ways[i]))
            return ways[i].n;
    return 1;
}

/* The URL-safe alphabet has - and _ instead of + and /. */
static char standard_digit(char c)
{
    return c == '-' ? '+' : c == '_' ? '/' : c;
}

/* Removes the next byte or character of the secret from the front of both, in whatever form the
 * text has it. */
static bool take(struct span *text, struct span *secret, bool base64)
{
    char c = text->p[0], wanted = secret->p[0];
    const struct escape *e = escape_at(*text);

    if (e)
        return take_escaped(text, secret, e);
    bool same =
        c == wanted || (c == '+' && wanted == ' ') || (base64 && standard_digit(c) == wanted);
    if (!same)
        return false;
    *text = span_from(*text, c == '\'' ? quoted_quote(*text, *secret) : 1);
    *secret = span_from(*secret, 1);
    return true;
}

/* --- finding --- */

/* Length of the digit that also has bits of the byte after the secret, and of the padding. */
static size_t base64_rest(struct span text)
{
    static const char digits[BASE64_ALPHABET + 1] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t n = text.n && memchr(digits, standard_digit(text.p[0]), BASE64_ALPHABET);

    while (n < text.n && text.p[n] == '=')
        n++;
    return n;
}

/* How many bytes at the front of `text` show the pattern, or 0. */
static size_t match(struct span text, const struct pattern *p)
{
    struct span rest = text, secret = span_of(p->bytes, p->n);

    while (secret.n) {
        bool cut = !rest.n || (rest.n < ESCAPE_MAX && escape_at(rest));
        if (rest.n && take(&rest, &secret, p->base64))
            continue;
        /* The text was cut short, perhaps in the middle of an escape. */
        return cut && p->n - secret.n >= CUT_MIN ? text.n : 0;
    }
    return text.n - rest.n + (p->base64 ? base64_rest(rest) : 0);
}

static size_t longest_of(const struct pattern *p, struct span rest)
{
    size_t longest = 0;

    for (; p; p = p->next) {
        size_t n = match(rest, p);
        if (n > longest)
            longest = n;
    }
    return longest;
}

/* The first byte of the character that an escape at the front of `rest` stands for. */
static unsigned char first_shown(struct span rest)
{
    const struct escape *e = escape_at(rest);
    char bytes[4] = {rest.p[0] == '+' ? ' ' : standard_digit(rest.p[0])};

    if (e) {
        struct span behind = span_from(rest, sign_length(rest, e));
        struct shown c = e->read(behind);
        bytes[0] = c.n ? (char)c.code : behind.n ? behind.p[0] : e->sign;
        if (c.n && !c.is_byte && c.code <= 0x10ffff)
            utf8_put(bytes, c.code);
    }
    return (unsigned char)bytes[0];
}

/* Length of the secret that starts at the front of `rest`, or 0. */
static size_t known_secret(struct span rest)
{
    unsigned char first = (unsigned char)rest.p[0], shown = first_shown(rest);
    size_t n = longest_of(secrets.by_first[first], rest);
    size_t m = shown != first ? longest_of(secrets.by_first[shown], rest) : 0;

    return n > m ? n : m;
}

/* --- secrets that are recognised by the text around them --- */

static size_t bearer_token(struct span rest, size_t *keep)
{
    size_t n = 0;

    if (rest.n <= 7 || !span_eq_nocase(span_cut(rest, 0, 7), SPAN("bearer ")))
        return 0;
    while (7 + n < rest.n && ascii_is_word(rest.p[7 + n], "-._~+/="))
        n++;
    *keep = 7;
    return n;
}

static size_t url_password(struct span rest, size_t *keep)
{
    size_t colon = 0, at = 0;

    if (!span_starts(rest, SPAN("://")))
        return 0;
    for (size_t i = 3; i < rest.n && !strchr("/?# \"'", rest.p[i]); i++) {
        if (rest.p[i] == ':' && !colon)
            colon = i;
        if (rest.p[i] == '@')
            at = i; /* the last @ counts: a password may contain one */
    }
    *keep = colon + 1;
    return colon && at > colon ? at - colon - 1 : 0;
}

/* "?token=abc" or "&token=abc", also when the & is escaped; `text` has an = at `at`. */
static size_t query_value(struct span text, size_t at)
{
    size_t from = at, n = 0;

    while (from && ascii_is_word(text.p[from - 1], "-._~+/") && text.p[from - 1] != '/')
        from--;
    if (!from || !strchr("?&;\\", text.p[from - 1]) ||
        !log_names_secret(span_cut(text, from, at - from)))
        return 0;
    struct span value = span_from(text, at + 1);
    while (n < value.n && (unsigned char)value.p[n] > ' ' && !strchr("&#\"'<>\\;,)]}", value.p[n]))
        n++;
    return n;
}

/* How many bytes from `at` on to keep, and how many behind them to hide. */
static size_t shaped_secret(struct span text, size_t at, size_t *keep)
{
    struct span rest = span_from(text, at);

    switch (rest.p[0]) {
    case 'b':
    case 'B':
        return bearer_token(rest, keep);
    case ':':
        return url_password(rest, keep);
    case '=':
        *keep = 1;
        return query_value(text, at);
    default:
        return 0;
    }
}

/* The end of the part to hide: a secret that begins inside the part may go on behind it. */
static size_t hidden_end(struct span rest, size_t from, size_t end)
{
    for (size_t i = from; i < end; i++) {
        size_t n = known_secret(span_from(rest, i));
        end = i + n > end ? i + n : end;
    }
    return end;
}

void log_redact(struct buf *out, struct span text)
{
    size_t i = 0;

    while (i < text.n) {
        struct span rest = span_from(text, i);
        size_t keep = 0;
        size_t hide = known_secret(rest);
        if (!hide)
            hide = shaped_secret(text, i, &keep);
        if (hide) {
            /* The bytes to keep, such as a user's name, may contain a known secret. */
            log_redact(out, span_cut(rest, 0, keep));
            buf_str(out, "***");
            i += hidden_end(rest, keep, keep + hide);
        } else {
            buf_char(out, text.p[i++]);
        }
    }
}
