/* Finds in /proc which process listens on an address, and reads a variable of a process's
 * environment. Called by daemon.c of this folder. */
#include "base/ascii.h"
#include "base/file.h"
#include "cmd/doctor/doctor.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { TABLE_MAX = 16 * 1024 * 1024 };

/* --- the kernel's tables --- */

static struct span next_line(struct span *rest)
{
    struct span line = span_cut(*rest, 0, span_find(*rest, '\n'));

    *rest = span_from(*rest, line.n + 1);
    return line;
}

/* The n-th word of a line, counted from 0; words are separated by blanks. */
static struct span word_at(struct span line, size_t n)
{
    for (;; n--) {
        line = span_trim(line);
        size_t end = span_find(line, ' ');
        if (n == 0)
            return span_cut(line, 0, end);
        line = span_from(line, end);
    }
}

static bool parse_number(struct span digits, int base, uint64_t *out)
{
    char text[24], *end;

    if (!digits.n || digits.n >= sizeof text || ascii_hex(digits.p[0]) < 0)
        return false;
    memcpy(text, digits.p, digits.n);
    text[digits.n] = '\0';
    *out = strtoull(text, &end, base);
    return *end == '\0';
}

/* "sl local_address rem_address st ... inode": the address ends with the port in hexadecimal, and
 * state 0A is listening. */
bool doctor_tcp_inode(struct span table, unsigned port, uint64_t *inode)
{
    while (table.n) {
        struct span line = next_line(&table), local = word_at(line, 1);
        uint64_t number;
        if (!span_is(word_at(line, 3), "0A"))
            continue;
        if (parse_number(span_from(local, span_find(local, ':') + 1), 16, &number) &&
            number == port && parse_number(word_at(line, 9), 10, inode))
            return true;
    }
    return false;
}

/* "Num RefCount Protocol Flags Type St Inode Path": the flag 00010000 is listening. */
bool doctor_unix_inode(struct span table, const char *path, uint64_t *inode)
{
    while (table.n) {
        struct span line = next_line(&table), shown = word_at(line, 7);
        if (!span_is(word_at(line, 3), "00010000") || !shown.n)
            continue;
        /* The path is the rest of the line, with its blanks. */
        shown.n = (size_t)(line.p + line.n - shown.p);
        if (span_is(shown, path) && parse_number(word_at(line, 6), 10, inode))
            return true;
    }
    return false;
}

/* --- the processes --- */

static bool has_socket(const char *pid, const char *wanted)
{
    char path[PATH_MAX], target[64];
    bool found = false;

    snprintf(path, sizeof path, "/proc/%s/fd", pid);
    DIR *fds = opendir(path);
    const struct dirent *e;
    while (fds && !found && (e = readdir(fds))) {
        ssize_t n = readlinkat(dirfd(fds), e->d_name, target, sizeof target);
        found = n > 0 && span_is(span_of(target, (size_t)n), wanted);
    }
    if (fds)
        closedir(fds);
    return found;
}

static void put_name(struct buf *out, const char *pid)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "/proc/%s/comm", pid);
    (void)file_read(out, path, TABLE_MAX);
    out->n = span_find(buf_view(out), '\n');
}

/* The pid of the process that has this socket; 0 when it cannot be seen. */
static int find_process(uint64_t inode, struct buf *name)
{
    char wanted[48];
    uint64_t pid = 0, number;

    snprintf(wanted, sizeof wanted, "socket:[%llu]", (unsigned long long)inode);
    DIR *all = opendir("/proc");
    const struct dirent *e;
    while (all && !pid && (e = readdir(all))) {
        if (parse_number(span_str(e->d_name), 10, &number) && has_socket(e->d_name, wanted)) {
            pid = number;
            put_name(name, e->d_name);
        }
    }
    if (all)
        closedir(all);
    return (int)pid;
}

bool doctor_process_env(int pid, const char *name, struct buf *value)
{
    char path[64];
    BUF_SCOPED text = {0};
    bool found = false;

    snprintf(path, sizeof path, "/proc/%d/environ", pid);
    (void)file_read(&text, path, TABLE_MAX);
    for (struct span rest = buf_view(&text); rest.n && !found;) {
        struct span entry = span_cut(rest, 0, span_find(rest, '\0'));
        size_t equals = span_find(entry, '=');
        rest = span_from(rest, entry.n + 1);
        found = span_is(span_cut(entry, 0, equals), name);
        if (found)
            buf_span(value, span_from(entry, equals + 1));
    }
    return found;
}

static bool find_tcp(unsigned port, uint64_t *inode)
{
    static const char *const tables[] = {"/proc/net/tcp", "/proc/net/tcp6"};
    bool found = false;

    for (size_t i = 0; i < COUNT_OF(tables) && !found; i++) {
        BUF_SCOPED text = {0};
        (void)file_read(&text, tables[i], TABLE_MAX);
        found = doctor_tcp_inode(buf_view(&text), port, inode);
    }
    return found;
}

static bool find_unix(const char *path, uint64_t *inode)
{
    BUF_SCOPED text = {0};

    (void)file_read(&text, "/proc/net/unix", TABLE_MAX);
    return doctor_unix_inode(buf_view(&text), path, inode);
}

int doctor_find_listener(const char *address, struct buf *name)
{
    const char *colon = strrchr(address, ':');
    uint64_t inode = 0, port;
    bool found = false;

    if (strncmp(address, "unix:", 5) == 0)
        found = find_unix(address + 5, &inode);
    else if (colon && parse_number(span_str(colon + 1), 10, &port))
        found = find_tcp((unsigned)port, &inode);
    return found ? find_process(inode, name) : 0;
}
