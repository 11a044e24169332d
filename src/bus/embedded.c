/* The engine for embedded: and unix: URLs: takes the lock file to host the bus in this process, or
 * else joins the process that hosts the bus. Called by bus.c through embedded_engine. */
#include "base/log.h"
#include "bus/broker.h"
#include "bus/engine.h"
#include "bus/line.h"
#include "bus/line_client.h"
#include "bus/line_server.h"
#include "io/listen.h"
#include "io/runtime_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * The process that holds the lock beside the socket hosts the bus; the others join the bus through
 * the socket, as the line engine does. When the host has ended, the first process that tries gets
 * the lock and is the host: the kernel gives a lock to one process only, and takes it back when
 * that process ends.
 */

struct embedded_bus {
    struct bus *bus;
    struct loop *loop;
    const struct bus_options *options;
    char *address;            /* unix:PATH */
    struct line_client *link; /* joins when another process hosts the bus */

    /* Hosting: */
    int lock; /* its descriptor; -1 = we do not host the bus */
    struct broker *broker;
    struct broker_member *self;
    struct line_server *server;
    struct deferred up;
};

static bool is_hosting(const struct embedded_bus *e)
{
    return e->lock >= 0;
}

/* --- hosting --- */

static void on_deliver(void *owner, struct broker_sub *sub, uint64_t tag, bool redelivered,
                       struct span topic, const struct message *m)
{
    struct embedded_bus *e = owner;

    engine_deliver(e->bus, broker_sub_data(sub), tag, redelivered, topic, m);
}

static bool on_ready(void *owner)
{
    (void)owner;
    return true;
}

static const struct broker_events broker_events = {on_deliver, on_ready};

static const char *path_of(const struct embedded_bus *e)
{
    return e->address + strlen("unix:");
}

/* Makes the folder of the socket, if that is the only folder that is missing. */
static void make_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash && slash != path ? mem_span(span_of(path, (size_t)(slash - path))) : NULL;

    if (folder && mkdir(folder, 0700) && errno != EEXIST)
        log_debug("bus", "cannot make %s: %s", folder, strerror(errno));
    mem_free(folder);
}

/* The lock's descriptor; -EWOULDBLOCK when another process has the lock. */
static int take_lock(const struct embedded_bus *e, struct err *err)
{
    BUF_SCOPED path = {0};

    make_folder(path_of(e));
    buf_printf(&path, "%s.lock", path_of(e));
    int fd = open(buf_cstr(&path), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    int code = fd < 0 ? -errno : 0;
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0) {
        code = -errno;
        close(fd);
    }
    if (code < 0 && code != -EWOULDBLOCK) {
        err_set(err, code, "cannot host the bus at %s: %s", e->address, strerror(-code));
        err_hint(err, "it needs a folder that exists and that you may write to; bus.url names it");
    }
    return code < 0 ? code : fd;
}

static void drop_host(struct embedded_bus *e)
{
    if (!is_hosting(e))
        return;
    broker_leave(e->self);
    broker_free(e->broker);
    close(e->lock);
    e->lock = -1;
    e->broker = NULL;
}

static bool is_socket(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}

/* Hosts the bus if nobody does: 0; -EWOULDBLOCK when another process does; else negative with a
 * reason. */
static int try_host(struct embedded_bus *e, struct err *err)
{
    int lock = take_lock(e, err);

    if (lock < 0)
        return lock;
    e->lock = lock;
    e->broker = broker_new(e->loop, &(struct broker_options){.durable_ms = e->options->keep_ms});
    e->self = broker_join(e->broker, &broker_events, e);
    e->server = line_server_open(e->loop, e->broker,
                                 &(struct line_server_options){.address = e->address,
                                                               .listen = e->options->listen,
                                                               .token = e->options->token},
                                 err);
    if (e->server)
        return 0;
    drop_host(e);
    /* A socket that answers although nobody has the lock: the lock's file was removed while the
     * host ran. */
    return is_socket(path_of(e)) ? err_set(err, -EWOULDBLOCK, "%s", "") : ERR_CONFIG;
}

static void on_up(struct deferred *d)
{
    engine_up(CONTAINER_OF(d, struct embedded_bus, up)->bus);
}

/* --- the engine --- */

static void engine_free(struct embedded_bus *e)
{
    loop_undefer(&e->up);
    mem_free(e->address);
    mem_free(e);
}

static void *local_open(struct bus *b, struct loop *loop, const struct bus_options *o,
                        struct err *err)
{
    bool named = strncmp(o->url, "unix:", 5) == 0 && o->url[5];
    struct embedded_bus *e = MEM_NEW(struct embedded_bus);

    e->bus = b;
    e->loop = loop;
    e->options = o;
    e->lock = -1;
    e->address = named ? mem_str(o->url) : runtime_folder_address("bus.sock");
    if (!e->address) {
        err_set(err, ERR_CONFIG, "there is no place for the socket of the embedded bus");
        err_hint(err, "set XDG_RUNTIME_DIR, or name a place: bus.url: unix:PATH");
        mem_free(e);
        return NULL;
    }
    int code = o->join_only ? -EWOULDBLOCK : try_host(e, err);
    if (code < 0 && code != -EWOULDBLOCK) {
        engine_free(e);
        return NULL;
    }
    e->link = line_client_open(b, loop, o, e->address);
    return e;
}

static void local_connect(void *engine)
{
    struct embedded_bus *e = engine;
    struct err err;
    int code = is_hosting(e) ? 0 : e->options->join_only ? -EWOULDBLOCK : try_host(e, &err);

    if (code == 0) {
        loop_defer(e->loop, &e->up, on_up);
        return;
    }
    if (code != -EWOULDBLOCK)
        log_warn("bus", "%s", err.text);
    /* With the socket we would join ourselves: nobody accepts on it until we have the lock, too. */
    if (listen_is_given(e->loop, e->address))
        engine_lost(e->bus, "the daemon before this one has not left it yet");
    else
        line_engine.connect(e->link);
}

/* The link ends last, and it reports engine_closed. */
static void on_server_closed(void *owner)
{
    struct embedded_bus *e = owner;
    struct line_client *link = e->link;

    drop_host(e);
    engine_free(e);
    line_engine.close(link);
}

static void local_close(void *engine)
{
    struct embedded_bus *e = engine;
    loop_undefer(&e->up);
    if (is_hosting(e)) {
        line_server_close(e->server, on_server_closed, e);
        return;
    }
    on_server_closed(e);
}

static void local_describe(const void *engine, struct buf *out)
{
    const struct embedded_bus *e = engine;
    buf_printf(out, "embedded bus at %s%s", path_of(e), is_hosting(e) ? ", hosted here" : "");
}

static size_t local_max_body(const void *engine)
{
    const struct embedded_bus *e = engine;
    (void)e;
    return LINE_MOST - LINE_OVERHEAD;
}

static void local_subscribe(void *engine, struct engine_sub *sub)
{
    struct embedded_bus *e = engine;
    if (!is_hosting(e)) {
        line_engine.subscribe(e->link, sub);
        return;
    }
    sub->data = broker_subscribe(e->self,
                                 &(struct bus_subscription){.topic = sub->topic,
                                                            .group = sub->group,
                                                            .prefetch = sub->prefetch,
                                                            .ephemeral = sub->ephemeral,
                                                            .lossy = sub->lossy},
                                 sub);
    if (!sub->data)
        log_error("bus", "the bus has too many subscriptions: nothing will come from %s",
                  sub->topic);
}

static void local_unsubscribe(void *engine, struct engine_sub *sub)
{
    struct embedded_bus *e = engine;
    if (!is_hosting(e))
        line_engine.unsubscribe(e->link, sub);
    else if (sub->data)
        broker_unsubscribe(sub->data);
    sub->data = NULL;
}

static void local_publish(void *engine, uint64_t number, struct span topic, const struct message *m)
{
    struct embedded_bus *e = engine;
    if (is_hosting(e))
        engine_sent(e->bus, number, broker_publish(e->broker, topic, m));
    else
        line_engine.publish(e->link, number, topic, m);
}

static void local_settle(void *engine, struct engine_sub *sub, uint64_t tag,
                         enum bus_verdict verdict)
{
    struct embedded_bus *e = engine;
    if (is_hosting(e))
        broker_settle(e->self, tag, verdict);
    else
        line_engine.settle(e->link, sub, tag, verdict);
}

static struct broker *local_broker(const void *engine)
{
    const struct embedded_bus *e = engine;

    return is_hosting(e) ? e->broker : NULL;
}

const struct engine_ops embedded_engine = {
    .name = "embedded bus",
    .in_memory = true,
    .open = local_open,
    .connect = local_connect,
    .close = local_close,
    .describe = local_describe,
    .max_body = local_max_body,
    .broker = local_broker,
    .subscribe = local_subscribe,
    .unsubscribe = local_unsubscribe,
    .publish = local_publish,
    .settle = local_settle,
};
