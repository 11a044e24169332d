/* webform: what is written is read back; the strict and the lenient reader agree. */
#include "base/mem.h"
#include "wire/webform.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_written(struct span text)
{
    static const char *const names[] = {"a", "b"};
    struct buf form = {0}, scratch = {0};
    struct span values[2];

    webform_put(&form, "b", text);
    webform_put(&form, "a", SPAN("x"));
    bool nul = span_find(text, '\0') < text.n;
    int code = webform_read(buf_view(&form), names, 2, values, &scratch);
    if (code != (nul ? ERR_SYNTAX : 0) || (!code && !span_eq(values[1], text)))
        abort();
    buf_fini(&form);
    buf_fini(&scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"code", "state", "a", "iss"};
    struct span text = span_of((const char *)data, size), values[COUNT_OF(names)];
    struct buf strict = {0}, lenient = {0};

    check_written(text);
    if (webform_read(text, names, COUNT_OF(names), values, &strict) == 0) {
        for (size_t i = 0; i < COUNT_OF(names); i++) {
            struct span got = webform_get(text, names[i], &lenient);
            if (!span_eq(got, values[i]) || !got.p != !values[i].p)
                abort();
        }
    }
    buf_fini(&strict);
    buf_fini(&lenient);
    return 0;
}
