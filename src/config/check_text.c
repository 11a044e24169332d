/* The checks of single texts: paths, names, addresses, URLs, origins, hosts, token hashes, headers.
 * Listed in the table of schema_rows.c; check.c, import_guards.c, cmd/, admin/servers.c and
 * hub/bus_host.c also call some of them. */
#include "config/check.h"

#include "base/ascii.h"
#include "config/units.h"
#include "wire/host.h"
#include "wire/json_pointer.h"

enum {
    ALIAS_MAX = 64,
    TOOL_NAME_MAX = 128,
    PATTERN_MAX = 64,
    UNIX_PATH_MAX = 107, /* what fits into a socket address */
    PATH_LENGTH_MAX = 4095,
    URL_MAX = 2048,
};

static bool has_control(struct span text)
{
    for (size_t i = 0; i < text.n; i++)
        if (((unsigned char)text.p[i] < 0x20 && text.p[i] != '\t') || text.p[i] == 0x7f)
            return true;
    return false;
}

const char *check_not_empty(struct span text)
{
    return text.n ? NULL : "it must not be empty";
}

const char *check_path(struct span text)
{
    if (!text.n)
        return "it must not be empty";
    return text.n > PATH_LENGTH_MAX ? "this path is too long" : NULL;
}

const char *check_whole_path(struct span text)
{
    if (!span_starts(text, SPAN("/")) && !span_starts(text, SPAN("~/")) && !span_is(text, "~") &&
        !span_starts(text, SPAN("${")))
        return "expected a whole path, or one that begins with ~/";
    return check_path(text);
}

/* The alias becomes a part of tool names and of the address /mcp/<alias>. */
const char *check_alias(struct span text)
{
    if (!text.n || text.n > ALIAS_MAX)
        return "a server's name has 1 to 64 characters";
    if (!ascii_is_words(text, "_-."))
        return "a server's name is made of letters, digits, '_', '-' and '.'";
    if (!ascii_is_word(text.p[0], ""))
        return "a server's name starts with a letter or a digit";
    return NULL;
}

const char *check_name(struct span text)
{
    if (!text.n || text.n > TOOL_NAME_MAX)
        return "a name has 1 to 128 characters";
    return has_control(text) ? "a name cannot contain control characters" : NULL;
}

const char *check_tool_pattern(struct span text)
{
    if (!text.n || text.n > TOOL_NAME_MAX)
        return "a tool's name or pattern has 1 to 128 characters";
    return has_control(text) ? "the name of a tool cannot contain control characters" : NULL;
}

const char *check_pattern(struct span text)
{
    if (!text.n || text.n > 2048)
        return "a pattern has 1 to 2048 characters";
    return has_control(text) ? "a pattern cannot contain control characters" : NULL;
}

const char *check_pointer(struct span text)
{
    return text.n > 2048 ? "a pointer has at most 2048 characters" : json_pointer_wrong(text);
}

const char *check_folder(struct span text)
{
    return text.n && text.p[0] == '/' ? check_path(text) : "expected an absolute path";
}

const char *check_endpoint(struct span text)
{
    bool fine = text.n > 1 && text.n <= 256 && text.p[0] == '/';

    for (size_t i = 0; i < text.n && fine; i++)
        fine = ascii_is_word(text.p[i], "/_-.~");
    return fine ? NULL : "expected a path on the server's host, such as /attachments";
}

const char *check_control(struct span text)
{
    if (span_is(text, "auto") || span_is(text, "off"))
        return NULL;
    return span_starts(text, SPAN("unix:/")) ? check_path(text)
                                             : "expected auto, off or unix:/PATH";
}

static bool is_port(struct span text)
{
    uint64_t port;

    return text.n <= 5 && ascii_number(text, &port) && port <= 65535;
}

const char *check_port(struct span text)
{
    return is_port(text) && !span_is(text, "0") ? NULL
                                                : "expected a port from 1 to 65535, none or all";
}

static size_t last_colon(struct span text)
{
    size_t at = text.n;
    while (at && text.p[at - 1] != ':')
        at--;
    return at ? at - 1 : text.n;
}

const char *check_address(struct span text)
{
    static const char wanted[] =
        "expected an address: HOST:PORT, [IPv6]:PORT, :PORT or unix:PATH, as in 127.0.0.1:8765";

    if (span_starts(text, SPAN("unix:"))) {
        size_t n = text.n - 5;
        return !n                  ? "a path must follow 'unix:'"
               : n > UNIX_PATH_MAX ? "the path of a Unix socket has at most 107 characters"
                                   : NULL;
    }
    size_t colon = last_colon(text);
    struct span host = span_cut(text, 0, colon);
    if (colon == text.n || !is_port(span_from(text, colon + 1)))
        return wanted;
    if (host.n > 2 && host.p[0] == '[' && host.p[host.n - 1] == ']')
        return ascii_is_words(span_cut(host, 1, host.n - 2), ":.%") ? NULL : wanted;
    return ascii_is_words(host, ".-") ? NULL : wanted;
}

/* Does `text` start with one of the schemes, followed by a host, and have no blanks? */
static bool is_url(struct span text, const char *const *schemes, size_t n)
{
    if (text.n > URL_MAX || has_control(text) || span_find(text, ' ') != text.n)
        return false;
    for (size_t i = 0; i < n; i++) {
        struct span scheme = span_str(schemes[i]);
        if (span_starts(text, scheme) && text.n > scheme.n && text.p[scheme.n] != '/')
            return true;
    }
    return false;
}

const char *check_url(struct span text)
{
    static const char *const schemes[] = {"http://", "https://", "ws://", "wss://"};
    return is_url(text, schemes, 4) ? NULL : "expected an http, https, ws or wss URL";
}

/* The name is part of topics, where `refresh` has a meaning of its own. */
const char *check_agent(struct span text)
{
    static const char wanted[] = "expected a name of letters, digits, '_' and '-', or \"*\"";

    if (span_is(text, "*"))
        return NULL;
    if (span_is(text, "refresh"))
        return "'refresh' cannot be the name of an agent: the topic of that name means something "
               "else";
    bool fine =
        text.n && text.n <= 64 && ascii_is_word(text.p[0], "") && ascii_is_words(text, "_-");
    return fine ? NULL : wanted;
}

const char *check_bus_url(struct span text)
{
    static const char *const schemes[] = {"amqp://", "amqps://", "nats://", "tls://", "tcp://"};

    if (span_is(text, "off") || span_is(text, "embedded:") ||
        (span_starts(text, SPAN("unix:")) && text.n > 5))
        return NULL;
    return is_url(text, schemes, 5)
               ? NULL
               : "expected embedded:, unix:PATH, off, or an amqp, amqps, nats, tls or tcp URL";
}

const char *check_origin(struct span text)
{
    static const char *const schemes[] = {"http://", "https://", "chrome-extension://",
                                          "moz-extension://", "safari-web-extension://"};

    if (!is_url(text, schemes, 5) || text.p[text.n - 1] == '/')
        return "expected an origin without a path, as in https://app.example.com";
    return NULL;
}

const char *check_host(struct span text)
{
    static const char wanted[] =
        "expected a host as clients name it, HOST or HOST:PORT, as in bridge.example.com";
    struct span name = host_name(text), behind = span_from(text, name.n);
    bool v6 = name.n > 2 && name.p[0] == '[' && name.p[name.n - 1] == ']';

    if (v6 ? !ascii_is_words(span_cut(name, 1, name.n - 2), ":.")
           : !name.n || !ascii_is_words(name, ".-_"))
        return wanted;
    return !behind.n || (behind.p[0] == ':' && is_port(span_from(behind, 1))) ? NULL : wanted;
}

const char *check_host_pattern(struct span text)
{
    struct span host = span_starts(text, SPAN("*.")) ? span_from(text, 2) : text;

    return check_host(host) ? "expected HOST, HOST:PORT or *.DOMAIN, as in tools.example.com, "
                              "127.0.0.1:8080 or [::1]"
                            : NULL;
}

const char *check_unix_address(struct span text)
{
    return span_starts(text, SPAN("unix:/")) ? check_address(text)
                                             : "expected unix:PATH, as in unix:/run/btcp.sock";
}

const char *check_capability(struct span text)
{
    for (size_t i = 0; i < text.n; i++)
        if ((text.p[i] < 'a' || text.p[i] > 'z') && !strchr(":-*", text.p[i]))
            return "expected a capability, as in dom:read or storage:*";
    return text.n && text.n <= 64 ? NULL : "expected a capability, as in dom:read or storage:*";
}

const char *check_token_hash(struct span text)
{
    static const char wanted[] = "expected sha256: and the hash in 64 hexadecimal digits";
    struct span digits = span_from(text, 7);

    if (!span_starts(text, SPAN("sha256:")) || digits.n != 64)
        return wanted;
    for (size_t i = 0; i < digits.n; i++)
        if (!strchr("0123456789abcdef", digits.p[i]))
            return wanted;
    return NULL;
}

const char *check_time(struct span text)
{
    int64_t ms;

    return units_read_time(text, &ms);
}

const char *check_names_pattern(struct span text)
{
    unsigned tools = 0, servers = 0;

    if (span_is(text, "bare"))
        return NULL;
    if (text.n > PATTERN_MAX)
        return "the pattern is too long";
    for (size_t i = 0; i < text.n; i++) {
        struct span rest = span_from(text, i);
        if (span_starts(rest, SPAN("{tool}"))) {
            tools++;
            i += 5;
        } else if (span_starts(rest, SPAN("{server}"))) {
            servers++;
            i += 7;
        } else if (!ascii_is_words(span_cut(rest, 0, 1), "_-")) {
            return "besides {server} and {tool} only letters, digits, '_' and '-' are allowed";
        }
    }
    if (tools != 1 || servers > 1)
        return "expected {tool} once and {server} at most once, as in \"{server}__{tool}\", or "
               "bare";
    return NULL;
}

const char *check_env_name(struct span text)
{
    if (!text.n || span_find(text, '=') != text.n)
        return "a variable's name is not empty and has no '='";
    return NULL;
}

const char *check_header_name(struct span text)
{
    if (!text.n || !ascii_is_words(text, "!#$%&'*+-.^_`|~"))
        return "this is not the name of an HTTP header";
    return NULL;
}

const char *check_header_value(struct span text)
{
    return has_control(text) ? "a header cannot contain control characters" : NULL;
}

const char *check_web_url(struct span text)
{
    static const char wanted[] = "expected an https URL, or one with http on this machine";
    static const char *const schemes[] = {"http://", "https://"};

    if (!is_url(text, schemes, 2) || span_find(text, '#') < text.n || span_find(text, '@') < text.n)
        return wanted;
    if (span_starts(text, SPAN("https://")))
        return NULL;
    struct span host = span_from(text, 7);
    return host_is_loopback(host_name(span_cut(host, 0, span_find(host, '/')))) ? NULL : wanted;
}

/* RFC 6749 3.3. */
const char *check_scope(struct span text)
{
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] <= ' ' || text.p[i] > '~' || text.p[i] == '"' || text.p[i] == '\\')
            return "a scope has no blanks, quotes and backslashes";
    return text.n ? NULL : "a scope must not be empty";
}

const char *check_public_url(struct span text)
{
    if (check_web_url(text))
        return check_web_url(text);
    if (text.p[text.n - 1] == '/')
        return "leave the slash at the end out";
    return span_find(text, '?') < text.n ? "a query is not allowed here" : NULL;
}

const char *check_password(struct span text)
{
    return span_starts(text, SPAN("scrypt:")) && text.n < 256
               ? NULL
               : "expected what 'rialto pair --password' prints: scrypt:... (the password itself "
                 "is not kept)";
}
