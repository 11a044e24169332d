/* Appending lines to a file, and beginning the next one when it is full. Called by audit_file.c and
 * record_file.c; cmd/audit.c asks for names. */
#include "admin/line_file.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

void line_file_put_name(struct buf *out, const char *file, uint64_t n)
{
    buf_str(out, file);
    if (n)
        buf_printf(out, ".%" PRIu64, n);
}

int line_file_open(struct line_file *f)
{
    struct stat st;

    if (f->fd >= 0)
        return 0;
    /* Beyond a limit on the size of files write() must fail; without this SIGXFSZ would end the
     * program. */
    signal(SIGXFSZ, SIG_IGN);
    f->fd = open(f->path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (f->fd < 0)
        return -errno;
    f->size = fstat(f->fd, &st) ? 0 : (uint64_t)st.st_size;
    return 0;
}

void line_file_close(struct line_file *f)
{
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
    mem_free(f->path);
}

/* --- rotating --- */

static bool name_exists(const struct line_file *f, uint64_t n)
{
    BUF_SCOPED name = {0};

    line_file_put_name(&name, f->path, n);
    return access(buf_cstr(&name), F_OK) == 0;
}

static int move(const struct line_file *f, uint64_t from, uint64_t to)
{
    BUF_SCOPED old = {0}, new = {0};

    line_file_put_name(&old, f->path, from);
    line_file_put_name(&new, f->path, to);
    return rename(buf_cstr(&old), buf_cstr(&new)) ? -errno : 0;
}

/* Each file gets the next higher number, up to the first number that is free, the oldest file
 * first: a program that is killed in between leaves a gap in the numbers and loses no file. When no
 * number is free, the oldest file is overwritten. If the newest file is gone, because somebody
 * moved it away, a new one is begun all the same. */
static int rotate(struct line_file *f)
{
    uint64_t hole = 1;
    int code = 0;

    while (hole < f->keep && name_exists(f, hole))
        hole++;
    for (; hole > 0 && !code; hole--)
        code = move(f, hole - 1, hole);
    if (code && (code != -ENOENT || hole > 0))
        return code;
    close(f->fd);
    f->fd = -1;
    return line_file_open(f);
}

int line_file_make_room(struct line_file *f, size_t n)
{
    int code = line_file_open(f);

    if (!code && f->size && f->size + n > f->max)
        code = rotate(f);
    return code;
}

/* A line that was written only in part is cut off again. */
int line_file_add(struct line_file *f, struct span lines)
{
    int code = line_file_make_room(f, lines.n);

    if (code)
        return code;
    code = file_write_fd(f->fd, lines);
    if (!code)
        f->size += lines.n;
    else if (ftruncate(f->fd, (off_t)f->size))
        log_error(f->who, "%s: a line is not whole and cannot be cut off: %s", f->path,
                  strerror(errno));
    return code;
}
