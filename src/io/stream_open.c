/* Streams made from sockets, descriptors, and our own stdin and stdout; keepalive of TCP. Called by
 * listen.c, stream_connect.c, child.c, and by the commands that speak on stdio. */
#include "io/address.h"
#include "io/stream_uv.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <unistd.h>

static void adopt_handle(struct stream *s, struct stream_end *end)
{
    end->kind = END_UV;
    end->uv.handle.data = s;
    s->handles++;
}

struct stream *stream_new_socket(struct loop *l, bool tcp)
{
    struct stream *s = stream_new(l);
    if (tcp)
        uv_tcp_init(&l->uv, &s->in.uv.tcp);
    else
        uv_pipe_init(&l->uv, &s->in.uv.pipe, 0);
    adopt_handle(s, &s->in);
    return s;
}

struct stream *stream_from_socket(struct loop *l, int fd, bool tcp, const char *name)
{
    struct stream *s = stream_new_socket(l, tcp);
    int code = tcp ? uv_tcp_open(&s->in.uv.tcp, fd) : uv_pipe_open(&s->in.uv.pipe, fd);

    stream_connected(s, tcp ? NULL : name);
    stream_accepted(s);
    if (code < 0) {
        close(fd);
        stream_close(s, uv_strerror(code));
    }
    return s;
}

int stream_descriptor(const struct stream *s)
{
    uv_os_fd_t fd;

    return s->in.kind == END_UV && !s->closing && uv_fileno(&s->in.uv.handle, &fd) == 0 ? fd : -1;
}

/*
 * A peer that vanished (no power, no network) sends nothing, ever: the kernel probes the peer after
 * a minute of silence, and gives it up a minute later.
 */
static void watch_peer(const struct stream *s)
{
    static const struct {
        int level, option, value;
    } rows[] = {
        {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, 60},
        {IPPROTO_TCP, TCP_KEEPINTVL, 20},
        {IPPROTO_TCP, TCP_KEEPCNT, 3},
    };
    uv_os_fd_t fd;

    if (uv_fileno(&s->in.uv.handle, &fd) < 0)
        return;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        setsockopt(fd, rows[i].level, rows[i].option, &rows[i].value, sizeof rows[i].value);
}

void stream_acknowledge(const struct stream *s)
{
    static const int steps[] = {1, 0}; /* what is due, and then again along with what we write */
    int fd = stream_descriptor(s);

    for (size_t i = 0; i < COUNT_OF(steps); i++)
        setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &steps[i], sizeof steps[i]);
}

void stream_connected(struct stream *s, const char *name)
{
    if (name) {
        s->name = mem_str(name);
        return;
    }
    struct sockaddr_storage sa = {0};
    int size = sizeof sa;
    char text[ADDRESS_TEXT_SIZE];
    /* Output is gathered for a whole turn already: Nagle's algorithm would only add delay. */
    uv_tcp_nodelay(&s->in.uv.tcp, 1);
    watch_peer(s);
    uv_tcp_getpeername(&s->in.uv.tcp, (struct sockaddr *)&sa, &size);
    address_format(&sa, text);
    s->name = mem_str(text);
}

void stream_put_local(const struct stream *s, char *out)
{
    struct sockaddr_storage own = {0};
    int size = sizeof own;

    out[0] = '\0';
    if (s->in.kind == END_UV && s->in.uv.handle.type == UV_TCP &&
        uv_tcp_getsockname(&s->in.uv.tcp, (struct sockaddr *)&own, &size) == 0)
        address_format(&own, out);
}

void stream_pose(struct stream *s, const char *local)
{
    s->posed = mem_str(local);
}

bool stream_is_to(const struct stream *s, struct span host)
{
    struct sockaddr_storage own = {0};
    int size = sizeof own;

    if (s->posed)
        return address_read(&own, s->posed) == 0 && address_is(&own, host);
    if (s->in.kind != END_UV || s->in.uv.handle.type != UV_TCP ||
        uv_tcp_getsockname(&s->in.uv.tcp, (struct sockaddr *)&own, &size) < 0)
        return false;
    return address_is(&own, host);
}

/* Take over a descriptor as one end; a negative code if the kernel refuses. */
static int open_end(struct stream *s, struct stream_end *end, int fd)
{
    if (uv_guess_handle(fd) == UV_FILE) {
        end->kind = END_FILE;
        end->fd = fd;
        return 0;
    }
    /* libuv's "pipe" reads and writes any descriptor that can be polled, terminals as well. */
    uv_pipe_init(&s->loop->uv, &end->uv.pipe, 0);
    adopt_handle(s, end);
    int code = uv_pipe_open(&end->uv.pipe, fd);
    if (code < 0)
        close(fd);
    return code;
}

struct stream *stream_from_fds(struct loop *l, int in_fd, int out_fd, const char *name)
{
    struct stream *s = stream_new(l);
    int code = 0;

    s->name = mem_str(name);
    if (in_fd >= 0)
        code = open_end(s, &s->in, in_fd);
    if (out_fd < 0)
        s->shut = s->shut_out = true;
    else if (out_fd != in_fd) {
        int out_code = open_end(s, &s->back, out_fd);
        code = code < 0 ? code : out_code;
    }
    if (code < 0)
        stream_close(s, uv_strerror(code));
    return s;
}

/*
 * A descriptor of our own for stdin or stdout, which we may make non-blocking.
 *
 * O_NONBLOCK belongs to the open file, which we share with the program that started us: a shell
 * would find its terminal changed. So pipes and terminals are opened a second time, which gives an
 * open file of our own. Sockets cannot be reopened; their flags are restored at the end
 * (`fl_restored`).
 */
static int own_descriptor(int fd, int mode, int *fl_restored)
{
    *fl_restored = -1;
    if (uv_guess_handle(fd) != UV_FILE) {
        char path[32];
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        int again = open(path, mode | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (again >= 0)
            return again;
        *fl_restored = fcntl(fd, F_GETFL);
    }
    return fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

struct stream *stream_stdio(struct loop *l)
{
    int in_fl, out_fl;
    int in = own_descriptor(STDIN_FILENO, O_RDONLY, &in_fl);
    int out = own_descriptor(STDOUT_FILENO, O_WRONLY, &out_fl);
    struct stream *s = stream_from_fds(l, in, out, "stdio");
    s->in.fl_restored = in_fl;
    s->back.fl_restored = out_fl;

    /* Now no other code of the process can write into the protocol by accident, and closing the
     * stream closes the last descriptor: the peer gets EOF. */
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null >= 0) {
        dup2(null, STDIN_FILENO);
        dup2(null, STDOUT_FILENO);
        close(null);
    }
    return s;
}
