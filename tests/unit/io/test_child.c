#include "io/child.h"

#include "io_test.h"

#include "base/log.h"
#include "io/kin.h"
#include "io/loop_uv.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

struct family {
    struct child *child;
    struct party party;
    int n_exited, status;
    int n_closed_at_exit;
    char how[64];
    struct buf errors; /* lines of stderr, each with a newline */
};

static void on_exited(void *owner, int status, const char *how)
{
    struct family *f = owner;
    f->n_exited++;
    f->status = status;
    f->n_closed_at_exit = f->party.n_closed;
    f->child = NULL;
    snprintf(f->how, sizeof f->how, "%s", how);
}

static void on_stderr_line(void *owner, struct span line)
{
    struct family *f = owner;
    buf_span(&f->errors, line);
    buf_char(&f->errors, '\n');
}

static const struct child_events events = {on_exited, on_stderr_line};

static void start(struct family *f, struct loop *l, const struct child_spec *spec)
{
    struct err err = {0};
    *f = (struct family){0};
    f->child = child_spawn(l, spec, &events, f, &err);
    if (!f->child)
        fail_msg("%s", err.text);
    party_join(&f->party, child_stream(f->child));
}

static void start_argv(struct family *f, struct loop *l, const char *const *argv)
{
    start(f, l, &(struct child_spec){.name = "test", .argv = argv});
}

static void start_sh(struct family *f, struct loop *l, const char *script)
{
    start_argv(f, l, (const char *const[]){"sh", "-c", script, NULL});
}

/* Waits for the child's end and checks the order of the callbacks. */
static void finish(struct family *f, struct loop *l)
{
    WAIT(l, f->n_exited);
    assert_int_equal(f->n_exited, 1);
    assert_int_equal(f->party.n_closed, 1);
    assert_int_equal(f->n_closed_at_exit, 1); /* the stream is closed first */
    party_fini(&f->party);
    buf_fini(&f->errors);
}

static bool is_running(int pid)
{
    char path[64], state = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *stat = fopen(path, "re");
    if (!stat)
        return false;
    if (fscanf(stat, "%*d (%*[^)]) %c", &state) != 1)
        state = 'Z';
    fclose(stat);
    return state != 'Z' && state != 'X';
}

static void test_cat_echoes_and_ends_at_eof(void **state)
{
    (void)state;
    struct loop *l = loop_new();
    struct family f;
    start_argv(&f, l, (const char *const[]){"cat", NULL});
    assert_true(child_pid(f.child) > 1);
    assert_int_equal(getpgid(child_pid(f.child)), child_pid(f.child));
    assert_int_equal(getsid(child_pid(f.child)), getsid(0));
    stream_write(f.party.stream, SPAN("meow\n"));
    WAIT(l, party_has(&f.party, "meow\n"));
    child_stop(f.child, 10000); /* EOF is enough for cat */
    finish(&f, l);
    assert_int_equal(f.status, 0);
    assert_string_equal(f.how, "exited with 0");
    assert_string_equal(f.party.reason, "exited with 0");
    loop_free(l);
}

static void test_exit_codes_and_signals(void **state)
{
    (void)state;
    static const struct {
        const char *script;
        int status;
        const char *how;
    } cases[] = {
        {"exit 0", 0, "exited with 0"},
        {"exit 42", 42, "exited with 42"},
        {"kill -TERM $$", 128 + SIGTERM, "killed by SIGTERM"},
        {"kill -KILL $$", 128 + SIGKILL, "killed by SIGKILL"},
    };
    struct loop *l = loop_new();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct family f;
        start_sh(&f, l, cases[i].script);
        finish(&f, l);
        assert_int_equal(f.status, cases[i].status);
        assert_string_equal(f.how, cases[i].how);
    }
    struct family f;
    start_argv(&f, l, (const char *const[]){"sleep", "1000", NULL});
    kill(-child_pid(f.child), SIGKILL);
    finish(&f, l);
    assert_string_equal(f.how, "killed by SIGKILL");
    loop_free(l);
}

/* Output still in the pipe when the process ends is not lost, also when the exit is seen first. */
static void test_last_words_are_heard(void **state)
{
    (void)state;
    struct loop *l = loop_new();
    struct family f;
    start_sh(&f, l, "head -c 60000 /dev/zero; echo gone >&2; printf end");
    for (int i = 0; i < 1000 && is_running(child_pid(f.child)); i++)
        usleep(10000);
    WAIT(l, f.n_exited);
    assert_int_equal(f.party.got.n, 60003);
    assert_true(party_has(&f.party, "end"));
    assert_string_equal(buf_cstr(&f.errors), "gone\n");
    finish(&f, l);
    loop_free(l);
}

static void test_cannot_start(void **state)
{
    (void)state;
    char folder[32], script[64];
    make_folder(folder);
    snprintf(script, sizeof script, "%s/script", folder);
    close(open(script, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    struct {
        const char *program, *cwd, *text, *hint;
    } cases[] = {
        {"no-such-program-here", NULL, "cannot start no-such-program-here: No such file",
         "looked in PATH="},
        {"/no/such/program", NULL, "cannot start /no/such/program: No such file", "check the path"},
        {script, NULL, "Permission denied", "chmod"},
        {"true", "/no/such/folder", "folder /no/such/folder: No such file", "cwd"},
    };
    struct loop *l = loop_new();
    int fds = count_fds();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct err err = {0};
        const char *argv[] = {cases[i].program, NULL};
        struct child_spec spec = {.name = "test", .argv = argv, .cwd = cases[i].cwd};
        assert_null(child_spawn(l, &spec, &events, NULL, &err));
        assert_non_null(strstr(err.text, cases[i].text));
        assert_non_null(strstr(err.hint, cases[i].hint));
    }
    chmod(script, 0700); /* empty: neither ELF nor #! */
    struct err err = {0};
    struct child_spec spec = {.name = "test", .argv = (const char *const[]){script, NULL}};
    assert_null(child_spawn(l, &spec, &events, NULL, &err));
    assert_non_null(strstr(err.hint, "#!"));
    assert_int_equal(count_fds(), fds);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no zombie is left */
    assert_int_equal(errno, ECHILD);
    unlink(script);
    rmdir(folder);
    loop_free(l);
}

static void test_environment_and_folder(void **state)
{
    (void)state;
    struct loop *l = loop_new();
    struct family f;
    const char *const argv[] = {"sh", "-c", "pwd; env; echo .", NULL};
    const char *const env[] = {"EXTRA=1", "LANG=xx", NULL};
    setenv("SECRET_TOKEN", "hush", 1);
    setenv("LANG", "yy", 1);
    setenv("LC_TIME", "zz", 1);
    struct child_spec spec = {.name = "test", .argv = argv, .env = env, .cwd = "/"};
    start(&f, l, &spec);
    WAIT(l, party_has(&f.party, "\n.\n"));
    assert_int_equal(memcmp(f.party.got.p, "/\n", 2), 0);
    assert_true(party_has(&f.party, "EXTRA=1\n"));
    assert_true(party_has(&f.party, "LANG=xx\n"));
    assert_false(party_has(&f.party, "LANG=yy"));
    assert_true(party_has(&f.party, "LC_TIME=zz\n"));
    assert_true(party_has(&f.party, "PATH="));
    assert_false(party_has(&f.party, "SECRET_TOKEN"));
    finish(&f, l);

    spec.inherit_env = true;
    start(&f, l, &spec);
    WAIT(l, party_has(&f.party, "\n.\n"));
    assert_true(party_has(&f.party, "SECRET_TOKEN=hush\n"));
    assert_true(party_has(&f.party, "LANG=xx\n"));
    assert_int_equal(party_count(&f.party, "LANG="), 1);
    finish(&f, l);
    loop_free(l);
}

/* The program is looked up in the child's PATH, not in ours. */
static void test_path_of_the_child(void **state)
{
    (void)state;
    char folder[32], script[64], path[64];
    make_folder(folder);
    snprintf(script, sizeof script, "%s/rialto-test-tool", folder);
    snprintf(path, sizeof path, "PATH=/no/such:%s", folder);
    FILE *file = fopen(script, "we");
    fputs("#!/bin/sh\necho found\n", file);
    fclose(file);
    chmod(script, 0700);
    struct loop *l = loop_new();
    struct family f;
    start(&f, l,
          &(struct child_spec){.name = "test",
                               .argv = (const char *const[]){"rialto-test-tool", NULL},
                               .env = (const char *const[]){path, NULL}});
    WAIT(l, party_has(&f.party, "found"));
    finish(&f, l);
    unlink(script);
    rmdir(folder);
    loop_free(l);
}

static void expect_found(const struct child_spec *spec, const char *program, int code,
                         const char *file)
{
    struct buf found = {0};

    assert_int_equal(spawn_find(spec, program, &found), code);
    assert_string_equal(buf_cstr(&found), file);
    buf_fini(&found);
}

/* Finding the program without starting it: an executable file wins over an earlier one that is not
 * executable, folders do not count, and relative names start in the child's working folder. */
static void test_found_without_starting(void **state)
{
    char folder[32], first[64], second[64], a[80], b[80], path[160];

    (void)state;
    make_folder(folder);
    snprintf(first, sizeof first, "%s/1", folder);
    snprintf(second, sizeof second, "%s/2", folder);
    snprintf(a, sizeof a, "%s/tool", first);
    snprintf(b, sizeof b, "%s/tool", second);
    snprintf(path, sizeof path, "PATH=/no/such:%s:%s", first, second);
    assert_int_equal(mkdir(first, 0700) || mkdir(second, 0700), 0);
    close(open(a, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    const char *env[] = {path, NULL};
    struct child_spec spec = {.name = "test", .env = env};
    char *seen = spawn_path(&spec);
    assert_string_equal(seen, path + strlen("PATH="));
    mem_free(seen);
    expect_found(&spec, "tool", -EACCES, a);
    close(open(b, O_CREAT | O_WRONLY | O_CLOEXEC, 0700));
    expect_found(&spec, "tool", 0, b);
    expect_found(&spec, "no-such-tool", -ENOENT, "");
    expect_found(&spec, second, -ENOENT, "");
    expect_found(&spec, b, 0, b);
    spec.cwd = folder;
    expect_found(&spec, "2/tool", 0, b);
    expect_found(&spec, "3/tool", -ENOENT, "");
    assert_int_equal(unlink(a) || unlink(b) || rmdir(first) || rmdir(second) || rmdir(folder), 0);
}

/* The child inherits none of our descriptors, and no ignored or blocked signals. */
static void test_child_starts_clean(void **state)
{
    (void)state;
    struct loop *l = loop_new();
    struct family f;
    int leaky = open("/dev/null", O_RDONLY); /* without O_CLOEXEC */
    sigset_t block, before;
    sigemptyset(&block);
    sigaddset(&block, SIGTERM);
    sigprocmask(SIG_BLOCK, &block, &before);
    start_sh(&f, l,
             "for fd in /proc/self/fd/*; do case $fd in */[0-2]) ;; *) test -e $fd && "
             "echo \"has $fd\" ;; esac; done; grep -E 'Sig(Blk|Ign)' /proc/self/status; echo .");
    WAIT(l, party_has(&f.party, "\n.\n"));
    assert_false(party_has(&f.party, "has /"));
    assert_true(party_has(&f.party, "SigBlk:\t0000000000000000"));
    assert_true(party_has(&f.party, "SigIgn:\t0000000000000000"));
    sigprocmask(SIG_SETMASK, &before, NULL);
    close(leaky);
    finish(&f, l);
    loop_free(l);
}

static void test_who_ignores_everything_is_killed(void **state)
{
    (void)state;
    struct loop *l = loop_new();
    struct family f;
    start_sh(&f, l, "trap '' TERM; echo ready; while :; do sleep 0.05; done");
    WAIT(l, party_has(&f.party, "ready"));
    uint64_t begin = loop_now(l);
    child_stop(f.child, 100);
    child_stop(f.child, 1); /* a second call does not shorten the wait */
    finish(&f, l);
    assert_string_equal(f.how, "killed by SIGKILL");
    assert_true(loop_now(l) - begin >= 200);
    loop_free(l);
}

/* A process may move to another group of our session. Signals went to the group that it was started
 * with, so nothing ended it, and what waited for its end waited for ever. */
static void test_who_moves_to_another_group_is_ended(void **state)
{
    (void)state;
    static const char *const scripts[] = {
        "setpgrp(0, getpgrp(getppid())); print 'ready'; sleep 1000",
        "$SIG{TERM} = 'IGNORE'; setpgrp(0, getpgrp(getppid())); print 'ready'; sleep 9 while 1",
    };
    static const char *const how[] = {"killed by SIGTERM", "killed by SIGKILL"};
    struct loop *l = loop_new();
    for (size_t i = 0; i < COUNT_OF(scripts); i++) {
        struct family f;
        start_argv(&f, l, (const char *const[]){"perl", "-e", "$| = 1;", "-e", scripts[i], NULL});
        WAIT(l, party_has(&f.party, "ready"));
        assert_int_equal(getpgid(child_pid(f.child)), getpgrp());
        child_stop(f.child, 50);
        finish(&f, l);
        assert_string_equal(f.how, how[i]);
    }
    loop_free(l);
}

static void test_who_ignores_eof_is_terminated(void **state)
{
    (void)state;
    struct loop *l = loop_new();
    struct family f;
    start_argv(&f, l, (const char *const[]){"sleep", "1000", NULL});
    child_stop(f.child, 50);
    finish(&f, l);
    assert_string_equal(f.how, "killed by SIGTERM");
    loop_free(l);
}

/* npx starts sh, which starts node: when the first process ends, the others must end too. */
static void test_the_group_dies_with_its_leader(void **state)
{
    (void)state;
    struct loop *l = loop_new();
    struct family f;
    start_sh(&f, l, "sleep 1000 & echo $!; exit 3");
    WAIT(l, f.n_exited);
    int grandchild = atoi(buf_cstr(&f.party.got));
    assert_true(grandchild > 1);
    WAIT(l, !is_running(grandchild));
    finish(&f, l);
    assert_int_equal(f.status, 3);
    loop_free(l);
}

/* Another process that holds the pipe open (here: this test) does not delay `exited`. */
static void test_a_pipe_held_open_does_not_delay_the_end(void **state)
{
    (void)state;
    char path[32];
    struct loop *l = loop_new();
    struct family f;
    start_sh(&f, l, "echo ready; cat; exit 3");
    WAIT(l, party_has(&f.party, "ready"));
    snprintf(path, sizeof path, "/proc/%d/fd/1", child_pid(f.child));
    int held = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(held >= 0);
    child_stop(f.child, 10000);
    WAIT_MS(l, f.n_exited, 5000);
    finish(&f, l);
    assert_int_equal(f.status, 3);
    close(held);
    loop_free(l);
}

/* Prints the pid of a process with its own session, whose parent has ended, and with none of our
 * descriptors; then runs until EOF. */
#define DAEMON(prefix, command)                                                                    \
    "(" prefix " setsid sh -c '" command " <&- >&- 2>&- & echo $!'); cat"

static int first_number(struct family *f, struct loop *l)
{
    WAIT(l, party_has(&f->party, "\n"));
    int pid = atoi(buf_cstr(&f->party.got));
    assert_true(pid > 1);
    return pid;
}

/*
 * When a server ended, a helper that it had daemonised stayed: the helper is in no process group of
 * ours and has no parent. When the server is killed or stopped, its helper must have ended before
 * `exited`; the helper of another server must stay. Helpers with a cleared environment are found as
 * well, and so are processes that a helper started.
 */
static void test_what_double_forks_dies_with_its_server(void **state)
{
    (void)state;
    static const char *const scripts[] = {
        DAEMON("", "sleep 1000"),
        DAEMON("env -i", "sleep 1000"),
        DAEMON("", "sh -c \"setsid sleep 1000; :\""),
    };
    struct loop *l = loop_new();
    struct family other;
    start_sh(&other, l, scripts[0]);
    int others = first_number(&other, l);
    for (size_t i = 0; i < 2 * COUNT_OF(scripts); i++) {
        struct family f;
        start_sh(&f, l, scripts[i / 2]);
        int helper = first_number(&f, l);
        assert_true(is_running(helper));
        if (i % 2)
            kill(-child_pid(f.child), SIGKILL);
        else
            child_stop(f.child, 1000);
        finish(&f, l);
        assert_false(is_running(helper));
        assert_true(is_running(others));
    }
    kill(-child_pid(other.child), SIGKILL);
    finish(&other, l);
    assert_false(is_running(others));
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* every child has ended and is reaped */
    loop_free(l);
}

/* As a subreaper we must reap orphans that are reparented to us, also while their server runs. */
static void test_an_orphan_that_ends_is_reaped(void **state)
{
    (void)state;
    char path[32];
    struct loop *l = loop_new();
    struct family f;
    start_sh(&f, l, DAEMON("", "sleep 0.2"));
    snprintf(path, sizeof path, "/proc/%d", first_number(&f, l));
    assert_int_equal(access(path, F_OK), 0);
    WAIT(l, access(path, F_OK) != 0);
    assert_int_equal(f.n_exited, 0);
    child_stop(f.child, 10000);
    finish(&f, l);
    loop_free(l);
}

/* Some children are not started by us: they existed before exec, or are reparented to process 1, or
 * are the user's browser, which we start without a mark, and whose launcher may end at once. They
 * may have no_new_privs set, as our servers have: all programs of a Flatpak have it, and a browser
 * was killed for that. */
static void test_who_is_not_kin_is_left_alone(void **state)
{
    (void)state;
    int strangers[3];
    for (int i = 0; i < 3; i++) {
        strangers[i] = fork();
        if (strangers[i] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (i != 0)
                setsid();
            if (i != 1)
                prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            for (;;)
                pause();
        }
    }
    struct loop *l = loop_new();
    struct family f;
    start_sh(&f, l, DAEMON("", "sleep 1000"));
    int helper = first_number(&f, l);
    kill(-child_pid(f.child), SIGKILL);
    finish(&f, l);
    assert_false(is_running(helper));
    for (int i = 0; i < 3; i++) {
        assert_true(is_running(strangers[i]));
        kill(strangers[i], SIGKILL);
        assert_int_equal(waitpid(strangers[i], NULL, 0), strangers[i]);
    }
    loop_free(l);
}

/* Any process of our user may lower our limit of file locks. A server did, and let a helper go:
 * that was then nobody's, and was taken for the operator. In a process of its own, whose limit
 * stays low. */
static void test_who_lowers_our_limit_is_still_kin(void **state)
{
    (void)state;
    int status;
    pid_t bridge = fork();
    if (bridge == 0) {
        struct loop *l = loop_new();
        struct family f;
        struct rlimit own;
        start_sh(
            &f, l,
            "prlimit --pid $PPID --locks=1:1 || exit; (sleep 1000 <&- >&- 2>&- & echo $!); cat");
        int helper = first_number(&f, l);
        WAIT(l, kin_parent(helper) == getpid());
        if (getrlimit(RLIMIT_LOCKS, &own) || own.rlim_max != 1)
            _exit(2);
        bool known = kin_includes(&l->kin, helper);
        child_stop(f.child, 10000);
        finish(&f, l);
        _exit(known && !is_running(helper) ? 0 : 3);
    }
    assert_int_equal(waitpid(bridge, &status, 0), bridge);
    assert_int_equal(status, 0);
}

static void test_stderr_is_logged_by_line(void **state)
{
    (void)state;
    char path[] = "/tmp/rialto-test-XXXXXX";
    int file = mkostemp(path, O_CLOEXEC), real = dup(STDERR_FILENO);
    struct loop *l = loop_new();
    struct family f;
    dup2(file, STDERR_FILENO);
    start_sh(&f, l,
             "printf 'first line\\nsecond' >&2; sleep 0.05; printf ' half\\n' >&2;"
             "head -c 20000 /dev/zero | tr '\\0' x >&2; printf '\\nlast, no newline' >&2");
    WAIT(l, f.n_exited);
    dup2(real, STDERR_FILENO);
    close(real);

    struct buf log = {0};
    lseek(file, 0, SEEK_SET);
    log.n = (size_t)read(file, buf_room(&log, 65536), 65536);
    assert_non_null(strstr(buf_cstr(&log), "test: first line\n"));
    assert_non_null(strstr(buf_cstr(&log), "test: second half\n"));
    assert_non_null(strstr(buf_cstr(&log), "xxx ... (line cut)\n"));
    assert_non_null(strstr(buf_cstr(&log), "test: last, no newline\n"));
    assert_true(log.n < 10000);
    assert_non_null(strstr(buf_cstr(&f.errors), "first line\nsecond half\nxxx"));
    buf_fini(&log);
    close(file);
    unlink(path);
    finish(&f, l);
    loop_free(l);
}

static void test_ten_megabytes_through_cat(void **state)
{
    (void)state;
    enum { N = 10 * 1024 * 1024 };
    struct loop *l = loop_new();
    struct family f;
    char *pattern = mem_alloc(N);
    for (size_t i = 0; i < N; i++)
        pattern[i] = (char)(i * 2654435761u >> 11);
    start_argv(&f, l, (const char *const[]){"cat", NULL});
    stream_write(f.party.stream, span_of(pattern, N));
    child_stop(f.child, 20000); /* EOF is sent after the queued bytes */
    WAIT(l, f.n_exited);
    assert_int_equal(f.party.got.n, N);
    assert_memory_equal(f.party.got.p, pattern, N);
    assert_true(f.party.n_drained > 0);
    mem_free(pattern);
    finish(&f, l);
    assert_int_equal(f.status, 0);
    loop_free(l);
}

static void test_a_thousand_children_leave_nothing(void **state)
{
    (void)state;
    struct loop *l = loop_new();
    struct family f;
    start_argv(&f, l, (const char *const[]){"true", NULL});
    finish(&f, l);
    int fds = count_fds();
    for (int i = 0; i < 1000; i++) {
        start_argv(&f, l, (const char *const[]){"true", NULL});
        finish(&f, l);
        assert_int_equal(f.status, 0);
    }
    assert_int_equal(count_fds(), fds);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    loop_free(l);
}

static void test_many_at_once(void **state)
{
    (void)state;
    enum { N = 50 };
    struct loop *l = loop_new();
    struct family f[N];
    for (int i = 0; i < N; i++)
        start_argv(&f[i], l, (const char *const[]){"cat", NULL});
    for (int i = 0; i < N; i++) {
        buf_printf(stream_out(f[i].party.stream), "I am %d\n", i);
        stream_wrote(f[i].party.stream);
    }
    for (int i = 0; i < N; i++) {
        char wanted[32];
        snprintf(wanted, sizeof wanted, "I am %d\n", i);
        WAIT(l, party_has(&f[i].party, wanted));
        kill(-child_pid(f[i].child), SIGKILL);
    }
    for (int i = 0; i < N; i++)
        finish(&f[i], l);
    loop_free(l);
}

/* When we are killed, we cannot stop the children: the kernel does it. */
static void test_children_die_with_us(void **state)
{
    (void)state;
    int report[2], pid = 0;
    assert_int_equal(pipe2(report, O_CLOEXEC), 0);
    pid_t bridge = fork();
    if (bridge == 0) {
        struct loop *l = loop_new();
        struct family f;
        start_argv(&f, l, (const char *const[]){"sleep", "1000", NULL});
        pid = child_pid(f.child);
        if (write(report[1], &pid, sizeof pid) == sizeof pid)
            loop_run(l);
        _exit(1);
    }
    assert_int_equal(read(report[0], &pid, sizeof pid), sizeof pid);
    assert_true(is_running(pid));
    kill(bridge, SIGKILL);
    waitpid(bridge, NULL, 0);
    for (int i = 0; i < 1000 && is_running(pid); i++)
        usleep(10000);
    assert_false(is_running(pid));
    close(report[0]);
    close(report[1]);
}

/*
 * Each child had its own session, which has no terminal but is a separate scheduling group: on a
 * busy machine a chain of five processes had a tenth of the throughput. Children are now in our
 * session, and there too a child must not be able to open a terminal, nor get the SIGINT of a
 * Ctrl-C.
 */
static void test_no_terminal_reaches_a_child(void **state)
{
    (void)state;
    int status, terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
    pid_t bridge = fork();
    if (bridge == 0) {
        sigset_t interrupt;
        struct family f;
        sigemptyset(&interrupt);
        sigaddset(&interrupt, SIGINT);
        signal(SIGINT, SIG_DFL);
        sigprocmask(SIG_BLOCK, &interrupt, NULL);
        if (setsid() < 0 || open(ptsname(terminal), O_RDWR) < 0 || open("/dev/tty", O_RDWR) < 0)
            _exit(2);
        struct loop *l = loop_new();
        start_sh(&f, l, "(: </dev/tty) 2>&- && echo one || echo none; cat");
        WAIT(l, party_has(&f.party, "one\n") || party_has(&f.party, "none\n"));
        if (!party_has(&f.party, "none\n") || getsid(child_pid(f.child)) != getsid(0))
            _exit(3);
        if (write(terminal, "\3", 1) != 1 || sigwaitinfo(&interrupt, NULL) != SIGINT)
            _exit(4);
        stream_write(f.party.stream, SPAN("meow\n"));
        WAIT(l, f.n_exited || party_has(&f.party, "meow\n"));
        _exit(f.n_exited ? 5 : 0);
    }
    assert_int_equal(waitpid(bridge, &status, 0), bridge);
    assert_int_equal(status, 0);
    close(terminal);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cat_echoes_and_ends_at_eof),
        cmocka_unit_test(test_exit_codes_and_signals),
        cmocka_unit_test(test_last_words_are_heard),
        cmocka_unit_test(test_cannot_start),
        cmocka_unit_test(test_environment_and_folder),
        cmocka_unit_test(test_path_of_the_child),
        cmocka_unit_test(test_found_without_starting),
        cmocka_unit_test(test_child_starts_clean),
        cmocka_unit_test(test_who_ignores_everything_is_killed),
        cmocka_unit_test(test_who_moves_to_another_group_is_ended),
        cmocka_unit_test(test_who_ignores_eof_is_terminated),
        cmocka_unit_test(test_the_group_dies_with_its_leader),
        cmocka_unit_test(test_a_pipe_held_open_does_not_delay_the_end),
        cmocka_unit_test(test_what_double_forks_dies_with_its_server),
        cmocka_unit_test(test_an_orphan_that_ends_is_reaped),
        cmocka_unit_test(test_who_is_not_kin_is_left_alone),
        cmocka_unit_test(test_who_lowers_our_limit_is_still_kin),
        cmocka_unit_test(test_stderr_is_logged_by_line),
        cmocka_unit_test(test_ten_megabytes_through_cat),
        cmocka_unit_test(test_a_thousand_children_leave_nothing),
        cmocka_unit_test(test_many_at_once),
        cmocka_unit_test(test_children_die_with_us),
        cmocka_unit_test(test_no_terminal_reaches_a_child),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
