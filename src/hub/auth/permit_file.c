/* grants.json: written and read. Called by permits.c. */
#include "hub/auth/permit_file.h"

#include "base/ascii.h"
#include "base/file.h"
#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "hub/auth/permits.h"
#include "hub/places.h"
#include "wire/json.h"
#include "wire/json_out.h"

#include <errno.h>
#include <stdio.h>

enum { FILE_MAX = 4 * 1024 * 1024 };

struct permit_file {
    char *path; /* NULL: there is no state folder */
    bool broken;
};

struct permit_file *permit_file_open(void)
{
    struct permit_file *f = MEM_NEW(struct permit_file);

    f->path = place_path(PLACE_STATE, "grants.json");
    return f;
}

void permit_file_close(struct permit_file *f)
{
    mem_free(f->path);
    mem_free(f);
}

/* --- writing --- */

static void put_hash(struct buf *out, const char *name, const unsigned char hash[SHA256_N])
{
    json_out(out, name);
    buf_char(out, '"');
    for (size_t i = 0; i < SHA256_N; i++)
        buf_printf(out, "%02x", hash[i]);
    buf_char(out, '"');
}

static void put_client(struct buf *out, const struct registration *r)
{
    json_out_open(out, NULL, '{');
    json_out_str(out, "client_id", r->id);
    json_out_str(out, "client_name", r->name ? r->name : "");
    json_out_open(out, "redirect_uris", '[');
    for (size_t i = 0; i < r->n_redirects; i++)
        json_out_str(out, NULL, r->redirects[i]);
    buf_char(out, ']');
    json_out_str(out, "token_endpoint_auth_method", registration_method_name(r->method));
    if (r->method != REGISTRATION_NONE)
        put_hash(out, "secret", r->secret);
    json_out_number(out, "created", (uint64_t)r->created);
    json_out_bool(out, "granted", r->granted);
    buf_char(out, '}');
}

static void put_permit(struct buf *out, const struct permit *p)
{
    json_out_open(out, NULL, '{');
    json_out_str(out, "id", p->id);
    json_out_str(out, "client", p->client);
    json_out_str(out, "name", p->name);
    json_out_str(out, "scope", p->scope);
    json_out_str(out, "resource", p->resource);
    json_out_number(out, "created", (uint64_t)p->created);
    json_out_number(out, "used", (uint64_t)p->used);
    json_out_number(out, "expires", (uint64_t)p->expires);
    put_hash(out, "family", p->family);
    put_hash(out, "refresh", p->refresh);
    if (p->rotated) {
        put_hash(out, "before", p->before);
        json_out_number(out, "rotated", (uint64_t)p->rotated);
    }
    json_out_open(out, "access", '[');
    for (size_t i = 0; i < PERMIT_ACCESS; i++) {
        if (!p->access[i].expires)
            continue;
        json_out_open(out, NULL, '{');
        put_hash(out, "hash", p->access[i].hash);
        json_out_number(out, "expires", (uint64_t)p->access[i].expires);
        buf_char(out, '}');
    }
    buf_str(out, "]}");
}

int permit_file_write(struct permit_file *f, const struct list *clients, const struct list *permits)
{
    BUF_SCOPED text = {0};

    if (!f->path || f->broken)
        return -EIO;
    buf_str(&text, "{\"clients\":[");
    LIST_EACH (clients, it)
        put_client(&text, LIST_ENTRY(it, struct registration, node));
    buf_str(&text, "],\n\"grants\":[");
    LIST_EACH (permits, it)
        put_permit(&text, LIST_ENTRY(it, struct permit, node));
    buf_str(&text, "]}\n");
    int code = file_replace_synced(f->path, buf_view(&text));
    if (code)
        log_error("auth", "cannot keep what was granted in %s: %s", f->path, err_name(code));
    return code;
}

/* --- reading --- */

static char *text_of(struct span object, const char *name)
{
    BUF_SCOPED scratch = {0};
    struct json_slot slot = json_get(object, name);

    return slot.type == JSON_STRING ? mem_span(json_text(slot.value, &scratch)) : NULL;
}

static bool read_time(struct span object, const char *name, int64_t *out)
{
    return json_int(json_get(object, name).value, out) && *out > 0;
}

static bool read_hash(struct span object, const char *name, unsigned char out[SHA256_N])
{
    struct span hex = json_get(object, name).value;

    if (hex.n != 2 * SHA256_N + 2)
        return false;
    for (size_t i = 0; i < SHA256_N; i++) {
        int high = ascii_hex(hex.p[1 + 2 * i]), low = ascii_hex(hex.p[2 + 2 * i]);
        if (high < 0 || low < 0)
            return false;
        out[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

static bool read_client(struct span object, struct list *clients)
{
    struct registration *r = MEM_NEW(struct registration);
    struct err err;

    if (registration_read(r, object, &err) || !r->id ||
        !read_time(object, "created", &r->created) ||
        (r->method != REGISTRATION_NONE && !read_hash(object, "secret", r->secret))) {
        registration_free(r);
        return false;
    }
    r->granted = json_get(object, "granted").type == JSON_TRUE;
    list_append(clients, &r->node);
    return true;
}

static bool read_access(struct permit *p, struct span array)
{
    struct json_iter it = json_iter(array);

    for (size_t i = 0; i < PERMIT_ACCESS && json_next(&it); i++)
        if (!read_hash(it.value, "hash", p->access[i].hash) ||
            !read_time(it.value, "expires", &p->access[i].expires))
            return false;
    return true;
}

static bool read_permit(struct span object, struct list *permits)
{
    struct permit *p = MEM_NEW(struct permit);
    char *id = text_of(object, "id");

    snprintf(p->id, sizeof p->id, "%s", id ? id : "");
    mem_free(id);
    list_init(&p->node);
    p->mark = id_random_u64() | 1;
    p->client = text_of(object, "client");
    p->name = text_of(object, "name");
    p->scope = text_of(object, "scope");
    p->resource = text_of(object, "resource");
    if (!p->client || !p->name || !p->scope || !p->resource ||
        !read_time(object, "created", &p->created) || !read_time(object, "used", &p->used) ||
        !read_time(object, "expires", &p->expires) || !read_hash(object, "refresh", p->refresh) ||
        !read_access(p, json_get(object, "access").value)) {
        permit_free(p);
        return false;
    }
    (void)!read_hash(object, "family", p->family); /* older files have none */
    if (!read_time(object, "rotated", &p->rotated) || !read_hash(object, "before", p->before))
        p->rotated = 0;
    list_append(permits, &p->node);
    return true;
}

static bool read_list(struct span json, const char *name, struct list *to, size_t *n,
                      bool (*read)(struct span object, struct list *to))
{
    struct json_slot slot = json_get(json, name);
    struct json_iter it = json_iter(slot.value);

    while (slot.type == JSON_ARRAY && json_next(&it)) {
        if (it.type != JSON_OBJECT || !read(it.value, to))
            return false;
        ++*n;
    }
    return slot.type == JSON_ARRAY;
}

void permit_file_read(struct permit_file *f, struct list *clients, size_t *n_clients,
                      struct list *permits, size_t *n_permits)
{
    BUF_SCOPED text = {0};
    enum json_type type;
    int code = f->path ? file_read(&text, f->path, FILE_MAX) : -ENOENT;
    struct span json = buf_view(&text);

    if (code == -ENOENT)
        return;
    f->broken = code || json_skim(json, NULL, NULL, &type, NULL) || type != JSON_OBJECT ||
                !read_list(json, "clients", clients, n_clients, read_client) ||
                !read_list(json, "grants", permits, n_permits, read_permit);
    if (f->broken)
        log_error("auth", "%s cannot be read, and nobody can sign in: mend it, or move it away",
                  f->path);
}
