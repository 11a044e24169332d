#include "../unit.h"
#include "base/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/rialto-test-XXXXXX";
static char path[64], old[80];

static int make_folder(void **state)
{
    (void)state;
    memcpy(folder + sizeof folder - 7, "XXXXXX", 6);
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/file", folder);
    snprintf(old, sizeof old, "%s.old", path);
    return 0;
}

/* rmdir fails when the tests have left any other file in the folder. */
static int remove_folder(void **state)
{
    (void)state;
    (void)unlink(path);
    (void)unlink(old);
    return rmdir(folder);
}

static void expect(const char *name, const char *text, mode_t mode)
{
    BUF_SCOPED read = {0};
    struct stat st;

    assert_int_equal(file_read(&read, name, 100), 0);
    assert_string_equal(buf_cstr(&read), text);
    assert_int_equal(stat(name, &st), 0);
    assert_int_equal(st.st_mode & 0777, mode);
}

static void no_more_is_read_than_was_said(void **state)
{
    BUF_SCOPED text = {0};

    (void)state;
    assert_int_equal(file_read(&text, path, 10), -ENOENT);
    assert_int_equal(file_read(&text, folder, 10), -EISDIR);
    assert_int_equal(file_replace(path, SPAN("12345")), 0);
    buf_char(&text, '>');
    assert_int_equal(file_read(&text, path, 5), 0);
    assert_int_equal(file_read(&text, path, 4), ERR_SIZE);
    assert_string_equal(buf_cstr(&text), ">123451234");
}

static void ours_are_for_their_owner_alone(void **state)
{
    (void)state;
    assert_int_equal(file_replace(path, SPAN("one")), 0);
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(file_replace(path, SPAN("two")), 0);
    expect(path, "two", 0600);
    assert_int_not_equal(access(old, F_OK), 0);
}

static void a_file_of_the_user_stays_as_it_was_but_for_its_text(void **state)
{
    (void)state;
    assert_int_equal(file_replace_keeping(path, SPAN("one"), old), -ENOENT);
    assert_int_equal(file_replace(path, SPAN("one")), 0);
    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(file_replace_keeping(path, SPAN("two"), old), 0);
    expect(path, "two", 0640);
    expect(old, "one", 0640);
}

static void what_fails_leaves_nothing_behind(void **state)
{
    (void)state;
    assert_int_equal(file_replace(path, SPAN("one")), 0);
    assert_int_equal(mkdir(old, 0700), 0); /* in the way */
    assert_int_equal(file_replace_keeping(path, SPAN("two"), old), -EEXIST);
    expect(path, "one", 0600);
    assert_int_equal(rmdir(old), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        TEST(no_more_is_read_than_was_said),
        TEST(ours_are_for_their_owner_alone),
        TEST(a_file_of_the_user_stays_as_it_was_but_for_its_text),
        TEST(what_fails_leaves_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
