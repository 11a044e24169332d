#include "bus/line_server.h"

#include "base/log.h"
#include "bus_test.h"

#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

struct stage {
    struct loop *loop;
    struct broker *broker;
    struct line_server *server;
    char folder[64], address[96];
    bool closed;
};

static void stage_open(struct stage *s, uint64_t patience)
{
    struct err err;

    *s = (struct stage){.loop = loop_new()};
    log_set_level(LOG_ERROR);
    snprintf(s->folder, sizeof s->folder, "/tmp/rialto-bus-XXXXXX");
    assert_non_null(mkdtemp(s->folder));
    snprintf(s->address, sizeof s->address, "unix:%s/s", s->folder);
    s->broker = broker_new(s->loop, &(struct broker_options){0});
    s->server = line_server_open(
        s->loop, s->broker,
        &(struct line_server_options){.address = s->address, .patience = patience}, &err);
    assert_non_null(s->server);
}

static void on_closed(void *owner)
{
    ((struct stage *)owner)->closed = true;
}

static void stage_close(struct stage *s)
{
    line_server_close(s->server, on_closed, s);
    WAIT(s->loop, s->closed);
    broker_free(s->broker);
    loop_free(s->loop);
    assert_int_equal(rmdir(s->folder), 0);
}

static int connect_to(const struct stage *s)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(sa.sun_path, sizeof sa.sun_path, "%s", s->address + strlen("unix:"));
    if (connect(fd, (struct sockaddr *)&sa, sizeof sa) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static void say(int fd, const char *text)
{
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

/* Has the other side closed? Reads nothing. */
static bool is_cut(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLRDHUP};

    return poll(&p, 1, 0) == 1 && p.revents & (POLLRDHUP | POLLHUP);
}

static enum bus_sent publish(struct stage *s, struct span body)
{
    return broker_publish(
        s->broker, SPAN("t"),
        &(struct message){
            .id = SPAN("i"), .type = SPAN("t"), .source = SPAN("s"), .sent_ms = 1, .body = body});
}

/* One that has messages and does not read them is cut off, and its messages are the group's. */
static void test_stuck(void **state)
{
    (void)state;
    struct stage s;
    char *body = mem_alloc(300000);

    memset(body, '1', 300000);
    stage_open(&s, 200);
    int fd = connect_to(&s);
    say(fd,
        "{\"op\":\"sub\",\"id\":1,\"sid\":1,\"topic\":\"t\",\"group\":\"g\",\"durable\":true}\n");
    char text[64] = "";
    WAIT(s.loop, recv(fd, text, sizeof text - 1, MSG_DONTWAIT) > 0);
    assert_string_equal(text, "{\"op\":\"ok\",\"id\":1}\n");
    for (int i = 0; i < 20; i++)
        assert_int_equal(publish(&s, span_of(body, 300000)), BUS_SENT);
    WAIT(s.loop, is_cut(fd));
    close(fd);
    fd = connect_to(&s);
    say(fd, "{\"op\":\"sub\",\"sid\":1,\"topic\":\"t\",\"group\":\"g\",\"durable\":true}\n");
    WAIT(s.loop, recv(fd, text, sizeof text - 1, MSG_DONTWAIT) > 0);
    assert_non_null(strstr(text, "{\"op\":\"msg\",\"sid\":1"));
    close(fd);
    mem_free(body);
    stage_close(&s);
}

/* A member that only reads slowly, or has nothing to read, is left in peace. */
static void test_quiet(void **state)
{
    (void)state;
    struct stage s;

    stage_open(&s, 50);
    int fd = connect_to(&s);
    say(fd, "{\"op\":\"sub\",\"sid\":1,\"topic\":\"t\",\"group\":\"g\"}\n");
    run_for(s.loop, 300);
    assert_int_equal(publish(&s, SPAN("1")), BUS_SENT);
    run_for(s.loop, 300);
    assert_false(is_cut(fd));
    close(fd);
    stage_close(&s);
}

/* The rights of the socket and its folder keep others out; if these are lost, we still do. */
static void test_another_user(void **state)
{
    (void)state;
    struct stage s;

    if (getuid() != 0)
        return; /* only root can be somebody else */
    stage_open(&s, 0);
    assert_int_equal(chmod(s.folder, 0755), 0);
    assert_int_equal(chmod(s.address + strlen("unix:"), 0666), 0);
    pid_t pid = fork();
    if (pid == 0) {
        if (setuid(65534) < 0)
            _exit(1);
        int fd = connect_to(&s);
        char text[100] = "";
        if (fd < 0 || read(fd, text, sizeof text - 1) <= 0)
            _exit(2);
        _exit(strstr(text, "another user") ? 0 : 3);
    }
    int status = -1;
    WAIT(s.loop, waitpid(pid, &status, WNOHANG) == pid);
    assert_int_equal(status, 0);
    stage_close(&s);
}

/* Closing says bye. */
static void test_bye(void **state)
{
    (void)state;
    struct stage s;
    char text[100] = "";

    stage_open(&s, 0);
    int fd = connect_to(&s);
    say(fd, "{\"op\":\"ping\"}\n");
    WAIT(s.loop, recv(fd, text, sizeof text - 1, MSG_DONTWAIT) > 0);
    assert_string_equal(text, "{\"op\":\"pong\"}\n");
    stage_close(&s);
    memset(text, 0, sizeof text);
    assert_true(recv(fd, text, sizeof text - 1, MSG_DONTWAIT) > 0);
    assert_string_equal(text, "{\"op\":\"bye\",\"reason\":\"the bus is closing\"}\n");
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stuck),
        cmocka_unit_test(test_quiet),
        cmocka_unit_test(test_another_user),
        cmocka_unit_test(test_bye),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
