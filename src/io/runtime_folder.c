/* Candidates for the folder of our sockets, its owner and mode checked, a socket's address in it.
 * Called by admin/control.c, bus/embedded.c, cmd/bus_dead.c and cmd/doctor/machine.c. */
#include "io/runtime_folder.h"

#include "base/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Only root can make it; the daemon that has it may be of another user (systemd's DynamicUser). */
static const char service_folder[] = "/run/rialto";

bool runtime_folder(struct buf *out, int n)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");

    out->n = 0;
    switch (n) {
    case 0:
        if (!runtime || runtime[0] != '/')
            return false;
        buf_printf(out, "%s/rialto", runtime);
        return true;
    case 1: /* for processes without the login's environment, such as cron jobs */
        if (runtime || !getuid())
            return false;
        buf_printf(out, "/run/user/%u/rialto", (unsigned)getuid());
        return true;
    case 2:
        buf_str(out, service_folder);
        return true;
    default:
        buf_printf(out, "/tmp/rialto-%u", (unsigned)getuid());
        return true;
    }
}

bool runtime_folder_is_ours(const char *folder)
{
    struct stat st;

    return lstat(folder, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == getuid() &&
           !(st.st_mode & 022);
}

bool runtime_folder_is_trusted(const char *folder)
{
    return strcmp(folder, service_folder) == 0 || runtime_folder_is_ours(folder);
}

/* Creates the folder if it does not exist. */
static bool is_usable(const char *folder)
{
    return (mkdir(folder, 0700) == 0 || errno == EEXIST) && runtime_folder_is_ours(folder);
}

char *runtime_folder_address(const char *name)
{
    BUF_SCOPED folder = {0}, address = {0};

    for (int i = 0; i < RUNTIME_FOLDERS && !address.n; i++) {
        if (!runtime_folder(&folder, i))
            continue;
        if (is_usable(buf_cstr(&folder)))
            buf_printf(&address, "unix:%s/%s", buf_cstr(&folder), name);
        else if (i == 0 && access(buf_cstr(&folder), F_OK) == 0)
            break; /* the folder in the environment exists but is not usable: try no other */
    }
    return address.n ? buf_take(&address) : NULL;
}
