#include "base/log.h"
#include "base/mem.h"
#include "mcp/upstream.h"

#include <stdarg.h>
#include <stdio.h>

static bool has(struct span object, const char *key)
{
    return json_get(object, key).type == JSON_OBJECT;
}

static void learn_capabilities(struct mcp_provider *p, struct span capabilities)
{
    static const struct {
        const char *key;
        unsigned offers;
    } rows[] = {
        {"resources", OFFERS_RESOURCES},
        {"prompts", OFFERS_PROMPTS},
        {"completions", OFFERS_COMPLETION},
        {"logging", OFFERS_LOGGING},
    };

    p->offers = 0;
    p->has_tools = has(capabilities, "tools");
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (has(capabilities, rows[i].key))
            p->offers |= rows[i].offers;
    struct json_slot resources = json_get(capabilities, "resources");
    if (resources.type == JSON_OBJECT && json_get(resources.value, "subscribe").type == JSON_TRUE)
        p->offers |= OFFERS_SUBSCRIBE;
}

__attribute__((format(printf, 2, 3))) static void give_up(struct mcp_provider *p, const char *fmt,
                                                          ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(p->verdict, sizeof p->verdict, fmt, ap);
    va_end(ap);
    p->ops->close(p->link);
}

static void initialize_answered(struct mcp_provider *p, const struct sent *sent,
                                const struct mcp_message *m)
{
    struct buf scratch = {0};

    (void)sent;
    if (m->rpc.kind == RPC_ERROR) {
        struct span error = span_cut(m->rpc.error, 0, 100);
        give_up(p, "refused initialize: " SPAN_FMT, SPAN_ARG(error));
        return;
    }
    struct span version = m->slots[SLOT_VERSION].type == JSON_STRING
                              ? json_text(m->slots[SLOT_VERSION].value, &scratch)
                              : SPAN_EMPTY;
    if (!mcp_is_legacy_version(version)) {
        give_up(p, "speaks protocol version '" SPAN_FMT "', which is not known here",
                SPAN_ARG(span_cut(version, 0, 40)));
    } else {
        memcpy(p->version, version.p, version.n);
        p->version[version.n] = '\0';
        learn_capabilities(p, m->slots[SLOT_CAPABILITIES].value);
        mem_free(p->instructions);
        p->instructions = NULL;
        if (m->slots[SLOT_INSTRUCTIONS].type == JSON_STRING) {
            struct buf text = {0};
            json_unescape(&text, m->slots[SLOT_INSTRUCTIONS].value);
            p->instructions = buf_take(&text);
        }
        upstream_notify(p, "notifications/initialized", SPAN_EMPTY);
        upstream_fetch(p, (1u << ITEM_KINDS) - 1);
    }
    buf_fini(&scratch);
}

static void initialize_failed(struct mcp_provider *p, const struct sent *sent, int status,
                              const char *why)
{
    (void)sent;
    bool other_way = status == 400 || status == 404 || status == 405;
    if (other_way && p->ops->fall_back && p->ops->fall_back(p->link))
        return;
    give_up(p, "%s", why);
}

void upstream_greet(struct mcp_provider *p)
{
    struct buf params = {0};

    buf_str(&params, "{\"protocolVersion\":\"" MCP_NEWEST_LEGACY "\",\"capabilities\":");
    mcp_put_capabilities(&params, p->declares);
    buf_str(&params, ",\"clientInfo\":{\"name\":\"rialto\",\"version\":\"" RIALTO_VERSION "\"}}");
    upstream_request(p, upstream_sent_new(p, initialize_answered, initialize_failed), "initialize",
                     buf_view(&params));
    buf_fini(&params);
}
