#include "bus/line_server.h"

#include "base/log.h"
#include "bus_test.h"

#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
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
        &(struct line_server_options){
            .address = s->address, .listen = "127.0.0.1:0", .token = "token", .patience = patience},
        &err);
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

static int connect_by_tcp(const struct stage *s)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    sa.sin_port = htons((uint16_t)atoi(strchr(line_server_tcp(s->server), ':') + 1));
    assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof sa), 0);
    return fd;
}

static void say(int fd, const char *text)
{
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

/* Has the other side closed? Does not read. */
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

/* A member that does not read its messages is disconnected, and the group gets the messages. */
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

/* A member that has little or nothing to read is not disconnected. */
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

/* The file modes of the socket and its folder exclude other users; if they are lost, we check. */
static void test_another_user(void **state)
{
    (void)state;
    struct stage s;

    if (getuid() != 0)
        return; /* only root can become another user */
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

/* A line counts when its end arrives, in whatever pieces; an incomplete line is ignored. */
static void test_half_a_line(void **state)
{
    (void)state;
    struct stage s;
    char text[400] = "";

    stage_open(&s, 0);
    int reader = connect_to(&s), writer = connect_to(&s);
    say(reader, "{\"op\":\"sub\",\"id\":1,\"sid\":1,\"topic\":\"t\"}\n");
    WAIT(s.loop, recv(reader, text, sizeof text - 1, MSG_DONTWAIT) > 0);
    say(writer, "{\"op\":\"pub\",\"topic\":\"t\",\"env\":{\"body\":\"whole\"}}");
    run_for(s.loop, 50);
    close(writer);
    run_for(s.loop, 50);
    assert_true(recv(reader, text, sizeof text - 1, MSG_DONTWAIT) < 0);

    writer = connect_to(&s);
    for (const char *p = "{\"op\":\"pub\",\"topic\":\"t\",\"env\":{\"body\":\"bit by bit\"}}\r\n";
         *p; p++) {
        assert_int_equal(write(writer, p, 1), 1);
        loop_step(s.loop, 0);
    }
    memset(text, 0, sizeof text);
    WAIT(s.loop, recv(reader, text, sizeof text - 1, MSG_DONTWAIT) > 0);
    assert_non_null(strstr(text, "\"body\":\"bit by bit\""));

    /* Binary noise is not JSON: the connection is closed. */
    struct buf noise = {0};
    for (int i = 0; i < 50000; i++)
        buf_char(&noise, (char)(i * 7919 >> 3));
    ssize_t ignored = send(writer, noise.p, noise.n, MSG_DONTWAIT | MSG_NOSIGNAL);
    (void)ignored;
    WAIT(s.loop, is_cut(writer));
    buf_fini(&noise);
    close(writer);
    close(reader);
    stage_close(&s);
}

/*
 * On TCP every user of the machine can connect. Connections without a token once took all places,
 * so no member could join: their number is limited.
 */
static void test_strangers(void **state)
{
    enum { MANY = 70 };
    (void)state;
    struct stage s;
    int strangers[MANY];
    char text[100] = "";

    stage_open(&s, 0);
    int friend = connect_by_tcp(&s);
    say(friend, "{\"op\":\"hello\",\"id\":1,\"token\":\"token\"}\n");
    WAIT(s.loop, recv(friend, text, sizeof text - 1, MSG_DONTWAIT) > 0);
    assert_string_equal(text, "{\"op\":\"ok\",\"id\":1}\n");
    for (int i = 0; i < MANY; i++)
        strangers[i] = connect_by_tcp(&s);
    memset(text, 0, sizeof text);
    WAIT(s.loop, recv(strangers[MANY - 1], text, sizeof text - 1, MSG_DONTWAIT) > 0);
    assert_string_equal(text, "{\"op\":\"bye\",\"reason\":\"too many connections\"}\n");
    close(strangers[0]);
    for (int i = 0; i < 20; i++)
        loop_step(s.loop, 5);
    strangers[0] = connect_by_tcp(&s);
    say(strangers[0], "{\"op\":\"hello\",\"id\":2,\"token\":\"token\"}\n");
    memset(text, 0, sizeof text);
    WAIT(s.loop, recv(strangers[0], text, sizeof text - 1, MSG_DONTWAIT) > 0);
    assert_string_equal(text, "{\"op\":\"ok\",\"id\":2}\n");
    for (int i = 0; i < MANY; i++)
        close(strangers[i]);
    close(friend);
    stage_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stuck),        cmocka_unit_test(test_quiet),
        cmocka_unit_test(test_another_user), cmocka_unit_test(test_bye),
        cmocka_unit_test(test_half_a_line),  cmocka_unit_test(test_strangers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
