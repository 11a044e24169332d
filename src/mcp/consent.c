/* The elicitation that asks whether a held call may run, and how its answer is read. Used by
 * hub/graph/bridge.c, hub/bus_role.c and admin/admin.c; admin/approvals.c shows the arguments. */
#include "mcp/consent.h"

#include "base/log.h"
#include "base/utf8.h"
#include "base/visible.h"
#include "core/provider.h"
#include "wire/json_merge.h"

#include <inttypes.h>

/* Bytes of arguments that fit into a dialog. */
enum { SHOWN_MAX = 1000 };

void consent_put_arguments(struct buf *out, const struct call *c)
{
    struct span given = json_get(c->kept.request.params, "arguments").value;
    struct span pinned = provider_pinned(c->provider, c->op, span_of(c->name, c->name_n));
    BUF_SCOPED sent = {0}, line = {0}, shown = {0};

    json_merge_put(&sent, given, pinned);
    json_one_line(&line, buf_view(&sent));
    log_redact(&shown, buf_view(&line));
    visible_put(out, buf_view(&shown), 0);
}

/* Append the text, or its beginning with a note that the rest is not shown. */
static void put_shown(struct buf *out, struct span text, const char *rest)
{
    struct span shown = span_cut(text, 0, SHOWN_MAX);

    while (shown.n < text.n && shown.n && utf8_tail((unsigned char)text.p[shown.n]))
        shown.n--; /* do not cut inside a character */
    if (shown.n < text.n)
        buf_printf(out, "(only the first %zu of %zu bytes are shown here; %s) ", shown.n, text.n,
                   rest);
    buf_span(out, shown);
    buf_str(out, shown.n < text.n ? "..." : "");
}

static void put_words(struct buf *out, const struct call *c, const char *rest)
{
    BUF_SCOPED message = {0}, arguments = {0};

    consent_put_arguments(&arguments, c);
    buf_str(&message, "Allow the call of '");
    visible_put(&message, span_of(c->name, c->name_n), 0);
    buf_printf(&message, "' on server '%s'? Its arguments: ", c->provider->alias);
    put_shown(&message, buf_view(&arguments), rest);
    buf_str(out, "{\"message\":");
    json_quote(out, buf_view(&message));
    buf_str(out, ",\"requestedSchema\":{\"type\":\"object\",\"properties\":{}}}");
}

static void put_question(struct buf *out, const struct call *c)
{
    BUF_SCOPED rest = {0};

    buf_printf(&rest, "'rialto approvals --json' and /api/approvals show all of call %" PRIu64,
               c->handle);
    put_words(out, c, buf_cstr(&rest));
}

static void put_question_alone(struct buf *out, const struct call *c)
{
    put_words(out, c, "nothing shows the rest, so refuse it when in doubt");
}

static enum consent read_answer(const struct outcome *answer)
{
    if (answer->kind != OUTCOME_RESULT)
        return CONSENT_UNASKED;
    struct json_slot action = json_get(answer->body, "action");
    bool accepts = action.type == JSON_STRING && json_string_is(action.value, SPAN("accept"));
    return accepts ? CONSENT_GIVEN : CONSENT_DENIED;
}

const struct approver consent_approver = {put_question_alone, read_answer, false};
const struct approver consent_approver_with_operator = {put_question, read_answer, true};
