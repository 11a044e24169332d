/* The name and the path of the control socket: where the daemon puts it and where commands look for
 * it. Called by cmd/serve.c, cmd/stdio.c, cmd/daemon.c, cmd/status.c, cmd/token.c,
 * cmd/browser_relay.c and cmd/doctor/daemon.c. */
#include "admin/control.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/sha.h"
#include "config/load.h"
#include "io/runtime_folder.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>

/* Bytes of the digest in a socket's name: short, because a socket's whole path may have only 107
 * characters. */
enum { DIGEST_N = 8 };

static const char *path_in(const char *setting)
{
    return strncmp(setting, "unix:", 5) == 0 ? setting + 5 : NULL;
}

static bool is_same_file(const char *real, const char *other)
{
    char *other_real = other ? realpath(other, NULL) : NULL;
    bool same = other_real && strcmp(real, other_real) == 0;

    free(other_real);
    return same;
}

void control_put_name(struct buf *out, const char *file)
{
    unsigned char digest[SHA256_N];
    char *users = config_user_file();
    char *real = file ? realpath(file, NULL) : NULL;

    buf_str(out, "control");
    if (real && !is_same_file(real, users)) {
        sha_256(digest, span_str(real));
        buf_char(out, '-');
        for (size_t i = 0; i < DIGEST_N; i++)
            buf_printf(out, "%02x", digest[i]);
    }
    buf_str(out, ".sock");
    free(real);
    mem_free(users);
}

char *control_address(const char *setting, const char *file)
{
    BUF_SCOPED name = {0};

    if (strcmp(setting, "off") == 0)
        return NULL;
    if (path_in(setting))
        return mem_str(setting);
    control_put_name(&name, file);
    char *address = runtime_folder_address(buf_cstr(&name));
    if (!address)
        log_warn("rialto", "no place for the control socket; 'control: unix:PATH' names one");
    return address;
}

static bool is_socket(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}

char *control_find(const char *setting, const char *file)
{
    BUF_SCOPED name = {0}, path = {0};

    if (path_in(setting))
        return is_socket(path_in(setting)) ? mem_str(path_in(setting)) : NULL;
    control_put_name(&name, file);
    for (int i = 0; i < RUNTIME_FOLDERS && strcmp(setting, "off") != 0; i++) {
        if (!runtime_folder(&path, i) || !runtime_folder_is_trusted(buf_cstr(&path)))
            continue;
        buf_printf(&path, "/%s", buf_cstr(&name));
        if (is_socket(buf_cstr(&path)))
            return buf_take(&path);
    }
    return NULL;
}

void control_put_places(struct buf *out, const char *setting, const char *file)
{
    BUF_SCOPED folder = {0}, name = {0};
    const char *comma = "";

    if (path_in(setting)) {
        buf_str(out, path_in(setting));
        return;
    }
    control_put_name(&name, file);
    for (int i = 0; i < RUNTIME_FOLDERS; i++) {
        if (!runtime_folder(&folder, i))
            continue;
        buf_printf(out, "%s%s/%s", comma, buf_cstr(&folder), buf_cstr(&name));
        comma = ", ";
    }
}

/* --- all daemons --- */

static int is_name(const struct dirent *e)
{
    struct span name = span_str(e->d_name);

    return span_is(name, "control.sock") || span_glob(SPAN("control-*.sock"), name);
}

/* The n-th socket in this folder. Counts *n down, so that the search can go on in the next
 * folder. */
static char *nth_in(const char *folder, size_t *n)
{
    struct dirent **names;
    struct buf path = {0};
    int found = runtime_folder_is_ours(folder) ? scandir(folder, &names, is_name, alphasort) : 0;

    for (int i = 0; i < found; i++) {
        BUF_SCOPED one = {0};
        buf_printf(&one, "%s/%s", folder, names[i]->d_name);
        if (!path.n && is_socket(buf_cstr(&one)) && (*n)-- == 0)
            buf_span(&path, buf_view(&one));
        free(names[i]);
    }
    if (found > 0)
        free(names);
    return path.n ? buf_take(&path) : NULL;
}

char *control_nth(size_t n)
{
    BUF_SCOPED folder = {0};
    char *path = NULL;

    for (int i = 0; i < RUNTIME_FOLDERS && !path; i++)
        if (runtime_folder(&folder, i))
            path = nth_in(buf_cstr(&folder), &n);
    return path;
}
