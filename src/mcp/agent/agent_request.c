/* The requests of an agent that wait for their answers, with what these answers need. Called by
 * session.c. */
#include "mcp/agent/agent_request.h"

#include "base/mem.h"

void agent_requests_init(struct agent_requests *r)
{
    list_init(&r->all);
}

struct span agent_request_id(const struct agent_request *p)
{
    return span_of(p->bytes, p->id_n);
}

struct span agent_request_token(const struct agent_request *p)
{
    return span_of(p->bytes + p->id_n, p->token_n);
}

struct span agent_request_uri(const struct agent_request *p)
{
    return span_of(p->bytes + p->id_n + p->token_n, p->uri_n);
}

struct agent_request *agent_requests_add(struct agent_requests *r, const struct mcp_message *m,
                                         void *reply, struct span uri)
{
    const struct json_slot *token = &m->slots[SLOT_META_TOKEN];
    size_t token_n = token->type == JSON_NONE ? 0 : token->value.n;
    struct agent_request *p = mem_alloc(sizeof *p + m->rpc.id.n + token_n + uri.n);

    *p = (struct agent_request){
        .among = r, .reply = reply, .id_n = m->rpc.id.n, .token_n = token_n, .uri_n = uri.n};
    memcpy(p->bytes, m->rpc.id.p, m->rpc.id.n);
    if (token_n)
        memcpy(p->bytes + p->id_n, token->value.p, token_n);
    if (uri.n)
        memcpy(p->bytes + p->id_n + p->token_n, uri.p, uri.n);
    list_append(&r->all, &p->node);
    r->n++;
    return p;
}

struct agent_request *agent_requests_find(const struct agent_requests *r, struct span id)
{
    LIST_EACH (&r->all, it) {
        struct agent_request *p = LIST_ENTRY(it, struct agent_request, node);
        if (span_eq(agent_request_id(p), id))
            return p;
    }
    return NULL;
}

void agent_requests_unsubscribe(struct agent_requests *r, struct span uri)
{
    LIST_EACH (&r->all, it) {
        struct agent_request *p = LIST_ENTRY(it, struct agent_request, node);
        if (p->uri_n && span_eq(agent_request_uri(p), uri))
            p->unsubscribed = true;
    }
}

void agent_request_free(struct agent_request *p)
{
    list_remove(&p->node);
    p->among->n--;
    mem_free(p);
}
