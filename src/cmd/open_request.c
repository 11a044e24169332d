/* The requests of a shim that are not answered yet. Called by shim.c. */
#include "cmd/open_request.h"

#include "base/mem.h"

struct open_request *open_request_new(struct span id, struct span text)
{
    struct open_request *r = mem_alloc(sizeof *r + id.n + text.n);

    *r = (struct open_request){.id_n = id.n, .text_n = text.n};
    memcpy(r->bytes, id.p, id.n);
    if (text.n)
        memcpy(r->bytes + id.n, text.p, text.n);
    return r;
}

void open_request_free(struct open_request *r)
{
    list_remove(&r->node);
    mem_free(r);
}

struct open_request *open_request_find(struct list *all, struct span id)
{
    LIST_EACH (all, it) {
        struct open_request *r = LIST_ENTRY(it, struct open_request, node);
        if (span_eq(open_request_id(r), id))
            return r;
    }
    return NULL;
}

struct span open_request_id(const struct open_request *r)
{
    return span_of(r->bytes, r->id_n);
}

struct span open_request_text(const struct open_request *r)
{
    return span_of(r->bytes + r->id_n, r->text_n);
}
