/*
 * Measures how long a program takes from its start to its "listening on" line:
 *
 *   start RUNS COMMAND [ARGS]     prints "median=MS best=MS" of that many runs
 *
 * The line may be on standard output or standard error; after it the program gets a SIGTERM.
 */
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Milliseconds to the line, or -1 when the program ended without it. */
static double measure(char **argv)
{
    extern char **environ;
    int err[2];
    pid_t pid;
    posix_spawn_file_actions_t files;
    if (pipe(err) != 0 || posix_spawn_file_actions_init(&files) != 0)
        return -1;
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", 0, 0);
    posix_spawn_file_actions_adddup2(&files, err[1], 1);
    posix_spawn_file_actions_adddup2(&files, err[1], 2);
    posix_spawn_file_actions_addclose(&files, err[0]);
    posix_spawn_file_actions_addclose(&files, err[1]);
    double began = now_ms(), took = -1;
    int failed = posix_spawnp(&pid, argv[0], &files, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    close(err[1]);
    if (failed)
        return -1;
    char text[65536];
    size_t n = 0;
    for (ssize_t got; took < 0 && n + 1 < sizeof(text);) {
        got = read(err[0], text + n, sizeof(text) - n - 1);
        if (got <= 0)
            break;
        n += (size_t)got;
        text[n] = 0;
        if (strstr(text, "listening on"))
            took = now_ms() - began;
    }
    kill(pid, SIGTERM);
    waitpid(pid, NULL, 0);
    close(err[0]);
    return took;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    int runs = argc > 2 ? atoi(argv[1]) : 0;
    double took[1000];
    if (runs < 1 || runs > 1000) {
        fprintf(stderr, "usage: start RUNS COMMAND [ARGS]\n");
        return 2;
    }
    for (int i = 0; i < runs; i++) {
        took[i] = measure(argv + 2);
        if (took[i] < 0) {
            fprintf(stderr, "start: %s ended without listening\n", argv[2]);
            return 1;
        }
    }
    qsort(took, (size_t)runs, sizeof(took[0]), by_value);
    printf("median=%.1f best=%.1f\n", took[runs / 2], took[0]);
    return 0;
}
