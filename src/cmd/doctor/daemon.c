/* Checks of the running daemon (its answer, its servers, its PATH) and of the addresses where it
 * listens or would listen. Called by doctor.c. */
#include "cmd/daemon.h"
#include "admin/control.h"
#include "base/mem.h"
#include "cmd/doctor/doctor.h"
#include "io/listen.h"
#include "wire/json.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

static const char group[] = "daemon";

/* --- the daemon --- */

enum { DAEMON_MS = 5000 };

/* A daemon that hangs must not make the doctor hang. */
struct patience {
    struct timer timer;
    struct loop *loop;
    bool over;
};

static void on_patience_over(struct timer *t)
{
    struct patience *p = CONTAINER_OF(t, struct patience, timer);

    p->over = true;
    loop_stop(p->loop);
}

static int ask_status(const struct args *a, const char *setting, const char *file,
                      struct buf *answer)
{
    struct daemon *d = daemon_open(a, setting, file);
    struct patience p = {.timer = {.fire = on_patience_over}};
    int status = 0;

    if (!d)
        return -ENOENT;
    p.loop = daemon_loop(d);
    timer_set(loop_timers(p.loop), &p.timer, DAEMON_MS);
    int code = daemon_try(d, "/status", &status, answer);
    timer_clear(loop_timers(p.loop), &p.timer);
    daemon_free(d);
    if (!code && json_type_of(buf_view(answer)) != JSON_OBJECT)
        code = ERR_PROTOCOL;
    return p.over ? -ETIMEDOUT : code;
}

static bool is_same_file(const char *file, struct span theirs)
{
    char *ours = file ? realpath(file, NULL) : NULL;
    bool same = span_eq(span_str(ours), theirs);

    free(ours);
    return same;
}

static void check_daemon_servers(struct doctor *d, struct span status)
{
    struct json_iter it = json_iter(json_get(status, "servers").value);

    while (json_next(&it)) {
        BUF_SCOPED name = {0}, why = {0};
        if (json_string_is(json_get(it.value, "state").value, SPAN("failing"))) {
            struct span text = daemon_text(it.value, "last_error", &why);
            struct doctor_check *c =
                doctor_add(d, DOCTOR_WARN, group, NULL, "its server '%s' is failing: " SPAN_FMT,
                           daemon_cstr(it.value, "name", &name), SPAN_ARG(text));
            const char *advice = doctor_advice(text);
            if (advice)
                doctor_hint(c, "%s", advice);
        }
        if (json_string_is(json_get(it.value, "state").value, SPAN("needs_sign_in")))
            doctor_hint(doctor_add(d, DOCTOR_WARN, group, NULL,
                                   "nobody has signed in to its server '%s'",
                                   daemon_cstr(it.value, "name", &name)),
                        "%s", daemon_cstr(it.value, "hint", &why));
    }
}

/* Another PATH is the usual reason why a program is found at the terminal and not by the daemon. */
static void check_path(struct doctor *d)
{
    const char *ours = getenv("PATH");
    BUF_SCOPED theirs = {0};

    if (ours && doctor_process_env(d->daemon_pid, "PATH", &theirs) &&
        !span_is(buf_view(&theirs), ours))
        doctor_hint(doctor_add(d, DOCTOR_WARN, group, NULL, "it has another PATH than you here: %s",
                               buf_cstr(&theirs)),
                    "what is found here may not be found there: write whole paths, or set PATH in "
                    "`env`");
}

static void report_daemon(struct doctor *d, struct span status)
{
    BUF_SCOPED scratch = {0}, word = {0};
    struct span config = daemon_text(status, "config", &scratch);
    int64_t pid = 0;

    if (json_int(json_get(status, "pid").value, &pid))
        d->daemon_pid = (int)pid;
    doctor_add(d, DOCTOR_OK, group, NULL, "runs as process %d for " SPAN_FMT " s now; it says: %s",
               d->daemon_pid, SPAN_ARG(json_get(status, "uptime_s").value),
               daemon_cstr(status, "status", &word));
    d->daemon_same = is_same_file(d->file, config);
    if (!d->daemon_same) {
        struct doctor_check *c =
            doctor_add(d, DOCTOR_WARN, group, NULL, "it runs with another configuration: %s",
                       config.n ? "" : "the built-in one");
        buf_span(&c->text, config);
        if (config.n)
            doctor_hint(c, "'rialto doctor -c " SPAN_FMT "' looks at that one", SPAN_ARG(config));
    }
    check_path(d);
    check_daemon_servers(d, status);
}

static void check_daemon(struct doctor *d)
{
    const char *from_env = getenv("RIALTO_CONTROL");
    const char *setting = d->config               ? d->config->control
                          : from_env && *from_env ? from_env
                                                  : "auto";
    char *socket = control_find(setting, d->file);
    BUF_SCOPED answer = {0};

    if (strcmp(setting, "off") == 0) {
        doctor_add(d, DOCTOR_OK, group, NULL, "`control` is off: commands cannot find one");
    } else if (!socket) {
        doctor_add(d, DOCTOR_OK, group, NULL, "none is running");
    } else {
        int code = ask_status(d->args, setting, d->file, &answer);
        if (code == 0)
            report_daemon(d, buf_view(&answer));
        else if (code == -ECONNREFUSED)
            doctor_hint(doctor_add(d, DOCTOR_WARN, group, NULL,
                                   "none is running, but an earlier one has left %s behind",
                                   socket),
                        "nothing needs to be done: 'rialto serve' replaces it");
        else if (code == -ETIMEDOUT)
            doctor_hint(doctor_add(d, DOCTOR_FAIL, group, NULL,
                                   "somebody listens at %s, but does not answer within %d s",
                                   socket, DAEMON_MS / 1000),
                        "the log of the daemon may say why; end the daemon and start it again");
        else
            doctor_hint(doctor_add(d, DOCTOR_FAIL, group, NULL, "cannot be asked at %s: %s", socket,
                                   err_name(code)),
                        "only the user who started it may; `control: unix:PATH` gives it another "
                        "place");
    }
    mem_free(socket);
}

/* --- addresses --- */

static void say_taken(struct doctor *d, const char *address)
{
    BUF_SCOPED name = {0};
    int pid = doctor_find_listener(address, &name);

    if (pid && pid == d->daemon_pid) {
        doctor_add(d, DOCTOR_OK, group, NULL, "listen: the daemon has %s", address);
    } else {
        struct doctor_check *c =
            doctor_add(d, DOCTOR_FAIL, group, NULL, "listen: %s is taken", address);
        if (pid)
            buf_printf(&c->text, " by process %d (%s)", pid, buf_cstr(&name));
        else
            buf_str(&c->text, " by a process that this user may not see");
        doctor_hint(c, "stop that one, or write another address in `listen`");
    }
}

static void no_client(void *owner, struct stream *s)
{
    (void)owner;
    stream_close(s, "nobody is here");
}

/* Binds the address for a moment: there is no other way to know whether it is free. */
static void check_tcp(struct doctor *d, const char *address)
{
    struct loop *loop = loop_new();
    struct err err = {0};
    struct listener *ls = listener_open(loop, address, no_client, NULL, &err);

    if (ls) {
        doctor_add(d, DOCTOR_OK, group, NULL, "listen: %s is free", address);
        listener_close(ls);
    } else if (span_has_nocase(span_str(err.text), SPAN("in use"))) {
        say_taken(d, address);
    } else {
        struct doctor_check *c = doctor_add(d, DOCTOR_FAIL, group, NULL, "listen: %s", err.text);
        if (err.hint[0])
            doctor_hint(c, "%s", err.hint);
    }
    loop_free(loop);
}

/* Can files be made in the folder of `path`? */
static bool is_folder_writable(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? mem_span(span_of(path, (size_t)(slash - path) + 1)) : mem_str(".");
    bool writable = doctor_can_write(folder);

    mem_free(folder);
    return writable;
}

static void check_unix(struct doctor *d, const char *address)
{
    const char *path = address + 5;
    struct stat st;

    if (lstat(path, &st) < 0 && is_folder_writable(path)) {
        doctor_add(d, DOCTOR_OK, group, NULL, "listen: %s is free", address);
    } else if (lstat(path, &st) < 0) {
        doctor_hint(doctor_add(d, DOCTOR_FAIL, group, NULL,
                               "listen: %s cannot be made by this user", address),
                    "its folder must be there, and yours to write to");
    } else if (!S_ISSOCK(st.st_mode)) {
        doctor_hint(doctor_add(d, DOCTOR_FAIL, group, NULL,
                               "listen: %s is there already, and no socket", path),
                    "take it away, or write another path");
    } else if (listen_is_live(path)) {
        say_taken(d, address);
    } else {
        doctor_hint(doctor_add(d, DOCTOR_WARN, group, NULL,
                               "listen: an earlier daemon has left %s behind", path),
                    "nothing needs to be done: 'rialto serve' replaces it");
    }
}

void doctor_check_daemon(struct doctor *d)
{
    check_daemon(d);
    for (size_t i = 0; d->config && i < d->config->listen.n; i++) {
        const char *address = d->config->listen.items[i].address;
        if (strncmp(address, "unix:", 5) == 0)
            check_unix(d, address);
        else
            check_tcp(d, address);
    }
}
