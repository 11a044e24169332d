/* Reading a whole file up to a limit, and replacing one by rename, with or without a copy of the
 * old one. Called by config/, hub/graph/memory.c, cmd/, browser/kept.c and others. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 16 * 1024 };

int file_read_fd(struct buf *out, int fd, size_t max)
{
    for (size_t end = out->n + max;;) {
        size_t left = end + 1 - out->n, most = left < CHUNK ? left : CHUNK;
        ssize_t n = read(fd, buf_room(out, most), most);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n ? -errno : 0;
        out->n += (size_t)n;
        if (out->n > end) {
            out->n = end;
            return ERR_SIZE;
        }
    }
}

int file_read(struct buf *out, const char *path, size_t max)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    int code = file_read_fd(out, fd, max);
    close(fd);
    return code;
}

int file_write_fd(int fd, struct span text)
{
    while (text.n) {
        ssize_t n = write(fd, text.p, text.n);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n ? -errno : -EIO;
        text = span_from(text, (size_t)n);
    }
    return 0;
}

void file_make_folders(const char *path)
{
    BUF_SCOPED folder = {0};

    for (const char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
        folder.n = 0;
        buf_bytes(&folder, path, (size_t)(at - path));
        (void)mkdir(buf_cstr(&folder), 0700); /* opening the file reports an error */
    }
}

static int make_alike(int fd, const struct stat *before)
{
    int ignored = fchown(fd, before->st_uid, before->st_gid);

    (void)ignored;
    return fchmod(fd, before->st_mode & 0777) ? -errno : 0;
}

/* Makes `old` a hard link to the file, so that `path` exists at every moment. */
static int link_anew(const char *path, const char *old)
{
    (void)unlink(old);
    return link(path, old) ? -errno : 0;
}

/* Writes the folder to the disk, so that the new name of the file survives a crash of the
 * machine. */
static int sync_folder(const char *path)
{
    BUF_SCOPED folder = {0};
    const char *slash = strrchr(path, '/');

    buf_bytes(&folder, slash ? path : ".", slash ? (size_t)(slash - path) + 1 : 1);
    int fd = open(buf_cstr(&folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int code = fsync(fd) ? -errno : 0;
    close(fd);
    return code;
}

/* `before`: whose mode and owner the new file gets, or NULL; `old`: the name that the old file
 * gets, or NULL; `synced`: the new file is on the disk before the rename. */
static int replace(const char *path, struct span text, const struct stat *before, const char *old,
                   bool synced)
{
    BUF_SCOPED fresh = {0};

    /* Several processes may write at once: each to a file of its own, and the last rename wins. */
    buf_printf(&fresh, "%s.XXXXXX", path);
    buf_cstr(&fresh);
    int fd = mkostemp(fresh.p, O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int code = file_write_fd(fd, text);
    if (!code && before)
        code = make_alike(fd, before);
    if (!code && synced && fsync(fd))
        code = -errno;
    if (close(fd) && !code)
        code = -errno;
    if (!code && old)
        code = link_anew(path, old);
    if (!code && rename(fresh.p, path))
        code = -errno;
    if (code)
        (void)unlink(fresh.p);
    return code;
}

int file_replace_keeping(const char *path, struct span text, const char *old)
{
    struct stat before;

    return stat(path, &before) ? -errno : replace(path, text, &before, old, true);
}

int file_replace(const char *path, struct span text)
{
    return replace(path, text, NULL, NULL, false);
}

int file_replace_like(const char *path, struct span text, const char *like)
{
    struct stat model;

    return stat(like, &model) ? -errno : replace(path, text, &model, NULL, false);
}

int file_replace_synced(const char *path, struct span text)
{
    int code = replace(path, text, NULL, NULL, true);

    return code ? code : sync_folder(path);
}
