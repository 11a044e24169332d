/* tasks.json: reading it at the start and writing it after changes. Called by hub/hub.c. */
#include "hub/graph/task_file.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "hub/places.h"
#include "wire/json.h"
#include "wire/json_out.h"

#include <time.h>

enum { SAVE_MS = 200, FILE_MAX = 16 * 1024 * 1024 };

struct task_file {
    struct timers *timers;
    struct tasks *tasks;
    char *path; /* NULL: there is no state folder */
    struct timer save;
};

static void put_task(struct buf *out, const struct task *t)
{
    json_out_open(out, NULL, '{');
    json_out_str(out, "id", t->id);
    json_out_str(out, "server", t->server);
    json_out_str(out, "tool", t->tool);
    json_out_str(out, "own", t->own);
    json_out_str(out, "owner", t->owner);
    json_out_number(out, "expires", t->expires);
    json_out_bool(out, "cancelled", t->cancelled);
    json_out_str(out, "state", t->state);
    if (t->result)
        json_out_str(out, "result", t->result);
    buf_char(out, '}');
}

static void save(struct task_file *f)
{
    BUF_SCOPED text = {0}, clean = {0};
    const struct task *t = NULL;

    timer_clear(f->timers, &f->save);
    if (!f->path)
        return;
    buf_str(&text, "{\"tasks\":[");
    while ((t = tasks_next(f->tasks, t)))
        if (!t->instance)
            put_task(&text, t);
    buf_str(&text, "]}\n");
    log_redact(&clean, buf_view(&text)); /* a result may repeat a secret that a server was given */
    int code = file_replace(f->path, buf_view(&clean));
    if (code)
        log_warn("rialto", "cannot keep tasks in %s: %s", f->path, err_name(code));
}

void task_file_leave(struct task_file *f)
{
    if (timer_is_set(&f->save))
        save(f);
    mem_free(f->path);
    f->path = NULL;
}

static void on_save(struct timer *t)
{
    save(CONTAINER_OF(t, struct task_file, save));
}

static void on_change(void *arg)
{
    struct task_file *f = arg;

    if (!timer_is_set(&f->save))
        timer_set(f->timers, &f->save, SAVE_MS);
}

static struct span text_of(struct span task, const char *name, struct buf *scratch)
{
    struct json_slot slot = json_get(task, name);

    scratch->n = 0;
    if (slot.type == JSON_STRING)
        json_unescape(scratch, slot.value);
    return buf_view(scratch);
}

/* `state` and `result` are JSON in a string and are sent to agents as they are, so they must be
 * valid. */
static bool is_object(struct span json)
{
    enum json_type type;

    return json_skim(json, NULL, NULL, &type, NULL) == 0 && type == JSON_OBJECT;
}

static void restore(struct task_file *f, struct span task)
{
    BUF_SCOPED id = {0}, server = {0}, tool = {0}, own = {0}, owner = {0}, state = {0},
               result = {0}, whole = {0};
    int64_t expires;
    struct task_facts facts = {.server = text_of(task, "server", &server),
                               .tool = text_of(task, "tool", &tool),
                               .own = text_of(task, "own", &own),
                               .state = text_of(task, "state", &state),
                               .result = text_of(task, "result", &result)};

    text_of(task, "owner", &owner);
    facts.owner = buf_cstr(&owner);
    buf_printf(&whole, "{" SPAN_FMT "}", SPAN_ARG(facts.state));
    if (!text_of(task, "id", &id).n || !facts.server.n || !is_object(buf_view(&whole)) ||
        (facts.result.n && !is_object(facts.result)) ||
        !json_int(json_get(task, "expires").value, &expires))
        return;
    tasks_restore(f->tasks, buf_view(&id), &facts, (uint64_t)expires,
                  json_get(task, "cancelled").type == JSON_TRUE);
}

static void load(struct task_file *f)
{
    BUF_SCOPED text = {0};
    enum json_type type;

    if (!f->path || file_read(&text, f->path, FILE_MAX))
        return;
    if (json_skim(buf_view(&text), NULL, NULL, &type, NULL) || type != JSON_OBJECT) {
        log_warn("rialto", "%s is not a list of tasks, and is not read", f->path);
        return;
    }
    struct json_slot tasks = json_get(buf_view(&text), "tasks");
    struct json_iter it = json_iter(tasks.value);
    while (tasks.type == JSON_ARRAY && json_next(&it))
        if (it.type == JSON_OBJECT)
            restore(f, it.value);
}

struct task_file *task_file_open(struct timers *timers, struct tasks *tasks)
{
    struct task_file *f = MEM_NEW(struct task_file);
    struct timespec now;

    f->timers = timers;
    f->tasks = tasks;
    f->path = place_path(PLACE_STATE, "tasks.json");
    f->save.fire = on_save;
    clock_gettime(CLOCK_REALTIME, &now);
    tasks_set_epoch(tasks,
                    (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000 - timers->now);
    load(f);
    tasks_on_change(tasks, on_change, f);
    return f;
}

void task_file_close(struct task_file *f)
{
    if (timer_is_set(&f->save))
        save(f);
    tasks_on_change(f->tasks, NULL, NULL);
    mem_free(f->path);
    mem_free(f);
}
