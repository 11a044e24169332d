/* Reading the configuration together with the tokens of the state folder. Called by cmd/args.c,
 * hub/graph/follow.c and cmd/token.c. */
#include "hub/auth/token_file.h"

#include "base/file.h"
#include "base/mem.h"
#include "hub/places.h"

#include <errno.h>
#include <libgen.h>
#include <unistd.h>

char *token_file_path(void)
{
    return place_path(PLACE_STATE, "tokens.yaml");
}

bool token_file_exists(void)
{
    char *path = place_name(PLACE_STATE, "tokens.yaml");
    bool exists = path && access(path, F_OK) == 0;

    mem_free(path);
    return exists;
}

/* Is this user not allowed to enter the file's folder? */
static bool is_closed(const char *file)
{
    char *copy = mem_str(file);
    bool closed = access(dirname(copy), X_OK) < 0;

    mem_free(copy);
    return closed;
}

struct config *token_file_load(const char *path, struct problems *problems)
{
    char *file = place_name(PLACE_STATE, "tokens.yaml");
    BUF_SCOPED tokens = {0};
    int code = file ? file_read(&tokens, file, CONFIG_MAX_BYTES) : -ENOENT;

    /* A file that cannot be read is an error: without its tokens, more callers would be let in than
     * should be. But a folder that this user may not enter has no tokens of this user. */
    if (code && code != -ENOENT && !(code == -EACCES && is_closed(file)))
        problems_add(problems, PROBLEM_ERROR, (struct place){0}, file, "cannot read it: %s",
                     err_name(code));
    mem_free(file);
    return config_load_with(path, buf_view(&tokens), problems);
}
