/* Checks of a server before the start: working folder, program, script interpreter, file arguments,
 * or address and proxy. Called by start.c for each server; machine.c calls doctor_env. */
#include "io/program.h"
#include "base/file.h"
#include "base/mem.h"
#include "cmd/doctor/doctor.h"
#include "hub/graph/server.h"
#include "io/http_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* The server that is checked, and the title of its group. */
struct subject {
    struct doctor *doctor;
    const struct config_server *server;
    struct child_spec spec;
    char group[96];
};

static struct doctor_check *add(struct subject *s, enum doctor_level level)
{
    return doctor_add(s->doctor, level, s->group, s->server->alias, "%s", "");
}

/* --- the working folder --- */

static const char *folder_hint(const char *cwd)
{
    if (cwd[0] == '~')
        return "~ is not replaced here: write the whole path";
    if (cwd[0] != '/')
        return "it is looked for in the folder where rialto was started: write the whole path";
    return "make that folder, or correct `cwd`";
}

/* True if the working folder exists, so that the program can be searched. */
static bool check_folder(struct subject *s)
{
    const char *cwd = s->spec.cwd;
    struct stat st;
    int code = 0;

    if (!cwd)
        return true;
    if (stat(cwd, &st) < 0 || (S_ISDIR(st.st_mode) && access(cwd, X_OK) < 0))
        code = -errno;
    else if (!S_ISDIR(st.st_mode))
        code = -ENOTDIR;
    if (!code && cwd[0] == '/')
        return true;
    struct doctor_check *c = add(s, code ? DOCTOR_FAIL : DOCTOR_WARN);
    buf_printf(&c->text, "cwd: %s%s%s", cwd, code ? ": " : " depends on the folder where ",
               code ? err_name(code) : "rialto is started");
    doctor_hint(c, "%s", code ? folder_hint(cwd) : "write the whole path");
    return !code;
}

/* --- the program --- */

static void say_missing(struct subject *s, const char *program)
{
    char *path = spawn_path(&s->spec);
    const char *package = doctor_package(span_str(program));
    struct doctor_check *c = add(s, DOCTOR_FAIL);

    if (strchr(program, '/'))
        buf_printf(&c->text, "command: there is no file %s%s%s", program,
                   s->spec.cwd && program[0] != '/' ? " in " : "",
                   s->spec.cwd && program[0] != '/' ? s->spec.cwd : "");
    else
        buf_printf(&c->text, "command: %s is in none of the folders of its PATH: %s", program,
                   path);
    if (strchr(program, ' '))
        doctor_hint(c, "`command` is the program alone: what follows it belongs in `args`");
    else if (program[0] == '~' || program[0] == '$')
        doctor_hint(c, "there is no shell that would replace %.1s: write the whole path", program);
    else if (package)
        doctor_hint(c, "%s", package);
    else if (!strchr(program, '/'))
        doctor_hint(c, "install it, write its whole path, or set PATH in this server's `env`");
    else if (program[0] != '/')
        doctor_hint(c, "a relative path is looked for in `cwd`, or where rialto was started: write "
                       "the whole path");
    else
        doctor_hint(c, "correct the path, or install it");
    mem_free(path);
}

/* The kernel reports "not found" for a script that exists when its interpreter is missing. */
static bool check_script(struct subject *s, const char *file)
{
    enum { HEAD = 512 };
    BUF_SCOPED head = {0}, found = {0};
    (void)file_read(&head, file, HEAD);
    struct script script = script_read(buf_view(&head));
    char *interpreter = mem_span(script.interpreter), *wanted = mem_span(script.wanted);
    const char *missing = NULL;

    if (*interpreter && spawn_find(&s->spec, interpreter, &found))
        missing = interpreter;
    else if (*wanted && spawn_find(&s->spec, wanted, &found))
        missing = wanted;
    else if (script.dos)
        missing = *wanted ? wanted : interpreter;
    if (missing) {
        struct doctor_check *c = add(s, DOCTOR_FAIL);
        const char *slash = strrchr(missing, '/'), *name = slash ? slash + 1 : missing;
        const char *package = doctor_package(span_str(name));
        buf_printf(&c->text, "command: %s is a script for %s, which is not to be found", file,
                   missing);
        if (script.dos)
            doctor_hint(c,
                        "its lines end as on Windows, so that the name has one character too "
                        "many: sed -i 's/\\r$//' %s",
                        file);
        else if (package)
            doctor_hint(c, "%s", package);
        else
            doctor_hint(c, "install that, or correct the first line of the script");
    }
    mem_free(interpreter);
    mem_free(wanted);
    return !missing;
}

static void check_command(struct subject *s)
{
    const char *program = s->spec.argv[0];
    BUF_SCOPED file = {0};
    int code = spawn_find(&s->spec, program, &file);

    if (code == -EACCES) {
        struct doctor_check *c = add(s, DOCTOR_FAIL);
        buf_printf(&c->text, "command: %s may not be executed", buf_cstr(&file));
        doctor_hint(c, "chmod +x %s", buf_cstr(&file));
    } else if (code) {
        say_missing(s, program);
    } else if (check_script(s, buf_cstr(&file))) {
        bool relative = file.p[0] != '/';
        struct doctor_check *c = add(s, relative ? DOCTOR_WARN : DOCTOR_OK);
        buf_printf(&c->text, "command: %s%s", buf_cstr(&file),
                   relative ? " depends on the folder where rialto is started" : "");
        if (relative)
            doctor_hint(c, "write the whole path");
    }
}

static void check_argument(struct subject *s, const char *argument)
{
    BUF_SCOPED file = {0};
    bool home = argument[0] == '~';

    if (!doctor_names_file(span_str(argument)))
        return;
    if (s->spec.cwd && argument[0] != '/')
        buf_printf(&file, "%s/", s->spec.cwd);
    buf_str(&file, argument);
    bool missing = access(buf_cstr(&file), F_OK) < 0;
    if (home || missing) {
        struct doctor_check *c = add(s, DOCTOR_WARN);
        buf_printf(&c->text, "args: there is no file %s", buf_cstr(&file));
        if (home)
            doctor_hint(c, "there is no shell that would replace ~: write the whole path");
        else if (argument[0] != '/')
            doctor_hint(c, "it is looked for in `cwd`, or where rialto was started: write the "
                           "whole path");
    } else if (argument[0] != '/' && !s->spec.cwd) {
        doctor_hint(doctor_add(s->doctor, DOCTOR_WARN, s->group, s->server->alias,
                               "args: %s depends on the folder where rialto is started", argument),
                    "write the whole path, or set `cwd`");
    }
}

/* --- the address --- */

static struct span host_of(const char *host_and_port)
{
    const char *colon = strrchr(host_and_port, ':');

    return span_of(host_and_port, colon ? (size_t)(colon - host_and_port) : strlen(host_and_port));
}

const char *doctor_env(const char *const *names, const char **which)
{
    for (; *names; names++) {
        const char *value = getenv(*names);
        if (value && *value) {
            *which = *names;
            return value;
        }
    }
    return NULL;
}

/* Reports a proxy from the environment: it can be the reason why the server is not reached. */
static void check_proxy(struct subject *s, const char *host)
{
    static const char *const secure[] = {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY",
                                         NULL};
    static const char *const plain[] = {"http_proxy", "all_proxy", "ALL_PROXY", NULL};
    static const char *const never[] = {"no_proxy", "NO_PROXY", NULL};
    const char *url = s->server->url, *variable = NULL, *ignored;
    const char *proxy = doctor_env(strncmp(url, "https", 5) == 0 ? secure : plain, &variable);
    const char *list = doctor_env(never, &ignored);

    if (!proxy || strncmp(url, "http", 4) != 0 || http_url_is_local(url) ||
        (list && doctor_list_has(span_str(list), host_of(host))))
        return;
    doctor_hint(doctor_add(s->doctor, DOCTOR_WARN, s->group, s->server->alias,
                           "%s is reached through the proxy in %s", host, variable),
                "if the proxy does not know it, add its host to NO_PROXY");
}

static void check_address(struct subject *s)
{
    char *host = http_url_host(s->server->url);

    /* The path is not shown: some URLs have a secret in it. */
    if (*host) {
        buf_printf(&add(s, DOCTOR_OK)->text, "url: at %s", host);
        check_proxy(s, host);
    }
    mem_free(host);
}

void doctor_check_program(struct doctor *d, const struct config_server *server,
                          const struct server_plan *plan)
{
    const struct stdio_upstream_options *program = server_program(plan);
    struct subject s = {.doctor = d, .server = server};

    snprintf(s.group, sizeof s.group, "server %s", server->alias);
    if (!program) {
        check_address(&s);
        return;
    }
    s.spec = (struct child_spec){
        .name = server->alias, .argv = program->argv, .env = program->env, .cwd = program->cwd};
    if (!check_folder(&s))
        return;
    check_command(&s);
    /* Arguments as written in the file: the value of ${NAME} may be a secret. */
    for (size_t i = 0; i < server->args.n; i++)
        check_argument(&s, server->args.items[i]);
}
