/* Messages with descriptors over a Unix socket: framing, and the queue of messages that wait to be
 * sent. Called by hub/upgrade.c in both processes, and by hub/promises.c. */
#include "io/handover.h"

#include "base/log.h"
#include "base/mem.h"
#include "io/loop_uv.h"
#include "wire/json.h"
#include "wire/json_out.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FRAME_MAX = 1 << 30, CHUNK = 64 * 1024, WAITING_FDS = 256 };

/* The header of each message, in the byte order of the machine. */
struct handover_frame {
    uint32_t text_n, body_n, fds_n;
};

struct handover_parcel {
    struct list node;
    struct buf bytes;
    size_t at;
    int fds[HANDOVER_FDS];
    size_t n_fds;
};

struct handover {
    struct loop *loop;
    uv_poll_t poll;
    int fd;
    bool started, over;
    handover_message_fn *got;
    void (*ended)(void *owner);
    void *owner;
    struct list queue;
    struct buf in;
    int fds[WAITING_FDS]; /* received, but their message is not complete */
    size_t n_fds;
};

static void on_poll(uv_poll_t *handle, int status, int events);

/* --- sending --- */

static void parcel_free(struct handover_parcel *p)
{
    list_remove(&p->node);
    for (size_t i = 0; i < p->n_fds; i++)
        close(p->fds[i]);
    buf_fini(&p->bytes);
    mem_free(p);
}

/* Writes as much of a parcel as the socket takes; the descriptors go with its first byte. */
static ssize_t send_some(const struct handover *b, const struct handover_parcel *p)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int) * HANDOVER_FDS)];
    } control = {0};
    struct iovec part = {p->bytes.p + p->at, p->bytes.n - p->at};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};

    if (!p->at && p->n_fds) {
        m.msg_control = control.room;
        m.msg_controllen = CMSG_SPACE(sizeof(int) * p->n_fds);
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(sizeof(int) * p->n_fds);
        memcpy(CMSG_DATA(&control.header), p->fds, sizeof(int) * p->n_fds);
    }
    return sendmsg(b->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void flush(struct handover *b)
{
    while (!list_empty(&b->queue)) {
        struct handover_parcel *p = LIST_FIRST(&b->queue, struct handover_parcel, node);
        ssize_t n = send_some(b, p);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        p->at += n > 0 ? (size_t)n : p->bytes.n - p->at; /* an error: nobody will read the rest */
        if (p->at == p->bytes.n)
            parcel_free(p);
    }
    if (b->started && !b->over)
        uv_poll_start(&b->poll, UV_READABLE | (list_empty(&b->queue) ? 0 : UV_WRITABLE), on_poll);
}

void handover_send(struct handover *b, struct span text, struct span body, const int *fds,
                   size_t n_fds)
{
    struct handover_parcel *p = MEM_NEW(struct handover_parcel);
    struct handover_frame head = {(uint32_t)text.n, (uint32_t)body.n, (uint32_t)n_fds};

    buf_bytes(&p->bytes, &head, sizeof head);
    buf_span(&p->bytes, text);
    buf_span(&p->bytes, body);
    for (size_t i = 0; i < n_fds; i++)
        p->fds[p->n_fds++] = fcntl(fds[i], F_DUPFD_CLOEXEC, 3);
    list_append(&b->queue, &p->node);
    flush(b);
}

void handover_tell(struct handover *b, const char *kind, const struct buf *members,
                   struct span body, const int *fds, size_t n_fds)
{
    BUF_SCOPED text = {0};

    json_out_open(&text, NULL, '{');
    json_out_str(&text, "kind", kind);
    if (members && members->n) {
        buf_char(&text, ',');
        buf_span(&text, buf_view(members));
    }
    buf_char(&text, '}');
    handover_send(b, buf_view(&text), body, fds, n_fds);
}

bool handover_is_flushed(const struct handover *b)
{
    return list_empty(&b->queue);
}

/* --- receiving --- */

static void take_fds(struct handover *b, struct msghdr *m)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = 0; i < n && b->n_fds < WAITING_FDS; i++)
            memcpy(&b->fds[b->n_fds++], CMSG_DATA(c) + i * sizeof(int), sizeof(int));
    }
}

/* False at EOF, and when the socket is broken. */
static bool receive(struct handover *b)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int) * 64)];
    } control;
    struct iovec part = {buf_room(&b->in, CHUNK), CHUNK};
    struct msghdr m = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = control.room,
                       .msg_controllen = sizeof control.room};
    ssize_t n = recvmsg(b->fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

    if (n <= 0)
        return n < 0 && (errno == EAGAIN || errno == EINTR);
    take_fds(b, &m);
    b->in.n += (size_t)n;
    return true;
}

static void deliver(struct handover *b, const struct handover_frame *head)
{
    struct span all = span_from(buf_view(&b->in), sizeof *head);
    struct handover_message m = {.text = span_cut(all, 0, head->text_n),
                                 .body = span_cut(all, head->text_n, head->body_n),
                                 .fds = {-1, -1, -1}};

    for (size_t i = 0; i < head->fds_n; i++)
        m.fds[i] = b->fds[i];
    b->n_fds -= head->fds_n;
    memmove(b->fds, b->fds + head->fds_n, b->n_fds * sizeof(int));
    b->got(b->owner, &m);
    for (size_t i = 0; i < HANDOVER_FDS; i++)
        if (m.fds[i] >= 0)
            close(m.fds[i]);
}

/* Gives the complete messages to `got`. False: the bytes are not a valid message. */
static bool deliver_all(struct handover *b)
{
    struct handover_frame head;
    enum json_type type;

    while (!b->over && b->in.n >= sizeof head) {
        memcpy(&head, b->in.p, sizeof head);
        size_t whole = sizeof head + head.text_n + head.body_n;
        if (whole > FRAME_MAX || head.fds_n > HANDOVER_FDS)
            return false;
        if (b->in.n < whole)
            break;
        struct span text = span_cut(buf_view(&b->in), sizeof head, head.text_n);
        if (head.fds_n > b->n_fds || json_skim(text, NULL, NULL, &type, NULL) ||
            type != JSON_OBJECT)
            return false;
        deliver(b, &head);
        buf_drop(&b->in, whole);
    }
    return true;
}

static void on_poll(uv_poll_t *handle, int status, int events)
{
    struct handover *b = CONTAINER_OF(handle, struct handover, poll);

    (void)status;
    loop_enter(b->loop);
    if (events & UV_WRITABLE)
        flush(b);
    if (events == UV_WRITABLE)
        return;
    bool open = receive(b), fine = deliver_all(b);
    if ((open && fine) || b->over)
        return;
    b->over = true;
    uv_poll_stop(&b->poll);
    b->ended(b->owner);
}

bool handover_wait(struct handover *b, int ms)
{
    struct pollfd ready = {.fd = b->fd,
                           .events = (short)(POLLIN | (list_empty(&b->queue) ? 0 : POLLOUT))};
    int n;

    do
        n = poll(&ready, 1, ms);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return false;
    flush(b);
    return receive(b) && deliver_all(b);
}

/* --- life --- */

struct handover *handover_new(struct loop *l, int fd, handover_message_fn *got,
                              void (*ended)(void *owner), void *owner)
{
    struct handover *b = MEM_NEW(struct handover);

    fcntl(fd, F_SETFD, FD_CLOEXEC);
    b->loop = l;
    b->fd = fd;
    b->got = got;
    b->ended = ended;
    b->owner = owner;
    list_init(&b->queue);
    return b;
}

void handover_start(struct handover *b)
{
    b->started = true;
    uv_poll_init(&b->loop->uv, &b->poll, b->fd);
    flush(b);
}

static void drop(struct handover *b)
{
    while (!list_empty(&b->queue))
        parcel_free(LIST_FIRST(&b->queue, struct handover_parcel, node));
    while (b->n_fds)
        close(b->fds[--b->n_fds]);
    buf_fini(&b->in);
    close(b->fd);
    mem_free(b);
}

static void on_closed(uv_handle_t *handle)
{
    drop(CONTAINER_OF(handle, struct handover, poll));
}

void handover_free(struct handover *b)
{
    b->over = true;
    if (b->started)
        uv_close((uv_handle_t *)&b->poll, on_closed);
    else
        drop(b);
}
