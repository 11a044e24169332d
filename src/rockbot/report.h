/*
 * report: the state of the bus roles, for status and metrics.
 */
#ifndef RIALTO_ROCKBOT_REPORT_H
#define RIALTO_ROCKBOT_REPORT_H

#include "rockbot/proxy.h"
#include "rockbot/worker.h"

struct bus_report {
    const char *where; /* "RabbitMQ at 127.0.0.1:5672" */
    bool up;
    const struct bus_worker_counts *worker; /* NULL: there is no worker */
    const struct bus_proxy *proxy;          /* NULL: there is none */
    size_t servers;                         /* remote servers that the proxy knows */
    struct broker *broker;                  /* of a bus that we host; else NULL */
};

#endif
