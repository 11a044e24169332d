/* Opens an address in the user's browser, and reloads pages. Called by guide.c, after an
 * operator has approved the call. */
#include "browser/open_page.h"

#include "base/ascii.h"
#include "base/mem.h"
#include "browser/guide.h"
#include "browser/launch.h"
#include "browser/page.h"
#include "browser/pipe.h"
#include "wire/json.h"

#include <stdlib.h>

enum { URL_MAX = 2048 };

struct opening {
    struct call *call; /* NULL: cancelled */
    char *url;
};

/* The origin of an http:// or https:// URL; empty: it is no such URL. */
static struct span origin_of(struct span url)
{
    size_t start = span_starts(url, SPAN("https://"))  ? strlen("https://")
                   : span_starts(url, SPAN("http://")) ? strlen("http://")
                                                       : url.n;
    size_t end = start;

    while (end < url.n && !strchr("/?#", url.p[end]))
        end++;
    return end > start ? span_cut(url, 0, end) : SPAN_EMPTY;
}

/* Only characters of URLs: the program that gets it as an argument may be a shell script. */
static bool is_address(struct span url)
{
    return url.n <= URL_MAX && ascii_is_words(url, "-._~:/?#[]@!$&()*+,;=%") && origin_of(url).n;
}

/* --- reloading a connected page --- */

static struct page *page_at(const struct browser *b, struct span origin)
{
    size_t at = 0;
    void *value;

    while (map_next(&b->sessions, &at, NULL, &value)) {
        const struct browser_session *s = value;
        LIST_EACH (&s->pages, it) {
            struct page *p = LIST_ENTRY(it, struct page, node);
            struct span own = p->origin ? span_str(p->origin) : origin_of(span_str(p->url));
            if (page_is_here(p) && p->dialect->reload && span_eq(own, origin))
                return p;
        }
    }
    return NULL;
}

static void reload(const struct browser *b, struct call *call, struct span url)
{
    const struct page *p = page_at(b, origin_of(url));

    if (!p) {
        guide_say(call, true, "No page of MCP-B from this origin is connected", url);
        return;
    }
    pipe_send(page_pipe(p), span_str(p->dialect->reload), true);
    guide_say(call, false, "The page was told to reload", url);
}

/* --- opening a page in the browser --- */

static const char *program(void)
{
    const char *chosen = getenv("BROWSER");

    return chosen && *chosen ? chosen : "xdg-open";
}

static void on_told(void *owner, int code)
{
    struct opening *o = owner;
    bool failed = code > 0;

    if (o->call)
        guide_say(o->call, failed,
                  failed ? "The browser could not be started ($BROWSER, or xdg-open)"
                         : "The page was opened in the browser",
                  span_str(o->url));
    mem_free(o->url);
    mem_free(o);
}

static void launch(struct browser *b, struct call *call, struct span url)
{
    struct opening *o = MEM_NEW(struct opening);
    struct err err;

    o->call = call;
    o->url = mem_span(url);
    call->provider_data = o;
    const char *argv[] = {program(), o->url, NULL};
    if (!launch_start(b->loop, &b->opening, argv, on_told, o, &err))
        return;
    mem_free(o->url);
    mem_free(o);
    guide_say(call, true, err.text, url);
}

void open_page_call(struct browser *b, struct call *call, struct span arguments)
{
    struct json_slot given = json_get(arguments, "url");
    BUF_SCOPED scratch = {0};
    struct span url = given.type == JSON_STRING ? json_text(given.value, &scratch) : SPAN_EMPTY;

    if (!is_address(url))
        guide_say(call, true,
                  "'url' must be an address that begins with http:// or https://, with "
                  "characters that addresses do not have written as %XX",
                  span_cut(url, 0, 100));
    else if (json_get(arguments, "refresh").type == JSON_TRUE)
        reload(b, call, url);
    else
        launch(b, call, url);
}

void open_page_cancel(struct call *call)
{
    struct opening *o = call->provider_data;

    if (o)
        o->call = NULL;
}
