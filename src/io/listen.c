/* Listening sockets: binding, accepting, stale socket files, running out of descriptors. Called by
 * http_server.c, acp/port.c, browser/, bus/line_server.c, hub/upgrade.c and cmd/. */
#include "io/listen.h"

#include "base/log.h"
#include "base/mem.h"
#include "io/address.h"
#include "io/service.h"
#include "io/stream_uv.h"

#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    BACKLOG = 1024,
    SPARE = 32, /* descriptors that TCP clients do not get */
};

struct listener {
    struct list node; /* in the loop's list */
    struct loop *loop;
    char *asked; /* the address asked for, before binding: service.h finds sockets by it */
    char *file;  /* of a Unix socket, to remove at the end; or NULL */
    bool left;   /* given to another process */
    listen_accept_fn *on_accept;
    void *owner;
    char *address;
    int port;
    uint64_t warned; /* when the last warning was logged */
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } uv;
};

static void on_closed(uv_handle_t *handle)
{
    struct listener *ls = handle->data;
    mem_free(ls->address);
    mem_free(ls->asked);
    mem_free(ls->file);
    mem_free(ls);
}

void listener_close(struct listener *ls)
{
    if (!ls || ls->left)
        return;
    if (ls->file)
        unlink(ls->file);
    list_remove(&ls->node);
    uv_close(&ls->uv.handle, on_closed);
}

void listen_show_all(const struct loop *l, listen_show_fn *show, void *arg)
{
    LIST_EACH (&l->listeners, it) {
        const struct listener *ls = LIST_ENTRY(it, struct listener, node);
        uv_os_fd_t fd;
        if (uv_fileno(&ls->uv.handle, &fd) == 0)
            show(arg, ls->asked, fd, ls->file != NULL);
    }
}

/* The structs stay: their owners may still ask for addresses, and the process ends soon. */
void listen_leave_all(struct loop *l)
{
    LIST_EACH (&l->listeners, it) {
        struct listener *ls = LIST_ENTRY(it, struct listener, node);
        ls->left = true;
        uv_close(&ls->uv.handle, NULL);
    }
}

/* When descriptors have run out, each client would cause a log line: one a second is enough. */
static void warn(struct listener *ls, const char *why)
{
    if (loop_now(ls->loop) - ls->warned < 1000)
        return;
    ls->warned = loop_now(ls->loop);
    log_warn("listen", "%s: cannot accept: %s", ls->address, why);
}

/*
 * With no descriptor left, libuv accepts and drops clients without telling us, and no MCP server
 * could be started. So the last descriptors are for ourselves, and for the commands that come by
 * Unix sockets. The kernel gives the lowest free number: a high one means that few are left.
 */
static bool is_one_too_many(const struct stream *s)
{
    struct rlimit limit;
    uv_os_fd_t fd;

    if (uv_fileno(&s->in.uv.handle, &fd) < 0 || getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return false;
    rlim_t spare = limit.rlim_cur / 4 < SPARE ? limit.rlim_cur / 4 : SPARE;
    return (rlim_t)fd >= limit.rlim_cur - spare;
}

static void on_connection(uv_stream_t *handle, int status)
{
    struct listener *ls = handle->data;
    bool tcp = ls->uv.handle.type == UV_TCP;

    loop_enter(ls->loop);
    if (status < 0) {
        warn(ls, uv_strerror(status));
        return;
    }
    struct stream *s = stream_new_socket(ls->loop, tcp);
    status = uv_accept(handle, &s->in.uv.stream);
    if (status < 0) {
        stream_close(s, uv_strerror(status));
        return;
    }
    if (tcp && is_one_too_many(s)) {
        warn(ls, "too many open files: raise the limit (ulimit -n, LimitNOFILE)");
        stream_close(s, "too many open files");
        return;
    }
    stream_connected(s, tcp ? NULL : ls->address);
    stream_accepted(s);
    ls->on_accept(ls->owner, s);
}

bool listen_is_live(const char *path)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return true;
    snprintf(sa.sun_path, sizeof sa.sun_path, "%s", path);
    bool refused = connect(fd, (struct sockaddr *)&sa, sizeof sa) < 0 && errno == ECONNREFUSED;
    close(fd);
    return !refused;
}

/* Binds a new socket to a file; a negative code if that fails. Not done by libuv, which removes the
 * file whenever it closes the socket, even if another process still uses that socket. */
static int bind_unix(const char *path)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    struct stat st;

    if (strlen(path) >= sizeof sa.sun_path)
        return UV_ENAMETOOLONG;
    memcpy(sa.sun_path, path, strlen(path));
    /* Only a dead socket is removed, never another kind of file. */
    if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode) && !listen_is_live(path))
        unlink(path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    mode_t before = umask(0177);
    int code = bind(fd, (struct sockaddr *)&sa, sizeof sa) < 0 ? -errno : fd;
    umask(before);
    if (code < 0)
        close(fd);
    return code == -ENOENT ? UV_EACCES : code;
}

bool listen_is_given(const struct loop *l, const char *address)
{
    return service_has_socket(l->service, address);
}

static int open_unix(struct listener *ls, const char *address, const char *path)
{
    bool ours = true;

    uv_pipe_init(&ls->loop->uv, &ls->uv.pipe, 0);
    ls->asked = mem_str(address);
    int fd = service_take_socket(ls->loop->service, address, &ours);
    if (fd < 0)
        fd = bind_unix(path);
    if (fd < 0)
        return fd;
    if (ours)
        ls->file = mem_str(path);
    int code = uv_pipe_open(&ls->uv.pipe, fd);
    return code < 0 ? code : uv_listen(&ls->uv.stream, BACKLOG, on_connection);
}

static int open_tcp(struct listener *ls, const struct sockaddr_storage *sa)
{
    char text[ADDRESS_TEXT_SIZE];

    address_format(sa, text);
    ls->asked = mem_str(text);
    bool ours;
    int given = service_take_socket(ls->loop->service, text, &ours);
    uv_tcp_init(&ls->loop->uv, &ls->uv.tcp);
    int code = given >= 0 ? uv_tcp_open(&ls->uv.tcp, given)
                          : uv_tcp_bind(&ls->uv.tcp, (const struct sockaddr *)sa, 0);
    /* When bind fails with "address in use", only uv_listen reports that. */
    return code < 0 ? code : uv_listen(&ls->uv.stream, BACKLOG, on_connection);
}

/* The address of a host that may be a name. Blocks during the lookup: only for start-up. */
static int find_address(struct listener *ls, const struct address *a, struct sockaddr_storage *sa)
{
    if (address_numeric(a, sa) == 0)
        return 0;
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    uv_getaddrinfo_t lookup;
    int code = uv_getaddrinfo(&ls->loop->uv, &lookup, NULL, a->host, a->digits, &hints);
    if (code == 0) {
        memcpy(sa, lookup.addrinfo->ai_addr, lookup.addrinfo->ai_addrlen);
        uv_freeaddrinfo(lookup.addrinfo);
    }
    return code;
}

static void name_tcp(struct listener *ls)
{
    struct sockaddr_storage sa = {0};
    int size = sizeof sa;
    char text[ADDRESS_TEXT_SIZE];

    uv_tcp_getsockname(&ls->uv.tcp, (struct sockaddr *)&sa, &size);
    address_format(&sa, text);
    ls->address = mem_str(text);
    ls->port = address_port(&sa);
}

static void explain(struct err *err, const char *address, int code)
{
    err_set(err, code, "cannot listen on %s: %s", address, uv_strerror(code));
    if (code == UV_EADDRINUSE)
        err_hint(err, "another program has it: stop that one or take another address");
    else if (code == UV_EACCES)
        err_hint(err, "a port below 1024 needs more rights; a Unix socket needs a folder that "
                      "exists and that you may write to");
}

struct listener *listener_open(struct loop *l, const char *address, listen_accept_fn *on_accept,
                               void *owner, struct err *err)
{
    struct address a;
    struct sockaddr_storage sa = {0};

    if (address_parse(&a, address, err) < 0)
        return NULL;
    struct listener *ls = MEM_NEW(struct listener);
    ls->loop = l;
    ls->on_accept = on_accept;
    ls->owner = owner;
    ls->uv.handle.data = ls;
    list_append(&l->listeners, &ls->node);

    int code = a.path ? 0 : find_address(ls, &a, &sa);
    if (code < 0) {
        explain(err, address, code);
        list_remove(&ls->node);
        mem_free(ls);
        return NULL;
    }
    code = a.path ? open_unix(ls, address, a.path) : open_tcp(ls, &sa);
    if (code < 0) {
        explain(err, address, code);
        listener_close(ls);
        return NULL;
    }
    if (a.path)
        ls->address = mem_str(address);
    else
        name_tcp(ls);
    return ls;
}

const char *listener_address(const struct listener *ls)
{
    return ls->address;
}

int listener_port(const struct listener *ls)
{
    return ls->port;
}
