/* Tables of advice for known error texts and missing programs, and small parsers: file arguments,
 * NO_PROXY. Called by daemon.c, machine.c, program.c and start.c of this folder. */
#include "base/mem.h"
#include "cmd/doctor/doctor.h"

/* The first row that matches counts. Reasons are texts of ours, of libcurl, or of the program. */
static const struct {
    const char *part; /* of the reason; case is ignored */
    const char *advice;
} advices[] = {
    {"its sandbox (", "'rialto sandbox NAME' shows what it may do, and with --learn what it needs"},
    /* output of programs that exit */
    {"Cannot find module", "a file or package that it needs is missing: check the path in "
                           "`args`, and run npm install in its folder"},
    {"ERR_MODULE_NOT_FOUND", "a package that it needs is not installed: run npm install in its "
                             "folder"},
    {"No module named", "a Python package is not installed for this python: name the python "
                        "of its virtual environment in `command`, or install it there"},
    {"npm ERR! 404", "there is no package of that name: check `args`"},
    {"npm error 404", "there is no package of that name: check `args`"},
    {"ENOTFOUND registry", "npx cannot reach its registry: check the network, or install the "
                           "package and name its program in `command`"},
    {"docker daemon", "check that docker runs (systemctl status docker) and that this user may use "
                      "it (group docker)"},
    {"EADDRINUSE", "another program has the port that it wants; is a second copy running?"},
    {"SyntaxError", "its own program cannot be read: often the interpreter is too old for it"},
    {"Permission denied", "it may not read or write something that it needs: check the owner and "
                          "permissions of its files"},
    {"EACCES", "it may not read or write something that it needs: check the owner and "
               "permissions of its files"},
    {"Usage:", "it rejects its arguments: check `args`"},
    /* names and connections */
    {"no host of that name", "check the spelling of the host in `url`; 'getent hosts HOST' tells "
                             "whether this machine finds it"},
    {"no name server", "the name server of this machine does not answer: check the network and "
                       "/etc/resolv.conf"},
    {"no proxy of that name", "check the proxy in http_proxy, https_proxy or all_proxy"},
    {"Connection refused", "nothing listens there: start that server, or correct host and port in "
                           "`url`"},
    {"No route to host", "that machine cannot be reached from here: check the network and `url`"},
    {"Network is unreachable", "this machine has no route to it: check its network"},
    {"no connection within", "nothing answers there: check host and port in `url`, and firewalls "
                             "in between"},
    /* TLS */
    {"certificate has expired", "the server needs a new certificate; if it has one, check the "
                                "clock of this machine. `ca` does not help"},
    {"not yet valid",
     "check the clock of this machine: by its clock, the certificate is not valid yet"},
    {"not valid yet",
     "check the clock of this machine: by its clock, the certificate is not valid yet"},
    {"alternative certificate subject name", "the certificate is for another host: write the name "
                                             "it was made for in `url`. `ca` does not help"},
    {"not match", "the certificate is for another host: write the name it was made for in `url`. "
                  "`ca` does not help"},
    {"self-signed", "to trust it, name the file of that certificate, or of the authority that "
                    "signed it, in this server's `ca`"},
    {"self signed", "to trust it, name the file of that certificate, or of the authority that "
                    "signed it, in this server's `ca`"},
    {"signed by itself", "to trust it, name the file of that certificate in this server's `ca`"},
    {"issuer certificate", "its authority is not known here: name the file of that authority's "
                           "certificate (PEM) in this server's `ca`"},
    {"unknown authority", "name the file of that authority's certificate (PEM) in this server's "
                          "`ca`"},
    {"wrong version number", "no TLS is spoken there: write http:// (or ws://) in `url`"},
    {"does not speak TLS", "no TLS is spoken there: write http:// (or ws://) in `url`"},
    {"CAfile", "the file in this server's `ca` cannot be used: it takes certificates in PEM form"},
    /* answers */
    {"refuses the token of", "renew that secret; it is read again by itself"},
    {"has no token", "put the token into a file of that name in secrets.directory, let "
                     "secrets.command print it, or set the variable"},
    {"needs a sign-in", "'rialto login NAME' does it"},
    {"there is no token for it", "check `auth` of its entry: the authorization server does not let "
                                 "us in"},
    {"HTTP 401", "give it a token: headers: {Authorization: \"Bearer ${NAME}\"}"},
    {"HTTP 403", "the token does not allow this: check the token in `headers` and its rights"},
    {"refused the WebSocket: 401", "give it a token: headers: {Authorization: \"Bearer ${NAME}\"}"},
    {"refused the WebSocket: 404", "check the path in `url`"},
    {"HTTP 404", "the path in `url` is wrong: most servers are at /mcp, older ones at /sse"},
    {"HTTP 405", "the path in `url` takes no messages: most servers are at /mcp, older ones at "
                 "/sse"},
    {"HTTP 502", "a proxy in front of it answers, but the server does not: start the server"},
    {"HTTP 503", "a proxy in front of it answers, but the server does not: start the server"},
    {"HTTP 5", "the server itself failed: its own log says why"},
    {"redirects to another host", "write the address that it redirects to in `url`: credentials "
                                  "are not taken to other hosts"},
    {"answer is not JSON",
     "what answers there is not an MCP server, perhaps a web page: check `url`"},
    /* starting */
    {"was not ready within", "it may need longer the first time (npx and uvx download): start it "
                             "once by hand, or raise `start_timeout`; or it is not an MCP server "
                             "on stdio"},
    {"speaks protocol version", "it is older or newer than anything known here: update it, or "
                                "Rialto"},
    {"does not speak 2026-07-28", "write `era: auto` or `era: legacy` in its entry"},
    {"refused initialize", "is it an MCP server at all? Check `command` and `args`, or `url`"},
    {"cannot start",
     "check `command`. If the file is there, what it needs to run is not: it may be "
     "built for another kind of machine or C library ('file' and 'ldd' tell)"},
    {"exited with 0", "it ended by itself: it may not be an MCP server on stdio. Check `args`"},
    {"killed by SIGKILL", "something killed it, perhaps because memory ran out: dmesg shows that"},
    {"killed by SIG", "it crashed: start it by hand to see more"},
    {"exited with 126", "a file that it starts is not executable"},
    {"exited with 127", "a program that it starts is not in its PATH"},
    {"exited with", "start it by hand, with the same arguments, to see more"},
};

const char *doctor_advice(struct span why)
{
    for (size_t i = 0; i < COUNT_OF(advices); i++)
        if (span_has_nocase(why, span_str(advices[i].part)))
            return advices[i].advice;
    return NULL;
}

const char *doctor_package(struct span program)
{
    static const struct {
        const char *program, *how;
    } rows[] = {
        {"npx", "apt install npm"},
        {"npm", "apt install npm"},
        {"node", "apt install nodejs"},
        {"nodejs", "apt install nodejs"},
        {"uvx", "it comes with uv, which is not in Debian: apt install pipx, then pipx install uv"},
        {"uv", "it is not in Debian: apt install pipx, then pipx install uv"},
        {"pipx", "apt install pipx"},
        {"python", "apt install python-is-python3, or write python3"},
        {"python3", "apt install python3"},
        {"pip", "apt install python3-pip"},
        {"docker", "apt install docker.io"},
        {"podman", "apt install podman"},
        {"java", "apt install default-jre-headless"},
        {"go", "apt install golang-go"},
        {"ruby", "apt install ruby"},
        {"php", "apt install php-cli"},
        {"perl", "apt install perl"},
        {"bash", "apt install bash"},
        {"git", "apt install git"},
        {"deno", "it is not in Debian: see deno.com, or run the server with node"},
        {"bun", "it is not in Debian: see bun.sh, or run the server with node"},
        {"bunx", "it comes with bun, which is not in Debian: see bun.sh, or write npx"},
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (span_is(program, rows[i].program))
            return rows[i].how;
    return NULL;
}

/* --- arguments --- */

bool doctor_names_file(struct span argument)
{
    static const char *const endings[] = {"*.js", "*.mjs", "*.cjs", "*.ts",
                                          "*.py", "*.rb",  "*.jar", "*.sh"};

    if (argument.n && (argument.p[0] == '-' || argument.p[0] == '@'))
        return false;
    /* no files: URLs, volumes of docker, variables, and whole programs in one argument */
    if (span_find(argument, ':') < argument.n || span_has_nocase(argument, SPAN("${")) ||
        span_find(argument, ' ') < argument.n)
        return false;
    if (span_starts(argument, SPAN("./")) || span_starts(argument, SPAN("../")) ||
        span_starts(argument, SPAN("~/")))
        return true;
    for (size_t i = 0; i < COUNT_OF(endings); i++)
        if (span_glob(span_str(endings[i]), argument))
            return true;
    return false;
}

bool doctor_list_has(struct span list, struct span host)
{
    while (list.n) {
        struct span entry = span_cut(list, 0, span_find(list, ','));
        list = span_from(list, entry.n + 1);
        entry = span_trim(entry);
        if (entry.n && entry.p[0] == '.')
            entry = span_from(entry, 1);
        bool ends = entry.n && host.n > entry.n && host.p[host.n - entry.n - 1] == '.' &&
                    span_eq_nocase(span_from(host, host.n - entry.n), entry);
        if (ends || span_is(entry, "*") || (entry.n && span_eq_nocase(entry, host)))
            return true;
    }
    return false;
}
