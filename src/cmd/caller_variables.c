/* The variables that a host's configuration entries may use, read from the environment in which the
 * host runs the shim. Called by shim.c. */
#include "cmd/caller_variables.h"

#include "base/utf8.h"
#include "cmd/project.h"
#include "wire/json_out.h"
#include "wire/rpc.h"

#include <stdio.h>
#include <stdlib.h>

/* The longest value that the daemon accepts (config/variables.h). */
enum { VALUE_MAX = 32 * 1024 };

static bool is_project(struct span name)
{
    return span_is(name, "PROJECT");
}

/* Takes the next name from `rest`; false: there are no more. */
static bool next_name(struct span *rest, struct span *name)
{
    *name = span_cut(*rest, 0, span_find(*rest, ' '));
    *rest = span_from(*rest, name->n + 1);
    return name->n > 0;
}

bool caller_variables_want_project(const struct caller_variables *v)
{
    struct span rest = buf_view(&v->names), name;

    while (next_name(&rest, &name))
        if (is_project(name))
            return true;
    return false;
}

/* Can the value be sent in a line, and then be used in a header or an argument? */
static bool can_be_brought(struct span value)
{
    for (size_t i = 0; i < value.n; i++)
        if ((unsigned char)value.p[i] < 0x20 || value.p[i] == 0x7f)
            return false;
    return value.n && value.n <= VALUE_MAX && utf8_valid(value);
}

static void put_one(const struct caller_variables *v, struct buf *out, struct span name)
{
    BUF_SCOPED key = {0}, folder = {0};

    buf_span(&key, name);
    struct span value = span_str(is_project(name) ? NULL : getenv(buf_cstr(&key)));
    if (is_project(name) && !v->root.n)
        project_put(&folder, ".");
    if (is_project(name))
        value = v->root.n ? buf_view(&v->root) : buf_view(&folder);
    if (can_be_brought(value))
        json_out_text(out, buf_cstr(&key), value);
    else if (value.n)
        fprintf(stderr, "rialto stdio: %s is not passed on: it is too long, or has line ends\n",
                buf_cstr(&key));
}

void caller_variables_put(const struct caller_variables *v, struct buf *out)
{
    struct span rest = buf_view(&v->names), name;
    BUF_SCOPED params = {0};

    if (!rest.n)
        return;
    buf_char(&params, '{');
    while (next_name(&rest, &name))
        put_one(v, &params, name);
    buf_char(&params, '}');
    rpc_put_notification(out, "rialto/variables", buf_view(&params));
    buf_char(out, '\n');
}

void caller_variables_take_roots(struct caller_variables *v, struct span result)
{
    struct span roots =
        json_type_of(result) == JSON_OBJECT ? json_get(result, "roots").value : SPAN_EMPTY;

    v->root.n = 0;
    for (struct json_iter it = json_iter(roots); !v->root.n && roots.n && json_next(&it);) {
        BUF_SCOPED uri = {0};
        struct json_slot slot = {0};
        if (it.type == JSON_OBJECT)
            slot = json_get(it.value, "uri");
        if (slot.type == JSON_STRING)
            json_unescape(&uri, slot.value);
        project_put_root(&v->root, buf_view(&uri));
    }
}

void caller_variables_fini(struct caller_variables *v)
{
    buf_fini(&v->names);
    buf_fini(&v->root);
}
