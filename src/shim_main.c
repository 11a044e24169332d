/*
 * The small program `rialto-shim`, which `rialto stdio` executes:
 *     rialto-shim SOCKET QUERY LOG COMMAND...
 * SOCKET is the daemon's control socket, QUERY the query of /attach, COMMAND starts a daemon when
 * none runs, and LOG is the log file of that daemon.
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
