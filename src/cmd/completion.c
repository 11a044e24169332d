/*
 * The command `rialto completion`: completion scripts for shells, made from the table of commands.
 * Called through that table (cmd/table.c).
 *
 * Lower-case words in a command's usage are literal, and so are the words between bars in an
 * option's argument; names in capitals stand for a value.
 */
#include "base/mem.h"
#include "cmd/args.h"
#include "cmd/candidates.h"
#include "cmd/commands.h"

/* --- reading the table --- */

enum takes { TAKES_NOTHING, TAKES_ANYTHING, TAKES_FILE, TAKES_FOLDER, TAKES_WORD };

static enum takes takes(const struct cmd_option *o)
{
    static const struct {
        const char *arg;
        enum takes takes;
    } rows[] = {
        {"FILE", TAKES_FILE}, {"CONFIG", TAKES_FILE}, {"OUT", TAKES_FILE}, {"DIR", TAKES_FOLDER}};

    if (!o->arg || o->arg[0] == '[')
        return TAKES_NOTHING;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (strcmp(o->arg, rows[i].arg) == 0)
            return rows[i].takes;
    return strchr(o->arg, '|') ? TAKES_WORD : TAKES_ANYTHING;
}

/* Append the words that may follow the command's name, with blanks between them. */
static void put_first_words(struct buf *out, const struct command *c)
{
    bool begins = true;
    size_t from = out->n;

    if (strstr(c->usage, "COMMAND"))
        for (size_t i = 0; commands[i]; i++)
            buf_printf(out, "%s%s", out->n > from ? " " : "", commands[i]->name);
    for (const char *p = c->usage; *p;) {
        size_t n = strspn(p, "abcdefghijklmnopqrstuvwxyz-");
        if (n && begins)
            buf_printf(out, "%s%.*s", out->n > from ? " " : "", (int)n, p);
        begins = n == 0 && (*p == '|' || *p == '[' || (begins && *p == ' '));
        p += n ? n : 1;
    }
}

/* "a|b" as "a b". */
static void put_choices(struct buf *out, const char *arg)
{
    for (; *arg; arg++)
        buf_char(out, *arg == '|' ? ' ' : *arg);
}

/* Text to be put between single quotes; characters in `special` get a backslash. */
static void put_quoted(struct buf *out, const char *text, const char *special)
{
    for (; *text; text++) {
        if (strchr(special, *text))
            buf_char(out, '\\');
        if (*text == '\'' && !strchr(special, '\''))
            buf_str(out, "'\\''");
        else
            buf_char(out, *text);
    }
}

/* --- bash --- */

static void put_bash_option(struct buf *out, const struct command *c, const struct cmd_option *o)
{
    enum takes what = takes(o);

    if (what == TAKES_NOTHING)
        return;
    buf_printf(out, "    %s:--%s", c->name, o->name);
    if (o->id < 256)
        buf_printf(out, " | %s:-%c", c->name, o->id);
    buf_str(out, ") ");
    if (what == TAKES_WORD) {
        buf_str(out, "words='");
        put_choices(out, o->arg);
        buf_str(out, "' ;;\n");
    } else if (what == TAKES_FOLDER) {
        buf_str(out, "mapfile -t COMPREPLY < <(compgen -d -- \"$cur\"); return ;;\n");
    } else {
        buf_str(out, what == TAKES_FILE ? "return ;;\n" : "compopt +o default; return ;;\n");
    }
}

static void put_bash_command(struct buf *out, const struct command *c)
{
    buf_printf(out, "    %s)\n        first='", c->name);
    put_first_words(out, c);
    buf_str(out, "' options='");
    for (const struct cmd_option *o = c->options; o->name; o++)
        buf_printf(out, "--%s ", o->name);
    buf_printf(out, "--help'%s ;;\n", candidates_any(c) ? " names=1" : "");
}

static void put_bash(struct buf *out)
{
    buf_str(out, "# bash completion of rialto, by: rialto completion bash\n"
                 "_rialto() {\n"
                 "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
                 "    local command='' words='' first='' options='' names='' from=1 word\n"
                 "    COMPREPLY=()\n"
                 "    if [[ ${COMP_WORDS[0]##*/} == conductor ]]; then\n"
                 "        command=conductor\n"
                 "    elif ((COMP_CWORD > 1)); then\n"
                 "        command=${COMP_WORDS[1]} from=2\n"
                 "    fi\n"
                 "    case $command in\n"
                 "    '')\n        first='");
    for (size_t i = 0; commands[i]; i++)
        buf_printf(out, "%s%s", i ? " " : "", commands[i]->name);
    buf_str(out, "' options='--help --version' ;;\n");
    for (size_t i = 0; commands[i]; i++)
        put_bash_command(out, commands[i]);
    buf_str(out, "    esac\n    case $command:$prev in\n");
    for (size_t i = 0; commands[i]; i++)
        for (const struct cmd_option *o = commands[i]->options; o->name; o++)
            put_bash_option(out, commands[i], o);
    buf_str(out, "    *)\n"
                 "        for word in \"${COMP_WORDS[@]:from:COMP_CWORD-from}\"; do\n"
                 "            [[ \" $first \" != *\" $word \"* ]] || first=''\n"
                 "        done\n"
                 "        if [[ $cur == -* ]]; then\n"
                 "            words=$options\n"
                 "        elif [[ $names ]]; then\n"
                 "            words=$(\"${COMP_WORDS[0]}\" completion names -- "
                 "\"${COMP_WORDS[@]:1:COMP_CWORD-1}\" 2>/dev/null)\n"
                 "        else\n"
                 "            words=$first\n"
                 "        fi ;;\n"
                 "    esac\n"
                 "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
                 "}\n"
                 "complete -o default -F _rialto rialto conductor\n");
}

/* --- zsh --- */

static void put_zsh_option(struct buf *out, const struct cmd_option *o)
{
    static const char *const actions[] = {
        [TAKES_ANYTHING] = " ", [TAKES_FILE] = "_files", [TAKES_FOLDER] = "_files -/"};
    enum takes what = takes(o);

    buf_str(out, " \\\n        ");
    if (o->id < 256)
        buf_printf(out, "'(-%c --%s)'{-%c,--%s}'[", o->id, o->name, o->id, o->name);
    else
        buf_printf(out, "'--%s[", o->name);
    put_quoted(out, o->help, "[]:");
    buf_char(out, ']');
    if (what == TAKES_WORD) {
        buf_str(out, ":word:(");
        put_choices(out, o->arg);
        buf_char(out, ')');
    } else if (what != TAKES_NOTHING) {
        buf_printf(out, ":%s:%s", o->arg, actions[what]);
    }
    buf_char(out, '\'');
}

static void put_zsh_command(struct buf *out, const struct command *c)
{
    BUF_SCOPED first = {0};

    put_first_words(&first, c);
    buf_printf(out, "_rialto_%s() {\n    _arguments -s", c->name);
    for (const struct cmd_option *o = c->options; o->name; o++)
        put_zsh_option(out, o);
    buf_str(out, " \\\n        '(-h --help)'{-h,--help}'[show its help]'");
    if (first.n)
        buf_printf(out, " \\\n        '1:word:(%s)'", buf_cstr(&first));
    buf_printf(out, " \\\n        '*:%s'\n}\n",
               candidates_any(c) ? "name:_rialto_names" : "argument:_files");
}

static void put_zsh(struct buf *out)
{
    buf_str(out, "#compdef rialto conductor\n"
                 "# zsh completion of rialto, by: rialto completion zsh\n"
                 "_rialto_names() {\n"
                 "    local -a names\n"
                 "    names=(${(f)\"$(rialto completion names -- ${words[1,CURRENT-1]} "
                 "2>/dev/null)\"})\n"
                 "    compadd -a names\n"
                 "}\n");
    for (size_t i = 0; commands[i]; i++)
        put_zsh_command(out, commands[i]);
    buf_str(out, "_rialto() {\n"
                 "    local -a commands\n"
                 "    local curcontext=$curcontext state line\n"
                 "    if [[ $service == conductor ]]; then\n"
                 "        _rialto_conductor\n"
                 "        return\n"
                 "    fi\n"
                 "    commands=(\n");
    for (size_t i = 0; commands[i]; i++) {
        buf_printf(out, "        '%s:", commands[i]->name);
        put_quoted(out, commands[i]->summary, ":");
        buf_str(out, "'\n");
    }
    buf_str(out, "    )\n"
                 "    _arguments -C '1: :->command' '*:: :->argument'\n"
                 "    case $state in\n"
                 "    command) _describe command commands ;;\n"
                 "    argument) ((! $+functions[_rialto_$words[1]])) || _rialto_$words[1] ;;\n"
                 "    esac\n"
                 "}\n"
                 "_rialto \"$@\"\n");
}

/* --- fish --- */

static void put_fish_command(struct buf *out, const char *program, const char *when,
                             const struct command *c)
{
    BUF_SCOPED first = {0};

    put_first_words(&first, c);
    if (first.n)
        buf_printf(out, "complete -c %s -n '%snot __fish_seen_subcommand_from %s' -f -a '%s'\n",
                   program, when, buf_cstr(&first), buf_cstr(&first));
    if (candidates_any(c))
        buf_printf(out,
                   "complete -c %s -n '%strue' -f -a '(rialto completion names -- "
                   "(commandline -opc)[2..-1] 2>/dev/null)'\n",
                   program, when);
    for (const struct cmd_option *o = c->options; o->name; o++) {
        enum takes what = takes(o);
        buf_printf(out, "complete -c %s -n '%strue' -l %s", program, when, o->name);
        if (o->id < 256)
            buf_printf(out, " -s %c", o->id);
        if (what == TAKES_WORD) {
            buf_str(out, " -x -a '");
            put_choices(out, o->arg);
            buf_char(out, '\'');
        } else if (what != TAKES_NOTHING) {
            buf_str(out, what == TAKES_FILE     ? " -r -F"
                         : what == TAKES_FOLDER ? " -x -a '(__fish_complete_directories)'"
                                                : " -x");
        }
        buf_str(out, " -d '");
        put_quoted(out, o->help, "\\'");
        buf_str(out, "'\n");
    }
}

static void put_fish(struct buf *out)
{
    buf_str(out, "# fish completion of rialto, by: rialto completion fish\n");
    for (size_t i = 0; commands[i]; i++) {
        BUF_SCOPED when = {0};
        buf_printf(out, "complete -c rialto -n __fish_use_subcommand -f -a %s -d '",
                   commands[i]->name);
        put_quoted(out, commands[i]->summary, "\\'");
        buf_str(out, "'\n");
        buf_printf(&when, "__fish_seen_subcommand_from %s; and ", commands[i]->name);
        put_fish_command(out, "rialto", buf_cstr(&when), commands[i]);
    }
    put_fish_command(out, "conductor", "", command_find("conductor"));
}

/* --- the command --- */

static const struct {
    const char *name;
    void (*put)(struct buf *out);
} shells[] = {{"bash", put_bash}, {"zsh", put_zsh}, {"fish", put_fish}};

static int run(const struct command *self, int argc, char **argv)
{
    struct args a = args_begin(self, argc, argv);

    if (args_next(&a) < 0)
        return a.exit_code;
    if (a.rest_n && strcmp(a.rest[0], "names") == 0) {
        struct buf out = {0};
        candidates_put(&out, &a, a.rest + 1, a.rest_n - 1);
        cmd_print(&out);
        return CMD_FINE;
    }
    if (args_expect(&a, 1))
        return CMD_USAGE;
    for (size_t i = 0; a.rest_n && i < COUNT_OF(shells); i++) {
        struct buf out = {0};
        if (strcmp(a.rest[0], shells[i].name) != 0)
            continue;
        shells[i].put(&out);
        cmd_print(&out);
        return CMD_FINE;
    }
    cmd_error(self, a.rest_n ? "there is no completion for '%s'" : "for which shell?%s",
              a.rest_n ? a.rest[0] : "");
    cmd_hint("there is one for bash, zsh and fish: rialto completion bash");
    return CMD_USAGE;
}

static const struct cmd_option options[] = {{NULL}};

const struct command command_completion = {
    .name = "completion",
    .summary = "Print a script that lets a shell complete command lines",
    .usage = "bash|zsh|fish",
    .about = "'make install' puts all three where shells look for them. To try one at once:\n"
             "'. <(rialto completion bash)' or 'rialto completion fish | source'. The scripts\n"
             "ask 'rialto completion names -- COMMAND...' for names of servers and tools, which\n"
             "starts no server: it knows them from the daemon, or from the last time they ran.",
    .options = options,
    .run = run,
};
