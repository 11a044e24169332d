/* Reading, holding and looking up the variables of one caller. Called by secret.c, hub/shims.c and
 * hub/graph/lease.c. */
#include "config/variables.h"

#include "base/ascii.h"
#include "base/map.h"
#include "base/mem.h"
#include "wire/json.h"

struct variables {
    unsigned holders;
    struct map values; /* name -> char * */
};

static bool is_clean_path(struct span path)
{
    if (!path.n || path.p[0] != '/')
        return false;
    for (struct span rest = span_from(path, 1); rest.n;) {
        struct span name = span_cut(rest, 0, span_find(rest, '/'));
        if (!name.n || span_is(name, ".") || span_is(name, "..") || name.n + 1 == rest.n)
            return false;
        rest = span_from(rest, name.n + 1);
    }
    return true;
}

static bool is_fine(struct span name, struct span value)
{
    if (!name.n || !ascii_is_words(name, "_") || !value.n || value.n > VARIABLES_VALUE_MAX)
        return false;
    for (size_t i = 0; i < value.n; i++)
        if ((unsigned char)value.p[i] < 0x20 || value.p[i] == 0x7f)
            return false;
    return !span_is(name, VARIABLES_PROJECT) || is_clean_path(value);
}

struct variables *variables_read(struct span json)
{
    struct json_iter it = json_iter(json);

    if (json.n > VARIABLES_BYTES_MAX || json_type_of(json) != JSON_OBJECT)
        return NULL;
    struct variables *v = MEM_NEW(struct variables);
    v->holders = 1;
    while (json_next(&it)) {
        BUF_SCOPED name = {0}, value = {0};
        json_unescape(&name, it.key);
        if (it.type == JSON_STRING)
            json_unescape(&value, it.value);
        if (is_fine(buf_view(&name), buf_view(&value)))
            mem_free(map_put(&v->values, buf_view(&name), buf_take(&value)));
        if (v->values.n > VARIABLES_MAX) {
            variables_drop(v);
            return NULL;
        }
    }
    return v;
}

struct variables *variables_hold(struct variables *v)
{
    if (v)
        v->holders++;
    return v;
}

void variables_drop(struct variables *v)
{
    size_t at = 0;
    void *value;

    if (!v || --v->holders)
        return;
    while (map_next(&v->values, &at, NULL, &value))
        mem_free(value);
    map_fini(&v->values);
    mem_free(v);
}

struct span variables_get(const struct variables *v, struct span name)
{
    return span_str(map_get(&v->values, name));
}
