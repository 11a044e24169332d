/* Lines of strace, and the sandbox configuration that is made from them. */
#include "../unit.h"

#include "cmd/learn.h"

static void check(const char *const *lines, const char *wanted)
{
    static const struct cage_path open[] = {{"/usr", CAGE_READ | CAGE_RUN, false}};
    struct cage_rules rules = {
        .level = "map", .own = "/here", .home = "/home/u", .paths = open, .n_paths = 1};
    struct learn l = {.rules = &rules, .cwd = "/here"};
    BUF_SCOPED out = {0};

    cage_list_add(&l.files, "/home/u/bin/server", CAGE_READ | CAGE_RUN);
    for (; *lines; lines++) {
        struct span exact = unit_exact(span_str(*lines));
        learn_line(&l, exact);
        unit_free(exact);
    }
    learn_put(&out, &l, 0);
    learn_fini(&l);
    assert_string_equal(buf_cstr(&out), wanted);
}

#define LINES(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_files(void **state)
{
    (void)state;
    check(LINES("execve(\"/home/u/bin/server\", [\"server\"], 0x7ffd /* 3 vars */) = 0",
                "openat(AT_FDCWD</here>, \"/lib/libc.so.6\", O_RDONLY) = 3</usr/lib/libc.so.6>",
                "openat(AT_FDCWD</here>, \"x\", O_RDWR|O_CREAT, 0600) = 3</here/x>",
                "openat(AT_FDCWD</here>, \"/tmp/a/b\", O_WRONLY|O_CREAT) = 3</tmp/a/b>",
                "openat(AT_FDCWD</here>, \"/home/u/no\", O_RDONLY) = -1 ENOENT (No such file)",
                "newfstatat(AT_FDCWD</here>, \"/home/u/seen\", {st_mode=S_IFREG|0644}, 0) = 0", "",
                "garbage", "openat("),
          "network: none\n");
    check(LINES("openat(AT_FDCWD</here>, \"y\", O_RDONLY) = 3</srv/p/node_modules/a/i.js>",
                "openat(AT_FDCWD</here>, \"y\", O_RDONLY) = 3</srv/p/node_modules/b/c/i.js>",
                "openat(AT_FDCWD</here>, \"y\", O_RDONLY) = 3</home/u/.netrc>",
                "openat(AT_FDCWD</here>, \"y\", O_RDONLY) = 3</home/u/data/deep/x>",
                "openat(AT_FDCWD</here>, \"y\", O_RDONLY) = 3</home/u/data/x>",
                "mkdir(\"/home/u/out/new\", 0777)                      = 0",
                "unlink(\"../lib/a\") = -1 EPERM (Operation not permitted)"),
          "read:\n  - \"/srv/p/node_modules\"\n  - \"/home/u/.netrc\"\n  - \"/home/u/data\"\n"
          "write:\n  - \"/home/u/out\"\n");
}

static void test_network(void **state)
{
    (void)state;
    check(LINES("connect(3<TCP:[1]>, {sa_family=AF_INET, sin_port=htons(443), "
                "sin_addr=inet_addr(\"192.0.2.1\")}, 16) = -1 EINPROGRESS (Now in progress)",
                "connect(4<TCPv6:[2]>, {sa_family=AF_INET6, sin6_port=htons(443), "
                "sin6_flowinfo=htonl(0)}, 28) = 0",
                "connect(5<UNIX-STREAM:[3]>, {sa_family=AF_UNIX, sun_path=\"/run/x\"}, 110) = 0"),
          "network: [443]\n");
    check(LINES("connect(3<UDP:[1]>, {sa_family=AF_INET, sin_port=htons(53), "
                "sin_addr=inet_addr(\"192.0.2.1\")}, 16) = 0"),
          "network: all\n");
    check(LINES("bind(3<TCP:[1]>, {sa_family=AF_INET, sin_port=htons(0), "
                "sin_addr=inet_addr(\"127.0.0.1\")}, 16) = 0"),
          "network: all\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_files),
                                       cmocka_unit_test(test_network)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
