/* The seccomp filter of a cage: which system calls are refused, as a table, and the BPF made of it.
 * Called by cage.c. */
#include "io/cage.h"

#include "base/libc.h"
#include "base/mem.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define OUR_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OUR_ARCH AUDIT_ARCH_AARCH64
#else
#error "the filter is written for x86-64 and arm64"
#endif

/* Constants that the installed headers may lack. */
enum { SYS_OPEN_TREE_ATTR = 467, X32_BIT = 0x40000000, TIOCLINUX_ = 0x541c };
#define NEW_NAMESPACES                                                                             \
    (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS |     \
     CLONE_NEWCGROUP)

enum test {
    ALWAYS,
    EQUAL,  /* (argument & mask) == value */
    UNLESS, /* (argument & mask) != value */
    ANY,    /* (argument & mask) != 0 */
};

/* Refuse `call` with `error` if its argument passes the test. Rows of a call follow each other; the
 * first whose test passes counts. */
struct refusal {
    int call;
    int error;
    enum test test;
    unsigned argument;
    uint32_t mask, value;
};

/* At every level: what reaches into other processes, into the kernel, or out of a namespace. */
static const struct refusal always[] = {
    {SYS_ptrace, EPERM},
    {SYS_process_vm_readv, EPERM},
    {SYS_process_vm_writev, EPERM},
    {SYS_pidfd_getfd, EPERM},
    {SYS_kcmp, EPERM},
    {SYS_process_madvise, EPERM},
    /* Any process of the user may lower another's limits. 0 is oneself. */
    {SYS_prlimit64, EPERM, UNLESS, 0, UINT32_MAX, 0},
    {SYS_io_uring_setup, EPERM},
    {SYS_io_uring_enter, EPERM},
    {SYS_io_uring_register, EPERM},
    {SYS_bpf, EPERM},
    {SYS_perf_event_open, EPERM},
    {SYS_userfaultfd, EPERM},
    {SYS_keyctl, EPERM},
    {SYS_add_key, EPERM},
    {SYS_request_key, EPERM},
    {SYS_mount, EPERM},
    {SYS_umount2, EPERM},
    {SYS_pivot_root, EPERM},
    {SYS_chroot, EPERM},
    {SYS_move_mount, EPERM},
    {SYS_open_tree, EPERM},
    {SYS_OPEN_TREE_ATTR, EPERM},
    {SYS_fsopen, EPERM},
    {SYS_fsconfig, EPERM},
    {SYS_fsmount, EPERM},
    {SYS_fspick, EPERM},
    {SYS_mount_setattr, EPERM},
    {SYS_setns, EPERM},
    {SYS_unshare, EPERM},
    {SYS_swapon, EPERM},
    {SYS_swapoff, EPERM},
    {SYS_reboot, EPERM},
    {SYS_kexec_load, EPERM},
    {SYS_kexec_file_load, EPERM},
    {SYS_init_module, EPERM},
    {SYS_finit_module, EPERM},
    {SYS_delete_module, EPERM},
    {SYS_open_by_handle_at, EPERM},
    {SYS_name_to_handle_at, EPERM},
    {SYS_fanotify_init, EPERM},
    {SYS_quotactl, EPERM},
    {SYS_quotactl_fd, EPERM},
    {SYS_acct, EPERM},
    {SYS_clock_settime, EPERM},
    {SYS_settimeofday, EPERM},
    {SYS_adjtimex, EPERM},
    {SYS_clock_adjtime, EPERM},
    {SYS_sethostname, EPERM},
    {SYS_setdomainname, EPERM},
    {SYS_vhangup, EPERM},
    {SYS_syslog, EPERM},
#ifdef __x86_64__
    {SYS_iopl, EPERM},
    {SYS_ioperm, EPERM},
    {SYS_modify_ldt, EPERM},
#endif
    /* The flags of clone3 are behind a pointer, which a filter cannot follow. After ENOSYS programs
     * use clone instead. */
    {SYS_clone3, ENOSYS},
    {SYS_clone, EPERM, ANY, 0, NEW_NAMESPACES},
    /* Putting input into a terminal that others read. */
    {SYS_ioctl, EPERM, EQUAL, 1, UINT32_MAX, TIOCSTI},
    {SYS_ioctl, EPERM, EQUAL, 1, UINT32_MAX, TIOCLINUX_},
};

/* AF_INET is 2 and AF_INET6 is 10: without the bit of value 8 both are 2. */
enum { INET_MASK = (int)~8u, KIND_MASK = 0xf };

/* No Unix sockets, and no datagram pairs, which could still send to any socket file. Of SOCK_RAW
 * the kernel makes such a pair, too. */
#define NO_UNIX                                                                                    \
    {SYS_socketpair, EACCES, EQUAL, 1, KIND_MASK, SOCK_DGRAM},                                     \
        {SYS_socketpair, EACCES, EQUAL, 1, KIND_MASK, SOCK_RAW},                                   \
    {                                                                                              \
        SYS_socket, EACCES, EQUAL, 0, UINT32_MAX, AF_UNIX                                          \
    }

static const struct refusal no_unix[] = {NO_UNIX};

/*
 * In addition to Landlock, which checks only the ports of connect and bind. Refused here: a first
 * packet with data (fast open), listening on a socket that was never bound, and stream protocols
 * other than TCP (MPTCP, SCTP, SMC). The mask lets 0, 2, 4 and 6 pass: 0 and 6 are TCP, and the
 * kernel has no stream protocol for 2 and 4.
 */
static const struct refusal ports[] = {
    NO_UNIX,
    {SYS_socket, EAFNOSUPPORT, UNLESS, 0, (uint32_t)INET_MASK, AF_INET},
    {SYS_socket, EACCES, UNLESS, 1, KIND_MASK, SOCK_STREAM},
    {SYS_socket, EPROTONOSUPPORT, UNLESS, 2, ~6u, 0},
    {SYS_sendto, EPERM, ANY, 3, MSG_FASTOPEN},
    {SYS_sendmsg, EPERM, ANY, 2, MSG_FASTOPEN},
    {SYS_sendmmsg, EPERM, ANY, 3, MSG_FASTOPEN},
    {SYS_listen, EACCES},
};

static const struct refusal no_socket[] = {
    NO_UNIX,
    {SYS_socket, EACCES, EQUAL, 0, (uint32_t)INET_MASK, AF_INET},
    {SYS_socket, EAFNOSUPPORT},
};

/* --- the program --- */

struct program {
    struct sock_filter *code;
    size_t n;
};

static void put(struct program *p, unsigned code, uint32_t k, size_t yes, size_t no)
{
    p->code[p->n++] = (struct sock_filter){(uint16_t)code, (uint8_t)yes, (uint8_t)no, k};
}

static void put_load(struct program *p, size_t offset)
{
    put(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void put_return(struct program *p, uint32_t verdict)
{
    put(p, BPF_RET | BPF_K, verdict, 0, 0);
}

/* If the test does not pass, the code falls through; the call's number is then overwritten. */
static void put_refusal(struct program *p, const struct refusal *r)
{
    /* The lower half of the argument: all of these are ints or flags of 32 bits. */
    if (r->test != ALWAYS)
        put_load(p, offsetof(struct seccomp_data, args) + r->argument * sizeof(uint64_t));
    if (r->test == EQUAL || r->test == UNLESS)
        put(p, BPF_ALU | BPF_AND | BPF_K, r->mask, 0, 0);
    if (r->test == ANY)
        put(p, BPF_JMP | BPF_JSET | BPF_K, r->mask, 0, 1);
    else if (r->test != ALWAYS)
        put(p, BPF_JMP | BPF_JEQ | BPF_K, r->value, r->test == UNLESS, r->test == EQUAL);
    put_return(p, SECCOMP_RET_ERRNO | (uint32_t)r->error);
}

static void put_refusals(struct program *p, const struct refusal *rows, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t jump = p->n;
        int call = rows[i].call;
        put(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 0);
        bool plain = rows[i].test == ALWAYS;
        for (; i < n && rows[i].call == call; i++)
            put_refusal(p, &rows[i]);
        if (!plain)
            put_return(p, SECCOMP_RET_ALLOW);
        p->code[jump].jf = (uint8_t)(p->n - jump - 1);
    }
}

size_t cage_filter(struct sock_filter *code, enum cage_network network)
{
    static const struct {
        const struct refusal *rows;
        size_t n;
    } networks[] = {[CAGE_OPEN] = {NULL, 0},
                    [CAGE_NO_UNIX] = {no_unix, COUNT_OF(no_unix)},
                    [CAGE_PORTS] = {ports, COUNT_OF(ports)},
                    [CAGE_NO_SOCKET] = {no_socket, COUNT_OF(no_socket)}};
    struct program p = {code, 0};

    /* Calls of another architecture have other numbers. */
    put_load(&p, offsetof(struct seccomp_data, arch));
    put(&p, BPF_JMP | BPF_JEQ | BPF_K, OUR_ARCH, 1, 0);
    put_return(&p, SECCOMP_RET_KILL_PROCESS);
    put_load(&p, offsetof(struct seccomp_data, nr));
#ifdef __x86_64__
    put(&p, BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1);
    put_return(&p, SECCOMP_RET_ERRNO | ENOSYS);
#endif
    put_refusals(&p, always, COUNT_OF(always));
    put_refusals(&p, networks[network].rows, networks[network].n);
    put_return(&p, SECCOMP_RET_ALLOW);
    return p.n;
}
