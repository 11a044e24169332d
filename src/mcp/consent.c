#include "mcp/consent.h"

#include "base/log.h"
#include "core/provider.h"
#include "wire/json.h"

/* What fits into a dialog; who wants to see more looks at the control API. */
enum { SHOWN_MAX = 1000 };

void mcp_put_held_arguments(struct buf *out, const struct call *c)
{
    struct json_slot arguments = json_get(c->kept.request.params, "arguments");

    log_redact(out, arguments.type == JSON_OBJECT ? arguments.value : SPAN("{}"));
}

static void put_shown(struct buf *out, struct span text)
{
    struct span shown = span_cut(text, 0, SHOWN_MAX);

    while (shown.n < text.n && shown.n && ((unsigned char)text.p[shown.n] & 0xc0) == 0x80)
        shown.n--; /* not in the middle of a character */
    buf_span(out, shown);
    buf_str(out, shown.n < text.n ? "..." : "");
}

static void put_question(struct buf *out, const struct call *c)
{
    struct buf message = {0}, arguments = {0};

    mcp_put_held_arguments(&arguments, c);
    buf_printf(&message, "Allow the call of '%s' on server '%s'? Its arguments: ", c->name,
               c->provider->alias);
    put_shown(&message, buf_view(&arguments));
    buf_str(out, "{\"message\":");
    json_quote(out, buf_view(&message));
    buf_str(out, ",\"requestedSchema\":{\"type\":\"object\",\"properties\":{}}}");
    buf_fini(&arguments);
    buf_fini(&message);
}

static enum consent read_answer(const struct outcome *answer)
{
    if (answer->kind != OUTCOME_RESULT)
        return CONSENT_UNASKED;
    struct json_slot action = json_get(answer->body, "action");
    bool accepts = action.type == JSON_STRING && json_string_is(action.value, SPAN("accept"));
    return accepts ? CONSENT_GIVEN : CONSENT_DENIED;
}

const struct approver mcp_approver = {put_question, read_answer, false};
const struct approver mcp_approver_with_operator = {put_question, read_answer, true};
