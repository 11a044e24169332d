/*
 * A ping-pong with libnats' own calls and the headers of a RockBot message.
 *   bench_raw_nats URL echo SUBJECT GROUP
 *   bench_raw_nats URL bench SUBJECT SECONDS IN_FLIGHT BYTES
 */
#include "bus_bench.h"

#include <nats/nats.h>

static natsConnection *connection;

static void check(natsStatus s, const char *what)
{
    if (s != NATS_OK) {
        fprintf(stderr, "bench_raw_nats: %s: %s\n", what, natsStatus_GetText(s));
        exit(1);
    }
}

static void join(const char *url)
{
    natsOptions *options = NULL;
    check(natsOptions_Create(&options), "options");
    check(natsOptions_SetURL(options, url), "url");
    check(natsOptions_SetSendAsap(options, true), "send");
    check(natsConnection_Connect(&connection, options), "connect");
    natsOptions_Destroy(options);
}

static void publish(const char *subject, const char *correlation, const char *reply_to,
                    const char *body, int n)
{
    const char *const headers[][2] = {
        {"rb-message-id", "8f0c8f0c8f0c8f0c8f0c8f0c8f0c8f0c"},
        {"rb-message-type", "RockBot.Tools.ToolInvokeRequest"},
        {"rb-correlation-id", correlation},
        {"rb-reply-to", reply_to},
        {"rb-source", "bench"},
        {"rb-timestamp", "2026-02-18T06:30:24.123Z"},
        {"rb-content-trust", "tool-request"},
        {"rb-tool-provider", "mcp"},
        {"rb-timeout-ms", "60000"},
        {"rb-mcp-server", "echo"},
    };
    natsMsg *m = NULL;
    check(natsMsg_Create(&m, subject, NULL, body, n), "message");
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++)
        if (headers[i][1][0])
            check(natsMsgHeader_Set(m, headers[i][0], headers[i][1]), "header");
    check(natsConnection_PublishMsg(connection, m), "publish");
    natsMsg_Destroy(m);
}

static const char *header(natsMsg *m, const char *key)
{
    const char *value = "";
    return natsMsgHeader_Get(m, key, &value) == NATS_OK ? value : "";
}

_Noreturn static void echo(char **argv)
{
    natsSubscription *sub = NULL;
    check(natsConnection_QueueSubscribeSync(&sub, connection, argv[0], argv[1]), "subscribe");
    for (;;) {
        natsMsg *m = NULL;
        check(natsSubscription_NextMsg(&m, sub, 3600 * 1000), "receive");
        publish(header(m, "rb-reply-to"), header(m, "rb-correlation-id"), "", natsMsg_GetData(m),
                natsMsg_GetDataLength(m));
        natsMsg_Destroy(m);
    }
}

static void call_once(struct calls *c, const char *subject, const char *reply_to, const char *body)
{
    char number[24];
    snprintf(number, sizeof number, "%zu", calls_send(c));
    publish(subject, number, reply_to, body, (int)strlen(body));
}

static int bench(char **argv)
{
    struct calls calls = {0};
    natsSubscription *sub = NULL;
    char reply_to[64];
    char *body = request_body(atol(argv[3]));

    snprintf(reply_to, sizeof reply_to, "raw.result.%llx", (unsigned long long)now_ns());
    check(natsConnection_SubscribeSync(&sub, connection, reply_to), "subscribe");
    check(natsConnection_Flush(connection), "flush");
    calls_begin(&calls, atof(argv[1]));
    for (long i = atol(argv[2]); i > 0; i--)
        call_once(&calls, argv[0], reply_to, body);
    for (int more = 1; more;) {
        natsMsg *m = NULL;
        check(natsSubscription_NextMsg(&m, sub, 30 * 1000), "receive");
        more = calls_answered(&calls, strtoul(header(m, "rb-correlation-id"), NULL, 10));
        natsMsg_Destroy(m);
        if (more)
            call_once(&calls, argv[0], reply_to, body);
    }
    calls_print(&calls);
    free(body);
    natsSubscription_Destroy(sub);
    natsConnection_Destroy(connection);
    nats_Close();
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    join(argv[1]);
    if (argc == 5 && strcmp(argv[2], "echo") == 0)
        echo(argv + 3);
    if (argc == 7 && strcmp(argv[2], "bench") == 0)
        return bench(argv + 3);
    return 2;
}
