/* Checks of the configuration: which file is read, its problems, settings from the environment, the
 * number of servers. Called by doctor.c. */
#include "base/mem.h"
#include "cmd/doctor/doctor.h"
#include "config/load.h"
#include "config/schema.h"
#include "hub/auth/gate.h"
#include "hub/tls_files.h"

#include <stdlib.h>
#include <unistd.h>

static const char group[] = "configuration";

static const char *env_config(void)
{
    const char *named = getenv("RIALTO_CONFIG");

    return named && *named ? named : NULL;
}

/* Files that would be read if the present one did not exist. */
static void check_shadowed(struct doctor *d)
{
    const char *first = d->file;
    char *place;

    for (size_t i = 0; (place = config_place(i)); i++) {
        if (access(place, F_OK) == 0 && strcmp(place, first) != 0) {
            struct doctor_check *c =
                doctor_add(d, DOCTOR_WARN, group, NULL, "%s is there as well, but not read", place);
            doctor_hint(c, "%s comes before it; '-c %s' reads that one instead", first, place);
        }
        mem_free(place);
    }
}

static void check_place(struct doctor *d)
{
    if (!d->file) {
        BUF_SCOPED places = {0};
        config_put_places(&places);
        struct doctor_check *c = doctor_add(
            d, DOCTOR_WARN, group, NULL, "there is no file: only the built-in demo server is used");
        doctor_hint(c, "looked for %s; '-c FILE' names another", buf_cstr(&places));
        return;
    }
    const char *how = d->args->config ? "given with -c"
                      : env_config()  ? "named by RIALTO_CONFIG"
                                      : "the first that was found";
    doctor_add(d, DOCTOR_OK, group, NULL, "%s (%s)", d->file, how);
    if (!d->args->config)
        check_shadowed(d);
}

static void check_problems(struct doctor *d, const struct problems *problems)
{
    for (size_t i = 0; i < problems->n; i++) {
        const struct problem *p = &problems->items[i];
        BUF_SCOPED text = {0};
        problem_put(&text, p);
        struct doctor_check *c =
            doctor_add(d, p->level == PROBLEM_ERROR ? DOCTOR_FAIL : DOCTOR_WARN, group, NULL, "%s",
                       buf_cstr(&text));
        if (p->level == PROBLEM_ERROR && p->key[0])
            doctor_hint(c, "'rialto config --explain %s' tells what it takes", p->key);
    }
    size_t more = problems->errors + problems->warnings - problems->n;
    if (more)
        doctor_add(d, problems->errors ? DOCTOR_FAIL : DOCTOR_WARN, group, NULL, "and %zu more",
                   more);
}

/* Settings from the environment, which are easily forgotten. */
static void check_environment(struct doctor *d)
{
    for (size_t i = 0; i < schema_rows_n; i++) {
        const char *name = schema_rows[i].env, *value = name ? getenv(name) : NULL;
        if (value && *value)
            doctor_add(d, DOCTOR_OK, group, NULL, "%s is set, and wins over `%s`", name,
                       schema_rows[i].path);
    }
}

static void count_servers(struct doctor *d)
{
    const struct config *c = d->config;
    size_t off = 0;

    for (size_t i = 0; i < c->servers.n; i++)
        off += !c->servers.items[i].enabled;
    if (d->file && !c->servers.n) {
        doctor_hint(doctor_add(d, DOCTOR_WARN, group, NULL, "it has no servers"),
                    "'rialto config --explain servers' tells how they are written");
        return;
    }
    struct doctor_check *check = doctor_add(d, DOCTOR_OK, group, NULL, "can be used: %zu server%s",
                                            c->servers.n, doctor_plural(c->servers.n));
    if (off)
        buf_printf(&check->text, " (%zu switched off)", off);
}

void doctor_check_config(struct doctor *d)
{
    struct problems problems = {0};

    d->file = config_find(d->args->config);
    d->config = args_read_config(d->args, &problems);
    if (d->config) {
        gate_check(d->config, &problems);
        tls_files_check(d->config, &problems);
    }
    check_place(d);
    check_environment(d);
    check_problems(d, &problems);
    if (problems.errors) {
        config_free(d->config);
        d->config = NULL;
    }
    if (d->config)
        count_servers(d);
    problems_fini(&problems);
}
