/* Paths of files in the XDG state and cache folders, and making these folders. Called by the files
 * of hub/ that keep something there, such as web_pages.c and hub/graph/memory.c, by admin/audit.c,
 * and in cmd/ by stdio.c, host_setup_journal.c and doctor/machine.c. */
#include "hub/places.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *variable, *below_home;
} places[] = {
    [PLACE_STATE] = {"XDG_STATE_HOME", ".local/state"},
    [PLACE_CACHE] = {"XDG_CACHE_HOME", ".cache"},
};

char *place_name(enum home home, const char *name)
{
    const char *own = getenv(places[home].variable), *user = getenv("HOME");
    const char *service = home == PLACE_STATE ? getenv("STATE_DIRECTORY") : NULL;
    struct buf path = {0};

    if (service && service[0] == '/') /* from a service manager, for us alone */
        buf_printf(&path, "%.*s/%s", (int)strcspn(service, ":"), service, name);
    else if (own && own[0] == '/')
        buf_printf(&path, "%s/rialto/%s", own, name);
    else if (user && user[0] == '/')
        buf_printf(&path, "%s/%s/rialto/%s", user, places[home].below_home, name);
    else
        return NULL;
    return buf_take(&path);
}

char *place_path(enum home home, const char *name)
{
    char *whole = place_name(home, name);

    if (whole)
        file_make_folders(whole);
    return whole;
}
