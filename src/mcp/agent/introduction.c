/* Who an agent is, as it introduced itself. Called by session.c. */
#include "mcp/agent/introduction.h"

#include "base/id.h"
#include "base/mem.h"
#include "mcp/circle.h"
#include "wire/json_out.h"

#include <stdio.h>

void introduction_init(struct introduction *i)
{
    snprintf(i->label, sizeof i->label, "%08x", (unsigned)id_random_u64());
    i->number = id_random_u64() | 1;
    i->level = -1;
}

void introduction_fini(struct introduction *i)
{
    mem_free(i->client);
}

void introduction_read(struct introduction *i, const struct mcp_message *m)
{
    const struct json_slot *can = &m->slots[SLOT_CAPABILITIES];
    BUF_SCOPED scratch = {0};
    struct span asked = json_text(m->slots[SLOT_VERSION].value, &scratch);
    struct span agreed = mcp_is_legacy_version(asked) ? asked : SPAN(MCP_NEWEST_LEGACY);

    memcpy(i->version, agreed.p, agreed.n);
    i->version[agreed.n] = '\0';
    i->answers = mcp_answers_of(can->type == JSON_OBJECT ? can->value : SPAN_EMPTY) &
                 ~(unsigned)ANSWERS_TASKS; /* tasks are an extension of the stateless era */
}

void introduction_set_client(struct introduction *i, const struct json_slot *info)
{
    i->bridge = circle_is_bridge(info->value);
    mem_free(i->client);
    i->client = info->type == JSON_OBJECT ? mem_span(info->value) : NULL;
}

void introduction_put(struct buf *out, const struct introduction *i)
{
    json_out_str(out, "version", i->version);
    json_out_str(out, "label", i->label);
    json_out_number(out, "answers", i->answers);
    json_out_number(out, "number", i->number >> 1);
    json_out_number(out, "level", (uint64_t)(i->level + 1));
    if (i->client)
        json_out_raw(out, "client", span_str(i->client));
}

static void text_in(struct span state, const char *name, char *out, size_t size)
{
    BUF_SCOPED text = {0};
    struct json_slot slot = json_get(state, name);

    if (slot.type != JSON_STRING)
        return;
    json_unescape(&text, slot.value);
    snprintf(out, size, "%s", buf_cstr(&text));
}

void introduction_take(struct introduction *i, struct span state)
{
    text_in(state, "version", i->version, sizeof i->version);
    text_in(state, "label", i->label, sizeof i->label);
    i->answers = (unsigned)json_count(state, "answers");
    i->number = json_count(state, "number") << 1 | 1;
    i->level = (int)json_count(state, "level") - 1;
}
