/* Connecting to the NATS server and leaving the server: the options for libnats, and the callbacks
 * that libnats makes. Called by nats_link.c, on the link's thread. */
#include "bus/nats_inside.h"
#include "bus/nats_stream.h"

#include <fcntl.h>

enum {
    CONNECT_MS = 5000,
    RECONNECT_MS = 500, /* between two attempts, and a random part of JITTER_MS on top */
    JITTER_MS = 500,
};

static void tell_up(struct nats_link *l, natsConnection *c)
{
    struct nats_news *n = MEM_NEW(struct nats_news);
    int64_t max = natsConnection_GetMaxPayload(c);

    n->kind = NATS_UP;
    n->max_payload = max > 0 ? (size_t)max : 0;
    mailbox_post(l->box, &n->mail);
}

/* --- what libnats says of the connection, on threads of its own --- */

static const char *reason(natsConnection *c)
{
    const char *text = NULL;

    natsConnection_GetLastError(c, &text);
    return text && text[0] ? text : "the server ended it";
}

static void on_disconnected(natsConnection *c, void *arg)
{
    struct nats_link *l = arg;

    if (!atomic_load(&l->leaving))
        nats_link_tell(l, NATS_DOWN, "the connection is lost: %s", reason(c));
}

static void on_reconnected(natsConnection *c, void *arg)
{
    struct nats_link *l = arg;

    if (!atomic_load(&l->leaving))
        tell_up(l, c);
}

static void on_closed(natsConnection *c, void *arg)
{
    struct nats_link *l = arg;

    if (!atomic_load(&l->leaving))
        nats_link_tell(l, NATS_LOST, "the connection is lost for good: %s", reason(c));
    pthread_mutex_lock(&l->mutex);
    l->closed = true;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->mutex);
}

static void on_error(natsConnection *c, natsSubscription *sub, natsStatus s, void *arg)
{
    struct nats_link *l = arg;
    const char *text = NULL;

    (void)sub;
    natsConnection_GetLastError(c, &text);
    nats_link_tell(l, NATS_NOTE, "%s", text && text[0] ? text : natsStatus_GetText(s));
}

/*
 * --- the socket, which libnats lets the loop read and write ---
 *
 * Called with the connection's lock held, by whichever thread is at it. The loop gets a descriptor
 * of its own: libnats may close its at any time, and another file may get the number.
 */
static natsStatus on_attach(void **user, void *arg, natsConnection *c, natsSock socket)
{
    struct nats_link *l = arg;
    struct nats_news *n = MEM_NEW(struct nats_news);

    *user = l;
    n->kind = NATS_ATTACHED;
    n->connection = c;
    n->fd = fcntl(socket, F_DUPFD_CLOEXEC, 3);
    if (n->fd < 0) {
        nats_news_free(n);
        return NATS_IO_ERROR;
    }
    atomic_fetch_add(&l->sockets, 1);
    atomic_store(&l->wants_write, false);
    atomic_store(&l->live, true);
    mailbox_post(l->box, &n->mail);
    return NATS_OK;
}

static natsStatus on_read_wish(void *user, bool add)
{
    struct nats_link *l = user;

    if (!add)
        atomic_store(&l->live, false);
    return NATS_OK;
}

/* The loop looks at the wish after each of its own calls; only others must tell it. */
static natsStatus on_write_wish(void *user, bool add)
{
    struct nats_link *l = user;

    atomic_store(&l->wants_write, add);
    if (add && !pthread_equal(pthread_self(), l->home))
        nats_link_tell(l, NATS_POKED, NULL);
    return NATS_OK;
}

static natsStatus on_detach(void *user)
{
    struct nats_link *l = user;

    atomic_store(&l->live, false);
    return NATS_OK;
}

/* --- connecting --- */

static natsStatus set_security(natsOptions *opts, const struct nats_link_options *o)
{
    const struct nats_address *a = o->address;
    natsStatus s = NATS_OK;

    if (a->user)
        s = a->password ? natsOptions_SetUserInfo(opts, a->user, a->password)
                        : natsOptions_SetToken(opts, a->user);
    if (s == NATS_OK && a->secure)
        s = natsOptions_SetSecure(opts, true);
    if (s == NATS_OK && o->ca) /* a server may insist on TLS */
        s = natsOptions_LoadCATrustedCertificates(opts, o->ca);
    return s;
}

static natsStatus set_callbacks(natsOptions *opts, struct nats_link *l)
{
    natsStatus s = natsOptions_SetDisconnectedCB(opts, on_disconnected, l);
    if (s == NATS_OK)
        s = natsOptions_SetReconnectedCB(opts, on_reconnected, l);
    if (s == NATS_OK)
        s = natsOptions_SetClosedCB(opts, on_closed, l);
    if (s == NATS_OK)
        s = natsOptions_SetErrorHandler(opts, on_error, l);
    if (s == NATS_OK)
        s = natsOptions_SetEventLoop(opts, l, on_attach, on_read_wish, on_write_wish, on_detach);
    return s;
}

static natsStatus set_habits(natsOptions *opts, const struct nats_link_options *o)
{
    natsStatus s =
        natsOptions_SetServers(opts, (const char **)(uintptr_t)o->address->servers, o->address->n);
    if (s == NATS_OK)
        s = natsOptions_SetTimeout(opts, CONNECT_MS);
    if (s == NATS_OK && o->name)
        s = natsOptions_SetName(opts, o->name);
    /* With a socket of the loop's this means: ask to write at once, not after a millisecond. */
    if (s == NATS_OK)
        s = natsOptions_SetSendAsap(opts, true);
    if (s == NATS_OK)
        s = natsOptions_SetMaxReconnect(opts, -1);
    if (s == NATS_OK)
        s = natsOptions_SetReconnectWait(opts, RECONNECT_MS);
    if (s == NATS_OK)
        s = natsOptions_SetReconnectJitter(opts, JITTER_MS, JITTER_MS);
    /* The outbox of the bus is what survives a lost connection: no second one in libnats. */
    if (s == NATS_OK)
        s = natsOptions_SetReconnectBufSize(opts, 1);
    /* The engine looks after dead connections: libnats would close the socket on another thread
     * while the loop reads it. */
    if (s == NATS_OK)
        s = natsOptions_SetPingInterval(opts, 0);
    return s;
}

static void tell_why_not(struct nats_link *l, natsStatus s)
{
    const char *detail = nats_GetLastError(NULL);
    const char *text = detail ? strstr(detail, "): ") : NULL;

    if (text) /* "(conn.c:733): " is for libnats' own people */
        detail = text + strlen("): ");
    if (s == NATS_CONNECTION_AUTH_FAILED)
        nats_link_tell(l, NATS_LOST,
                       "the server refuses the user name, password or token in the address");
    else if (s == NATS_NO_SERVER)
        nats_link_tell(l, NATS_LOST, "no NATS server answers there");
    else if (s == NATS_SECURE_CONNECTION_WANTED)
        nats_link_tell(l, NATS_LOST, "the server does not speak TLS: use nats:// in the address");
    else
        nats_link_tell(l, NATS_LOST, "cannot connect: %s",
                       detail && detail[0] ? detail : natsStatus_GetText(s));
}

/* Waits, with the mutex held, until somebody else has set `flag`. */
static void wait_for(struct nats_link *l, const bool *flag)
{
    while (!*flag)
        pthread_cond_wait(&l->changed, &l->mutex);
}

void nats_link_leave_server(struct nats_link *l)
{
    if (!l->connection)
        return;
    atomic_store(&l->leaving, true);
    nats_link_tell(l, NATS_LEAVING, NULL);
    pthread_mutex_lock(&l->mutex);
    wait_for(l, &l->let_go);
    pthread_mutex_unlock(&l->mutex);
    jsCtx_Destroy(l->js);
    natsConnection_Close(l->connection);
    pthread_mutex_lock(&l->mutex);
    wait_for(l, &l->closed);
    l->closed = l->let_go = false;
    pthread_mutex_unlock(&l->mutex);
    natsConnection_Destroy(l->connection);
    l->connection = NULL;
    l->js = NULL;
    atomic_store(&l->leaving, false);
}

static bool prepare_jetstream(struct nats_link *l)
{
    BUF_SCOPED why = {0};
    natsStatus s = natsConnection_JetStream(&l->js, l->connection, NULL);

    if (s == NATS_OK)
        s = nats_stream_check(l->js, &why);
    if (s != NATS_OK)
        nats_link_tell(l, NATS_LOST, "%s", why.n ? buf_cstr(&why) : natsStatus_GetText(s));
    return s == NATS_OK;
}

void nats_link_join_server(struct nats_link *l)
{
    natsOptions *opts = NULL;

    nats_link_leave_server(l); /* what is left of an earlier one */
    natsStatus s = natsOptions_Create(&opts);
    if (s == NATS_OK)
        s = set_habits(opts, l->o);
    if (s == NATS_OK)
        s = set_security(opts, l->o);
    if (s == NATS_OK)
        s = set_callbacks(opts, l);
    if (s == NATS_OK)
        s = natsConnection_Connect(&l->connection, opts);
    natsOptions_Destroy(opts);
    if (s != NATS_OK)
        tell_why_not(l, s);
    else if (!l->o->jetstream || prepare_jetstream(l))
        tell_up(l, l->connection);
}
