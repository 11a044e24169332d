/* Which process is at the other end of a socket. Called where an MCP server that we started, or
 * another user, must not get in: by http_conn.c and http_answer.c for the operator's pages and
 * commands, by bus/line_server.c for the embedded bus. */
#include "base/libc.h"
#include "io/address.h"
#include "io/kin.h"
#include "io/stream_uv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { PEER_PIDFD = 77 }; /* SO_PEERPIDFD, which Debian 12's headers do not have */

static int socket_of(const struct stream *s)
{
    uv_os_fd_t fd;

    return s->in.kind == END_UV && uv_fileno(&s->in.uv.handle, &fd) == 0 ? fd : -1;
}

/* --- Unix sockets: the kernel remembers who connected --- */

static bool find_peer(int fd, struct ucred *peer)
{
    socklen_t size = sizeof *peer;

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, peer, &size) == 0 && peer->uid != (uid_t)-1;
}

bool stream_peer_is_own_user(const struct stream *s)
{
    struct ucred peer;

    return find_peer(socket_of(s), &peer) && (peer.uid == geteuid() || peer.uid == 0);
}

/* Does the process that connected still exist? Its id could have been reused. Kernels before 6.5
 * cannot tell: true then. */
static bool is_peer_there(int fd)
{
    int pidfd = -1;
    socklen_t size = sizeof pidfd;

    if (getsockopt(fd, SOL_SOCKET, PEER_PIDFD, &pidfd, &size) < 0)
        return errno == ENOPROTOOPT;
    bool there = pidfd_send_signal(pidfd, 0, NULL, 0) == 0 || errno == EPERM;
    close(pidfd);
    return there;
}

bool stream_peer_is_kin(const struct stream *s)
{
    struct ucred peer;
    int fd = socket_of(s);

    /* 0 is a process outside of our pid namespace. Processes that we started are inside. */
    if (!find_peer(fd, &peer) || peer.pid == 0)
        return false;
    return kin_includes(&s->loop->kin, peer.pid) || !is_peer_there(fd);
}

/* --- TCP within this machine: the kernel lists the sockets, and who has them --- */

static unsigned long port_in(const char *address)
{
    const char *colon = strchr(address, ':');

    return colon ? strtoul(colon + 1, NULL, 16) : 0;
}

/* A socket as the kernel lists it. */
struct listed_socket {
    unsigned long inode; /* 0: no process has the socket any more, or the line has other ports */
    uid_t owner;
};

/* "0: 0100007F:A2C4 0100007F:2242 01 ..." The eighth word is the user, the tenth the inode. */
static struct listed_socket socket_in(char *line, int local, int remote)
{
    char *words[10], *rest = NULL;

    for (size_t i = 0; i < COUNT_OF(words); i++) {
        words[i] = strtok_r(i ? NULL : line, " ", &rest);
        if (!words[i])
            return (struct listed_socket){0};
    }
    if (port_in(words[1]) != (unsigned long)local || port_in(words[2]) != (unsigned long)remote)
        return (struct listed_socket){0};
    return (struct listed_socket){strtoul(words[9], NULL, 10), (uid_t)strtoul(words[7], NULL, 10)};
}

enum holder { NOBODY, OURSELVES, OTHER_USERS, KIN };

static enum holder holder_of(const struct list *kin, const struct listed_socket *socket)
{
    if (kin_has_socket(kin, socket->inode))
        return KIN;
    return socket->owner == geteuid() || socket->owner == 0 ? OURSELVES : OTHER_USERS;
}

/* Who has the sockets between these two ports: there may be several, on different addresses. The
 * holder with the fewest rights counts. */
static enum holder find_holder(const struct list *kin, const char *table, int local, int remote)
{
    FILE *f = fopen(table, "re");
    enum holder found = NOBODY;
    char line[512];

    while (f && found != KIN && fgets(line, sizeof line, f)) {
        struct listed_socket socket = socket_in(line, local, remote);
        enum holder one = socket.inode ? holder_of(kin, &socket) : NOBODY;
        found = one > found ? one : found;
    }
    if (f)
        fclose(f);
    return found;
}

/* The addresses of both ends. A stream that stands for a connection with TLS is itself only a pipe
 * to the daemon that has the keys: what counts are the ends of that connection. */
static bool find_ends(const struct stream *s, struct sockaddr_storage *own,
                      struct sockaddr_storage *peer)
{
    socklen_t own_size = sizeof *own, peer_size = sizeof *peer;
    int fd = socket_of(s);

    if (s->posed)
        return address_read(own, s->posed) == 0 && address_read(peer, s->name) == 0;
    return getsockname(fd, (struct sockaddr *)own, &own_size) == 0 &&
           getpeername(fd, (struct sockaddr *)peer, &peer_size) == 0;
}

/* Who is at the other end of a TCP connection within this machine? NOBODY: the peer has gone, and
 * does not read the answer. */
static enum holder holder_at_end(const struct stream *s)
{
    struct sockaddr_storage own = {0}, peer = {0};
    const struct list *kin = &s->loop->kin;

    if (!find_ends(s, &own, &peer))
        return NOBODY;
    if (own.ss_family == AF_UNIX)
        return OURSELVES; /* the mode of the socket file has decided */
    int local = address_port(&peer), remote = address_port(&own);
    enum holder four = find_holder(kin, "/proc/net/tcp", local, remote);
    enum holder six = four == KIN ? KIN : find_holder(kin, "/proc/net/tcp6", local, remote);
    return four > six ? four : six;
}

bool stream_is_held_by_kin(const struct stream *s)
{
    if (list_empty(&s->loop->kin))
        return false;
    enum holder who = holder_at_end(s);
    return who == KIN || who == NOBODY;
}

bool stream_is_held_by_us(const struct stream *s)
{
    return holder_at_end(s) == OURSELVES;
}
