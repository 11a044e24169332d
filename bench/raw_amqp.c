/*
 * A ping-pong with librabbitmq's own blocking calls and the properties and headers of a RockBot
 * message: what the broker and that library cost, without a bridge.
 *   bench_raw_amqp PORT plain|confirm echo TOPIC QUEUE PREFETCH
 *   bench_raw_amqp PORT plain|confirm bench TOPIC SECONDS IN_FLIGHT BYTES
 * With `confirm` the broker confirms every message, as it does for Rialto, and has to write the
 * message to disk first. This program does not wait for the confirms.
 */
#include "bus_bench.h"

#include <amqp.h>
#include <amqp_tcp_socket.h>

static amqp_connection_state_t connection;

static void check(int failed, const char *what)
{
    if (failed) {
        fprintf(stderr, "bench_raw_amqp: %s failed\n", what);
        exit(1);
    }
}

static void done(const char *what)
{
    check(amqp_get_rpc_reply(connection).reply_type != AMQP_RESPONSE_NORMAL, what);
}

static void join(int port, int confirm)
{
    connection = amqp_new_connection();
    amqp_socket_t *socket = amqp_tcp_socket_new(connection);
    check(amqp_socket_open(socket, "127.0.0.1", port) != 0, "connect");
    check(amqp_login(connection, "/", 0, 131072, 0, AMQP_SASL_METHOD_PLAIN, "guest", "guest")
                  .reply_type != AMQP_RESPONSE_NORMAL,
          "login");
    amqp_channel_open(connection, 1);
    done("channel");
    amqp_exchange_declare(connection, 1, amqp_cstring_bytes("rockbot"), amqp_cstring_bytes("topic"),
                          0, 1, 0, 0, amqp_empty_table);
    done("exchange");
    if (confirm)
        amqp_confirm_select(connection, 1);
    done("confirms");
}

/* Durable, as RockBot's queues are on both sides. */
static void consume(const char *queue, const char *topic, int prefetch)
{
    amqp_bytes_t name = amqp_cstring_bytes(queue);
    amqp_queue_declare(connection, 1, name, 0, 1, 0, 0, amqp_empty_table);
    done("queue");
    amqp_queue_bind(connection, 1, name, amqp_cstring_bytes("rockbot"), amqp_cstring_bytes(topic),
                    amqp_empty_table);
    done("bind");
    amqp_basic_qos(connection, 1, 0, (uint16_t)prefetch, 0);
    amqp_basic_consume(connection, 1, name, amqp_empty_bytes, 0, 0, 0, amqp_empty_table);
    done("consume");
}

static void publish(amqp_bytes_t topic, amqp_bytes_t correlation, amqp_bytes_t reply_to,
                    amqp_bytes_t body)
{
    static const char *const headers[][2] = {
        {"rb-source", "bench"},         {"rb-rb-content-trust", "tool-request"},
        {"rb-rb-tool-provider", "mcp"}, {"rb-rb-timeout-ms", "60000"},
        {"rb-rb-mcp-server", "echo"},
    };
    enum { N = sizeof headers / sizeof headers[0] };
    amqp_table_entry_t entries[N];
    for (int i = 0; i < N; i++) {
        entries[i].key = amqp_cstring_bytes(headers[i][0]);
        entries[i].value.kind = AMQP_FIELD_KIND_UTF8;
        entries[i].value.value.bytes = amqp_cstring_bytes(headers[i][1]);
    }
    amqp_basic_properties_t p = {
        ._flags = AMQP_BASIC_CONTENT_TYPE_FLAG | AMQP_BASIC_DELIVERY_MODE_FLAG |
                  AMQP_BASIC_CORRELATION_ID_FLAG | AMQP_BASIC_REPLY_TO_FLAG |
                  AMQP_BASIC_MESSAGE_ID_FLAG | AMQP_BASIC_TIMESTAMP_FLAG | AMQP_BASIC_TYPE_FLAG |
                  AMQP_BASIC_HEADERS_FLAG,
        .content_type = amqp_cstring_bytes("application/json"),
        .delivery_mode = 2,
        .correlation_id = correlation,
        .reply_to = reply_to,
        .message_id = amqp_cstring_bytes("8f0c8f0c8f0c8f0c8f0c8f0c8f0c8f0c"),
        .timestamp = 1771400000,
        .type = amqp_cstring_bytes("RockBot.Tools.ToolInvokeRequest"),
        .headers = {N, entries},
    };
    check(amqp_basic_publish(connection, 1, amqp_cstring_bytes("rockbot"), topic, 0, 0, &p, body),
          "publish");
}

static void next(amqp_envelope_t *envelope)
{
    amqp_maybe_release_buffers(connection);
    for (;;) {
        amqp_rpc_reply_t reply = amqp_consume_message(connection, envelope, NULL, 0);
        amqp_frame_t confirm;
        if (reply.reply_type == AMQP_RESPONSE_NORMAL)
            return;
        /* The library stops at a frame that is no delivery: read that frame and drop it. */
        check(reply.reply_type != AMQP_RESPONSE_LIBRARY_EXCEPTION ||
                  reply.library_error != AMQP_STATUS_UNEXPECTED_STATE ||
                  amqp_simple_wait_frame(connection, &confirm) != AMQP_STATUS_OK,
              "receive");
    }
}

static void settle(amqp_envelope_t *envelope)
{
    check(amqp_basic_ack(connection, 1, envelope->delivery_tag, 0), "ack");
    amqp_destroy_envelope(envelope);
}

_Noreturn static void echo(char **argv)
{
    consume(argv[1], argv[0], atoi(argv[2]));
    for (;;) {
        amqp_envelope_t e;
        next(&e);
        publish(e.message.properties.reply_to, e.message.properties.correlation_id,
                amqp_empty_bytes, e.message.body);
        settle(&e);
    }
}

static void call_once(struct calls *c, const char *topic, const char *reply_to, const char *body)
{
    char number[24];
    snprintf(number, sizeof number, "%zu", calls_send(c));
    publish(amqp_cstring_bytes(topic), amqp_cstring_bytes(number), amqp_cstring_bytes(reply_to),
            amqp_cstring_bytes(body));
}

static int bench(char **argv)
{
    struct calls calls = {0};
    char reply_to[64];
    char *body = request_body(atol(argv[3]));

    snprintf(reply_to, sizeof reply_to, "raw.result.%llx", (unsigned long long)now_ns());
    consume(reply_to, reply_to, 256);
    calls_begin(&calls, atof(argv[1]));
    for (long i = atol(argv[2]); i > 0; i--)
        call_once(&calls, argv[0], reply_to, body);
    for (int more = 1; more;) {
        amqp_envelope_t e;
        char number[24] = "";
        next(&e);
        amqp_bytes_t id = e.message.properties.correlation_id;
        memcpy(number, id.bytes, id.len < sizeof number ? id.len : sizeof number - 1);
        more = calls_answered(&calls, strtoul(number, NULL, 10));
        settle(&e);
        if (more)
            call_once(&calls, argv[0], reply_to, body);
    }
    calls_print(&calls);
    amqp_queue_delete(connection, 1, amqp_cstring_bytes(reply_to), 0, 0);
    free(body);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    join(atoi(argv[1]), strcmp(argv[2], "confirm") == 0);
    if (argc == 7 && strcmp(argv[3], "echo") == 0)
        echo(argv + 4);
    if (argc == 8 && strcmp(argv[3], "bench") == 0)
        return bench(argv + 4);
    return 2;
}
