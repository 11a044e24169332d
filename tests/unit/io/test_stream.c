#include "io_test.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

static void make_pair(struct loop *l, struct party *a, struct party *b)
{
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    party_join(a, stream_from_fds(l, fds[0], fds[0], "a"));
    party_join(b, stream_from_fds(l, fds[1], fds[1], "b"));
}

static void leave_both(struct loop *l, struct party *a, struct party *b)
{
    party_leave(a, l);
    party_leave(b, l);
    loop_free(l);
}

/* `n` bytes that differ by position. */
static char *make_pattern(size_t n)
{
    char *p = mem_alloc(n);
    for (size_t i = 0; i < n; i++)
        p[i] = (char)(i * 2654435761u >> 13);
    return p;
}

static void test_writes_arrive_in_order(void **state)
{
    (void)state;
    struct loop *l = loop_new();
    struct party a, b;
    make_pair(l, &a, &b);
    assert_string_equal(stream_name(a.stream), "a");
    stream_write(a.stream, SPAN("one "));
    buf_str(stream_out(a.stream), "two ");
    stream_wrote(a.stream);
    stream_write(a.stream, SPAN("three"));
    assert_int_equal(stream_queued(a.stream), 13);
    WAIT(l, b.got.n == 13);
    assert_true(party_has(&b, "one two three"));
    assert_int_equal(stream_queued(a.stream), 0);
    stream_write(b.stream, SPAN("back"));
    WAIT(l, a.got.n == 4);
    leave_both(l, &a, &b);
}

/* A process that gets many small messages in one turn can start on the first ones while we go on;
 * but a write for each message of 10 KB made 64 of them under way 5 % slower than one write for
 * all. */
static void test_several_messages_are_written_before_the_turn_ends(void **state)
{
    (void)state;
    struct loop *l = loop_new();
    struct party a, b;
    make_pair(l, &a, &b);
    char *pattern = make_pattern(40 * 1024);
    for (size_t i = 1; i <= 3; i++) {
        stream_write(a.stream, span_of(pattern, 10 * 1024));
        assert_int_equal(stream_queued(a.stream), i * 10 * 1024);
    }
    stream_write(a.stream, span_of(pattern, 1024));
    assert_int_equal(stream_queued(a.stream), 0);
    stream_write(a.stream, span_of(pattern, 40 * 1024));
    assert_int_equal(stream_queued(a.stream), 0);
    WAIT(l, b.got.n == 71 * 1024);
    mem_free(pattern);
    leave_both(l, &a, &b);
}

/* The rest of a large write must not move while libuv reads it and more is appended. */
static void test_large_output_keeps_its_order(void **state)
{
    (void)state;
    enum { PART = 3 * 1024 * 1024, PARTS = 5 };
    struct loop *l = loop_new();
    struct party a, b;
    make_pair(l, &a, &b);
    char *pattern = make_pattern(PART * PARTS);
    for (int i = 0; i < PARTS; i++) {
        stream_write(a.stream, span_of(pattern + i * PART, PART));
        loop_step(l, 0);
    }
    WAIT(l, b.got.n == PART * PARTS);
    assert_memory_equal(b.got.p, pattern, PART * PARTS);
    assert_true(a.n_drained > 0);
    assert_int_equal(stream_queued(a.stream), 0);
    mem_free(pattern);
    leave_both(l, &a, &b);
}

static void test_drained_is_told_after_high_water(void **state)
{
    (void)state;
    struct loop *l = loop_new();
    struct party a, b;
    make_pair(l, &a, &b);
    stream_pause(b.stream);
    char *pattern = make_pattern(STREAM_HIGH_WATER * 2);
    stream_write(a.stream, span_of(pattern, STREAM_HIGH_WATER / 2));
    run_for(l, 20);
    assert_int_equal(a.n_drained, 0);
    stream_write(a.stream, span_of(pattern, STREAM_HIGH_WATER));
    run_for(l, 20);
    assert_int_equal(a.n_drained, 0);
    assert_true(stream_queued(a.stream) > STREAM_HIGH_WATER / 2);
    stream_resume(b.stream);
    WAIT(l, a.n_drained == 1);
    WAIT(l, b.got.n == STREAM_HIGH_WATER * 3 / 2);
    assert_int_equal(a.n_drained, 1);
    mem_free(pattern);
    leave_both(l, &a, &b);
}

static void test_a_slow_reader_is_cut(void **state)
{
    (void)state;
    struct loop *l = loop_new();
    struct party a, b;
    make_pair(l, &a, &b);
    char *pattern = make_pattern(1024 * 1024);
    stream_pause(b.stream);
    stream_set_limit(a.stream, 3 * 1024 * 1024);
    for (int i = 0; i < 10 && a.stream; i++) {
        stream_write(a.stream, span_of(pattern, 1024 * 1024));
        assert_int_equal(a.n_closed, 0); /* never from inside a call */
        stream_write(a.stream, SPAN("x"));
        loop_step(l, 0);
    }
    WAIT(l, a.n_closed == 1);
    assert_string_equal(a.reason, "reader too slow");
    mem_free(pattern);
    leave_both(l, &a, &b);
}

/* A burst above the limit that fits into kernel buffers does not count as a slow reader. */
static void test_a_burst_is_not_a_slow_reader(void **state)
{
    (void)state;
    struct loop *l = loop_new();
    struct party a, b;
    make_pair(l, &a, &b);
    stream_set_limit(a.stream, 1000);
    char text[700] = {0};
    for (int i = 0; i < 10; i++)
        stream_write(a.stream, span_of(text, sizeof text));
    WAIT(l, b.got.n == 7000);
    assert_int_equal(a.n_closed, 0);
    leave_both(l, &a, &b);
}

static void test_close_drops_output_and_tells_once(void **state)
{
    (void)state;
    struct loop *l = loop_new();
    struct party a, b;
    make_pair(l, &a, &b);
    stream_write(a.stream, SPAN("never sent"));
    stream_close(a.stream, "first reason");
    stream_close(a.stream, "second reason");
    stream_write(a.stream, SPAN("nor this"));
    stream_shutdown(a.stream);
    stream_finish(a.stream, "late", 10);
    stream_pause(a.stream);
    stream_resume(a.stream);
    assert_int_equal(a.n_closed, 0);
    WAIT(l, a.n_closed);
    run_for(l, 20);
    assert_int_equal(a.n_closed, 1);
    assert_string_equal(a.reason, "first reason");
    WAIT(l, b.n_eof == 1);
    assert_int_equal(b.got.n, 0);
    leave_both(l, &a, &b);
}

static void close_on_data(void *owner, struct span chunk)
{
    struct party *p = owner;
    buf_span(&p->got, chunk);
    stream_close(p->stream, "had enough");
}

static void test_close_inside_the_data_callback(void **state)
{
    (void)state;
    static const struct stream_events on = {close_on_data, NULL, NULL, party_closed};
    struct loop *l = loop_new();
    struct party a, b;
    make_pair(l, &a, &b);
    stream_rebind(b.stream, &on, &b); /* the owner may change while the stream runs */
    char *pattern = make_pattern(300000);
    stream_write(a.stream, span_of(pattern, 300000));
    WAIT(l, b.n_closed);
    assert_true(b.got.n <= 65536);
    assert_string_equal(b.reason, "had enough");
    WAIT(l, a.n_closed || a.n_eof);
    mem_free(pattern);
    leave_both(l, &a, &b);
}

static void test_shutdown_is_half_of_a_close(void **state)
{
    (void)state;
    struct loop *l = loop_new();
    struct party a, b;
    make_pair(l, &a, &b);
    stream_write(a.stream, SPAN("last words"));
    stream_shutdown(a.stream);
    WAIT(l, b.n_eof == 1);
    assert_true(party_has(&b, "last words"));
    assert_int_equal(a.n_closed + b.n_closed, 0);
    stream_write(b.stream, SPAN("heard"));
    WAIT(l, party_has(&a, "heard"));
    stream_write(a.stream, SPAN("too late: dropped"));
    run_for(l, 10);
    assert_int_equal(a.n_closed, 0);
    leave_both(l, &a, &b);
}

static void test_eof_closes_who_does_not_ask_for_it(void **state)
{
    (void)state;
    struct loop *l = loop_new();
    struct party a, b;
    make_pair(l, &a, &b);
    stream_rebind(b.stream, &party_plain, &b);
    stream_shutdown(a.stream);
    WAIT(l, b.n_closed == 1);
    assert_string_equal(b.reason, "closed by the peer");
    WAIT(l, a.n_eof == 1);
    leave_both(l, &a, &b);
}

static void answer_on_data(void *owner, struct span chunk)
{
    struct party *p = owner;
    stream_write(p->stream, SPAN("answer to "));
    stream_write(p->stream, chunk);
}

/* `echo request | server`: the request and EOF arrive in one turn; closing at EOF dropped the
 * response, which is written at the end of the turn. */
static void test_eof_right_behind_a_request(void **state)
{
    (void)state;
    static const struct stream_events on = {answer_on_data, NULL, NULL, party_closed};
    struct loop *l = loop_new();
    struct party server = {0}, client;
    int there[2], back[2];
    assert_int_equal(pipe2(there, O_CLOEXEC) + pipe2(back, O_CLOEXEC), 0);
    assert_int_equal(write(there[1], "request", 7), 7);
    close(there[1]);
    server.stream = stream_from_fds(l, there[0], back[1], "server");
    stream_start(server.stream, &on, &server);
    party_join(&client, stream_from_fds(l, back[0], -1, "client"));
    WAIT(l, client.n_eof == 1);
    assert_true(party_has(&client, "answer to request"));
    WAIT(l, server.n_closed == 1);
    assert_string_equal(server.reason, "closed by the peer");
    party_leave(&client, l);
    loop_free(l);
}

static void test_finish_sends_all_then_closes(void **state)
{
    (void)state;
    enum { N = 5 * 1024 * 1024 };
    struct loop *l = loop_new();
    struct party a, b;
    make_pair(l, &a, &b);
    char *pattern = make_pattern(N);
    stream_write(a.stream, span_of(pattern, N));
    stream_finish(a.stream, "done", 10000);
    stream_write(b.stream, SPAN("not wanted any more"));
    WAIT(l, a.n_closed == 1);
    WAIT(l, b.n_eof == 1);
    assert_int_equal(b.got.n, N);
    assert_memory_equal(b.got.p, pattern, N);
    assert_string_equal(a.reason, "done");
    assert_int_equal(a.got.n, 0);
    mem_free(pattern);
    leave_both(l, &a, &b);
}

static void test_finish_does_not_wait_for_ever(void **state)
{
    (void)state;
    struct loop *l = loop_new();
    struct party a, b;
    make_pair(l, &a, &b);
    char *pattern = make_pattern(4 * 1024 * 1024);
    stream_pause(b.stream);
    stream_write(a.stream, span_of(pattern, 4 * 1024 * 1024));
    stream_finish(a.stream, "done", 50);
    run_for(l, 20);
    assert_int_equal(a.n_closed, 0);
    WAIT_MS(l, a.n_closed == 1, 2000);
    mem_free(pattern);
    leave_both(l, &a, &b);
}

/* Two pipes are one stream: EOF is sent by closing one of them, the other stays open. */
static void test_two_pipes_are_one_stream(void **state)
{
    (void)state;
    enum { N = 2 * 1024 * 1024 };
    loop_free(loop_new()); /* libuv opens a few descriptors for the whole process */
    int there[2], back[2], fds = count_fds();
    struct loop *l = loop_new();
    struct party a, b;
    assert_int_equal(pipe2(there, O_CLOEXEC) + pipe2(back, O_CLOEXEC), 0);
    party_join(&a, stream_from_fds(l, back[0], there[1], "a"));
    party_join(&b, stream_from_fds(l, there[0], back[1], "b"));
    char *pattern = make_pattern(N);
    stream_write(a.stream, span_of(pattern, N));
    stream_shutdown(a.stream);
    WAIT(l, b.n_eof == 1);
    assert_int_equal(b.got.n, N);
    assert_memory_equal(b.got.p, pattern, N);
    stream_write(b.stream, SPAN("heard"));
    WAIT(l, party_has(&a, "heard"));
    stream_close(b.stream, "bye");
    WAIT(l, a.n_eof == 1 && b.n_closed == 1);
    mem_free(pattern);
    party_leave(&a, l);
    party_fini(&b);
    loop_free(l);
    assert_int_equal(count_fds(), fds);
}

/* stream_unread tells whether a program that was just started has read its first message yet. */
static void test_what_lies_in_a_pipe_is_unread(void **state)
{
    (void)state;
    struct loop *l = loop_new();
    int there[2], back[2];
    struct party a;
    char bytes[16];

    assert_int_equal(pipe2(there, O_CLOEXEC) + pipe2(back, O_CLOEXEC), 0);
    party_join(&a, stream_from_fds(l, back[0], there[1], "a"));
    stream_write(a.stream, SPAN("question"));
    assert_int_equal(stream_unread(a.stream), 8);
    WAIT(l, stream_queued(a.stream) == 0);
    assert_int_equal(stream_unread(a.stream), 8);
    assert_int_equal(read(there[0], bytes, 5), 5);
    assert_int_equal(stream_unread(a.stream), 3);
    assert_int_equal(read(there[0], bytes, sizeof bytes), 3);
    assert_int_equal(stream_unread(a.stream), 0);
    party_leave(&a, l);
    close(there[0]);
    close(back[1]);
    loop_free(l);
}

static void test_a_broken_pipe_closes_with_a_reason(void **state)
{
    (void)state;
    struct loop *l = loop_new();
    struct party a;
    int there[2], back[2];
    assert_int_equal(pipe2(there, O_CLOEXEC) + pipe2(back, O_CLOEXEC), 0);
    party_join(&a, stream_from_fds(l, back[0], there[1], "a"));
    close(there[0]);
    stream_write(a.stream, SPAN("anybody there?"));
    WAIT(l, a.n_closed == 1);
    assert_string_equal(a.reason, "broken pipe");
    close(back[1]);
    party_fini(&a);
    loop_free(l);
}

/* The kernel cannot poll files, so the loop reads them piece by piece. */
static void test_files_are_streams_too(void **state)
{
    (void)state;
    enum { N = 300000 };
    char path[] = "/tmp/rialto-test-XXXXXX";
    struct loop *l = loop_new();
    struct party a;
    char *pattern = make_pattern(N);
    int file = mkostemp(path, O_CLOEXEC);
    assert_int_equal(write(file, pattern, N), N);
    lseek(file, 0, SEEK_SET);

    party_join(&a, stream_from_fds(l, file, open("/dev/null", O_WRONLY | O_CLOEXEC), "file"));
    loop_step(l, 0);
    size_t so_far = a.got.n;
    assert_true(so_far > 0 && so_far < N);
    stream_pause(a.stream);
    run_for(l, 10);
    assert_int_equal(a.got.n, so_far);
    stream_resume(a.stream);
    WAIT(l, a.n_eof == 1);
    assert_int_equal(a.got.n, N);
    assert_memory_equal(a.got.p, pattern, N);
    stream_write(a.stream, SPAN("goes nowhere"));
    loop_run(l); /* a file at its end does not keep the loop running */
    party_leave(&a, l);

    file = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    party_join(&a, stream_from_fds(l, open("/dev/null", O_RDONLY | O_CLOEXEC), file, "file"));
    stream_write(a.stream, span_of(pattern, N));
    stream_finish(a.stream, "written", 1000);
    WAIT(l, a.n_closed == 1);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, N);
    unlink(path);
    mem_free(pattern);
    party_fini(&a);
    loop_free(l);
}

static void test_closing_before_starting_is_fine(void **state)
{
    (void)state;
    struct loop *l = loop_new();
    struct party a;
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    struct stream *never = stream_from_fds(l, fds[0], fds[0], "never started");
    stream_close(never, "nobody wants it");
    party_join(&a, stream_from_fds(l, fds[1], fds[1], "b"));
    WAIT(l, a.n_eof == 1);
    party_leave(&a, l);
    loop_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_writes_arrive_in_order),
        cmocka_unit_test(test_several_messages_are_written_before_the_turn_ends),
        cmocka_unit_test(test_large_output_keeps_its_order),
        cmocka_unit_test(test_drained_is_told_after_high_water),
        cmocka_unit_test(test_a_slow_reader_is_cut),
        cmocka_unit_test(test_a_burst_is_not_a_slow_reader),
        cmocka_unit_test(test_close_drops_output_and_tells_once),
        cmocka_unit_test(test_close_inside_the_data_callback),
        cmocka_unit_test(test_shutdown_is_half_of_a_close),
        cmocka_unit_test(test_eof_closes_who_does_not_ask_for_it),
        cmocka_unit_test(test_eof_right_behind_a_request),
        cmocka_unit_test(test_finish_sends_all_then_closes),
        cmocka_unit_test(test_finish_does_not_wait_for_ever),
        cmocka_unit_test(test_two_pipes_are_one_stream),
        cmocka_unit_test(test_what_lies_in_a_pipe_is_unread),
        cmocka_unit_test(test_a_broken_pipe_closes_with_a_reason),
        cmocka_unit_test(test_files_are_streams_too),
        cmocka_unit_test(test_closing_before_starting_is_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
