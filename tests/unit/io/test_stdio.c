/*
 * stream_stdio takes the process's own stdin and stdout, so each case runs in a forked process that
 * echoes what it reads, and adds " end" at EOF.
 */
#include "io_test.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>

struct echo {
    struct stream *stream;
    bool over;
};

static void echo_data(void *owner, struct span chunk)
{
    struct echo *e = owner;
    stream_write(e->stream, chunk);
}

static void echo_eof(void *owner)
{
    struct echo *e = owner;
    stream_write(e->stream, SPAN(" end"));
    stream_finish(e->stream, "done", 5000);
}

static void echo_closed(void *owner, const char *reason)
{
    (void)reason;
    ((struct echo *)owner)->over = true;
}

/* Runs the echo on these descriptors; exit status 0 if the stream was closed. */
static pid_t fork_echo(int in, int out)
{
    static const struct stream_events on = {echo_data, echo_eof, NULL, echo_closed};
    pid_t pid = fork();

    if (pid)
        return pid;
    if (in >= 0)
        dup2(in, 0);
    else
        close(0);
    dup2(out, 1);
    for (int fd = 3; fd < 64; fd++)
        close(fd);
    struct loop *l = loop_new();
    struct echo e = {.stream = stream_stdio(l)};
    stream_start(e.stream, &on, &e);
    /* Stray output of other code must not get into the protocol. */
    dprintf(1, "stray");
    loop_run(l);
    loop_free(l);
    _exit(e.over ? 0 : 1);
}

static void assert_ends_well(pid_t pid)
{
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* Reads until EOF. */
static void read_all(int fd, struct buf *to)
{
    ssize_t n;
    while ((n = read(fd, buf_room(to, 65536), 65536)) > 0)
        to->n += (size_t)n;
    assert_int_equal(n, 0);
}

static void test_pipes_stay_blocking_for_others(void **state)
{
    (void)state;
    int in[2], out[2];
    assert_int_equal(pipe2(in, O_CLOEXEC) + pipe2(out, O_CLOEXEC), 0);
    pid_t pid = fork_echo(in[0], out[1]);
    close(out[1]);
    assert_int_equal(write(in[1], "hello", 5), 5);
    char got[16] = "";
    assert_int_equal(read(out[0], got, 5), 5);
    assert_string_equal(got, "hello");
    /* The other process reads this pipe without blocking, but our descriptor still blocks. */
    assert_false(fcntl(in[0], F_GETFL) & O_NONBLOCK);
    close(in[1]);
    struct buf rest = {0};
    read_all(out[0], &rest); /* until the other process closes its stream */
    assert_int_equal(rest.n, 4);
    assert_memory_equal(rest.p, " end", 4);
    assert_ends_well(pid);
    close(in[0]);
    close(out[0]);
    buf_fini(&rest);
}

static void test_sockets_get_their_flags_back(void **state)
{
    (void)state;
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    pid_t pid = fork_echo(pair[1], pair[1]);
    assert_int_equal(write(pair[0], "hello", 5), 5);
    shutdown(pair[0], SHUT_WR);
    assert_ends_well(pid);
    assert_false(fcntl(pair[1], F_GETFL) & O_NONBLOCK);
    close(pair[1]);
    struct buf got = {0};
    read_all(pair[0], &got);
    assert_int_equal(got.n, 9);
    assert_memory_equal(got.p, "hello end", 9);
    close(pair[0]);
    buf_fini(&got);
}

static void test_files_null_and_nothing(void **state)
{
    (void)state;
    char path[] = "/tmp/rialto-test-XXXXXX";
    int file = mkostemp(path, O_CLOEXEC), out[2];
    assert_int_equal(write(file, "from a file", 11), 11);
    lseek(file, 0, SEEK_SET);
    int ins[] = {file, open("/dev/null", O_RDONLY | O_CLOEXEC), -1};
    const char *wanted[] = {"from a file end", " end", " end"};
    for (int i = 0; i < 3; i++) {
        struct buf got = {0};
        assert_int_equal(pipe2(out, O_CLOEXEC), 0);
        pid_t pid = fork_echo(ins[i], out[1]);
        close(out[1]);
        read_all(out[0], &got);
        assert_string_equal(buf_cstr(&got), wanted[i]);
        assert_ends_well(pid);
        close(out[0]);
        buf_fini(&got);
    }
    close(ins[0]);
    close(ins[1]);
    unlink(path);
}

static void test_stdout_to_a_file(void **state)
{
    (void)state;
    char path[] = "/tmp/rialto-test-XXXXXX";
    int file = mkostemp(path, O_CLOEXEC), in[2];
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    pid_t pid = fork_echo(in[0], file);
    assert_int_equal(write(in[1], "to a file", 9), 9);
    close(in[1]);
    assert_ends_well(pid);
    char got[32] = "";
    assert_int_equal(pread(file, got, sizeof got - 1, 0), 13);
    assert_string_equal(got, "to a file end");
    close(in[0]);
    close(file);
    unlink(path);
}

static void test_terminals(void **state)
{
    (void)state;
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(master >= 0);
    assert_int_equal(grantpt(master) + unlockpt(master), 0);
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    pid_t pid = fork_echo(slave, slave);
    assert_int_equal(write(master, "typed\n", 6), 6);
    char got[256] = "";
    size_t n = 0;
    /* Once from the terminal's echo, once from the echo process. */
    while (n < 14)
        n += (size_t)read(master, got + n, sizeof got - 1 - n);
    assert_string_equal(got, "typed\r\ntyped\r\n");
    assert_false(fcntl(slave, F_GETFL) & O_NONBLOCK);
    assert_int_equal(write(master, "\x04", 1), 1); /* end of input at a terminal */
    assert_ends_well(pid);
    close(slave);
    close(master);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pipes_stay_blocking_for_others),
        cmocka_unit_test(test_sockets_get_their_flags_back),
        cmocka_unit_test(test_files_null_and_nothing),
        cmocka_unit_test(test_stdout_to_a_file),
        cmocka_unit_test(test_terminals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
