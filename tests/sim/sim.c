/*
 *     sim [--seed N] [--seeds COUNT] [--steps N] [-v]
 *
 * Runs COUNT (10000) schedules of --steps N (2000) steps, starting with --seed N (1); with --seed
 * alone only that seed. The first failure ends the run and prints how to replay its seed; -v then
 * prints every step.
 */
#include "world.h"

#include "base/log.h"

#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#if defined(__has_feature) && !defined(__SANITIZE_ADDRESS__)
#if __has_feature(address_sanitizer) /* clang */
#define __SANITIZE_ADDRESS__ 1
#endif
#endif

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>

size_t __sanitizer_get_current_allocated_bytes(void); /* gcc has no header for it */
#endif

enum { DEFAULT_SEEDS = 10000, DEFAULT_STEPS = 2000, SECONDS_PER_SEED = 20 };

/* The running seed, for signal handlers and the sanitizer's callback. */
static struct {
    uint64_t seed;
    size_t steps, passed;
} running;

void sim_trace(const struct world *w, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    printf("%5zu %8llu %*s", w->step, (unsigned long long)(w->timers.now - 1000 * 1000),
           (int)w->depth * 2, "");
    vprintf(fmt, ap);
    putchar('\n');
    va_end(ap);
}

static void say_how_to_replay(void)
{
    printf("sim --seed %llu", (unsigned long long)running.seed);
    if (running.steps != DEFAULT_STEPS)
        printf(" --steps %zu", running.steps);
    printf("\n%zu passed, 1 failed\n", running.passed);
    fflush(stdout);
}

void sim_fail(const struct world *w, const char *fmt, ...)
{
    va_list ap;

    printf("seed %llu, step %zu: ", (unsigned long long)w->seed, w->step);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    putchar('\n');
    say_how_to_replay();
    _exit(1); /* without a report of leaks */
}

static void on_alarm(int signo)
{
    (void)signo;
    printf("no end within %d s\n", SECONDS_PER_SEED);
    say_how_to_replay();
    _exit(1);
}

#ifdef __SANITIZE_ADDRESS__
/* The trace shows where memory came from, so short stacks are enough and save time. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "malloc_context_size=3:quarantine_size_mb=16";
}
#endif

/*
 * The core logs errors, of which there are many here. The log goes to /dev/null; reports of a
 * sanitizer are still printed, followed by the seed.
 */
static void be_quiet(void)
{
#ifdef __SANITIZE_ADDRESS__
    int report = dup(STDERR_FILENO);

    __sanitizer_set_report_fd((void *)(uintptr_t)report);
    __sanitizer_set_death_callback(say_how_to_replay);
#endif
    if (!freopen("/dev/null", "w", stderr))
        exit(2);
    log_set_level(LOG_ERROR);
    tzset(); /* else the first log line calls it, and the memory it keeps looks like a leak */
}

/* Known only with the sanitizer, else 0. */
static size_t allocated(void)
{
#ifdef __SANITIZE_ADDRESS__
    return __sanitizer_get_current_allocated_bytes();
#else
    return 0;
#endif
}

/* Runs one schedule, which must leave no memory allocated. */
static void run(uint64_t seed, bool verbose)
{
    size_t before = allocated();

    running.seed = seed;
    alarm(SECONDS_PER_SEED);
    world_run(seed, running.steps, verbose);
    alarm(0);
    if (allocated() != before) {
        printf("seed %llu: %zu bytes are left\n", (unsigned long long)seed, allocated() - before);
        say_how_to_replay();
        _exit(1);
    }
    running.passed++;
}

static int usage(void)
{
    fprintf(stderr, "usage: sim [--seed N] [--seeds COUNT] [--steps N] [-v]\n");
    return 2;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"seed", required_argument, NULL, 's'},
                                            {"seeds", required_argument, NULL, 'n'},
                                            {"steps", required_argument, NULL, 't'},
                                            {NULL, 0, NULL, 0}};
    uint64_t first = 1, count = DEFAULT_SEEDS;
    static char output[4096]; /* so that printing allocates nothing */
    bool verbose = false;
    int option;

    running.steps = DEFAULT_STEPS;
    while ((option = getopt_long(argc, argv, "v", options, NULL)) != -1) {
        if (option == 's') {
            first = strtoull(optarg, NULL, 10);
            count = 1;
        } else if (option == 'n') {
            count = strtoull(optarg, NULL, 10);
        } else if (option == 't') {
            running.steps = strtoull(optarg, NULL, 10);
        } else if (option == 'v') {
            verbose = true;
        } else {
            return usage();
        }
    }
    if (optind < argc)
        return usage();
    be_quiet();
    setvbuf(stdout, output, _IOLBF, sizeof output);
    signal(SIGALRM, on_alarm);
    for (uint64_t i = 0; i < count; i++)
        run(first + i, verbose);
    printf("%zu passed, 0 failed\n", running.passed);
    return 0;
}
