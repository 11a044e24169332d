/* The cage without a kernel: which limits each Landlock ABI lacks, which refusal a line of stderr
 * shows, which system calls the filter refuses; the paths of rules on real folders; and which files
 * starting a program needs. */
#include "../unit.h"

#include "io/cage.h"
#include "io/program.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* --- first lines of scripts --- */

static void check_script(const char *head, const char *interpreter, const char *wanted, bool dos)
{
    struct span exact = unit_exact(span_str(head));
    struct script s = script_read(exact);

    assert_span(s.interpreter, interpreter);
    assert_span(s.wanted, wanted);
    assert_int_equal(s.dos, dos);
    unit_free(exact);
}

static void test_scripts(void **state)
{
    (void)state;
    check_script("#!/bin/sh\necho", "/bin/sh", "", false);
    check_script("#! /bin/sh -e\n", "/bin/sh", "", false);
    check_script("#!/usr/bin/env node\n", "/usr/bin/env", "node", false);
    check_script("#!/usr/bin/env -S node --no-warnings\n", "/usr/bin/env", "node", false);
    check_script("#!/usr/bin/env -S A=1 B=2 uv run\n", "/usr/bin/env", "uv", false);
    check_script("#!/usr/bin/env\tnode", "/usr/bin/env", "node", false);
    check_script("#!/bin/sh\r\necho\r\n", "/bin/sh", "", true);
    check_script("#!/usr/bin/env node\r\n", "/usr/bin/env", "node", true);
    check_script("#!/usr/bin/env", "/usr/bin/env", "", false);
    check_script("#!", "", "", false);
    check_script("\x7f"
                 "ELF\n",
                 "", "", false);
    check_script("", "", "", false);
}

/* --- what each kernel lacks --- */

static void check_lacks(int abi, enum cage_network network, uint64_t processes, const char *wanted)
{
    struct cage_rules rules = {.level = "map", .network = network, .processes = processes};
    struct cage_kernel kernel = {.landlock = abi, .filter = true};
    BUF_SCOPED lacks = {0};

    cage_put_lacks(&lacks, &rules, &kernel);
    assert_string_equal(buf_cstr(&lacks), wanted);
}

#define EMPTYING "against emptying files (Landlock ABI 3: Linux 6.2)"
#define PORTS    "rules for ports (Landlock ABI 4: Linux 6.7)"
#define SIGNALS  "against signals (Landlock ABI 6: Linux 6.12)"
#define ABSTRACT "against signals and abstract sockets (Landlock ABI 6: Linux 6.12)"

static void test_lacks(void **state)
{
    (void)state;
    check_lacks(0, CAGE_NO_SOCKET, 0,
                "rules for files (Landlock: Linux 5.13, and landlock in lsm=); " SIGNALS);
    check_lacks(1, CAGE_OPEN, 0, EMPTYING "; " ABSTRACT);
    check_lacks(2, CAGE_PORTS, 0, EMPTYING "; " PORTS "; " SIGNALS);
    check_lacks(3, CAGE_PORTS, 0, PORTS "; " SIGNALS);
    check_lacks(3, CAGE_NO_SOCKET, 0, SIGNALS);
    check_lacks(4, CAGE_PORTS, 0, SIGNALS);
    check_lacks(5, CAGE_OPEN, 0, ABSTRACT);
    for (int abi = 6; abi <= 12; abi++)
        check_lacks(abi, CAGE_PORTS, 0, "");
    check_lacks(7, CAGE_OPEN, 8,
                "a count of one server's processes (user namespaces, or a control group; for root "
                "only the latter)");
}

/* --- what a line of stderr says was refused --- */

static void check_blame(const struct cage_rules *rules, const char *line, const char *refused,
                        const char *remedy)
{
    BUF_SCOPED what = {0}, how = {0};
    struct span exact = unit_exact(span_str(line));

    assert_true(cage_is_refusal(exact));
    cage_blame(rules, exact, &what, &how);
    assert_string_equal(buf_cstr(&what), refused);
    assert_string_equal(buf_cstr(&how), remedy);
    unit_free(exact);
}

static void test_blame(void **state)
{
    (void)state;
    static const struct cage_path paths[] = {{"/usr", CAGE_READ | CAGE_RUN, false},
                                             {"/data", CAGE_READ | CAGE_WRITE, false}};
    struct cage_rules map = {.level = "map", .network = CAGE_PORTS, .paths = paths, .n_paths = 2};
    struct cage_rules light = {
        .level = "light", .network = CAGE_OPEN, .paths = paths, .n_paths = 2};
    struct cage_rules strict = {.level = "strict", .network = CAGE_NO_SOCKET};

    check_blame(&map, "Error: EACCES: permission denied, open '/home/a b/x'", "/home/a b/x",
                "read: [/home/a b/x]");
    check_blame(&map, "PermissionError: [Errno 13] Permission denied: '/usr/x'", "/usr/x",
                "write: [/usr/x]");
    check_blame(&map, "sh: 1: /root/run: Permission denied", "/root/run", "read: [/root/run]");
    check_blame(&map, "EACCES: rename '/data/a' -> '/home/b'", "/home/b", "read: [/home/b]");
    check_blame(&light, "cat: /home/x: Permission denied", "/home/x",
                "sandbox: {network: all, read: [/home/x]}");
    check_blame(&strict, "cat: /home/x: Permission denied", "/home/x",
                "sandbox: {read: [/home/x]}");
    check_blame(&map, "Error: connect EACCES 192.0.2.1:443 - Local (0.0.0.0:0)",
                "connections to port 443", "network: [443]");
    check_blame(&strict, "Error: connect EPERM ::1:8080", "connections to port 8080",
                "sandbox: {network: [8080]}");
    check_blame(&map, "see https://example.com/x: EPERM", "", "");
    check_blame(&map, "  code: 'EACCES',", "", "");
    check_blame(&map, "EPERM /", "", "");
    assert_false(cage_is_refusal(SPAN("No such file or directory: /home/x")));
}

/* --- the filter, run by a small BPF interpreter --- */

static uint32_t filtered(enum cage_network network, const struct seccomp_data *call)
{
    struct sock_filter code[CAGE_FILTER_MAX];
    size_t n = cage_filter(code, network);
    uint32_t a = 0;

    assert_true(n < CAGE_FILTER_MAX);
    for (size_t pc = 0; pc < n; pc++) {
        const struct sock_filter *f = &code[pc];
        bool jumps = false;
        switch (f->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            assert_true(f->k % 4 == 0 && f->k < sizeof *call);
            memcpy(&a, (const char *)call + f->k, sizeof a);
            continue;
        case BPF_ALU | BPF_AND | BPF_K:
            a &= f->k;
            continue;
        case BPF_JMP | BPF_JEQ | BPF_K:
            jumps = a == f->k;
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
            jumps = a >= f->k;
            break;
        case BPF_JMP | BPF_JSET | BPF_K:
            jumps = a & f->k;
            break;
        case BPF_RET | BPF_K:
            return f->k;
        default:
            fail_msg("instruction %x", f->code);
        }
        pc += jumps ? f->jt : f->jf;
    }
    fail_msg("the filter does not end");
    return 0;
}

#ifdef __x86_64__
enum { ARCH = AUDIT_ARCH_X86_64 };
#else
enum { ARCH = AUDIT_ARCH_AARCH64 };
#endif

/* The errno that the filter returns for a call, or 0. */
static int refused(enum cage_network network, int nr, uint64_t a, uint64_t b, uint64_t c,
                   uint64_t d)
{
    struct seccomp_data call = {.nr = nr, .arch = (uint32_t)ARCH, .args = {a, b, c, d}};
    uint32_t verdict = filtered(network, &call);

    if (verdict == SECCOMP_RET_ALLOW)
        return 0;
    assert_int_equal(verdict & SECCOMP_RET_ACTION_FULL, SECCOMP_RET_ERRNO);
    return (int)(verdict & SECCOMP_RET_DATA);
}

static void test_filter(void **state)
{
    (void)state;
    static const struct {
        int family, type, protocol;
        int errors[4]; /* for each network mode: open, no Unix sockets, ports, none */
    } sockets[] = {
        {AF_INET, SOCK_STREAM, 0, {0, 0, 0, EACCES}},
        {AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 6, {0, 0, 0, EACCES}},
        {AF_INET, SOCK_STREAM, 262, {0, 0, EPROTONOSUPPORT, EACCES}},
        {AF_INET, SOCK_STREAM, 132, {0, 0, EPROTONOSUPPORT, EACCES}},
        {AF_INET6, SOCK_DGRAM, 0, {0, 0, EACCES, EACCES}},
        {AF_INET, SOCK_RAW, 1, {0, 0, EACCES, EACCES}},
        {AF_UNIX, SOCK_STREAM, 0, {0, EACCES, EACCES, EACCES}},
        {AF_NETLINK, SOCK_RAW, 0, {0, 0, EAFNOSUPPORT, EAFNOSUPPORT}},
        {AF_VSOCK, SOCK_STREAM, 0, {0, 0, EAFNOSUPPORT, EAFNOSUPPORT}},
        {AF_PACKET, SOCK_RAW, 0, {0, 0, EAFNOSUPPORT, EAFNOSUPPORT}},
    };
    static const int never[] = {SYS_ptrace, SYS_io_uring_setup, SYS_unshare, SYS_mount, SYS_bpf};

    for (int net = CAGE_OPEN; net <= CAGE_NO_SOCKET; net++) {
        for (size_t i = 0; i < COUNT_OF(sockets); i++)
            assert_int_equal(refused(net, SYS_socket, (uint64_t)sockets[i].family,
                                     (uint64_t)sockets[i].type, (uint64_t)sockets[i].protocol, 0),
                             sockets[i].errors[net]);
        for (size_t i = 0; i < COUNT_OF(never); i++)
            assert_int_equal(refused(net, never[i], 0, 0, 0, 0), EPERM);
        assert_int_equal(refused(net, SYS_clone3, 0, 0, 0, 0), ENOSYS);
        assert_int_equal(refused(net, SYS_clone, CLONE_NEWUSER | 17, 0, 0, 0), EPERM);
        assert_int_equal(refused(net, SYS_clone, CLONE_VM | CLONE_VFORK | 17, 0, 0, 0), 0);
        assert_int_equal(refused(net, SYS_ioctl, 0, 0xffffffff00005412, 0, 0), EPERM);
        assert_int_equal(refused(net, SYS_ioctl, 0, 0x5401, 0, 0), 0);
        /* A server lowered the limits of the bridge, by which it knows its servers. */
        assert_int_equal(refused(net, SYS_prlimit64, 4711, RLIMIT_LOCKS, 0, 0), EPERM);
        assert_int_equal(refused(net, SYS_prlimit64, 0, RLIMIT_NOFILE, 0, 0), 0);
        assert_int_equal(refused(net, SYS_read, 0, 0, 0, 0), 0);
        assert_int_equal(refused(net, SYS_openat, 0, 0, 0, 0), 0);
        assert_int_equal(refused(net, SYS_listen, 0, 0, 0, 0), net == CAGE_PORTS ? EACCES : 0);
        assert_int_equal(refused(net, SYS_sendto, 0, 0, 0, MSG_FASTOPEN | MSG_NOSIGNAL),
                         net == CAGE_PORTS ? EPERM : 0);
        assert_int_equal(refused(net, SYS_socketpair, AF_UNIX, SOCK_DGRAM, 0, 0),
                         net == CAGE_OPEN ? 0 : EACCES);
        /* The kernel makes a datagram pair of this, which was let through. */
        assert_int_equal(refused(net, SYS_socketpair, AF_UNIX, SOCK_RAW | SOCK_CLOEXEC, 0, 0),
                         net == CAGE_OPEN ? 0 : EACCES);
        assert_int_equal(refused(net, SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, 0), 0);
    }
    struct seccomp_data foreign = {.nr = 1, .arch = AUDIT_ARCH_I386};
    assert_int_equal(filtered(CAGE_OPEN, &foreign), SECCOMP_RET_KILL_PROCESS);
}

/* --- paths --- */

static unsigned may_of(const struct cage_list *list, const char *path)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->items[i].path, path) == 0)
            return list->items[i].may;
    return 0;
}

/* Folders that the server may write to, and folders that contain one, may not be run from, unless
 * the rules say so; a program in a folder that the server may write to is refused. */
static void test_paths(void **state)
{
    (void)state;
    char dir[] = "/tmp/rialto-cage-XXXXXX", own[64], out[64], program[64];
    struct cage_list list, files = {0};
    struct err err = {0};

    assert_non_null(mkdtemp(dir));
    snprintf(own, sizeof own, "%s/own", dir);
    snprintf(out, sizeof out, "%s/data/out", dir);
    snprintf(program, sizeof program, "%s/own/program", dir);
    char data[64];
    snprintf(data, sizeof data, "%s/data", dir);
    assert_int_equal(mkdir(own, 0700) | mkdir(data, 0700) | mkdir(out, 0700), 0);
    struct cage_path paths[] = {{data, CAGE_READ | CAGE_RUN, false},
                                {out, CAGE_READ | CAGE_WRITE, false},
                                {"/usr", CAGE_READ | CAGE_RUN, false},
                                {"/nowhere/at/all", CAGE_READ, true}};
    struct cage_rules rules = {
        .server = "test", .level = "map", .own = own, .home = data, .paths = paths, .n_paths = 4};

    assert_int_equal(cage_list_make(&list, &rules, NULL, &files, &err), 0);
    assert_int_equal(may_of(&list, own), CAGE_READ | CAGE_WRITE);
    assert_int_equal(may_of(&list, data), CAGE_READ);
    assert_int_equal(may_of(&list, out), CAGE_READ | CAGE_WRITE);
    assert_int_equal(may_of(&list, "/usr"), CAGE_READ | CAGE_RUN);
    cage_list_fini(&list);

    rules.runs_what_it_writes = true;
    assert_int_equal(cage_list_make(&list, &rules, out, &files, &err), 0);
    assert_int_equal(may_of(&list, data), CAGE_READ | CAGE_RUN);
    cage_list_fini(&list);

    /* A symbolic link in a folder that the server may write to gives no access to its target. */
    char link[80];
    snprintf(link, sizeof link, "%s/link", out);
    assert_int_equal(symlink(own, link), 0);
    paths[3] = (struct cage_path){link, CAGE_READ | CAGE_WRITE, false};
    rules.own = "/var/tmp";
    assert_int_equal(cage_list_make(&list, &rules, NULL, &files, &err), 0);
    assert_int_equal(may_of(&list, own), 0);
    cage_list_fini(&list);
    assert_int_equal(cage_list_make(&list, &rules, link, &files, &err), -EPERM);
    assert_non_null(strstr(err.text, "a link leads out"));
    unlink(link);
    rules.own = own;

    const char *const wide[] = {"/", dir, data}; /* the home folder is `data` */
    for (size_t i = 0; i < COUNT_OF(wide); i++)
        assert_int_equal(cage_list_make(&list, &rules, wide[i], &files, &err), -EPERM);

    FILE *f = fopen(program, "we");
    assert_non_null(f);
    fclose(f);
    cage_list_add(&files, program, CAGE_READ | CAGE_RUN);
    assert_int_equal(cage_list_make(&list, &rules, NULL, &files, &err), -EPERM);
    assert_non_null(strstr(err.text, "where the server may write"));
    cage_list_fini(&files);
    unlink(program);
    assert_int_equal(rmdir(out) | rmdir(data) | rmdir(own) | rmdir(dir), 0);
}

static void test_program(void **state)
{
    (void)state;
    struct child_spec spec = {.argv = (const char *const[]){"sh", NULL}};
    struct cage_list files = {0};

    program_files(&spec, &files);
    assert_int_equal(files.n, 2); /* the program and its loader */
    assert_non_null(strstr(files.items[1].path, "ld-linux"));
    cage_list_fini(&files);
}

/* A ruleset can be made for every ABI up to this kernel's: no bit is set that an older ABI does not
 * have. */
static void test_older(void **state)
{
    (void)state;
    struct cage_path usr = {"/usr", CAGE_READ | CAGE_RUN | CAGE_WRITE, false};
    struct cage_rules rules = {.server = "test",
                               .level = "map",
                               .own = "/tmp",
                               .warns = true,
                               .network = CAGE_PORTS,
                               .ports = &(uint16_t){443},
                               .n_ports = 1,
                               .paths = &usr,
                               .n_paths = 1};
    struct cage_kernel kernel = cage_kernel(&rules, NULL);
    struct cage_list files = {0};
    struct cage cage;
    struct err err = {0};

    for (int abi = kernel.landlock; abi >= 0; abi--) {
        kernel.landlock = abi;
        if (cage_make(&cage, &rules, &kernel, "/tmp", &files, &err))
            fail_msg("ABI %d: %s", abi, err.text);
        assert_int_equal(cage.ruleset >= 0, abi > 0);
        cage_close(&cage);
    }
    rules.warns = false;
    assert_int_equal(cage_make(&cage, &rules, &kernel, "/tmp", &files, &err), -ENOSYS);
    assert_non_null(strstr(err.text, "Landlock"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scripts), cmocka_unit_test(test_lacks),
        cmocka_unit_test(test_blame),   cmocka_unit_test(test_filter),
        cmocka_unit_test(test_paths),   cmocka_unit_test(test_program),
        cmocka_unit_test(test_older),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
