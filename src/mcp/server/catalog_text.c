/* A catalog written as lines of JSON, and read back with checks. Called by hub/graph/memory.c,
 * which remembers what servers offered, and by hub/upgrade.c, which gives that to the next daemon.
 */
#include "mcp/server/catalog_text.h"

#include "mcp/protocol.h"
#include "wire/json.h"
#include "wire/json_out.h"

enum { FORMAT = 2, MAX_ITEMS = 100000 };

/* {"format":2,"items":2,"offers":3,"instructions":"...","declares":"..."}
 * {"kind":0,"own":"...","label":"...","flags":1,"item":{...}} */

void catalog_text_put(struct buf *out, const struct catalog *c)
{
    size_t n = 0;

    for (int kind = 0; kind < ITEM_KINDS; kind++)
        n += c->n[kind];
    buf_printf(out, "{\"format\":%d,\"items\":%zu,\"offers\":%u,\"instructions\":", FORMAT, n,
               c->offers);
    json_quote(out, c->instructions);
    json_out_text(out, "declares", c->declares);
    buf_str(out, "}\n");
    for (int kind = 0; kind < ITEM_KINDS; kind++) {
        for (size_t i = 0; i < c->n[kind]; i++) {
            const struct item *item = &c->items[kind][i];
            buf_printf(out, "{\"kind\":%d,\"own\":", kind);
            json_quote(out, item->own);
            json_out_text(out, "label", item->label);
            buf_printf(out, ",\"flags\":%u,\"item\":", item->flags);
            json_one_line(out, item->raw);
            buf_str(out, "}\n");
        }
    }
}

static bool read_number(struct json_slot slot, int64_t max, int64_t *n)
{
    return slot.type == JSON_NUMBER && json_int(slot.value, n) && *n >= 0 && *n <= max;
}

static bool read_item(struct catalog *c, struct span line)
{
    BUF_SCOPED name = {0}, own = {0}, label = {0};
    int64_t kind, flags;
    bool good = json_skim(line, NULL, NULL, NULL, NULL) == 0 &&
                read_number(json_get(line, "kind"), ITEM_KINDS - 1, &kind) &&
                read_number(json_get(line, "flags"), UINT8_MAX, &flags);

    if (!good)
        return false;
    struct span raw = json_get(line, "item").value;
    struct json_slot name_slot = json_get(raw, mcp_lists[kind].name_member);
    struct json_slot own_slot = json_get(line, "own"), label_slot = json_get(line, "label");
    struct json_slot description = json_get(raw, "description");
    if (description.type != JSON_STRING)
        description = (struct json_slot){0};
    good = name_slot.type == JSON_STRING && own_slot.type == JSON_STRING &&
           label_slot.type == JSON_STRING;
    if (good) {
        json_unescape(&name, name_slot.value);
        json_unescape(&own, own_slot.value);
        json_unescape(&label, label_slot.value);
        catalog_add(c, (enum item_kind)kind,
                    &(struct item){.name = buf_view(&name),
                                   .own = buf_view(&own),
                                   .label = buf_view(&label),
                                   .raw = raw,
                                   .name_at = mcp_cut(raw, &name_slot),
                                   .description_at = mcp_cut(raw, &description),
                                   .flags = (unsigned)flags});
    }
    return good;
}

static struct span next_line(struct span *rest)
{
    struct span line = span_cut(*rest, 0, span_find(*rest, '\n'));

    *rest = span_from(*rest, line.n < rest->n ? line.n + 1 : rest->n);
    return line;
}

/* The number of items that follow; negative when the line is no head of a catalog. */
static int64_t read_head(struct catalog *c, struct span line)
{
    int64_t format, items, offers;
    BUF_SCOPED text = {0};

    if (json_skim(line, NULL, NULL, NULL, NULL) ||
        !read_number(json_get(line, "format"), FORMAT, &format) || format != FORMAT ||
        !read_number(json_get(line, "items"), MAX_ITEMS, &items) ||
        !read_number(json_get(line, "offers"), UINT16_MAX, &offers) ||
        json_get(line, "instructions").type != JSON_STRING)
        return -1;
    c->offers = (unsigned)offers;
    json_unescape(&text, json_get(line, "instructions").value);
    if (text.n)
        catalog_set_instructions(c, buf_view(&text));
    text.n = 0;
    struct json_slot declares = json_get(line, "declares"); /* older files have none */
    enum json_type type;
    if (declares.type == JSON_STRING)
        json_unescape(&text, declares.value);
    if (text.n && json_skim(buf_view(&text), NULL, NULL, &type, NULL) == 0 && type == JSON_OBJECT)
        catalog_set_declares(c, buf_view(&text));
    return items;
}

struct catalog *catalog_text_read(struct span text)
{
    struct catalog *c = catalog_new();
    int64_t left = read_head(c, next_line(&text));
    bool good = left >= 0;

    for (; good && left; left--)
        good = read_item(c, next_line(&text));
    if (!good || text.n) {
        catalog_free(c);
        return NULL;
    }
    catalog_fit(c);
    return c;
}
