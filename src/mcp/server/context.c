/* Fetches the prompts and resources that the configuration names, one by one, and collects their
 * text for the instructions. Called by lists.c, and by provider.c to free the text. */
#include "mcp/server/context.h"

#include "base/log.h"
#include "base/mem.h"

/* Bytes of all texts together: agents read them at the start of every conversation. */
enum { MAX_TEXT = 64 * 1024 };

struct context {
    struct buf text; /* complete */
    struct buf next; /* being collected */
    size_t at;       /* what to fetch next: prompts of the catalog, then configured resources */
    uint64_t asked;  /* id of the request for the piece before `at`; it may have ended */
    bool stale;      /* prompts or resources were listed again during a fetch */
};

/* The prompt or resource before `at`, for people and for agents. */
struct context_piece {
    const char *kind;
    struct span name;
};

static struct context_piece piece_before(const struct mcp_provider *p)
{
    const struct catalog *catalog = p->core.catalog;
    size_t n = catalog->n[ITEM_PROMPT], i = p->context->at - 1;

    return i < n ? (struct context_piece){"prompt", catalog->items[ITEM_PROMPT][i].name}
                 : (struct context_piece){"resource", span_str(p->extras.resources[i - n])};
}

static void fetch_next(struct mcp_provider *p);

static const struct mcp_context_row *row_of(const struct mcp_provider *p, struct span name)
{
    for (size_t i = 0; i < p->extras.n_context; i++)
        if (span_glob(span_str(p->extras.context[i].name), name))
            return &p->extras.context[i];
    return NULL;
}

/* Does the prompt require an argument that the configuration does not give? */
static bool lacks_argument(const struct item *prompt, const struct mcp_context_row *row)
{
    struct json_iter it = json_iter(json_get(prompt->raw, "arguments").value);
    bool lacks = false;

    while (json_next(&it)) {
        BUF_SCOPED name = {0};
        struct json_slot named = json_get(it.value, "name");
        if (named.type == JSON_STRING && json_get(it.value, "required").type == JSON_TRUE) {
            json_unescape(&name, named.value);
            lacks |= !row->arguments ||
                     json_get(span_str(row->arguments), buf_cstr(&name)).type == JSON_NONE;
        }
    }
    return lacks;
}

/* The text of a message of a prompt, or of a content of a resource. */
static struct json_slot text_of(struct span part)
{
    struct json_slot content = json_get(part, "content");

    return json_get(content.type == JSON_OBJECT ? content.value : part, "text");
}

/* False when there is no text, or too much. */
static bool add_text(struct context *c, const struct context_piece *piece, struct span result)
{
    struct json_slot parts = json_get(result, "messages");
    size_t start = c->next.n;
    bool any = false;

    if (parts.type == JSON_NONE)
        parts = json_get(result, "contents");
    struct json_iter it = json_iter(parts.value);
    buf_printf(&c->next, "%s[%s " SPAN_FMT "]", start ? "\n\n" : "", piece->kind,
               SPAN_ARG(piece->name));
    while (parts.type == JSON_ARRAY && json_next(&it)) {
        struct json_slot text = it.type == JSON_OBJECT ? text_of(it.value) : (struct json_slot){0};
        if (text.type != JSON_STRING)
            continue;
        buf_char(&c->next, '\n');
        json_unescape(&c->next, text.value);
        any = true;
    }
    if (any && c->next.n <= MAX_TEXT)
        return true;
    c->next.n = start;
    return false;
}

static void answered(struct mcp_provider *p, struct sent *sent, const struct mcp_message *m)
{
    struct context *c = p->context;

    (void)sent;
    /* The answer is the piece before `at`, unless prompts or resources were listed again. */
    if (!c->stale && c->at <= p->core.catalog->n[ITEM_PROMPT] + p->extras.n_resources) {
        const struct context_piece piece = piece_before(p);
        if (m->rpc.kind == RPC_ERROR)
            log_warn(p->alias, "%s '" SPAN_FMT "' cannot be context: " SPAN_FMT, piece.kind,
                     SPAN_ARG(piece.name), SPAN_ARG(span_cut(m->rpc.error, 0, 200)));
        else if (!add_text(c, &piece, m->rpc.result))
            log_warn(p->alias,
                     "%s '" SPAN_FMT "' cannot be context: it has no text, or all together have "
                     "more than %d bytes",
                     piece.kind, SPAN_ARG(piece.name), MAX_TEXT);
    }
    fetch_next(p);
}

static void failed(struct mcp_provider *p, struct sent *sent, int status, const char *why)
{
    (void)sent;
    log_warn(p->alias, "a prompt or resource cannot be context: %s (%d)", why, status);
    fetch_next(p);
}

/* `arguments` is NULL or raw. */
static void fetch(struct mcp_provider *p, const char *method, const char *member, struct span name,
                  const char *arguments)
{
    BUF_SCOPED members = {0};

    buf_printf(&members, "\"%s\":", member);
    json_quote(&members, name);
    if (arguments)
        buf_printf(&members, ",\"arguments\":%s", arguments);
    const struct sent *sent = upstream_sent_new(p, answered, failed);
    p->context->asked = sent->id;
    upstream_request(p, sent, method, buf_view(&members));
}

static void finish(struct mcp_provider *p)
{
    struct context *c = p->context;

    if (c->stale) {
        context_refresh(p);
        return;
    }
    if (span_eq(buf_view(&c->text), buf_view(&c->next)))
        return;
    c->text.n = 0;
    buf_span(&c->text, buf_view(&c->next));
    lists_fetch(p, 0); /* the same lists, published with the new text */
}

static void fetch_next(struct mcp_provider *p)
{
    struct context *c = p->context;
    const struct catalog *catalog = p->core.catalog;
    size_t n = catalog->n[ITEM_PROMPT];

    while (!c->stale && c->at < n) {
        const struct item *prompt = &catalog->items[ITEM_PROMPT][c->at++];
        const struct mcp_context_row *row = row_of(p, prompt->name);
        if (!row)
            continue;
        if (!lacks_argument(prompt, row)) {
            fetch(p, "prompts/get", "name", prompt->own, row->arguments);
            return;
        }
        log_info(p->alias, "prompt '" SPAN_FMT "' cannot be used as context: it needs arguments",
                 SPAN_ARG(prompt->name));
    }
    if (!c->stale && c->at < n + p->extras.n_resources) {
        const char *uri = p->extras.resources[c->at++ - n];
        fetch(p, "resources/read", "uri", span_str(uri), NULL);
        return;
    }
    finish(p);
}

void context_refresh(struct mcp_provider *p)
{
    struct context *c = p->context;

    if (!p->extras.n_context && !p->extras.n_resources)
        return;
    if (!c)
        c = p->context = MEM_NEW(struct context);
    c->stale = mcp_provider_expects(p, c->asked);
    if (c->stale)
        return; /* fetching begins again when the answer comes */
    c->at = 0;
    c->next.n = 0;
    fetch_next(p);
}

struct span context_text(const struct mcp_provider *p)
{
    return p->context ? buf_view(&p->context->text) : SPAN_EMPTY;
}

void context_fini(struct mcp_provider *p)
{
    if (!p->context)
        return;
    buf_fini(&p->context->text);
    buf_fini(&p->context->next);
    mem_free(p->context);
}
