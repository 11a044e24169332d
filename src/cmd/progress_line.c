/* One line on the standard error that is written again every second while a command works. Called
 * by query.c and call.c. */
#include "cmd/progress_line.h"

#include "base/mem.h"
#include "base/utf8.h"
#include "cmd/cmd.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { BEAT_MS = 1000, USUAL_WIDTH = 80 };

struct progress_line {
    struct loop *loop;
    struct timer beat;
    struct buf text; /* empty: no work is under way */
    uint64_t since;
    bool shows;   /* there is a terminal */
    bool written; /* the line is on the terminal */
};

static void wipe(struct progress_line *p)
{
    if (p->written)
        fputs("\r\033[K", stderr);
    p->written = false;
}

/* As much of the text as fits on one line, so that one wipe takes all of it. */
static struct span fitting(struct span text, size_t room)
{
    struct winsize size = {0};
    size_t width =
        ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : USUAL_WIDTH;
    size_t n = 0;

    for (size_t i = 0; i < text.n; i++)
        if (!utf8_tail((unsigned char)text.p[i]) && n++ + room >= width)
            return span_cut(text, 0, i);
    return text;
}

static void write_line(struct progress_line *p)
{
    uint64_t seconds = (loop_now(p->loop) - p->since) / 1000;
    char elapsed[32] = "";
    int n = seconds ? snprintf(elapsed, sizeof elapsed, " (%" PRIu64 " s)", seconds) : 0;
    struct span text = fitting(buf_view(&p->text), (size_t)n + 1);

    wipe(p);
    fprintf(stderr, SPAN_FMT "%s", SPAN_ARG(text), elapsed);
    fflush(stderr);
    p->written = true;
}

static void on_beat(struct timer *t)
{
    struct progress_line *p = CONTAINER_OF(t, struct progress_line, beat);

    write_line(p);
    timer_set(loop_timers(p->loop), t, BEAT_MS);
}

struct progress_line *progress_line_new(struct loop *l, bool quiet)
{
    struct progress_line *p = MEM_NEW(struct progress_line);
    const char *term = getenv("TERM");

    p->loop = l;
    p->beat.fire = on_beat;
    p->shows = !quiet && isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
    return p;
}

void progress_line_free(struct progress_line *p)
{
    progress_line_stop(p);
    buf_fini(&p->text);
    mem_free(p);
}

void progress_line_say(struct progress_line *p, struct span text)
{
    if (!p->shows)
        return;
    if (!p->text.n) {
        p->since = loop_now(p->loop);
        timer_set(loop_timers(p->loop), &p->beat, BEAT_MS);
    }
    p->text.n = 0;
    cmd_put_plain(&p->text, text);
    if (p->written)
        write_line(p);
}

void progress_line_tell(struct progress_line *p, struct span text)
{
    progress_line_say(p, text);
    if (p->shows && !p->written)
        write_line(p);
}

void progress_line_stop(struct progress_line *p)
{
    timer_clear(loop_timers(p->loop), &p->beat);
    p->text.n = 0;
    wipe(p);
}
