/*
 * The JSON-RPC envelope on any bytes: what is accepted is of exactly one kind with the parts of
 * that kind, and can be written again with the same parts.
 */
#include "wire/rpc.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

enum { SLOT_NAME, SLOT_META, SLOT_TOKEN, SLOT_TOOLS, SLOT_COUNT };

static const struct json_shape_row meta_rows[] = {{"progressToken", SLOT_TOKEN, NULL}};
static const struct json_shape meta_shape = JSON_SHAPE(meta_rows);
static const struct json_shape_row params_rows[] = {{"name", SLOT_NAME, NULL},
                                                    {"_meta", SLOT_META, &meta_shape}};
static const struct json_shape params_shape = JSON_SHAPE(params_rows);
static const struct json_shape_row result_rows[] = {{"tools", SLOT_TOOLS, NULL},
                                                    {"_meta", SLOT_META, &meta_shape}};
static const struct json_shape result_shape = JSON_SHAPE(result_rows);

static int skim(struct span text, struct json_slot slots[SLOT_COUNT], struct rpc_message *m)
{
    return rpc_skim(text, &params_shape, &result_shape, slots, SLOT_COUNT, m);
}

static bool within(struct span part, struct span whole)
{
    return !part.n || (part.p >= whole.p && part.p + part.n <= whole.p + whole.n);
}

static bool is_id(struct span id)
{
    return json_type_of(id) == JSON_STRING || json_type_of(id) == JSON_NUMBER;
}

static void check_kind(const struct rpc_message *m)
{
    enum json_type params = json_type_of(m->params);
    bool method = m->method.p != NULL, result = m->result.n > 0, error = m->error.n > 0;

    CHECK((m->kind == RPC_INVALID) == (m->why != NULL));
    CHECK(params == JSON_NONE || params == JSON_OBJECT || params == JSON_ARRAY);
    switch (m->kind) {
    case RPC_REQUEST:
        CHECK(method && is_id(m->id) && !result && !error);
        break;
    case RPC_NOTIFICATION:
        CHECK(method && !m->id.n && !result && !error);
        break;
    case RPC_RESULT:
        CHECK(!method && is_id(m->id) && result && !error);
        break;
    case RPC_ERROR:
        CHECK(!method && !result && json_type_of(m->error) == JSON_OBJECT);
        CHECK(!m->id.n || is_id(m->id) || span_is(m->id, "null"));
        break;
    case RPC_BATCH:
        CHECK(json_type_of(m->text) == JSON_ARRAY);
        break;
    case RPC_INVALID:
        CHECK(!method && !result && !error && !m->params.n);
        break;
    }
}

/* A message written from the same parts is of the same kind and has the same parts. */
static void check_again(const struct rpc_message *m)
{
    struct json_slot slots[SLOT_COUNT];
    struct rpc_message again;
    struct buf out = {0};

    if (m->kind == RPC_RESULT) {
        rpc_put_result(&out, m->id, m->result);
    } else if (m->kind == RPC_ERROR) {
        struct rpc_error e = rpc_error_of(m->error);
        struct buf scratch = {0};
        rpc_put_error(&out, m->id, e.code, json_text(e.message, &scratch), e.data);
        CHECK(skim(buf_view(&out), slots, &again) == 0 && again.kind == RPC_ERROR);
        CHECK(rpc_error_of(again.error).code == e.code);
        buf_fini(&scratch);
        out.n = 0;
        rpc_put_error_raw(&out, m->id, m->error);
    } else if (m->method.p) {
        struct buf name = {0};
        json_unescape(&name, span_of(m->method.p - 1, m->method.n + 2));
        const char *method = buf_cstr(&name);
        CHECK(rpc_method_is(m, method) == (strlen(method) == name.n));
        if (m->kind == RPC_REQUEST)
            rpc_put_request(&out, 7, method, m->params);
        else
            rpc_put_notification(&out, method, m->params);
        buf_fini(&name);
    } else {
        return;
    }
    CHECK(skim(buf_view(&out), slots, &again) == 0 && again.kind == m->kind && again.versioned);
    CHECK(span_eq(again.params, m->params) && span_eq(again.result, m->result));
    CHECK(span_eq(again.error, m->error));
    CHECK(m->kind == RPC_REQUEST ? span_is(again.id, "7") : span_eq(again.id, m->id));
    buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct json_slot slots[SLOT_COUNT];
    struct rpc_message m;
    int error = skim(span_of((const char *)data, size), slots, &m);
    int plain = json_skim(span_of((const char *)data, size), NULL, NULL, NULL, NULL);

    CHECK(error == plain || error == ERR_DUPLICATE);
    if (error)
        return 0;
    check_kind(&m);
    CHECK(within(m.id, m.text) && within(m.method, m.text) && within(m.params, m.text));
    CHECK(within(m.result, m.text) && within(m.error, m.text));
    for (size_t i = 0; i < SLOT_COUNT; i++)
        CHECK((slots[i].type != JSON_NONE) == (slots[i].value.n > 0) &&
              within(slots[i].member, m.text));
    if (slots[SLOT_NAME].type != JSON_NONE && m.params.n)
        CHECK(within(slots[SLOT_NAME].member, m.params));
    check_again(&m);
    return 0;
}
