/* The path of the control socket: where the daemon puts it and where commands look for it. Called
 * by cmd/serve.c, cmd/daemon.c, cmd/browser_relay.c and cmd/doctor/daemon.c. */
#include "admin/control.h"

#include "base/log.h"
#include "base/mem.h"
#include "io/runtime_folder.h"

#include <sys/stat.h>

static const char *path_in(const char *setting)
{
    return strncmp(setting, "unix:", 5) == 0 ? setting + 5 : NULL;
}

char *control_address(const char *setting)
{
    if (strcmp(setting, "off") == 0)
        return NULL;
    if (path_in(setting))
        return mem_str(setting);
    char *address = runtime_folder_address("control.sock");
    if (!address)
        log_warn("rialto", "no place for the control socket; 'control: unix:PATH' names one");
    return address;
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
    for (int i = 0; i < RUNTIME_FOLDERS && strcmp(setting, "off") != 0; i++) {
        if (!runtime_folder(&path, i))
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
    BUF_SCOPED folder = {0};
    const char *comma = "";

    if (path_in(setting)) {
        buf_str(out, path_in(setting));
        return;
    }
    for (int i = 0; i < RUNTIME_FOLDERS; i++) {
        if (!runtime_folder(&folder, i))
            continue;
        buf_printf(out, "%s%s/control.sock", comma, buf_cstr(&folder));
        comma = ", ";
    }
}
