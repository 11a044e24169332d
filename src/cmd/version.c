/* The command `rialto version`: the version, the compiler, and which libraries can be used. Called
 * through the table of commands (cmd/table.c). */
#include "base/library.h"
#include "cmd/args.h"
#include "cmd/commands.h"
#include "wire/json_out.h"

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

/* The features that need a library, and whether the library can be loaded. */
static void put_libraries(struct buf *out, bool json)
{
    for (enum library id = 0; id < LIBRARIES; id++) {
        struct err missing = {0};
        const char *file = library_file(id);
        bool works = library_load(id, &missing) == 0;

        if (json) {
            json_out_open(out, NULL, '{');
            json_out_str(out, "for", library_what(id));
            json_out_text_or_null(out, "library", span_str(file));
            json_out_text_or_null(out, "missing", span_str(works ? NULL : missing.text));
            buf_char(out, '}');
        } else if (works) {
            buf_printf(out, "%s: %s\n", library_what(id), file ? file : "linked");
        } else {
            buf_printf(out, "missing: %s\n", missing.text);
        }
    }
}

static int run(const struct command *self, int argc, char **argv)
{
    struct args a = args_begin(self, argc, argv);
    BUF_SCOPED out = {0};

    if (args_next(&a) < 0)
        return a.exit_code;
    if (args_expect(&a, 0))
        return CMD_USAGE;
    if (a.json) {
        json_out_open(&out, NULL, '{');
        json_out_str(&out, "version", RIALTO_VERSION);
        json_out_str(&out, "compiler", COMPILER);
        json_out_open(&out, "libraries", '[');
        put_libraries(&out, true);
        buf_str(&out, "]}\n");
    } else {
        buf_printf(&out, "rialto %s\ncompiled with %s\n", RIALTO_VERSION, COMPILER);
        put_libraries(&out, false);
    }
    cmd_print(&out);
    return CMD_FINE;
}

static const struct cmd_option options[] = {ARGS_OPTION_JSON, {NULL}};

const struct command command_version = {
    .name = "version",
    .summary = "Show the version, and what this program can use",
    .usage = "",
    .options = options,
    .run = run,
};
