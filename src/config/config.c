/* Freeing a configuration, finding a server by its alias, and comparing two servers. Called by the
 * commands, hub/ and the other files of config/. */
#include "config/config.h"

#include "base/mem.h"
#include "config/schema.h"

void config_free(struct config *c)
{
    if (!c)
        return;
    arena_fini(&c->arena);
    mem_free(c);
}

struct config_server *config_server(const struct config *c, const char *alias)
{
    for (size_t i = 0; i < c->servers.n; i++)
        if (strcmp(c->servers.items[i].alias, alias) == 0)
            return &c->servers.items[i];
    return NULL;
}

bool config_server_equal(const struct config_server *a, const struct config_server *b)
{
    return strcmp(a->alias, b->alias) == 0 && schema_equal("servers.*", a, b);
}
