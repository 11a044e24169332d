/*
 * http: the same requests and refusals in whatever pieces the input comes; an accepted request has
 * exactly the fields that llhttp saw in it; and query decoding on the same bytes.
 */
#include "../tests/unit/wire/replay_http.h"

#define HTTP_HEAD LLHTTP_METHOD_HEAD /* llhttp's method, not our state of that name */
#include <llhttp.h>
#undef HTTP_HEAD

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int saw_target(llhttp_t *llhttp, const char *at, size_t n)
{
    replay_put(llhttp->data, "target", span_of(at, n));
    return 0;
}

static int saw_name(llhttp_t *llhttp, const char *at, size_t n)
{
    replay_put(llhttp->data, "name", span_of(at, n));
    return 0;
}

static int saw_value(llhttp_t *llhttp, const char *at, size_t n)
{
    replay_put(llhttp->data, "value", span_trim(span_of(at, n)));
    return 0;
}

static int saw_all(llhttp_t *llhttp)
{
    (void)llhttp;
    return HPE_PAUSED;
}

/* The head of the first request, as llhttp sees it and as we hand it out. */
static void compare_heads(struct span in)
{
    static const llhttp_settings_t callbacks = {.on_url = saw_target,
                                                .on_header_field = saw_name,
                                                .on_header_value = saw_value,
                                                .on_headers_complete = saw_all};
    struct buf theirs = {0}, ours = {0};
    struct http_parser *p = http_parser_new(SIZE_MAX);
    const struct http_request *r = http_parser_request(p);
    llhttp_t llhttp;
    size_t used;

    enum http_state state = http_parser_feed(p, in, &used);
    if (state == HTTP_HEAD || state == HTTP_COMPLETE) {
        llhttp_init(&llhttp, HTTP_REQUEST, &callbacks);
        llhttp.data = &theirs;
        if (llhttp_execute(&llhttp, in.p, in.n) != HPE_PAUSED)
            abort();
        replay_put(&ours, "target", r->target);
        for (size_t i = 0; i < r->n_headers; i++) {
            replay_put(&ours, "name", r->headers[i].name);
            replay_put(&ours, "value", r->headers[i].value);
        }
        if (!span_eq(buf_view(&ours), buf_view(&theirs)))
            abort();
    }
    http_parser_free(p);
    buf_fini(&ours);
    buf_fini(&theirs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf scratch = {0};
    struct span all = span_of((const char *)data, size);

    replay_fuzzed(replay_http, data, size, 48); /* small, so that large bodies are common */
    compare_heads(span_from(all, size ? 1 + data[0] % 16u : 0));
    if (http_query(all, "k", &scratch).n > size)
        abort();
    buf_fini(&scratch);
    return 0;
}
