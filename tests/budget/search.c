/*
 * search TIMES: searches 500 tools so many times, and prints how many it found the last time.
 * tests/budget/run.mjs runs it twice under callgrind: the difference is the cost of the searches.
 */
#include "core/search.h"
#include "base/buf.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>

enum { TOOLS = 500, LIMIT = 10 };

static const char *const verbs[] = {"create", "read", "update", "delete", "search", "list", "move",
                                    "copy",   "send", "open",   "close",  "merge",  "tag"};
static const char *const nouns[] = {"file",   "issue",   "repository", "message", "table", "user",
                                    "branch", "comment", "document",   "event",   "page"};

/* A typical tool: a name, two sentences, a few arguments. */
static void add_tool(struct search *s, int i)
{
    const char *verb = verbs[(size_t)i % COUNT_OF(verbs)];
    const char *noun = nouns[(size_t)i / COUNT_OF(verbs) % COUNT_OF(nouns)];
    struct buf name = {0}, description = {0}, details = {0};

    buf_printf(&name, "server%d__%s_%s", i / 50, verb, noun);
    buf_printf(&description,
               "Use this to %s a %s of the project. Returns the %s with its id, its author and the "
               "time of the last change, or an error when there is none.",
               verb, noun, noun);
    buf_printf(&details,
               "%s_id Which %s is meant limit How many to return at most since Only those "
               "that have changed after this date project Name of the project number%d",
               noun, noun, i);
    search_add(s, (const struct span[SEARCH_FIELDS]){buf_view(&name), buf_view(&description),
                                                     buf_view(&details)});
    buf_fini(&details);
    buf_fini(&description);
    buf_fini(&name);
}

int main(int argc, char **argv)
{
    struct search *s = search_new();
    struct search_hit hits[LIMIT];
    int times = argc > 1 ? atoi(argv[1]) : 1;
    size_t n = 0;

    for (int i = 0; i < TOOLS; i++)
        add_tool(s, i);
    search_finish(s);
    for (int i = 0; i < times; i++)
        n = search_find(s, SPAN("create an issue with a comment in the repository"), hits, LIMIT);
    printf("%zu\n", n);
    search_free(s);
    return n != LIMIT;
}
