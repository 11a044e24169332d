/* record.file: each recorded call appended to a file when it has ended. Begun and ended by admin.c;
 * the recorder calls on_ended. */
#include "admin/story.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"

/* Unlike the audit trail, this file is no reason to refuse calls when it cannot be written: the
 * records are still in memory. */
static void on_ended(void *owner, const struct record *rec)
{
    struct admin *a = owner;
    BUF_SCOPED line = {0};

    status_mind_clock(a);
    calls_put(&line, a, rec);
    buf_char(&line, '\n');
    int code = line_file_add(&a->record_file, buf_view(&line));
    if (code && !a->record_failing)
        log_error("record", "%s cannot be written: %s", a->record_file.path, err_name(code));
    if (!code && a->record_failing)
        log_warn("record", "%s is written again", a->record_file.path);
    a->record_failing = code != 0;
}

void record_file_begin(struct admin *a, const char *path, uint64_t size)
{
    a->record_file = (struct line_file){.who = "record", .max = size, .keep = 1, .fd = -1};
    if (!path || !size)
        return;
    a->record_file.path = mem_str(path);
    file_make_folders(path);
    a->recorder.ended = on_ended;
    a->recorder.owner = a;
}

void record_file_end(struct admin *a)
{
    line_file_close(&a->record_file);
}
