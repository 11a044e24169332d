/* Capabilities, serverInfo and instructions of a view as JSON. Called by session.c to answer
 * initialize and by modern.c to answer server/discover. */
#include "mcp/agent/welcome.h"

#include "core/provider.h"
#include "wire/json.h"

/* The catalog of the view's only provider; NULL if there are several, or it is not known yet. */
static const struct catalog *only_catalog(const struct view *v)
{
    const struct provider *p = view_member(v, 0);

    return p && !view_member(v, 1) ? p->catalog : NULL;
}

void welcome_put_capabilities(struct buf *out, const struct view *v)
{
    const struct catalog *only = only_catalog(v);
    unsigned offers = only ? only->offers : ~0u;

    buf_str(out, "\"capabilities\":{\"tools\":{\"listChanged\":true}");
    if (offers & OFFERS_PROMPTS)
        buf_str(out, ",\"prompts\":{\"listChanged\":true}");
    if (offers & OFFERS_RESOURCES)
        buf_printf(out, ",\"resources\":{\"listChanged\":true%s}",
                   offers & OFFERS_SUBSCRIBE ? ",\"subscribe\":true" : "");
    if (offers & OFFERS_LOGGING)
        buf_str(out, ",\"logging\":{}");
    if (offers & OFFERS_COMPLETION)
        buf_str(out, ",\"completions\":{}");
    buf_char(out, '}');
}

void welcome_put_instructions(struct buf *out, const struct view *v)
{
    struct buf text = {0};
    struct provider *p;
    bool many = view_member(v, 1) != NULL;

    for (size_t i = 0; (p = view_member(v, i)); i++) {
        if (!p->catalog || !p->catalog->instructions.n)
            continue;
        if (text.n)
            buf_str(&text, "\n\n");
        if (many)
            buf_printf(&text, "[%s]\n", p->alias);
        buf_span(&text, p->catalog->instructions);
    }
    if (text.n) {
        buf_str(out, ",\"instructions\":");
        json_quote(out, buf_view(&text));
    }
    buf_fini(&text);
}

void welcome_put(struct buf *out, const struct view *v)
{
    welcome_put_capabilities(out, v);
    buf_str(
        out,
        ",\"serverInfo\":{\"name\":\"rialto\",\"title\":\"Rialto\",\"version\":\"" RIALTO_VERSION
        "\"}");
    welcome_put_instructions(out, v);
}
