/* The table of host programs, and where their files are on this machine. Called by
 * cmd/host_setup*.c, cmd/setup.c and cmd/import.c; import*.c read the table. */
#include "config/host_program.h"

#include "base/mem.h"
#include "config/load.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define STD   "{\"command\": \"@\", \"args\": [\"stdio\"]}"
#define TYPED "{\"type\": \"stdio\", \"command\": \"@\", \"args\": [\"stdio\"]}"

#define MCP_SERVERS                                                                                \
    {                                                                                              \
        .keys = {"mcpServers"}, .keeps_empty = true                                                \
    }

const struct host_program host_programs[] = {
    {.name = "claude-desktop",
     .title = "Claude Desktop",
     .paths = {"$X/Claude//claude_desktop_config.json", "$X/claude//claude_desktop_config.json"},
     .place = MCP_SERVERS,
     .entry = STD,
     .variables = HOST_NO_VARIABLES,
     .then = "quit it and open it again"},
    {.name = "claude-code",
     .title = "Claude Code",
     .paths = {"$CLAUDE_CONFIG_DIR/.claude.json", "~/.claude.json"},
     .program = "claude",
     .folder = "~/.claude",
     .place = MCP_SERVERS,
     .projects = true,
     .entry = TYPED,
     .unit = "ms",
     .then = "end its sessions first: they write the file as well; then start it"},
    {.name = "cursor",
     .title = "Cursor",
     .paths = {"~/.cursor//mcp.json"},
     .program = "cursor",
     .place = MCP_SERVERS,
     .entry = STD,
     .then = "switch rialto on in its settings, or reload its window"},
    {.name = "vscode",
     .title = "VS Code",
     .paths = {"$X/Code/User//mcp.json", "$X/Code - Insiders/User//mcp.json",
               "$X/VSCodium/User//mcp.json"},
     .place = {.keys = {"servers"}, .keeps_empty = true},
     .entry = TYPED,
     .then = "start the server rialto in its list of MCP servers"},
    {.name = "windsurf",
     .title = "Windsurf",
     .paths = {"~/.codeium/windsurf//mcp_config.json"},
     .program = "windsurf",
     .place = MCP_SERVERS,
     .entry = STD,
     .then = "refresh its list of MCP servers"},
    {.name = "zed",
     .title = "Zed",
     .paths = {"$FLATPAK_XDG_CONFIG_HOME/zed//settings.json", "$X/zed//settings.json"},
     .program = "zed",
     .place = {.keys = {"context_servers"}, .keeps_empty = true},
     .entry = "{\"command\": \"@\", \"args\": [\"stdio\"], \"env\": {}}",
     .unit = "s",
     .variables = HOST_NO_VARIABLES,
     .then = "it notices by itself"},
    {.name = "codex",
     .title = "Codex",
     .paths = {"$CODEX_HOME//config.toml", "~/.codex//config.toml"},
     .program = "codex",
     .format = EDIT_TOML,
     .place = {.keys = {"mcp_servers"}}, /* in TOML, the table goes with its last entry */
     .entry = STD,
     .unit = "s",
     .variables = HOST_NO_VARIABLES,
     .then = "start it again"},
    {.name = "gemini",
     .title = "Gemini CLI",
     .paths = {"~/.gemini//settings.json"},
     .program = "gemini",
     .place = MCP_SERVERS,
     .entry = STD,
     .unit = "ms",
     .variables = HOST_BARE,
     .then = "type /mcp reload"},
    {.name = "opencode",
     .title = "opencode",
     .paths = {"$OPENCODE_CONFIG", "$X/opencode//opencode.json", "$X/opencode/opencode.jsonc"},
     .program = "opencode",
     .place = {.keys = {"mcp"}, .keeps_empty = true},
     .entry = "{\"type\": \"local\", \"command\": [\"@\", \"stdio\"], \"enabled\": true}",
     .unit = "ms",
     .variables = HOST_ENV_BRACES,
     .then = "start it again"},
    {.name = "goose",
     .title = "Goose",
     .paths = {"$X/goose//config.yaml"},
     .program = "goose",
     .format = EDIT_YAML,
     .place = {.keys = {"extensions"}, .keeps_empty = true},
     .entry = "{\"name\": \"rialto\", \"description\": \"\", \"enabled\": true, \"type\": "
              "\"stdio\", \"cmd\": \"@\", \"args\": [\"stdio\"], \"envs\": {}, \"env_keys\": [], "
              "\"timeout\": 300}",
     .unit = "s",
     .variables = HOST_BARE_IN_URL,
     .then = "begin a new session"},
    {.name = "continue",
     .title = "Continue",
     .paths = {"~/.continue//config.yaml"},
     .format = EDIT_YAML,
     .place = {.keys = {"mcpServers"}, .list = true, .keeps_empty = true},
     .entry = "{\"name\": \"rialto\", \"command\": \"@\", \"args\": [\"stdio\"]}",
     .unit = "ms",
     .variables = HOST_SECRETS,
     .then = "it notices by itself"},
    {.name = "copilot",
     .title = "GitHub Copilot CLI",
     .paths = {"~/.copilot//mcp-config.json"},
     .program = "copilot",
     .place = MCP_SERVERS,
     .entry = "{\"type\": \"local\", \"command\": \"@\", \"args\": [\"stdio\"], \"tools\": "
              "[\"*\"]}",
     .unit = "ms",
     .then = "type /mcp reload"},
    {.name = "cline",
     .title = "Cline",
     .paths = {"$CLINE_DIR//data/settings/cline_mcp_settings.json",
               "~/.cline//data/settings/cline_mcp_settings.json", "~/.cline/mcp.json",
               "$X/Code/User/globalStorage/saoudrizwan.claude-dev//settings/"
               "cline_mcp_settings.json"},
     .place = MCP_SERVERS,
     .entry = TYPED,
     .unit = "s",
     .then = "it notices by itself"},
    {.name = "lmstudio",
     .title = "LM Studio",
     .paths = {"~/.lmstudio//mcp.json", "~/.cache/lm-studio//mcp.json"},
     .place = MCP_SERVERS,
     .entry = STD,
     .then = "it notices by itself"},
    {.name = "jetbrains",
     .title = "JetBrains Junie",
     .paths = {"~/.junie//mcp/mcp.json"},
     .place = MCP_SERVERS,
     .entry = STD,
     .then = "for AI Assistant, paste into Settings, Tools, AI Assistant, MCP: "
             "{\"mcpServers\": {\"rialto\": " STD "}}"},
};
const size_t host_programs_n = COUNT_OF(host_programs);

const struct host_program *host_program_find(const char *name)
{
    for (size_t i = 0; i < host_programs_n; i++)
        if (strcmp(host_programs[i].name, name) == 0)
            return &host_programs[i];
    return NULL;
}

/* --- where its files are --- */

/* Append the folder that a path begins with, and return the rest; NULL: its variable is not set. */
static const char *put_base(struct buf *out, const char *path)
{
    const char *home = config_env("HOME"), *config = config_env("XDG_CONFIG_HOME");
    size_t n = strcspn(path, "/");
    BUF_SCOPED name = {0};

    if (strncmp(path, "~/", 2) == 0 && home) {
        buf_str(out, home);
    } else if (strncmp(path, "$X/", 3) == 0 && (home || config)) {
        buf_str(out, config && config[0] == '/' ? config : home ? home : "");
        if (!config || config[0] != '/')
            buf_str(out, "/.config");
    } else if (path[0] == '$' && strncmp(path, "$X/", 3) != 0) {
        buf_bytes(&name, path + 1, n - 1);
        const char *value = config_env(buf_cstr(&name));
        if (!value)
            return NULL;
        buf_str(out, value);
    } else {
        return NULL;
    }
    return path + n;
}

static bool is_folder(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

char *host_program_command(const char *name)
{
    struct span path = span_str(getenv("PATH"));

    while (path.n) {
        struct span folder = span_cut(path, 0, span_find(path, ':'));
        BUF_SCOPED file = {0};
        struct stat st;
        buf_printf(&file, SPAN_FMT "/%s", SPAN_ARG(folder), name);
        if (folder.n && folder.p[0] == '/' && access(buf_cstr(&file), X_OK) == 0 &&
            stat(buf_cstr(&file), &st) == 0 && S_ISREG(st.st_mode))
            return buf_take(&file);
        path = span_from(path, folder.n + 1);
    }
    return NULL;
}

/* Is the host installed, as far as its program or its folder tell? */
static bool is_installed(const struct host_program *h)
{
    BUF_SCOPED folder = {0};
    char *program = h->program ? host_program_command(h->program) : NULL;
    const char *rest = h->folder ? put_base(&folder, h->folder) : NULL;
    bool found = program != NULL;

    if (rest)
        buf_str(&folder, rest);
    found |= rest && is_folder(buf_cstr(&folder));
    mem_free(program);
    return found;
}

/* Is the first path below a variable of the host that is set? Then the other paths do not count. */
static bool is_chosen(const struct host_program *h)
{
    BUF_SCOPED base = {0};

    return h->paths[0][0] == '$' && strncmp(h->paths[0], "$X/", 3) != 0 &&
           put_base(&base, h->paths[0]);
}

char *host_program_path(const struct host_program *h, size_t n, bool *installed)
{
    size_t last = is_chosen(h) ? 1 : HOST_PATHS;
    BUF_SCOPED path = {0};

    *installed = is_installed(h);
    for (size_t at = 0; at < last && h->paths[at]; at++) {
        path.n = 0;
        const char *rest = put_base(&path, h->paths[at]);
        const char *cut = rest ? strstr(rest, "//") : NULL;
        if (!rest || n--)
            continue;
        if (cut) {
            buf_bytes(&path, rest, (size_t)(cut - rest));
            *installed |= is_folder(buf_cstr(&path));
            rest = cut + 1;
        }
        buf_str(&path, rest);
        return buf_take(&path);
    }
    return NULL;
}

/* --- whose file it is --- */

/* Does `path` end like `theirs`, a path of a host, without its first part (~ or a variable)? */
static bool ends_like(struct span path, const char *theirs)
{
    BUF_SCOPED end = {0};

    for (const char *p = theirs + strcspn(theirs, "/"); *p; p++)
        if (p[0] != '/' || p[1] != '/')
            buf_char(&end, *p);
    /* "/config.toml" alone does not identify a host. */
    bool telling = end.n > 1 && (end.p[1] == '.' || memchr(end.p + 1, '/', end.n - 1));
    return telling && path.n >= end.n && span_eq(span_from(path, path.n - end.n), buf_view(&end));
}

const struct host_program *host_program_of_path(const char *path)
{
    BUF_SCOPED whole = {0};

    buf_printf(&whole, "%s%s", path[0] == '/' ? "" : "/", path);
    for (size_t i = 0; i < host_programs_n; i++)
        for (size_t n = 0; n < HOST_PATHS && host_programs[i].paths[n]; n++)
            if (ends_like(buf_view(&whole), host_programs[i].paths[n]))
                return &host_programs[i];
    return NULL;
}
