/* Draws lines on the whole terminal, reads its keys, and handles stopping and changes of size.
 * Called by top.c. */
#include "cmd/screen.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "cmd/colour.h"
#include "io/poll.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#define ENTER      "\033[?1049h\033[?25l" /* the alternate screen, without a cursor */
#define LEAVE      "\033[?25h\033[?1049l"
#define HOME       "\033[H"
#define WIPE_LINE  "\033[K"
#define WIPE_BELOW "\033[J"
#define PLAIN      "\033[0m"

enum { USUAL_WIDTH = 80, USUAL_HEIGHT = 24 };

struct screen {
    struct loop *loop;
    struct buf text;
    void (*key)(void *arg, int key);
    void *arg;
    int keyboard; /* descriptor; -1: none */
    struct poll *keys;
    struct termios before; /* settings of the keyboard */
};

static void write_out(struct span bytes)
{
    fwrite(bytes.p, 1, bytes.n, stdout);
    fflush(stdout);
}

/* --- drawing --- */

static struct winsize size_now(void)
{
    struct winsize size = {0};

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || !size.ws_col || !size.ws_row)
        size = (struct winsize){.ws_col = USUAL_WIDTH, .ws_row = USUAL_HEIGHT};
    return size;
}

size_t screen_rows(void)
{
    return size_now().ws_row;
}

static struct span fitting(struct span line, size_t width)
{
    size_t n = 0;

    for (size_t i = 0; i < line.n; i++) {
        if ((unsigned char)line.p[i] == COLOUR_MARK)
            i++;
        else if (!utf8_tail((unsigned char)line.p[i]) && n++ == width)
            return span_cut(line, 0, i);
    }
    return line;
}

/* A line is wiped before it is written: after a line of full width the cursor stands on its last
 * character, which wiping would erase. */
static void draw(const struct screen *s)
{
    struct winsize size = size_now();
    struct span rest = buf_view(&s->text);
    bool colour = colour_wanted(STDOUT_FILENO);
    BUF_SCOPED out = {0};
    size_t row = 0;

    buf_str(&out, HOME);
    for (; row < size.ws_row && rest.n; row++) {
        struct span line = span_cut(rest, 0, span_find(rest, '\n'));
        rest = span_from(rest, line.n + 1);
        buf_str(&out, row ? "\r\n" WIPE_LINE : WIPE_LINE);
        colour_show(&out, fitting(line, size.ws_col), colour);
        buf_str(&out, colour ? PLAIN : ""); /* the end of a colour may have been cut off */
    }
    if (row < size.ws_row)
        buf_str(&out, row ? "\r\n" WIPE_BELOW : WIPE_BELOW);
    write_out(buf_view(&out));
}

void screen_draw(struct screen *s, struct span text)
{
    buf_reset(&s->text, text.n);
    buf_span(&s->text, text);
    draw(s);
}

/* --- the terminal --- */

static void take(struct screen *s)
{
    if (s->keyboard >= 0) {
        struct termios raw = s->before;
        raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        tcsetattr(s->keyboard, TCSADRAIN, &raw);
    }
    write_out(SPAN(ENTER));
}

static void give_back(struct screen *s)
{
    write_out(SPAN(LEAVE));
    if (s->keyboard >= 0)
        tcsetattr(s->keyboard, TCSADRAIN, &s->before);
}

static void on_stop(void *arg, int signo)
{
    (void)signo;
    give_back(arg);
    raise(SIGSTOP); /* until SIGCONT */
    take(arg);
    draw(arg);
}

static void on_resize(void *arg, int signo)
{
    (void)signo;
    draw(arg);
}

/* For signals that came before screen_close and are handled after it. */
static void on_too_late(void *arg, int signo)
{
    (void)arg, (void)signo;
}

static void on_keys(void *owner)
{
    struct screen *s = owner;
    char typed[64];
    ssize_t n = read(s->keyboard, typed, sizeof typed);

    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) { /* the terminal was closed */
        poll_close(s->keys);
        s->keys = NULL;
        s->keyboard = -1;
    }
    for (ssize_t i = 0; i < n; i++) {
        bool arrow =
            n - i >= 3 && typed[i] == '\033' && (typed[i + 1] == '[' || typed[i + 1] == 'O');
        char letter = arrow ? typed[i + 2] : '\0';
        if (!arrow)
            s->key(s->arg, (unsigned char)typed[i]);
        else if (letter == 'A' || letter == 'B')
            s->key(s->arg, letter == 'A' ? SCREEN_UP : SCREEN_DOWN);
        i += arrow ? 2 : 0;
    }
}

/* Opened again: O_NONBLOCK on the standard input would affect every process that shares it. */
static void open_keyboard(struct screen *s)
{
    s->keyboard = open("/dev/tty", O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (s->keyboard >= 0 && tcgetattr(s->keyboard, &s->before) < 0) {
        close(s->keyboard);
        s->keyboard = -1;
    }
    if (s->keyboard >= 0)
        s->keys = poll_new(s->loop, s->keyboard, on_keys, s);
}

/* Errors are ignored: then a new size shows at the next drawing, and Ctrl-Z leaves the screen as it
 * is. */
static void mind(struct screen *s, void (*stop)(void *arg, int signo),
                 void (*resize)(void *arg, int signo))
{
    (void)loop_on_signal(s->loop, SIGTSTP, stop, s);
    (void)loop_on_signal(s->loop, SIGWINCH, resize, s);
}

struct screen *screen_open(struct loop *l, void (*key)(void *arg, int key), void *arg)
{
    const char *term = getenv("TERM");

    if (!isatty(STDOUT_FILENO) || !term || !*term || strcmp(term, "dumb") == 0)
        return NULL;
    struct screen *s = MEM_NEW(struct screen);
    s->loop = l;
    s->key = key;
    s->arg = arg;
    open_keyboard(s);
    mind(s, on_stop, on_resize);
    take(s);
    return s;
}

void screen_close(struct screen *s)
{
    if (!s)
        return;
    give_back(s);
    mind(s, on_too_late, on_too_late);
    if (s->keys)
        poll_close(s->keys);
    buf_fini(&s->text);
    mem_free(s);
}
