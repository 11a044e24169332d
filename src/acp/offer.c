/* Finding, adding and removing the offer in initialize and its echo in the result. Called by
 * greet.c and questions.c. */
#include "acp/offer.h"

#include "acp/json_edit.h"
#include "base/mem.h"

/* Every place where the offer and its echo have ever been; the current place first. */
static const char *const *const offer_paths[] = {
    EDIT_PATH("clientCapabilities", "_meta", "symposium", "proxy"),
    EDIT_PATH("_meta", "symposium", "proxy"),
    EDIT_PATH("_meta", "proxy"),
};
static const char *const *const echo_paths[] = {
    EDIT_PATH("agentCapabilities", "_meta", "symposium", "proxy"),
    EDIT_PATH("_meta", "symposium", "proxy"),
    EDIT_PATH("_meta", "proxy"),
};

static struct span object_or_empty(struct span text)
{
    return json_type_of(text) == JSON_OBJECT ? text : SPAN("{}");
}

static bool has_any(struct span object, const char *const *const *paths, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (json_edit_truthy(object_or_empty(object), paths[i]))
            return true;
    return false;
}

static void put_without(struct buf *out, struct span object, const char *const *const *paths,
                        size_t n)
{
    struct buf now = {0};

    buf_span(&now, object_or_empty(object));
    for (size_t i = 0; i < n; i++) {
        struct buf next = {0};
        json_edit_remove(&next, buf_view(&now), paths[i]);
        buf_fini(&now);
        now = next;
    }
    buf_span(out, buf_view(&now));
    buf_fini(&now);
}

bool offer_in(struct span params)
{
    return has_any(params, offer_paths, COUNT_OF(offer_paths));
}

void offer_add(struct buf *out, struct span params)
{
    json_edit_set(out, object_or_empty(params),
                  EDIT_PATH("clientCapabilities", "_meta", "symposium"),
                  SPAN("{\"version\":\"1.0\",\"proxy\":true}"));
}

void offer_remove(struct buf *out, struct span params)
{
    put_without(out, params, offer_paths, COUNT_OF(offer_paths));
}

bool offer_echoed(struct span result)
{
    return has_any(result, echo_paths, COUNT_OF(echo_paths));
}

void offer_add_echo(struct buf *out, struct span result)
{
    json_edit_set(out, object_or_empty(result), echo_paths[0], SPAN("true"));
}

void offer_remove_echo(struct buf *out, struct span result)
{
    put_without(out, result, echo_paths, COUNT_OF(echo_paths));
}
