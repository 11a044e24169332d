/*
 * The small program `rialto-shim`, which `rialto stdio` becomes:
 *     rialto-shim SOCKET QUERY LOG COMMAND...
 * with the daemon's control socket, the query of /attach, the log of a daemon that is started, and
 * the command that starts it.
 */
#include "cmd/shim.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    if (argc < 5) {
        fputs("rialto-shim: this is a part of 'rialto stdio'; run that\n", stderr);
        return 2;
    }
    return shim_run(&(struct shim_options){
        .socket = argv[1], .query = argv[2], .log = argv[3], .daemon = argv + 4});
}
