/* The thread that asks the system's resolver for a host's addresses, and how the loop gets the
 * answer or cancels. Called by stream_connect.c. */
#include "io/lookup.h"

#include "base/err.h"
#include "base/mem.h"
#include "io/loop_uv.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>

/* The work of one thread: freed by the lookup, or by the thread when the lookup was cancelled. */
struct question {
    pthread_mutex_t mutex;
    char *host, *port;
    struct lookup *asker; /* under the mutex; NULL once the lookup is cancelled */
    bool answered;        /* under the mutex, like what follows */
    struct addrinfo *found;
    int code;
};

struct lookup {
    struct loop *loop;
    uv_async_t wake;
    struct question *question;
    lookup_done_fn *done;
    void *owner;
};

static void question_free(struct question *q)
{
    if (q->found)
        freeaddrinfo(q->found);
    pthread_mutex_destroy(&q->mutex);
    mem_free(q->host);
    mem_free(q->port);
    mem_free(q);
}

/* --- the thread --- */

static int code_of(int result, int error)
{
    switch (result) {
    case 0:
        return 0;
    case EAI_NONAME:
    case EAI_NODATA:
    case EAI_ADDRFAMILY:
        return ERR_NO_HOST;
    case EAI_SYSTEM:
        return error ? -error : -EIO;
    default:
        return ERR_NAME_SERVER;
    }
}

static void *ask(void *arg)
{
    static const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct question *q = arg;
    struct addrinfo *found = NULL;
    int result = getaddrinfo(q->host, q->port, &hints, &found);
    int code = code_of(result, errno);

    pthread_mutex_lock(&q->mutex);
    q->found = found;
    q->code = code;
    q->answered = true;
    bool wanted = q->asker != NULL;
    if (wanted)
        uv_async_send(&q->asker->wake); /* under the mutex: the handle is not closed yet */
    pthread_mutex_unlock(&q->mutex);
    if (!wanted)
        question_free(q);
    return NULL;
}

/* Signals are blocked in the thread: the loop's thread takes them. */
static int start_thread(struct question *q)
{
    pthread_t thread;
    pthread_attr_t attr;
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    int rc = pthread_create(&thread, &attr, ask, q);
    pthread_attr_destroy(&attr);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

/* --- the loop --- */

static void on_closed(uv_handle_t *handle)
{
    mem_free(CONTAINER_OF(handle, struct lookup, wake));
}

/* Separate lookup and thread: true when the thread has answered, so that we free the question. */
static bool part(struct lookup *k)
{
    struct question *q = k->question;

    pthread_mutex_lock(&q->mutex);
    q->asker = NULL;
    bool answered = q->answered;
    pthread_mutex_unlock(&q->mutex);
    uv_close((uv_handle_t *)&k->wake, on_closed);
    k->loop->threads--;
    return answered;
}

static void on_wake(uv_async_t *wake)
{
    struct lookup *k = CONTAINER_OF(wake, struct lookup, wake);
    struct question *q = k->question;

    loop_enter(k->loop);
    bool answered = part(k);
    assert(answered); /* only an answer wakes us */
    (void)answered;
    struct addrinfo *found = q->found;
    int code = q->code;
    q->found = NULL;
    question_free(q);
    k->done(k->owner, found, code);
}

struct lookup *lookup_start(struct loop *l, const char *host, const char *port,
                            lookup_done_fn *done, void *owner)
{
    struct lookup *k = MEM_NEW(struct lookup);
    struct question *q = k->question = MEM_NEW(struct question);

    k->loop = l;
    k->done = done;
    k->owner = owner;
    pthread_mutex_init(&q->mutex, NULL);
    q->host = mem_str(host);
    q->port = mem_str(port);
    q->asker = k;
    if (uv_async_init(&l->uv, &k->wake, on_wake) < 0) {
        question_free(q);
        mem_free(k);
        return NULL;
    }
    if (start_thread(q)) {
        question_free(q);
        uv_close((uv_handle_t *)&k->wake, on_closed);
        return NULL;
    }
    l->threads++;
    return k;
}

void lookup_cancel(struct lookup *k)
{
    struct question *q = k->question;

    if (part(k))
        question_free(q);
}
