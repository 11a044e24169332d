/*
 * A stdio MCP server with one tool, as fast as possible, so that it does not slow down what is
 * measured. It trusts its input (the load generator's messages: no escapes in the echoed text) and
 * answers in order, in one write per read. With a number as argument it waits that many ms before
 * each write, like a tool that waits for something else.
 */
#include "bytes.h"

#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

/* What follows `key` in the text, or NULL. */
static const char *behind(const char *p, size_t n, const char *key)
{
    const char *at = memmem(p, n, key, strlen(key));
    return at ? at + strlen(key) : NULL;
}

static void answer_call(struct bytes *out, const char *line, size_t n)
{
    const char *text = behind(line, n, "\"message\":\"");
    const char *end = text ? memchr(text, '"', n - (size_t)(text - line)) : NULL;
    bytes_add_text(out, "{\"content\":[{\"type\":\"text\",\"text\":\"");
    if (end)
        bytes_add(out, text, (size_t)(end - text));
    bytes_add_text(out, "\"}]}");
}

static void answer(struct bytes *out, const char *line, size_t n)
{
    size_t front = n < 256 ? n : 256; /* the envelope comes first */
    const char *id = behind(line, front, "\"id\":");
    const char *method = behind(line, front, "\"method\":\"");
    if (!id || !method)
        return;
    size_t id_length = strcspn(id, ",}");
    bytes_add_text(out, "{\"jsonrpc\":\"2.0\",\"id\":");
    bytes_add(out, id, id_length);
    bytes_add_text(out, ",\"result\":");
    if (strncmp(method, "initialize\"", 11) == 0)
        bytes_add_text(out, "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}},"
                            "\"serverInfo\":{\"name\":\"echo\",\"version\":\"1\"}}");
    else if (strncmp(method, "tools/list\"", 11) == 0)
        bytes_add_text(out, "{\"tools\":[{\"name\":\"echo\",\"description\":\"Echo a message\","
                            "\"inputSchema\":{\"type\":\"object\",\"properties\":{\"message\":"
                            "{\"type\":\"string\"}}}}]}");
    else
        answer_call(out, line, n);
    bytes_add_text(out, "}\n");
}

static bool send_all(struct bytes *out)
{
    for (size_t done = 0; done < out->n;) {
        ssize_t n = write(STDOUT_FILENO, out->p + done, out->n - done);
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    out->n = 0;
    return true;
}

int main(int argc, char **argv)
{
    useconds_t pause = argc > 1 ? (useconds_t)atoi(argv[1]) * 1000 : 0;
    struct bytes in = {0}, out = {0};
    static char block[1 << 20];
    for (ssize_t n; (n = read(STDIN_FILENO, block, sizeof(block))) > 0;) {
        size_t seen = in.n, from = 0;
        bytes_add(&in, block, (size_t)n);
        for (char *nl; (nl = memchr(in.p + seen, '\n', in.n - seen)); seen = from) {
            size_t end = (size_t)(nl - in.p);
            answer(&out, in.p + from, end - from);
            from = end + 1;
        }
        bytes_drop(&in, from);
        if (pause)
            usleep(pause);
        if (!send_all(&out))
            break;
    }
    free(in.p);
    free(out.p);
    return 0;
}
