/* The audit trail on disk: continuing after a crash at any byte, rotating files, and syslog. */
#include "../unit.h"

#include "admin/audit_file.h"
#include "admin/line_file.h"
#include "base/file.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

struct trail {
    char folder[32];
    char file[64], head[64];
    struct audit_place place;
};

static void set_up(struct trail *t)
{
    *t = (struct trail){.folder = "/tmp/rialto-audit-XXXXXX"};
    log_set_level(LOG_ERROR);
    assert_non_null(mkdtemp(t->folder));
    snprintf(t->file, sizeof t->file, "%s/a.jsonl", t->folder);
    snprintf(t->head, sizeof t->head, "%s/a.head", t->folder);
    t->place = (struct audit_place){.file = t->file, .head = t->head, .size = 1 << 20, .keep = 3};
}

static void tear_down(struct trail *t)
{
    char command[64];

    snprintf(command, sizeof command, "rm -r %s", t->folder);
    assert_int_equal(system(command), 0);
}

static struct audit_file *open_trail(const struct trail *t)
{
    struct err err = {0};
    struct audit_file *f = audit_file_open(&t->place, &err);

    if (!f)
        fail_msg("%s", err.text);
    return f;
}

static void add(const struct trail *t, int n)
{
    struct audit_file *f = open_trail(t);

    for (int i = 0; i < n; i++)
        assert_int_equal(audit_file_add(f, SPAN("\"x\":1")), 0);
    audit_file_close(f);
}

static void read_all(const char *path, struct buf *out)
{
    out->n = 0;
    assert_int_equal(file_read(out, path, 1 << 24), 0);
}

/* Checks that each line has the hash of the line before; returns the hash of the last line. */
static void follow(struct span text, char hash[AUDIT_HASH_SIZE], int lines)
{
    while (text.n) {
        struct span line = span_cut(text, 0, span_find(text, '\n'));
        struct buf before = {0};
        buf_printf(&before, "\"before\":\"%s\"}", hash);
        assert_memory_equal(line.p + line.n - before.n, before.p, before.n);
        buf_fini(&before);
        audit_file_hash(line, hash);
        text = span_from(text, line.n + 1);
        lines--;
    }
    assert_int_equal(lines, 0);
}

#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"

/* The program may be killed after any byte of a line, when the head is one line behind. The next
 * start removes the partial line and continues with the right number and hash. */
static void it_goes_on_after_a_crash_at_any_byte(void **state)
{
    struct trail t;
    struct buf two = {0}, three = {0}, text = {0}, head = {0};
    char hash[AUDIT_HASH_SIZE];

    (void)state;
    set_up(&t);
    add(&t, 2);
    read_all(t.file, &two);
    read_all(t.head, &head);
    add(&t, 1);
    read_all(t.file, &three);
    for (size_t n = two.n; n <= three.n; n++) {
        assert_int_equal(file_replace(t.file, span_cut(buf_view(&three), 0, n)), 0);
        assert_int_equal(file_replace(t.head, buf_view(&head)), 0);
        add(&t, 1);
        read_all(t.file, &text);
        memcpy(hash, ZEROS, sizeof hash);
        follow(buf_view(&text), hash, n == three.n ? 4 : 3);
        struct audit_end end;
        assert_int_equal(audit_file_read_head(t.head, &end), 0);
        assert_int_equal(end.seq, n == three.n ? 4 : 3);
        assert_string_equal(end.hash, hash);
    }
    buf_fini(&two);
    buf_fini(&three);
    buf_fini(&text);
    buf_fini(&head);
    tear_down(&t);
}

static bool exists(const struct trail *t, uint64_t n)
{
    struct buf name = {0};
    struct stat st;

    line_file_put_name(&name, t->file, n);
    bool there = stat(buf_cstr(&name), &st) == 0;
    buf_fini(&name);
    return there;
}

/* Three older files are kept. A number that a crash has left free is used, and no line is lost. */
static void files_move_up_into_the_first_free_name(void **state)
{
    struct trail t;
    struct buf name = {0}, text = {0}, last = {0};
    char hash[AUDIT_HASH_SIZE] = "";

    (void)state;
    set_up(&t);
    t.place.size = 1; /* each line gets its own file */
    add(&t, 3);
    assert_true(exists(&t, 2) && !exists(&t, 3));
    line_file_put_name(&name, t.file, 1);
    line_file_put_name(&last, t.file, 3);
    assert_int_equal(rename(buf_cstr(&name), "/tmp/rialto-audit-gone"), 0);
    add(&t, 1);
    assert_true(exists(&t, 0) && exists(&t, 1) && exists(&t, 2) && !exists(&t, 3));
    assert_int_equal(unlink("/tmp/rialto-audit-gone"), 0);
    add(&t, 6);
    assert_true(exists(&t, 3) && !exists(&t, 4));
    read_all(buf_cstr(&last), &text);
    assert_non_null(strstr(buf_cstr(&text), "{\"seq\":7,"));
    for (uint64_t n = 4; n-- > 0;) {
        name.n = 0;
        line_file_put_name(&name, t.file, n);
        read_all(buf_cstr(&name), &text);
        if (!hash[0])
            memcpy(hash, text.p + text.n - 67, 64);
        follow(buf_view(&text), hash, 1);
    }
    buf_fini(&name);
    buf_fini(&text);
    buf_fini(&last);
    tear_down(&t);
}

/* After a crash between the two steps of a rotation there is no file: the head says where to
 * continue. */
static void without_its_file_it_goes_on_from_the_head(void **state)
{
    struct trail t;
    struct buf text = {0};
    struct audit_end end;
    char hash[AUDIT_HASH_SIZE];

    (void)state;
    set_up(&t);
    add(&t, 5);
    assert_int_equal(audit_file_read_head(t.head, &end), 0);
    assert_int_equal(unlink(t.file), 0);
    add(&t, 1);
    read_all(t.file, &text);
    memcpy(hash, end.hash, sizeof hash);
    follow(buf_view(&text), hash, 1);
    assert_non_null(strstr(buf_cstr(&text), "{\"seq\":6,"));
    buf_fini(&text);
    tear_down(&t);
}

/* Syslog gets a packet for each line. Lines are lost while syslog is down, and the next line says
 * how many. */
static void syslog_gets_the_lines(void **state)
{
    struct trail t;
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    char packet[1024];

    (void)state;
    set_up(&t);
    snprintf(at.sun_path, sizeof at.sun_path, "%s/log", t.folder);
    t.place.file = NULL;
    t.place.syslog = at.sun_path;
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    struct audit_file *f = open_trail(&t);
    assert_int_equal(audit_file_add(f, SPAN("\"x\":1")), 0);
    ssize_t n = recv(fd, packet, sizeof packet - 1, 0);
    packet[n > 0 ? n : 0] = '\0';
    assert_string_equal(packet, "<133>rialto-audit: {\"seq\":1,\"x\":1,\"before\":\"" ZEROS "\"}");
    close(fd);
    assert_int_equal(unlink(at.sun_path), 0);
    assert_int_not_equal(audit_file_add(f, SPAN("\"x\":2")), 0);
    struct audit_end end;
    assert_int_equal(audit_file_read_head(t.head, &end), 0);
    assert_int_equal(end.missing, 1);
    fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(audit_file_add(f, SPAN("\"x\":3")), 0);
    n = recv(fd, packet, sizeof packet - 1, 0);
    packet[n > 0 ? n : 0] = '\0';
    assert_non_null(strstr(packet, "{\"seq\":3,\"x\":3,\"missing\":1,\"before\":"));
    close(fd);
    audit_file_close(f);
    tear_down(&t);
}

/* A trail has one writer: opening it a second time fails, and closing releases the lock. */
static void a_trail_has_one_writer(void **state)
{
    struct trail t;
    struct err err = {0};

    (void)state;
    set_up(&t);
    struct audit_file *f = open_trail(&t);
    assert_true(audit_file_is_written(t.head));
    assert_null(audit_file_open(&t.place, &err));
    assert_non_null(strstr(err.text, "another Rialto"));
    audit_file_close(f);
    assert_false(audit_file_is_written(t.head));
    tear_down(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_goes_on_after_a_crash_at_any_byte),
        cmocka_unit_test(files_move_up_into_the_first_free_name),
        cmocka_unit_test(without_its_file_it_goes_on_from_the_head),
        cmocka_unit_test(syslog_gets_the_lines),
        cmocka_unit_test(a_trail_has_one_writer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
