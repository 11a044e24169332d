/*
 * Runs a program on a terminal of its own: terminal COLUMNS ROWS PROGRAM ARGS...
 *
 * The program's output goes to our standard output, our standard input is typed to the program,
 * except that a line "resize COLUMNS ROWS" changes the size. We exit with the program's status.
 * Links nothing of Rialto.
 */
#include <poll.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void put(int fd, const char *bytes, ssize_t n)
{
    while (n > 0) {
        ssize_t w = write(fd, bytes, (size_t)n);
        if (w <= 0)
            return;
        bytes += w;
        n -= w;
    }
}

static unsigned short number(const char *text, char **end)
{
    return (unsigned short)strtoul(text, end, 10);
}

/* Types the input to the program, or handles a resize line. */
static void take_input(int terminal, char *text, ssize_t n)
{
    static const char order[] = "resize ";

    if (strncmp(text, order, strlen(order)) == 0) {
        char *rest = text + strlen(order);
        struct winsize size = {.ws_col = number(rest, &rest)};
        size.ws_row = number(rest, &rest);
        ioctl(terminal, TIOCSWINSZ, &size);
    } else {
        put(terminal, text, n);
    }
}

int main(int argc, char **argv)
{
    char bytes[65536];
    int terminal, status = 0;

    if (argc < 4)
        return 2;
    struct winsize size = {.ws_col = number(argv[1], NULL), .ws_row = number(argv[2], NULL)};
    pid_t pid = forkpty(&terminal, NULL, NULL, &size);
    if (pid < 0)
        return 2;
    if (pid == 0) {
        execvp(argv[3], argv + 3);
        _exit(127);
    }
    struct pollfd ends[] = {{.fd = terminal, .events = POLLIN},
                            {.fd = STDIN_FILENO, .events = POLLIN}};
    while (poll(ends, 2, -1) > 0) {
        if (ends[0].revents) {
            ssize_t n = read(terminal, bytes, sizeof bytes);
            if (n <= 0)
                break; /* the program has ended */
            put(STDOUT_FILENO, bytes, n);
        }
        if (ends[1].revents) {
            ssize_t n = read(STDIN_FILENO, bytes, sizeof bytes - 1);
            bytes[n > 0 ? n : 0] = '\0';
            if (n > 0)
                take_input(terminal, bytes, n);
            else
                ends[1].fd = -1;
        }
    }
    close(terminal);
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
