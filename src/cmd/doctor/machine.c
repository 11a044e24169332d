/* Checks of the machine: cache and runtime folders, where secrets come from, proxy variables, open
 * files, the clock. Called by doctor.c; daemon.c of this folder calls doctor_can_write. */
#include "base/mem.h"
#include "cmd/doctor/doctor.h"
#include "hub/places.h"
#include "io/child.h"
#include "io/runtime_folder.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char group[] = "machine";

/* --- folders --- */

bool doctor_can_write(const char *folder)
{
    struct stat st;

    return stat(folder, &st) == 0 && S_ISDIR(st.st_mode) && access(folder, W_OK | X_OK) == 0;
}

/* Could `path` be made, with its missing parent folders? */
static bool can_make(const char *path)
{
    char *folder = mem_str(path), *slash;
    bool there = false;

    while (!there && (slash = strrchr(folder, '/')) && slash != folder) {
        *slash = '\0';
        there = access(folder, F_OK) == 0;
    }
    bool can = doctor_can_write(there ? folder : "/");
    mem_free(folder);
    return can;
}

/* Could a file be made in `folder`, which is made if it is missing? */
static bool is_writable(const char *folder)
{
    BUF_SCOPED file = {0};

    buf_printf(&file, "%s/x", folder);
    return can_make(buf_cstr(&file));
}

static void check_cache(struct doctor *d)
{
    static const char what_for[] = "without it, what servers offer is not known before they are "
                                   "up; set XDG_CACHE_HOME, or `remember: false`";
    char *folder = place_name(PLACE_CACHE, "catalogs");

    if (d->config && !d->config->remember)
        doctor_add(d, DOCTOR_OK, group, NULL, "cache: not used, as `remember` is off");
    else if (!folder)
        doctor_hint(doctor_add(d, DOCTOR_WARN, group, NULL,
                               "cache: nowhere, as neither HOME nor XDG_CACHE_HOME is set"),
                    "%s", what_for);
    else if (!is_writable(folder))
        doctor_hint(
            doctor_add(d, DOCTOR_WARN, group, NULL, "cache: %s cannot be written to", folder), "%s",
            what_for);
    else
        doctor_add(d, DOCTOR_OK, group, NULL, "cache: %s", folder);
    mem_free(folder);
}

static bool is_usable(const char *folder)
{
    struct stat st;

    if (lstat(folder, &st) == 0)
        return runtime_folder_is_ours(folder) && is_writable(folder);
    return can_make(folder);
}

/* The folder of the sockets, chosen as io/runtime_folder does. */
static void check_runtime(struct doctor *d)
{
    BUF_SCOPED folder = {0}, tried = {0};
    bool found = false;

    for (int i = 0; i < RUNTIME_FOLDERS && !found; i++) {
        if (!runtime_folder(&folder, i))
            continue;
        found = is_usable(buf_cstr(&folder));
        buf_printf(&tried, "%s%s", tried.n ? ", " : "", buf_cstr(&folder));
        if (i == 0)
            break; /* a folder named by the environment is the only one */
    }
    if (found)
        doctor_add(d, DOCTOR_OK, group, NULL, "sockets: in %s", buf_cstr(&folder));
    else
        doctor_hint(doctor_add(d, DOCTOR_WARN, group, NULL,
                               "sockets: %s cannot be used: not yours alone, or not to be made",
                               buf_cstr(&tried)),
                    "commands do not find the daemon then: set XDG_RUNTIME_DIR to a folder of your "
                    "own, or `control: unix:PATH`");
}

static void check_secrets(struct doctor *d)
{
    const char *folder = d->config->secrets.directory;
    const struct config_strings *command = &d->config->secrets.command;
    BUF_SCOPED file = {0};

    if (folder && *folder && access(folder, R_OK | X_OK) < 0)
        doctor_hint(doctor_add(d, DOCTOR_WARN, group, NULL,
                               "secrets.directory: %s is not to be read", folder),
                    "make it, or correct the key; the environment is looked at as well");
    if (command->n &&
        spawn_find(&(struct child_spec){.inherit_env = true}, command->items[0], &file))
        doctor_hint(doctor_add(d, DOCTOR_WARN, group, NULL,
                               "secrets.command: %s is not to be found, or may not be executed",
                               command->items[0]),
                    "install it, or write its whole path");
}

/* --- the rest --- */

/* Agents that honour these variables send requests for the daemon to the proxy. Rialto does not. */
static void check_loopback_proxy(struct doctor *d)
{
    static const char *const proxies[] = {"http_proxy", "all_proxy", "ALL_PROXY", NULL};
    static const char *const never[] = {"no_proxy", "NO_PROXY", NULL};
    const char *variable = NULL, *ignored = NULL;
    struct span list = span_str(doctor_env(never, &ignored));

    if (!doctor_env(proxies, &variable) ||
        (doctor_list_has(list, SPAN("127.0.0.1")) && doctor_list_has(list, SPAN("localhost"))))
        return;
    doctor_hint(doctor_add(d, DOCTOR_WARN, group, NULL,
                           "%s is set: agents that honour it look for this machine behind the "
                           "proxy",
                           variable),
                "NO_PROXY=localhost,127.0.0.1,::1 where agents are started");
}

/* The daemon raises its limit to the hard one, 65536 at most. */
static void check_files(struct doctor *d)
{
    enum { PER_SERVER = 4, OWN = 64 };
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    uint64_t most = limit.rlim_max < 65536 ? limit.rlim_max : 65536;
    uint64_t clients = d->config ? d->config->limits.connections : 0;
    uint64_t servers = d->config ? d->config->servers.n : 0;
    if (most >= clients + servers * PER_SERVER + OWN)
        doctor_add(d, DOCTOR_OK, group, NULL, "open files: %" PRIu64 " at most", most);
    else
        doctor_hint(doctor_add(d, DOCTOR_WARN, group, NULL,
                               "open files: %" PRIu64 " at most, but %" PRIu64
                               " clients and %" PRIu64 " servers are allowed",
                               most, clients, servers),
                    "raise the limit (ulimit -Hn, LimitNOFILE= of the unit), or lower "
                    "`limits.connections`");
}

/* A clock that is earlier than the file of this program is wrong, and certificates are then not
 * valid yet. */
static void check_clock(struct doctor *d)
{
    enum { DAY = 24 * 3600 };
    time_t now = time(NULL);
    struct stat st;
    struct tm parts;
    char text[32];

    gmtime_r(&now, &parts);
    strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &parts);
    if (stat("/proc/self/exe", &st) == 0 && st.st_mtime > now + DAY)
        doctor_hint(doctor_add(d, DOCTOR_WARN, group, NULL,
                               "clock: it says %s, which is before this program was made", text),
                    "certificates are refused by a wrong clock: timedatectl set-ntp true");
    else
        doctor_add(d, DOCTOR_OK, group, NULL, "clock: %s", text);
}

void doctor_check_machine(struct doctor *d)
{
    check_cache(d);
    check_runtime(d);
    if (d->config)
        check_secrets(d);
    check_loopback_proxy(d);
    check_files(d);
    check_clock(d);
}
