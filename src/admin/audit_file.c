/* Appending lines to the audit trail with their chain and head, and going on after a crash. Called
 * by audit.c; cmd/audit.c asks for the head. */
#include "admin/audit_file.h"

#include "admin/line_file.h"
#include "base/blake.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "wire/json.h"
#include "wire/json_out.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* "local0.notice" in the numbers of syslog. */
enum { SYSLOG_PRIORITY = 16 * 8 + 5, HEAD_MAX = 256 };

struct audit_file {
    struct line_file lines; /* without a path: its descriptor is the socket of syslog */
    char *syslog;
    int head_fd; /* locked as long as the program runs */
    struct audit_end end;
    uint64_t seq;          /* the last number given to a line, written or missing */
    struct buf line, head; /* the last ones that were written */
};

/* --- names and hashes --- */

void audit_file_put_head(struct buf *out, const char *file)
{
    const char *name = strrchr(file, '/'), *dot = strrchr(name ? name : file, '.');

    buf_bytes(out, file, dot && dot[1] ? (size_t)(dot - file) : strlen(file));
    buf_str(out, ".head");
}

void audit_file_hash(struct span line, char out[AUDIT_HASH_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char hash[BLAKE_2B_N];

    blake_2b(hash, line);
    for (size_t i = 0; i < AUDIT_HASH_SIZE / 2; i++) {
        out[2 * i] = digits[hash[i] >> 4];
        out[2 * i + 1] = digits[hash[i] & 15];
    }
    out[AUDIT_HASH_SIZE - 1] = '\0';
}

/* --- the head --- */

/* The number in a field of 20 places, blanks behind it. */
static void put_padded(struct buf *out, uint64_t number)
{
    char digits[20];
    size_t n = 0;

    do
        digits[sizeof digits - ++n] = (char)('0' + number % 10);
    while (number /= 10);
    buf_bytes(out, digits + sizeof digits - n, n);
    buf_bytes(out, "                    ", sizeof digits - n);
}

/* Always of the same length, so that overwriting it leaves nothing of the old one. */
static void write_head(struct audit_file *f)
{
    struct buf *text = &f->head;

    text->n = 0;
    buf_str(text, "{\"seq\":");
    put_padded(text, f->end.seq);
    buf_str(text, ",\"hash\":\"");
    buf_str(text, f->end.hash);
    buf_str(text, "\",\"missing\":");
    put_padded(text, f->end.missing);
    buf_str(text, "}\n");
    if (pwrite(f->head_fd, text->p, text->n, 0) != (ssize_t)text->n)
        log_error("audit", "the head of the trail cannot be written: %s", strerror(errno));
}

static uint64_t number_of(struct span object, const char *key)
{
    int64_t n = 0;

    return json_int(span_trim(json_get(object, key).value), &n) && n > 0 ? (uint64_t)n : 0;
}

static bool read_end(struct span object, const char *key, struct audit_end *end)
{
    struct json_slot hash = {0};

    if (json_skim(object, NULL, NULL, NULL, NULL) == 0 && json_type_of(object) == JSON_OBJECT)
        hash = json_get(object, key);
    if (hash.type != JSON_STRING || hash.value.n != AUDIT_HASH_SIZE + 1)
        return false;
    memcpy(end->hash, hash.value.p + 1, AUDIT_HASH_SIZE - 1);
    end->hash[AUDIT_HASH_SIZE - 1] = '\0';
    end->seq = number_of(object, "seq");
    end->missing = number_of(object, "missing");
    return end->seq > 0;
}

int audit_file_read_head(const char *head, struct audit_end *end)
{
    BUF_SCOPED text = {0};
    int code = file_read(&text, head, HEAD_MAX);

    *end = (struct audit_end){0};
    if (code == -ENOENT || (!code && !text.n))
        return 0;
    if (code)
        return code;
    return read_end(span_trim(buf_view(&text)), "hash", end) ? 0 : ERR_SYNTAX;
}

bool audit_file_is_written(const char *head)
{
    int fd = open(head, O_RDONLY | O_CLOEXEC);
    bool locked = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;

    if (fd >= 0)
        close(fd);
    return locked;
}

/* --- the end of a trail that exists --- */

/* Reads the end of the trail from the last whole line of the file. Bytes after that line, of a line
 * that was not written whole, are cut off. */
static void read_last(struct audit_file *f, struct audit_end *end)
{
    BUF_SCOPED tail = {0};
    struct stat st;

    if (fstat(f->lines.fd, &st) || !st.st_size)
        return;
    off_t from = st.st_size > AUDIT_LINE_MAX ? st.st_size - AUDIT_LINE_MAX : 0;
    size_t want = (size_t)(st.st_size - from);
    ssize_t n = pread(f->lines.fd, buf_room(&tail, want), want, from);
    tail.n = n > 0 ? (size_t)n : 0;
    size_t whole = tail.n;
    while (whole && tail.p[whole - 1] != '\n')
        whole--;
    if (whole < tail.n && ftruncate(f->lines.fd, from + (off_t)whole) == 0)
        log_warn("audit", "%s: a line that was not written whole is cut off", f->lines.path);
    f->lines.size = (uint64_t)from + whole;
    size_t begin = whole ? whole - 1 : 0;
    while (begin && tail.p[begin - 1] != '\n')
        begin--;
    struct span line = span_cut(buf_view(&tail), begin, whole ? whole - 1 - begin : 0);
    if (!line.n || !read_end(line, "before", end)) {
        *end = (struct audit_end){0};
        return;
    }
    audit_file_hash(line, end->hash);
    end->missing = 0;
}

/* The last line may be newer than the head: the program was killed before it wrote the head. If the
 * head is newer, somebody has cut the trail: going on from the head keeps the gap visible. */
static void find_end(struct audit_file *f, const char *head_path)
{
    struct audit_end last = {0}, head;
    int code = audit_file_read_head(head_path, &head);

    if (f->lines.fd >= 0 && f->lines.path)
        read_last(f, &last);
    if (code)
        log_error("audit", "%s cannot be read, the trail goes on from its last line", head_path);
    if (last.seq > head.seq) {
        head = last;
    } else if (f->lines.path && last.seq &&
               (last.seq < head.seq || strcmp(last.hash, head.hash) != 0)) {
        log_error("audit", "%s does not end where %s says: 'rialto audit verify' tells more",
                  f->lines.path, head_path);
    }
    f->end = head;
    f->seq = head.seq + head.missing;
    if (!head.seq)
        memset(f->end.hash, '0', AUDIT_HASH_SIZE - 1);
}

/* --- opening --- */

static int open_syslog(struct audit_file *f)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    snprintf(to.sun_path, sizeof to.sun_path, "%s", f->syslog);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to)) {
        int code = -errno;
        close(fd);
        return code;
    }
    f->lines.fd = fd;
    return fd < 0 ? -errno : 0;
}

static int open_file(struct audit_file *f)
{
    if (!f->syslog)
        return line_file_open(&f->lines);
    return f->lines.fd >= 0 ? 0 : open_syslog(f);
}

/* The lock ends with the program, however that ends. */
static int open_head(struct audit_file *f, const char *head, struct err *err)
{
    f->head_fd = open(head, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (f->head_fd < 0)
        return err_set(err, -errno, "cannot open %s: %s", head, strerror(errno));
    if (flock(f->head_fd, LOCK_EX | LOCK_NB)) {
        err_set(err, -errno, "another Rialto writes the audit trail of %s", head);
        err_hint(err, "give each a trail of its own (audit.file)");
        return -EWOULDBLOCK;
    }
    return 0;
}

struct audit_file *audit_file_open(const struct audit_place *place, struct err *err)
{
    struct audit_file *f = MEM_NEW(struct audit_file);

    *f = (struct audit_file){.lines = {.who = "audit",
                                       .path = place->file ? mem_str(place->file) : NULL,
                                       .max = place->size,
                                       .keep = place->keep,
                                       .fd = -1},
                             .syslog = place->syslog ? mem_str(place->syslog) : NULL,
                             .head_fd = -1};
    file_make_folders(place->head);
    if (place->file)
        file_make_folders(place->file);
    int code = open_head(f, place->head, err);
    if (!code && (code = open_file(f)))
        err_set(err, code, "cannot open %s: %s", f->lines.path ? f->lines.path : f->syslog,
                err_name(code));
    if (code) {
        audit_file_close(f);
        return NULL;
    }
    find_end(f, place->head);
    return f;
}

void audit_file_close(struct audit_file *f)
{
    line_file_close(&f->lines);
    if (f->head_fd >= 0)
        close(f->head_fd);
    buf_fini(&f->line);
    buf_fini(&f->head);
    mem_free(f->syslog);
    mem_free(f);
}

/* --- a line --- */

static int send_line(struct audit_file *f, struct span line)
{
    BUF_SCOPED packet = {0};

    buf_printf(&packet, "<%d>rialto-audit: ", SYSLOG_PRIORITY);
    buf_span(&packet, line);
    int code = open_file(f);
    if (!code && send(f->lines.fd, packet.p, packet.n, MSG_NOSIGNAL) < 0) {
        code = -errno;
        close(f->lines.fd); /* syslog may have been restarted */
        f->lines.fd = -1;
        if (!open_file(f))
            code = send(f->lines.fd, packet.p, packet.n, MSG_NOSIGNAL) < 0 ? -errno : 0;
    }
    return code;
}

int audit_file_add(struct audit_file *f, struct span body)
{
    struct buf *line = &f->line;

    line->n = 0;
    f->seq++;
    buf_printf(line, "{\"seq\":%" PRIu64 ",", f->seq);
    buf_span(line, body);
    if (f->end.missing)
        buf_printf(line, ",\"missing\":%" PRIu64, f->end.missing);
    buf_str(line, ",\"before\":\"");
    buf_bytes(line, f->end.hash, AUDIT_HASH_SIZE - 1);
    buf_str(line, "\"}\n");
    struct span text = span_cut(buf_view(line), 0, line->n - 1);
    int code = f->syslog ? send_line(f, text) : line_file_add(&f->lines, buf_view(line));
    if (code) {
        f->end.missing++;
    } else {
        f->end.seq = f->seq;
        f->end.missing = 0;
        audit_file_hash(text, f->end.hash);
    }
    write_head(f);
    return code;
}

int audit_file_try(struct audit_file *f)
{
    static const char blank[4096];

    if (f->syslog)
        return open_file(f);
    /* The line that could not be written may be longer, and need the next file. */
    size_t need = f->line.n > sizeof blank ? f->line.n : sizeof blank;
    int code = line_file_make_room(&f->lines, need);
    if (!code)
        code = file_write_fd(f->lines.fd, span_of(blank, sizeof blank));
    if (f->lines.fd >= 0 && ftruncate(f->lines.fd, (off_t)f->lines.size) && !code)
        code = -errno;
    return code;
}
