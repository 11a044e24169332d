/*
 * audit TIMES FILE: records so many calls in an audit trail in FILE, and prints the CPU time of one
 * in microseconds. tests/budget/run.mjs runs it twice under callgrind: the difference is the cost
 * of the lines with their hashes; bench/run prints the time.
 */
#include "admin/audit.h"
#include "base/buf.h"
#include "base/mem.h"
#include "config/load.h"
#include "core/inside.h"
#include "core/principal.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const char params[] =
    "{\"name\":\"read_file\",\"arguments\":{\"path\":\"/home/ann/notes/today.md\",\"lines\":40}}";

static struct config *read_config(const char *file)
{
    struct problems problems = {0};
    struct buf text = {0};

    buf_printf(&text, "{\"audit\":{\"file\":\"%s\",\"size\":\"64MiB\"}}", file);
    struct config *c = config_parse(buf_view(&text), CONFIG_JSON, &problems);
    buf_fini(&text);
    problems_fini(&problems);
    return c;
}

static void record(struct router *r, const struct call *c, const struct request *q)
{
    struct tap *tap = LIST_FIRST(&r->taps, struct tap, node);

    (void)tap->opened(tap, c, q);
    (void)tap->ended(tap, c, &(struct outcome){.kind = OUTCOME_RESULT, .body = SPAN("{}")});
}

int main(int argc, char **argv)
{
    int times = argc > 1 ? atoi(argv[1]) : 1, code;
    struct config *config = read_config(argc > 2 ? argv[2] : "/tmp/audit.jsonl");
    struct timers timers = {.now = 1000};
    struct router *router = router_new(&timers, 1);
    struct principal *ann = principal_new("laptop");
    struct peer peer;
    struct provider files = {.alias = "files"};
    struct err err = {0};
    struct audit *audit = audit_begin(config, router, &code, &err);

    peer_init(&peer, NULL);
    peer.client = "{\"name\":\"claude-code\",\"version\":\"2.1.14\"}";
    peer.session = "6f1d09aa";
    peer.endpoint = "/mcp";
    const struct request q = {
        .op = OP_CALL_TOOL, .name = SPAN("read_file"), .params = SPAN(params)};
    struct call c = {.op = OP_CALL_TOOL, .caller = &peer, .principal = ann, .provider = &files};
    clock_t start = clock();
    for (int i = 0; audit && i < times; i++) {
        c.handle++;
        record(router, &c, &q);
    }
    printf("%.2f\n", (double)(clock() - start) * 1e6 / CLOCKS_PER_SEC / times);
    audit_end(audit);
    principal_release(ann);
    router_free(router);
    config_free(config);
    return audit ? 0 : 1;
}
