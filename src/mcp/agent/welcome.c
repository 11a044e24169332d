/* Capabilities, serverInfo and instructions of a view as JSON. Called by session.c to answer
 * initialize and by modern.c to answer server/discover; modern_listen.c asks about tasks. */
#include "mcp/agent/welcome.h"

#include "core/provider.h"
#include "mcp/protocol.h"
#include "wire/json.h"
#include "wire/json_out.h"

/* The catalog of the view's only provider; NULL if there are several, or it is not known yet. */
static const struct catalog *only_catalog(const struct view *v)
{
    const struct provider *p = view_member(v, 0);

    return p && !view_member(v, 1) ? p->catalog : NULL;
}

/* Append `experimental` and `extensions` of all servers, merged: if two declare the same member,
 * the first counts. */
static void put_declared(struct buf *out, const struct view *v, bool tasks)
{
    BUF_SCOPED all = {0}, next = {0};
    const struct provider *p;

    buf_str(&all, "{}");
    for (size_t i = 0; (p = view_member(v, i)); i++) {
        if (!p->catalog || !p->catalog->declares.n)
            continue;
        next.n = 0;
        mcp_merge_extras(&next, buf_view(&all), p->catalog->declares);
        all.n = 0;
        buf_span(&all, buf_view(&next));
    }
    struct json_slot experimental = json_get(buf_view(&all), "experimental");
    struct json_slot extensions = json_get(buf_view(&all), "extensions");
    if (experimental.type == JSON_OBJECT)
        buf_printf(out, ",\"experimental\":" SPAN_FMT, SPAN_ARG(experimental.value));
    if (extensions.type != JSON_OBJECT && !tasks)
        return;
    buf_str(out, ",\"extensions\":");
    json_insert(out, extensions.type == JSON_OBJECT ? extensions.value : SPAN("{}"),
                tasks ? SPAN("\"" MCP_TASKS "\":{}") : SPAN_EMPTY);
}

bool welcome_has_tasks(const struct view *v)
{
    const struct provider *p;

    for (size_t i = 0; (p = view_member(v, i)); i++)
        if (p->catalog && (p->catalog->offers & OFFERS_TASKS))
            return true;
    return false;
}

void welcome_put_capabilities(struct buf *out, const struct view *v, bool modern)
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
    bool tasks = welcome_has_tasks(v);
    if (tasks && !modern)
        buf_str(out, ",\"tasks\":{\"list\":{},\"cancel\":{},\"requests\":{"
                     "\"tools\":{\"call\":{}}}}");
    put_declared(out, v, tasks && modern);
    buf_char(out, '}');
}

void welcome_put_instructions(struct buf *out, const struct view *v)
{
    BUF_SCOPED text = {0};
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
    if (text.n)
        json_out_text(out, "instructions", buf_view(&text));
}

static void put_all(struct buf *out, const struct view *v)
{
    welcome_put_capabilities(out, v, false);
    buf_str(
        out,
        ",\"serverInfo\":{\"name\":\"rialto\",\"title\":\"Rialto\",\"version\":\"" RIALTO_VERSION
        "\"}");
    welcome_put_instructions(out, v);
}

void welcome_put_answer(struct buf *out, struct span id, const char *version, const struct view *v,
                        const char *server_info)
{
    buf_str(out, "{\"jsonrpc\":\"2.0\",\"id\":");
    buf_span(out, id);
    buf_str(out, ",\"result\":{\"protocolVersion\":\"");
    buf_str(out, version);
    buf_str(out, "\",");
    if (server_info)
        buf_printf(out, "\"capabilities\":{\"tools\":{\"listChanged\":true}},\"serverInfo\":%s",
                   server_info);
    else
        put_all(out, v);
    buf_str(out, "}}");
}
