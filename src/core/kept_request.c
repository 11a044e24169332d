/* The copy of a request with its texts. Called by call.c, mcp/server/upstream_modern.c and
 * mcp/server/upstream_tasks.c. */
#include "core/kept_request.h"

void kept_request_set(struct kept_request *k, const struct request *q)
{
    const struct span pieces[] = {q->name,      q->params,   q->meta_keep,
                                  q->log_level, q->declares, q->own_id};
    struct span kept[COUNT_OF(pieces)];
    size_t at = 0;

    k->request = *q;
    for (size_t i = 0; i < COUNT_OF(pieces); i++)
        buf_span(&k->bytes, pieces[i]);
    for (size_t i = 0; i < COUNT_OF(pieces); i++) {
        kept[i] = span_of(k->bytes.p + at, pieces[i].n);
        at += pieces[i].n;
    }
    k->request.name = kept[0];
    k->request.params = kept[1];
    k->request.meta_keep = kept[2];
    k->request.log_level = kept[3];
    k->request.declares = kept[4];
    k->request.own_id = kept[5];
    k->request.task_owner = NULL;
}
