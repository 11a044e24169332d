/* Forking, and becoming another program; where this one was started from. Called by hub/upgrade.c
 * and cmd/serve.c. */
#include "io/successor.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/libc.h"
#include "base/mem.h"
#include "io/kin.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char variable[] = "RIALTO_UPGRADE";

enum { COMMAND_LINE_MAX = 1024 * 1024 };

/* --- the command line --- */

static void read_words(struct buf *out)
{
    if (file_read(out, "/proc/self/cmdline", COMMAND_LINE_MAX))
        out->n = 0;
    buf_cstr(out);
}

/* Is this file the program that runs? */
static bool is_self(const char *path)
{
    struct stat self, st;

    return stat("/proc/self/exe", &self) == 0 && stat(path, &st) == 0 && self.st_ino == st.st_ino &&
           self.st_dev == st.st_dev;
}

/* Searches PATH for the file that was started by a name without a slash. */
static bool put_from_path(struct buf *out, const char *name)
{
    const char *at = getenv("PATH");

    for (; at && *at; at += strcspn(at, ":"), at += *at == ':') {
        out->n = 0;
        buf_printf(out, "%.*s/%s", (int)strcspn(at, ":"), at, name);
        if (out->p[0] == '/' && is_self(buf_cstr(out)))
            return true;
    }
    return false;
}

char *successor_default(void)
{
    BUF_SCOPED words = {0};
    struct buf path = {0};
    char folder[PATH_MAX];

    read_words(&words);
    if (strchr(words.p, '/')) {
        if (words.p[0] != '/' && getcwd(folder, sizeof folder))
            buf_printf(&path, "%s/", folder);
        buf_str(&path, words.p);
        if (is_self(buf_cstr(&path)))
            return buf_take(&path);
    } else if (put_from_path(&path, words.p)) {
        return buf_take(&path);
    }
    ssize_t n = readlink("/proc/self/exe", folder, sizeof folder - 1);
    path.n = 0;
    buf_bytes(&path, folder, n > 0 ? (size_t)n : 0);
    return buf_take(&path);
}

char **successor_words(const char *program)
{
    BUF_SCOPED words = {0}, all = {0};
    size_t n = 1, at;

    read_words(&words);
    buf_bytes(&all, program, strlen(program) + 1);
    size_t first = words.n ? strlen(words.p) + 1 : 0;
    for (at = first; at < words.n; at += strlen(words.p + at) + 1)
        n++;
    buf_bytes(&all, words.p + (first < words.n ? first : words.n),
              first < words.n ? words.n - first : 0);
    char **out = mem_alloc((n + 1) * sizeof *out + all.n);
    char *text = (char *)(out + n + 1);
    memcpy(text, all.p, all.n);
    for (size_t i = 0; i < n; i++, text += strlen(text) + 1)
        out[i] = text;
    out[n] = NULL;
    return out;
}

/* --- the start --- */

enum successor_role successor_role(int *handover, int *old)
{
    const char *text = getenv(variable);
    enum successor_role role = SUCCESSOR_NONE;
    uintmax_t limit;
    int n = text ? sscanf(text, "%d:%d:%ju", handover, old, &limit) : 0;

    if (text && strcmp(text, "rehearse") == 0)
        role = SUCCESSOR_REHEARSAL;
    else if (n >= 2)
        role = SUCCESSOR_HEIR;
    if (n == 3) /* an older program does not say it */
        kin_keep_limit((rlim_t)limit);
    unsetenv(variable);
    return role;
}

static int become(const struct service *service, const char *program, char *const *words,
                  int handover, int old)
{
    char text[64];

    snprintf(text, sizeof text, "%d:%d:%ju", handover, old, (uintmax_t)kin_limit());
    setenv(variable, text, 1);
    service_restore_variables(service);
    /* What libraries opened does not go to the new program, either. */
    close_range(3, UINT_MAX, CLOSE_RANGE_CLOEXEC);
    fcntl(handover, F_SETFD, 0);
    execv(program, words);
    int code = -errno;
    unsetenv(variable);
    return code;
}

int successor_start(struct loop *l, const struct service *service, const char *program,
                    char *const *words, int *handover, struct err *err)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return err_set(err, -errno, "no socket for the handover: %s", err_name(-errno));
    pid_t old = fork();
    if (old == 0) {
        close(ends[0]);
        *handover = ends[1];
        return loop_forked(l) ? err_set(err, ERR_PROTOCOL, "the loop cannot go on") : 0;
    }
    int code = old < 0 ? -errno : become(service, program, words, ends[0], old);
    close(ends[0]);
    close(ends[1]);
    if (old > 0) {
        kill(old, SIGKILL);
        waitpid(old, NULL, 0);
    }
    return err_set(err, code, "cannot start %s: %s", program, err_name(code));
}
