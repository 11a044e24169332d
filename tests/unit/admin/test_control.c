#include "../unit.h"
#include "admin/control.h"
#include "base/log.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* The test's own runtime folder. */
static char *runtime;

static int begin(void **state)
{
    char name[] = "/tmp/rialto-unit-XXXXXX";

    (void)state;
    runtime = mem_str(mkdtemp(name));
    setenv("XDG_RUNTIME_DIR", runtime, 1);
    log_set_level(LOG_ERROR);
    return 0;
}

static int end(void **state)
{
    struct buf command = {0};

    (void)state;
    buf_printf(&command, "rm -rf '%s'", runtime);
    int code = system(buf_cstr(&command));
    buf_fini(&command);
    mem_free(runtime);
    return code;
}

static void put_path(struct buf *out, const char *rest)
{
    out->n = 0;
    buf_printf(out, "%s%s", runtime, rest);
    buf_cstr(out);
}

static void test_a_folder_of_its_own(void **state)
{
    struct buf wanted = {0};
    struct stat st;

    (void)state;
    put_path(&wanted, "/rialto/control.sock");
    char *address = control_address("auto", NULL);
    assert_non_null(address);
    assert_memory_equal(address, "unix:", 5);
    assert_string_equal(address + 5, wanted.p);
    mem_free(address);
    put_path(&wanted, "/rialto");
    assert_int_equal(stat(wanted.p, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    buf_fini(&wanted);
}

/* A user who can write to the folder could put another socket there instead of ours. */
static void test_a_folder_that_others_can_write_to(void **state)
{
    struct buf folder = {0};

    (void)state;
    put_path(&folder, "/rialto");
    assert_int_equal(mkdir(folder.p, 0700), 0);
    assert_int_equal(chmod(folder.p, 0777), 0);
    assert_null(control_address("auto", NULL));
    /* A symbolic link is refused. */
    assert_int_equal(rmdir(folder.p), 0);
    assert_int_equal(symlink("/tmp", folder.p), 0);
    assert_null(control_address("auto", NULL));
    buf_fini(&folder);
}

static int put_socket(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

/* A socket there may be another user's: commands connected to it, and shims gave it the values of
 * the user's variables. */
static void test_a_socket_in_a_folder_of_others(void **state)
{
    struct buf folder = {0}, path = {0};

    (void)state;
    put_path(&folder, "/rialto");
    put_path(&path, "/rialto/control.sock");
    assert_int_equal(mkdir(folder.p, 0777), 0);
    int fd = put_socket(path.p);
    assert_int_equal(chmod(folder.p, 0777), 0);
    assert_null(control_find("auto", NULL));
    assert_int_equal(chmod(folder.p, 0700), 0);
    if (getuid() == 0) {
        assert_int_equal(chown(folder.p, 65534, 65534), 0);
        assert_null(control_find("auto", NULL));
        assert_int_equal(chown(folder.p, 0, 0), 0);
    }
    char *found = control_find("auto", NULL);
    assert_string_equal(found, path.p);
    mem_free(found);
    close(fd);
    buf_fini(&folder);
    buf_fini(&path);
}

static void test_told_where(void **state)
{
    struct buf places = {0};

    (void)state;
    assert_null(control_address("off", NULL));
    assert_null(control_find("off", NULL));
    char *address = control_address("unix:/x/y.sock", NULL);
    assert_string_equal(address, "unix:/x/y.sock");
    mem_free(address);
    assert_null(control_find("unix:/x/y.sock", NULL));
    control_put_places(&places, "unix:/x/y.sock", NULL);
    assert_string_equal(buf_cstr(&places), "/x/y.sock");
    buf_fini(&places);
}

static void test_found_again(void **state)
{
    struct buf places = {0};

    (void)state;
    char *address = control_address("auto", NULL);
    int fd = put_socket(address + 5);
    char *path = control_find("auto", NULL);
    assert_string_equal(path, address + 5);
    control_put_places(&places, "auto", NULL);
    assert_non_null(strstr(buf_cstr(&places), path));
    close(fd);
    mem_free(path);
    mem_free(address);
    buf_fini(&places);
}

/* There is one daemon for each file, by whatever path the file is named. */
static void test_named_after_the_file(void **state)
{
    struct buf one = {0}, same = {0}, other = {0}, none = {0};

    (void)state;
    control_put_name(&one, "/etc/passwd");
    control_put_name(&same, "/etc/../etc/passwd");
    control_put_name(&other, "/etc/group");
    control_put_name(&none, NULL);
    assert_string_equal(buf_cstr(&none), "control.sock");
    assert_string_equal(buf_cstr(&one), buf_cstr(&same));
    assert_string_not_equal(buf_cstr(&one), buf_cstr(&other));
    assert_int_equal(one.n, strlen("control-0123456789abcdef.sock"));
    buf_fini(&one);
    buf_fini(&same);
    buf_fini(&other);
    buf_fini(&none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_folder_of_its_own, begin, end),
        cmocka_unit_test_setup_teardown(test_a_folder_that_others_can_write_to, begin, end),
        cmocka_unit_test_setup_teardown(test_a_socket_in_a_folder_of_others, begin, end),
        cmocka_unit_test_setup_teardown(test_told_where, begin, end),
        cmocka_unit_test_setup_teardown(test_found_again, begin, end),
        cmocka_unit_test_setup_teardown(test_named_after_the_file, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
