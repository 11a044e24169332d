/* Finds the folder of the project that a folder is in. Called by args.c and caller_variables.c. */
#include "cmd/project.h"

#include "base/ascii.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static bool has_git(const char *folder)
{
    char path[PATH_MAX + sizeof "/.git"];
    struct stat st;

    snprintf(path, sizeof path, "%s/.git", folder);
    return lstat(path, &st) == 0; /* in a work tree or submodule it is a file */
}

void project_put(struct buf *out, const char *folder)
{
    char real[PATH_MAX];
    struct stat st;

    if (!realpath(folder, real) || stat(real, &st) < 0 || !S_ISDIR(st.st_mode))
        return;
    for (size_t n = strlen(real); n; n = (size_t)((char *)memrchr(real, '/', n) - real)) {
        char upper[PATH_MAX];
        snprintf(upper, sizeof upper, "%.*s", (int)n, real);
        if (!has_git(upper))
            continue;
        buf_str(out, upper);
        return;
    }
    buf_str(out, real);
}

void project_put_root(struct buf *out, struct span uri)
{
    BUF_SCOPED path = {0};

    if (!span_starts(uri, SPAN("file://")))
        return;
    uri = span_from(uri, sizeof "file://" - 1);
    if (span_starts(uri, SPAN("localhost/")))
        uri = span_from(uri, sizeof "localhost" - 1);
    for (size_t i = 0; i < uri.n; i++) {
        bool coded = uri.p[i] == '%' && i + 2 < uri.n && ascii_hex(uri.p[i + 1]) >= 0 &&
                     ascii_hex(uri.p[i + 2]) >= 0;
        int byte = coded ? ascii_hex(uri.p[i + 1]) * 16 + ascii_hex(uri.p[i + 2]) : uri.p[i];
        if (!byte)
            return;
        buf_char(&path, (char)byte);
        i += coded ? 2 : 0;
    }
    if (path.n && path.p[0] == '/')
        project_put(out, buf_cstr(&path));
}
