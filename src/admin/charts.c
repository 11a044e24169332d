/* GET /api/numbers: the last hour of each server and tool, restarts, and what the processes use.
 * Called by api.c. */
#include "admin/inside.h"
#include "wire/json_out.h"

#include <stdio.h>
#include <unistd.h>

static void put_one(struct buf *out, const struct admin *a, struct span server, struct span tool,
                    const struct numbers *n)
{
    json_out_open(out, NULL, '{');
    json_out_text(out, "server", server);
    if (tool.n)
        json_out_redacted(out, "tool", tool);
    else
        json_out_raw(out, "tool", SPAN("null"));
    numbers_put(out, n, router_timers(a->router)->now);
    buf_char(out, '}');
}

static void put_series(struct buf *out, const struct admin *a, const struct sight *s)
{
    struct span server, tool;
    size_t at = 0;
    void *value, *series;

    json_out_open(out, "series", '[');
    while (map_next(&a->accounts, &at, &server, &value)) {
        const struct account *account = value;
        size_t in = 0;
        if (!sight_shows_server(s, server))
            continue;
        put_one(out, a, server, SPAN_EMPTY, &account->numbers);
        while (map_next(&account->tools, &in, &tool, &series))
            if (sight_shows_call(s, server, OP_CALL_TOOL, tool))
                put_one(out, a, server, tool, series);
    }
    buf_char(out, ']');
}

static void put_restarts(struct buf *out, const struct admin *a, const struct sight *s)
{
    struct span server;
    size_t at = 0;
    void *value;

    json_out_open(out, "restarts", '[');
    while (map_next(&a->accounts, &at, &server, &value)) {
        const struct account *account = value;
        for (size_t i = 0; sight_shows_server(s, server) && i < ACCOUNT_RESTARTS; i++) {
            if (!account->restarts[i])
                continue;
            json_out_open(out, NULL, '{');
            json_out_text(out, "server", server);
            json_out_open(out, "at", '"');
            status_put_stamp(out, status_unix(a, account->restarts[i]));
            buf_str(out, "\"}");
        }
    }
    buf_char(out, ']');
}

/* Bytes in memory and ms of processor time, as the kernel counts them. False: the process has
 * ended. */
static bool read_process(int pid, uint64_t *memory, uint64_t *cpu_ms)
{
    unsigned long long user = 0, kernel = 0, pages = 0;
    char path[64];
    bool fine = false;

    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    /* The name in brackets may have any character, so fields are counted from the last bracket. */
    char line[1024];
    size_t n = fread(line, 1, sizeof line - 1, f);
    line[n] = '\0';
    const char *rest = strrchr(line, ')');
    fine = rest && sscanf(rest + 1,
                          " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d "
                          "%*d %*d %*u %*u %llu",
                          &user, &kernel, &pages) == 3;
    fclose(f);
    *memory = pages * (uint64_t)sysconf(_SC_PAGESIZE);
    *cpu_ms = (user + kernel) * 1000 / (uint64_t)sysconf(_SC_CLK_TCK);
    return fine;
}

static void put_processes(struct buf *out, const struct admin *a, const struct sight *s)
{
    json_out_open(out, "processes", '[');
    for (struct provider *p = NULL; (p = router_next_provider(a->router, p));) {
        uint64_t memory, cpu_ms;
        int pid = provider_describe(p).pid;
        if (!pid || !sight_shows_server(s, span_str(p->alias)) ||
            !read_process(pid, &memory, &cpu_ms))
            continue;
        json_out_open(out, NULL, '{');
        json_out_str(out, "server", p->alias);
        json_out_number(out, "pid", (uint64_t)pid);
        json_out_number(out, "memory", memory);
        json_out_number(out, "cpu_ms", cpu_ms);
        buf_char(out, '}');
    }
    buf_char(out, ']');
}

void charts_handle(struct admin *a, struct http_exchange *x, const struct http_request *req,
                   const struct api_path *path)
{
    if (path->name.n) {
        api_no_such_path(x);
    } else if (admin_wants_get(x, req)) {
        struct buf *out = http_respond_begin(x, 200, "application/json", SPAN_EMPTY);
        buf_char(out, '{');
        json_out_open(out, "until", '"');
        status_put_stamp(out, status_unix(a, router_timers(a->router)->now));
        buf_char(out, '"');
        json_out_number(out, "minutes", NUMBERS_MINUTES);
        put_series(out, a, &path->sight);
        put_restarts(out, a, &path->sight);
        put_processes(out, a, &path->sight);
        buf_str(out, "}\n");
        http_respond_end(x);
    }
}
