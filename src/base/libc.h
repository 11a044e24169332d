/*
 * libc: what new versions of glibc have, but musl and older versions of glibc do not have.
 *
 * System calls without a wrapper, under the names and with the arguments that glibc gives them: for
 * static programs (docs/decisions/020-portable.md) and older systems.
 *
 * Nouns: pidfd_, close_, sigabbrev_.
 */
#ifndef RIALTO_BASE_LIBC_H
#define RIALTO_BASE_LIBC_H

#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_quotactl_fd
#define SYS_quotactl_fd 443 /* the same on all machines */
#endif

#if __has_include(<sys/pidfd.h>)
#include <sys/pidfd.h>
#else

static inline int pidfd_open(pid_t pid, unsigned flags)
{
    return (int)syscall(SYS_pidfd_open, pid, flags);
}

static inline int pidfd_send_signal(int fd, int signo, siginfo_t *info, unsigned flags)
{
    return (int)syscall(SYS_pidfd_send_signal, fd, signo, info, flags);
}

#endif

#ifndef __GLIBC__

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC 4
#endif

static inline int close_range(unsigned first, unsigned last, int flags)
{
    return (int)syscall(SYS_close_range, first, last, flags);
}

/* "TERM" for SIGTERM; NULL for what has no name. */
static inline const char *sigabbrev_np(int signo)
{
    static const char *const names[] = {
        [SIGHUP] = "HUP",   [SIGINT] = "INT",   [SIGQUIT] = "QUIT", [SIGILL] = "ILL",
        [SIGTRAP] = "TRAP", [SIGABRT] = "ABRT", [SIGBUS] = "BUS",   [SIGFPE] = "FPE",
        [SIGKILL] = "KILL", [SIGUSR1] = "USR1", [SIGSEGV] = "SEGV", [SIGUSR2] = "USR2",
        [SIGPIPE] = "PIPE", [SIGALRM] = "ALRM", [SIGTERM] = "TERM", [SIGXCPU] = "XCPU",
        [SIGXFSZ] = "XFSZ", [SIGSYS] = "SYS",
    };

    return signo > 0 && (size_t)signo < sizeof names / sizeof names[0] ? names[signo] : NULL;
}

#endif

#endif
