/* Permanent grants: kept in a file, read again, and bounded. */
#include "../unit.h"
#include "browser/kept.h"

#include "base/log.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/rialto-kept-XXXXXX";
static char file[64];

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(file, sizeof file, "%s/grants.json", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(file);
    return rmdir(folder);
}

static void write_file(const char *text)
{
    int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

/* "origin name;origin name;" in the order they are kept. */
static void assert_kept(const struct kept_grants *k, const char *wanted)
{
    const struct kept_grant *g = NULL;
    char all[512] = "";

    while ((g = kept_next(k, g)))
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s %s;", g->origin, g->name);
    assert_string_equal(all, wanted);
}

static void test_kept_and_read_again(void **state)
{
    struct kept_grants *k = kept_load(file);
    struct stat status;

    (void)state;
    assert_kept(k, "");
    kept_add(k, SPAN("https://a"), SPAN("dom:write"));
    kept_add(k, SPAN("https://b"), SPAN("dom:*"));
    kept_add(k, SPAN("https://a"), SPAN("geolocation"));
    kept_add(k, SPAN("https://a"), SPAN("dom:write"));
    kept_save(k);
    kept_free(k);
    assert_int_equal(stat(file, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);

    k = kept_load(file);
    assert_kept(k, "https://a dom:write;https://a geolocation;https://b dom:*;");
    kept_drop(k, "https://a", "dom:*");
    kept_drop(k, "https://a", "dom:write");
    assert_kept(k, "https://a geolocation;https://b dom:*;");
    kept_save(k);
    kept_free(k);
    k = kept_load(file);
    assert_kept(k, "https://a geolocation;https://b dom:*;");
    kept_free(k);
}

static void test_wrong_files(void **state)
{
    static const char *const texts[] = {"", "[]", "{", "{\"https://a\": 1}",
                                        "{\"https://a\": [1, {}, \"no name\"]}"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        write_file(texts[i]);
        struct kept_grants *k = kept_load(file);
        assert_kept(k, "");
        kept_free(k);
    }
    write_file("{\"https://a\": [\"dom:read\", 7]}");
    struct kept_grants *k = kept_load(file);
    assert_kept(k, "https://a dom:read;");
    kept_free(k);
}

static void test_nowhere(void **state)
{
    struct kept_grants *k = kept_load(NULL);

    (void)state;
    kept_add(k, SPAN("https://a"), SPAN("dom:read"));
    kept_save(k);
    assert_kept(k, "https://a dom:read;");
    kept_free(k);
}

/* The count also grew with every grant that was refused or dropped, until no new grant was kept. */
static void test_many(void **state)
{
    struct kept_grants *k = kept_load(NULL);
    char name[32];
    size_t n = 0;

    (void)state;
    log_set_level(LOG_ERROR);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 1010; i++) {
            snprintf(name, sizeof name, "c%d", i);
            kept_add(k, SPAN("https://a"), span_str(name));
        }
    }
    for (const struct kept_grant *g = NULL; (g = kept_next(k, g));)
        n++;
    assert_int_equal(n, 1000);
    kept_drop(k, "https://a", "c0");
    kept_add(k, SPAN("https://b"), SPAN("dom:read"));
    const struct kept_grant *last = NULL;
    for (const struct kept_grant *g = NULL; (g = kept_next(k, g));)
        last = g;
    assert_string_equal(last->origin, "https://b");
    kept_free(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kept_and_read_again),
        cmocka_unit_test(test_wrong_files),
        cmocka_unit_test(test_nowhere),
        cmocka_unit_test(test_many),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
