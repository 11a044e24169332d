/*
 * The account of a value: n, t, f; i and an integer; r and a real number; s, a length, a colon and
 * the bytes; arrays and objects in brackets, members in order. If a key occurs several times, its
 * last value is written at the position of its first occurrence.
 */
#include "jansson_oracle.h"

#include <jansson.h>

static void put_string(struct buf *out, const char *p, size_t n)
{
    buf_printf(out, "s%zu:", n);
    buf_bytes(out, p, n);
}

static void put_value(struct buf *out, json_t *v)
{
    const char *key;
    json_t *child;
    size_t i;

    switch (json_typeof(v)) {
    case JSON_NULL:
        buf_char(out, 'n');
        break;
    case JSON_TRUE:
        buf_char(out, 't');
        break;
    case JSON_FALSE:
        buf_char(out, 'f');
        break;
    case JSON_INTEGER:
        buf_printf(out, "i%" JSON_INTEGER_FORMAT, json_integer_value(v));
        break;
    case JSON_REAL:
        buf_printf(out, "r%.17g", json_real_value(v));
        break;
    case JSON_STRING:
        put_string(out, json_string_value(v), json_string_length(v));
        break;
    case JSON_ARRAY:
        buf_char(out, '[');
        json_array_foreach(v, i, child) put_value(out, child);
        buf_char(out, ']');
        break;
    case JSON_OBJECT:
        buf_char(out, '{');
        json_object_foreach(v, key, child)
        {
            put_string(out, key, strlen(key));
            put_value(out, child);
        }
        buf_char(out, '}');
        break;
    }
}

bool oracle_read(struct span text, struct buf *account)
{
    json_t *v = json_loadb(text.p, text.n, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);

    if (!v)
        return false;
    put_value(account, v);
    json_decref(v);
    return true;
}
