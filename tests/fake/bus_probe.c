#include "bus_probe.h"

#include "base/log.h"
#include "base/mem.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static const struct probe_role *const roles[] = {&probe_drive, &probe_echo, &probe_bench};

void probe_close(struct probe *p)
{
    if (!p->closing)
        bus_close(p->bus);
    p->closing = true;
}

void probe_closed(void *owner)
{
    struct probe *p = owner;
    loop_stop(p->loop);
}

void probe_down(void *owner, const char *why)
{
    (void)owner;
    fprintf(stderr, "down: %s\n", why);
}

static void on_signal(void *arg, int signo)
{
    (void)signo;
    probe_close(arg);
}

static int read_options(struct probe *p, int argc, char **argv)
{
    const struct {
        const char *name;
        const char **to;
    } rows[] = {
        {"--name", &p->options.name},
        {"--exchange", &p->options.exchange},
        {"--prefix", &p->options.prefix},
        {"--ca", &p->options.ca},
        {"--token", &p->options.token},
        {"--listen", &p->options.listen},
        {"--credentials", &p->options.credentials},
    };
    const struct {
        const char *name;
        size_t *to;
    } sizes[] = {
        {"--max-message", &p->options.max_message},
        {"--max-outbox", &p->options.max_outbox},
    };
    int at = 1;
    for (; at < argc && argv[at][0] == '-'; at++) {
        size_t r = 0, z = 0;
        if (strcmp(argv[at], "--jetstream") == 0) {
            p->options.jetstream = true;
            continue;
        }
        while (r < COUNT_OF(rows) && strcmp(argv[at], rows[r].name) != 0)
            r++;
        while (z < COUNT_OF(sizes) && strcmp(argv[at], sizes[z].name) != 0)
            z++;
        if (z < COUNT_OF(sizes) && at + 1 < argc) {
            *sizes[z].to = (size_t)atol(argv[++at]);
            continue;
        }
        if (r == COUNT_OF(rows) || at + 1 == argc)
            return -1;
        *rows[r].to = argv[++at];
    }
    return at;
}

static const struct probe_role *find_role(const char *name, int n_arguments)
{
    for (size_t i = 0; i < COUNT_OF(roles); i++)
        if (strcmp(roles[i]->name, name) == 0 && roles[i]->n_arguments == n_arguments)
            return roles[i];
    return NULL;
}

int main(int argc, char **argv)
{
    struct probe p = {.options = {.name = "probe"}};
    struct err err;
    int at = read_options(&p, argc, argv);
    const struct probe_role *role =
        at > 0 && at + 1 < argc ? find_role(argv[at + 1], argc - at - 2) : NULL;
    if (!role) {
        fprintf(stderr, "bus_probe: see tests/fake/bus_probe.h\n");
        return 2;
    }
    log_set_level(LOG_DEBUG);
    signal(SIGPIPE, SIG_IGN);
    p.options.url = argv[at];
    p.arguments = argv + at + 2;
    p.n_arguments = argc - at - 2;
    p.loop = loop_new();
    p.bus = bus_open(p.loop, &p.options, &role->on, &p, &err);
    if (!p.bus) {
        fprintf(stderr, "bus_probe: %s\n%s\n", err.text, err.hint);
        loop_free(p.loop);
        return 1;
    }
    if (loop_on_signal(p.loop, SIGTERM, on_signal, &p) ||
        loop_on_signal(p.loop, SIGINT, on_signal, &p))
        return 1;
    int status = role->start(&p);
    if (status)
        probe_close(&p);
    loop_run(p.loop);
    if (role->end)
        role->end(&p);
    loop_free(p.loop);
    log_forget_secrets();
    return status;
}
