/* tasks/list and the notifications of changed tasks, for an agent of the initialize era. Called by
 * session.c. */
#include "mcp/agent/own_tasks.h"

#include "mcp/task_text.h"
#include "wire/json_out.h"

static bool is_own(const struct own_tasks *own, const struct task *t)
{
    return t && task_is_of(t, own->owner, own->session);
}

bool own_tasks_put_change(const struct own_tasks *own, const struct event *event,
                          struct buf *params)
{
    if (!is_own(own, tasks_find(own->all, event->name, own->owner, 0)))
        return false;
    struct task_text text = task_text_read(event->params);
    buf_char(params, '{');
    task_text_put(params, &text, &(struct task_style){.id = event->name});
    buf_char(params, '}');
    return true;
}

bool own_tasks_put_page(const struct own_tasks *own, const struct json_slot *cursor,
                        struct buf *page)
{
    enum { PAGE = 100 };
    const struct task *t = NULL, *last = NULL;
    BUF_SCOPED scratch = {0};
    size_t n = 0;

    if (cursor->type == JSON_STRING)
        t = tasks_find(own->all, json_text(cursor->value, &scratch), own->owner, 0);
    if (cursor->type != JSON_NONE && !is_own(own, t))
        return false;
    buf_str(page, "{\"tasks\":[");
    while (n <= PAGE && (t = tasks_next(own->all, t))) {
        if (!is_own(own, t) || ++n > PAGE)
            continue;
        buf_str(page, n > 1 ? ",{" : "{");
        task_text_put_again(page, span_str(t->state), &(struct task_style){.id = span_str(t->id)});
        buf_char(page, '}');
        last = t;
    }
    buf_char(page, ']');
    if (n > PAGE)
        json_out_text(page, "nextCursor", span_str(last->id));
    buf_char(page, '}');
    return true;
}
