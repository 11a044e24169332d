#include "admin/control.h"

#include "base/log.h"
#include "base/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PLACES = 4 };

/* The n-th folder to look in; false when that one does not apply here. */
static bool put_folder(struct buf *out, int n)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");

    out->n = 0;
    switch (n) {
    case 0:
        if (!runtime || runtime[0] != '/')
            return false;
        buf_printf(out, "%s/rialto", runtime);
        return true;
    case 1: /* a login without its environment, such as cron's */
        if (runtime || !getuid())
            return false;
        buf_printf(out, "/run/user/%u/rialto", (unsigned)getuid());
        return true;
    case 2:
        buf_str(out, "/run/rialto");
        return true;
    default:
        buf_printf(out, "/tmp/rialto-%u", (unsigned)getuid());
        return true;
    }
}

/* Makes the folder if need be. Somebody else's is not taken, nor one that others can write to. */
static bool is_ours(const char *folder)
{
    struct stat st;

    if (mkdir(folder, 0700) && errno != EEXIST)
        return false;
    return lstat(folder, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == getuid() &&
           !(st.st_mode & 022);
}

static const char *path_in(const char *setting)
{
    return strncmp(setting, "unix:", 5) == 0 ? setting + 5 : NULL;
}

char *control_address(const char *setting)
{
    struct buf folder = {0}, address = {0};

    if (strcmp(setting, "off") == 0)
        return NULL;
    if (path_in(setting))
        return mem_str(setting);
    for (int i = 0; i < PLACES && !address.n; i++) {
        if (!put_folder(&folder, i))
            continue;
        if (is_ours(buf_cstr(&folder)))
            buf_printf(&address, "unix:%s/control.sock", buf_cstr(&folder));
        else if (i == 0)
            break; /* the environment says where, so nowhere else */
    }
    if (!address.n)
        log_warn("rialto", "no place for the control socket; 'control: unix:PATH' names one");
    buf_fini(&folder);
    return address.n ? buf_take(&address) : NULL;
}

static bool is_socket(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}

char *control_find(const char *setting)
{
    struct buf path = {0};

    if (path_in(setting))
        return is_socket(path_in(setting)) ? mem_str(path_in(setting)) : NULL;
    for (int i = 0; i < PLACES && strcmp(setting, "off") != 0; i++) {
        if (!put_folder(&path, i))
            continue;
        buf_str(&path, "/control.sock");
        if (is_socket(buf_cstr(&path)))
            return buf_take(&path);
    }
    buf_fini(&path);
    return NULL;
}

void control_put_places(struct buf *out, const char *setting)
{
    struct buf folder = {0};
    const char *comma = "";

    if (path_in(setting)) {
        buf_str(out, path_in(setting));
        return;
    }
    for (int i = 0; i < PLACES; i++) {
        if (!put_folder(&folder, i))
            continue;
        buf_printf(out, "%s%s/control.sock", comma, buf_cstr(&folder));
        comma = ", ";
    }
    buf_fini(&folder);
}
