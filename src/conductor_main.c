/*
 * The small program `conductor`: does `conductor mcp PORT` by itself, because agents start one for
 * each server, and executes `rialto conductor`, from the same folder, for everything else.
 */
#include "cmd/conductor_mcp.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    char self[PATH_MAX], rialto[PATH_MAX];

    if (argc == 3 && strcmp(argv[1], "mcp") == 0)
        return conductor_mcp(argv[2]);
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    const char *slash = n > 0 ? memrchr(self, '/', (size_t)n) : NULL;
    if (!slash)
        return 1;
    char **args = calloc((size_t)argc + 2, sizeof *args);
    if (!args)
        return 1;
    snprintf(rialto, sizeof rialto, "%.*srialto", (int)(slash + 1 - self), self);
    args[0] = rialto;
    args[1] = "conductor";
    for (int i = 1; i < argc; i++)
        args[i + 1] = argv[i];
    execv(rialto, args);
    fprintf(stderr, "conductor: cannot start %s: %s\n", rialto, strerror(errno));
    free(args);
    return 1;
}
