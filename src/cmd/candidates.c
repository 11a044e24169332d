/* Finds the names of servers and tools for the next word of a command line. Called by completion.c.
 */
#include "cmd/candidates.h"

#include "base/ascii.h"
#include "base/log.h"
#include "cmd/daemon.h"
#include "cmd/query.h"
#include "hub/graph/tool_list.h"
#include "wire/json.h"

#include <string.h>

enum { SERVERS = 1u << 0, TOOLS = 1u << 1, OWN_TOOLS = 1u << 2 /* of the server named before */ };
enum { PATIENCE_MS = 1000, WORDS_MAX = 2 };

static const struct {
    const char *command;
    unsigned names[WORDS_MAX]; /* by the position of the word */
} rows[] = {
    {"call", {SERVERS | TOOLS, OWN_TOOLS}},
    {"disable", {SERVERS}},
    {"doctor", {SERVERS}},
    {"enable", {SERVERS}},
    {"login", {SERVERS}},
    {"logout", {SERVERS}},
    {"logs", {SERVERS}},
    {"remove", {SERVERS}},
    {"rename", {SERVERS}},
    {"restart", {SERVERS}},
    {"sandbox", {SERVERS}},
    {"start", {SERVERS}},
    {"stop", {SERVERS}},
    {"tools", {SERVERS | TOOLS}},
};

/* What the n-th word after the command's name stands for. */
static unsigned names_at(const char *command, size_t n)
{
    for (size_t i = 0; n < WORDS_MAX && i < COUNT_OF(rows); i++)
        if (strcmp(rows[i].command, command) == 0)
            return rows[i].names[n];
    return 0;
}

bool candidates_any(const struct command *c)
{
    return names_at(c->name, 0) != 0;
}

/* --- the words before --- */

static const struct cmd_option *find_option(const struct command *c, const char *word)
{
    for (const struct cmd_option *o = c->options; o->name; o++)
        if (word[1] == '-' ? strcmp(word + 2, o->name) == 0 : word[1] == o->id && !word[2])
            return o;
    return NULL;
}

/* Counts the words that are no options and keeps the first; finds the configuration. -1: the next
 * word is no name, because it is the value of an option or comes after "--". */
static int count_words(struct args *a, const struct command *c, char **words, int n,
                       const char **first)
{
    int count = 0;

    for (int i = 0; i < n; i++) {
        const struct cmd_option *o = words[i][0] == '-' ? find_option(c, words[i]) : NULL;
        if (strcmp(words[i], "--") == 0)
            return -1;
        if (words[i][0] != '-' && !count++)
            *first = words[i];
        if (!o || !o->arg || o->arg[0] == '[')
            continue;
        if (++i == n)
            return -1;
        if (o->id == 'c')
            a->config = words[i];
    }
    return count;
}

/* --- the names --- */

/* A shell may expand what is printed, so only names without special characters are. */
static void put_name(struct buf *out, struct span name)
{
    for (size_t i = 0; i < name.n; i++)
        if (!ascii_is_word(name.p[i], "_-./"))
            return;
    buf_span(out, name);
    buf_char(out, '\n');
}

static void put_tools(struct buf *out, struct span list, unsigned names, const char *server)
{
    struct json_iter it = json_iter(json_get(list, "tools").value);

    while (json_next(&it)) {
        BUF_SCOPED scratch = {0};
        if (names & TOOLS)
            put_name(out, daemon_text(it.value, "name", &scratch));
        else if (json_string_is(json_get(it.value, "server").value, span_str(server)))
            put_name(out, daemon_text(it.value, "own_name", &scratch));
    }
}

static bool ask_daemon(const struct args *a, const struct config *c, struct buf *list)
{
    struct daemon *d = daemon_look(a, c);
    int status = 0;

    if (!d)
        return false;
    daemon_wait_for(d, PATIENCE_MS);
    bool fine = daemon_try(d, "/api/tools", &status, list) == 0 && status == 200;
    daemon_free(d);
    return fine;
}

static bool want_none(const struct query_run *q, const struct provider *p)
{
    (void)q, (void)p;
    return false;
}

static void remembered(struct query_run *q)
{
    tool_list_put(q->arg, q->bridge);
    query_finish(q, CMD_FINE);
}

void candidates_put(struct buf *out, struct args *a, char **words, int n)
{
    const struct command *c = n ? command_find(words[0]) : NULL;
    const char *first = NULL;
    BUF_SCOPED list = {0};
    struct problems problems = {0};

    int at = c ? count_words(a, c, words + 1, n - 1, &first) : -1;
    unsigned names = at < 0 ? 0 : names_at(c->name, (size_t)at);
    struct config *config = names ? args_read_config(a, &problems) : NULL;
    problems_fini(&problems);
    if (!config)
        return;
    log_set_level(LOG_ERROR);
    for (size_t i = 0; (names & SERVERS) && i < config->servers.n; i++)
        put_name(out, span_str(config->servers.items[i].alias));
    if ((names & (TOOLS | OWN_TOOLS)) && !ask_daemon(a, config, &list)) {
        config->secrets.command.n = 0;
        (void)query_run(config, &(struct query_how){.quiet = true, .wants = want_none}, remembered,
                        &list);
    }
    if (list.n)
        put_tools(out, buf_view(&list), names, first);
    config_free(config);
}
