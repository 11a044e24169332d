/* Collects resources or prompts from a bridge of its own or from the daemon, and prints them as a
 * table or JSON. Called by resources.c and prompts.c; tools.c and calls.c use the helpers. */
#include "cmd/listing.h"

#include "base/mem.h"
#include "base/utf8.h"
#include "cmd/args.h"
#include "cmd/daemon.h"
#include "cmd/query.h"
#include "mcp/protocol.h"

#include <sys/ioctl.h>
#include <unistd.h>

enum { NAME_MAX_COLUMN = 40, OPT_DAEMON = ARGS_OWN };

struct listing_run {
    const struct command *self;
    const struct listing *what;
    bool json;
    struct buf list; /* JSON objects with commas between them */
};

size_t listing_width(void)
{
    struct winsize w;

    if (!isatty(STDOUT_FILENO))
        return (size_t)-1;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 40 ? w.ws_col : 80;
}

/* Resources are identified by their URI, all others by their name. */
static struct span name_of(struct span item)
{
    static const char *const members[] = {"uri", "uriTemplate", "name"};

    for (size_t i = 0; i < COUNT_OF(members); i++) {
        struct json_slot name = json_get(item, members[i]);
        if (name.type == JSON_STRING)
            return name.value;
    }
    return SPAN("\"\"");
}

static struct span description_of(struct span item)
{
    static const char *const members[] = {"description", "title", "name"};

    for (size_t i = 0; i < COUNT_OF(members); i++) {
        struct json_slot text = json_get(item, members[i]);
        if (text.type == JSON_STRING && !span_eq(text.value, name_of(item)))
            return text.value;
    }
    return SPAN("\"\"");
}

void listing_put_line(struct buf *out, struct span text, size_t room)
{
    struct span line = span_trim(span_cut(text, 0, span_find(text, '\n')));
    size_t n = 0, at = 0;

    while (at < line.n && (utf8_tail((unsigned char)line.p[at]) || n++ < room))
        at++;
    if (at < line.n) { /* the last three columns are for the dots */
        for (n = 0; at && n < 3; n++)
            while (--at && utf8_tail((unsigned char)line.p[at]))
                ;
        cmd_put_plain(out, span_cut(line, 0, at));
        buf_str(out, "...");
    } else {
        cmd_put_plain(out, line);
    }
}

static void put_description(struct buf *out, struct span item, size_t room)
{
    BUF_SCOPED text = {0};

    json_unescape(&text, description_of(item));
    listing_put_line(out, buf_view(&text), room);
}

static void put_table(struct buf *out, struct span list)
{
    size_t column = 0, width = listing_width();
    struct json_iter it = json_iter(list);

    while (json_next(&it)) {
        size_t n = name_of(it.value).n;
        if (n > column + 2)
            column = n - 2; /* the quotes */
    }
    if (column > NAME_MAX_COLUMN)
        column = NAME_MAX_COLUMN;
    it = json_iter(list);
    while (json_next(&it)) {
        size_t start = out->n;
        BUF_SCOPED scratch = {0};
        cmd_put_plain(out, json_text(name_of(it.value), &scratch));
        while (out->n - start < column)
            buf_char(out, ' ');
        buf_str(out, "  ");
        size_t used = out->n - start;
        put_description(out, it.value, width > used + 10 ? width - used : 10);
        buf_char(out, '\n');
    }
}

static void collect(struct listing_run *r, struct span list)
{
    struct json_iter it = json_iter(list);

    while (json_next(&it)) {
        if (r->list.n)
            buf_char(&r->list, ',');
        buf_span(&r->list, it.value);
    }
}

static void show(struct listing_run *r)
{
    BUF_SCOPED list = {0};
    struct buf out = {0};

    buf_char(&list, '[');
    buf_span(&list, buf_view(&r->list));
    buf_char(&list, ']');
    if (r->json) {
        buf_span(&out, buf_view(&list));
        buf_char(&out, '\n');
    } else {
        put_table(&out, buf_view(&list));
    }
    cmd_print(&out);
}

static void settled(struct query_run *a)
{
    struct listing_run *r = a->arg;

    for (size_t i = 0; i < r->what->n; i++)
        collect(r, view_list(bridge_full_view(a->bridge), r->what->kinds[i]));
    show(r);
    query_finish(a, query_report_failures(r->self, a) ? CMD_FAILED : CMD_FINE);
}

static int ask_daemon(const struct args *a, const struct config *config, struct listing_run *r)
{
    struct daemon *d = daemon_find_same(a, config);
    int code = d ? CMD_FINE : CMD_FAILED;

    for (size_t i = 0; code == CMD_FINE && i < r->what->n; i++) {
        const struct mcp_list *list = &mcp_lists[r->what->kinds[i]];
        BUF_SCOPED result = {0};
        if (daemon_request(d, "/mcp", list->method, SPAN_EMPTY, SPAN_EMPTY, SPAN_EMPTY, &result))
            code = CMD_FAILED;
        else
            collect(r, json_get(buf_view(&result), list->member).value);
    }
    if (code == CMD_FINE)
        show(r);
    if (d)
        daemon_free(d);
    return code;
}

struct config *listing_config(struct args *a, int max, bool *daemon)
{
    int id;

    while ((id = args_next(a)) > 0)
        *daemon |= id == OPT_DAEMON;
    if (id < 0)
        return NULL;
    a->exit_code = CMD_USAGE;
    return args_expect(a, max) ? NULL : args_load_config(a);
}

int listing_run(const struct command *self, int argc, char **argv, const struct listing *what)
{
    struct args a = args_begin(self, argc, argv);
    bool daemon = false;
    struct config *config = listing_config(&a, 0, &daemon);

    if (!config)
        return a.exit_code;
    struct listing_run r = {.self = self, .what = what, .json = a.json};
    int code = daemon
                   ? ask_daemon(&a, config, &r)
                   : query_run(config, &(struct query_how){.verbose = a.verbose, .quiet = a.quiet},
                               settled, &r);
    buf_fini(&r.list);
    config_free(config);
    return code;
}

const struct cmd_option listing_options[] = {
    ARGS_OPTION_CONFIG,
    {"daemon", OPT_DAEMON, NULL, "ask the running daemon instead of starting the servers"},
    ARGS_OPTION_JSON,
    ARGS_OPTION_VERBOSE,
    ARGS_OPTION_QUIET,
    {NULL}};
