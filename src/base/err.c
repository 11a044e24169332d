/* Filling in a struct err with a reason and a hint, and the text for each error code. Called by
 * io/, bus/, hub/, config/, cmd/ and the families, where an error is shown to people. */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int err_set(struct err *e, int code, const char *fmt, ...)
{
    if (e) {
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(e->text, sizeof e->text, fmt, ap);
        va_end(ap);
        e->hint[0] = '\0';
        e->code = code;
    }
    return code;
}

void err_hint(struct err *e, const char *fmt, ...)
{
    if (!e)
        return;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(e->hint, sizeof e->hint, fmt, ap);
    va_end(ap);
}

const char *err_name(int code)
{
    static const char *const ours[] = {
        [ERR_SYNTAX - ERR_FIRST] = "syntax error",
        [ERR_DEPTH - ERR_FIRST] = "nested too deeply",
        [ERR_SIZE - ERR_FIRST] = "too large",
        [ERR_DUPLICATE - ERR_FIRST] = "a member occurs twice",
        [ERR_UTF8 - ERR_FIRST] = "not valid UTF-8",
        [ERR_CONFIG - ERR_FIRST] = "configuration error",
        [ERR_PROTOCOL - ERR_FIRST] = "protocol error",
        [ERR_NO_HOST - ERR_FIRST] = "there is no host of that name",
        [ERR_NAME_SERVER - ERR_FIRST] = "its name could not be looked up",
        [ERR_REACH - ERR_FIRST] = "connections to it are not allowed",
    };
    int at = code - ERR_FIRST;
    if (at >= 0 && at < (int)(sizeof ours / sizeof ours[0]))
        return ours[at];
    return strerror(-code);
}
