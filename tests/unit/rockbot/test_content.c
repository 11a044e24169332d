/*
 * Results of servers in the form that the bus has for them: RockBot's test groups McpToolExecutor,
 * resources and hints, as far as they need no bus.
 */
#include "../unit.h"

#include "base/log.h"
#include "rockbot/attachments.h"
#include "rockbot/content.h"
#include "rockbot/fingerprint.h"
#include "rockbot/hints.h"
#include "rockbot/recent.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct content_options plain = {.attach_limit = 16, .inline_limit = 20};

static void assert_content(const char *result, const char *text, const char *blocks)
{
    struct content c;

    content_read(&c, span_str(result), &plain);
    assert_string_equal(buf_cstr(&c.text), text);
    assert_string_equal(buf_cstr(&c.blocks), blocks);
    content_fini(&c);
}

static void test_texts_are_joined(void **state)
{
    (void)state;
    assert_content("{\"content\":[{\"type\":\"text\",\"text\":\"hello\"}]}", "hello", "");
    assert_content("{\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":"
                   "\"\"},{\"type\":\"text\",\"text\":\"b\\u00e9\"}]}",
                   "a\nb\xc3\xa9", "");
    assert_content("{\"content\":[]}", "", "");
    assert_content("{}", "", "");
    assert_content("{\"content\":[{\"type\":\"text\"},7,null]}",
                   "[content of type '', which cannot be shown here]\n"
                   "[content of type '', which cannot be shown here]",
                   "[{\"type\":\"text\",\"text\":null,\"data\":null,\"mimeType\":null,\"uri\":null}"
                   ",{\"type\":\"\",\"text\":\"[content of type '', which cannot be shown here]\","
                   "\"data\":null,\"mimeType\":null,\"uri\":null},{\"type\":\"\",\"text\":"
                   "\"[content of type '', which cannot be shown here]\",\"data\":null,"
                   "\"mimeType\":null,\"uri\":null}]");
}

static void test_other_blocks_are_kept(void **state)
{
    (void)state;
    assert_content("{\"content\":[{\"type\":\"text\",\"text\":\"see\"},{\"type\":\"image\","
                   "\"data\":\"AAAA\",\"mimeType\":\"image/png\"}]}",
                   "see",
                   "[{\"type\":\"text\",\"text\":\"see\",\"data\":null,\"mimeType\":null,\"uri\":"
                   "null},{\"type\":\"image\",\"text\":null,\"data\":\"AAAA\",\"mimeType\":"
                   "\"image/png\",\"uri\":null}]");
    assert_content("{\"content\":[{\"type\":\"resource_link\",\"uri\":\"file:///a\",\"name\":\"A\","
                   "\"mimeType\":\"text/plain\",\"description\":\"the\\nfirst\"}]}",
                   "Resource A <file:///a> (text/plain): the first",
                   "[{\"type\":\"resource\",\"text\":\"Resource A <file:///a> (text/plain): the "
                   "first\",\"data\":null,\"mimeType\":\"text/plain\",\"uri\":\"file:///a\"}]");
    assert_content("{\"content\":[{\"type\":\"resource\",\"resource\":{\"uri\":\"file:///a\","
                   "\"text\":\"inside\"}}]}",
                   "[resource file:///a]\ninside",
                   "[{\"type\":\"resource\",\"text\":\"[resource file:///a]\\ninside\",\"data\":"
                   "null,\"mimeType\":null,\"uri\":\"file:///a\"}]");
    assert_content("{\"content\":[{\"type\":\"resource\",\"resource\":{\"uri\":\"file:///a\","
                   "\"blob\":\"AAAA\"}}]}",
                   "",
                   "[{\"type\":\"resource\",\"text\":null,\"data\":\"AAAA\",\"mimeType\":null,"
                   "\"uri\":\"file:///a\"}]");
    assert_content(
        "{\"content\":[{\"type\":\"smell\"}]}",
        "[content of type 'smell', which cannot be shown here]",
        "[{\"type\":\"smell\",\"text\":\"[content of type 'smell', which cannot be shown "
        "here]\",\"data\":null,\"mimeType\":null,\"uri\":null}]");
}

/* The bus has no member for structured content: if there is nothing else, it becomes the text. */
static void test_structured_content_alone_is_text(void **state)
{
    (void)state;
    assert_content("{\"content\":[],\"structuredContent\":{\"n\":1}}", "{\"n\":1}", "");
    assert_content("{\"content\":[{\"type\":\"text\",\"text\":\"x\"}],\"structuredContent\":{}}",
                   "x", "");
}

/* --- files --- */

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/rialto-test-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    DIR *d = opendir(folder);

    (void)state;
    for (const struct dirent *e; d && (e = readdir(d));) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (e->d_name[0] != '.')
            (void)unlink(path);
    }
    if (d)
        closedir(d);
    return rmdir(folder);
}

/* The only file in the folder. */
static void read_only_file(struct buf *out, char path[512])
{
    DIR *d = opendir(folder);
    size_t n = 0;

    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d));)
        if (e->d_name[0] != '.' && ++n)
            snprintf(path, 512, "%s/%s", folder, e->d_name);
    closedir(d);
    assert_int_equal(n, 1);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    out->n += fread(buf_room(out, 4096), 1, 4096, f);
    fclose(f);
}

static void test_large_data_goes_to_a_file(void **state)
{
    const struct content_options with = {.attachments = folder, .attach_limit = 7};
    struct content c;
    struct buf file = {0};
    char path[512];
    struct stat st;

    (void)state;
    content_read(&c,
                 SPAN("{\"content\":[{\"type\":\"image\",\"data\":\"aGVsbG8=\",\"mimeType\":"
                      "\"image/png\"}]}"),
                 &with);
    read_only_file(&file, path);
    assert_string_equal(buf_cstr(&file), "hello");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_non_null(strstr(path, ".png"));
    assert_non_null(strstr(buf_cstr(&c.text), path));
    assert_non_null(strstr(buf_cstr(&c.text), "\"size\":5,\"mime\":\"image/png\""));
    assert_non_null(strstr(buf_cstr(&c.blocks), "\"data\":null"));
    buf_fini(&file);
    content_fini(&c);
}

static void assert_saved_as(const char *wanted, const char *expected)
{
    struct attachment a;
    struct err err;

    assert_int_equal(
        attachment_save(&a, folder, SPAN("x"), SPAN("image/png"), span_str(wanted), &err), 0);
    assert_string_equal(a.name, expected);
    assert_int_equal(unlink(a.path), 0);
    attachment_fini(&a);
}

/* Servers choose file names: a name must not lead out of the folder, nor make a hidden file. */
static void test_names_of_files(void **state)
{
    char longest[400];

    (void)state;
    assert_saved_as("a.png", "a.png");
    assert_saved_as("../../etc/pass:w?d", "pass_w_d");
    assert_saved_as("..\\up\\x\n.txt", "x_.txt");
    assert_saved_as("/", "attachment");
    assert_saved_as("..", "_.");
    assert_saved_as(".bashrc", "_bashrc");
    memset(longest, 'a', sizeof longest);
    memcpy(longest + 126, "\xe2\x82\xac", 4); /* a character that the limit would cut in two */
    struct attachment a;
    struct err err;
    assert_int_equal(attachment_save(&a, folder, SPAN("x"), SPAN(""), span_str(longest), &err), 0);
    assert_int_equal(strlen(a.name), 126);
    assert_int_equal(unlink(a.path), 0);
    attachment_fini(&a);
}

static void test_what_is_binary(void **state)
{
    const struct {
        const char *mime;
        struct span bytes;
        bool binary;
    } rows[] = {
        {"image/png", SPAN("text"), true},
        {"IMAGE/X-NEW; a=b", SPAN("text"), true},
        {"image/svg+xml", SPAN("\0"), false},
        {"text/x-new", SPAN("\0"), false},
        {"", SPAN("caf\xc3\xa9"), false},
        {"", SPAN("caf\xc3"), true},
        {"", SPAN("a\0b"), true},
        {"application/x-new", SPAN("a"), false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_int_equal(attachment_is_binary(span_str(rows[i].mime), rows[i].bytes),
                         rows[i].binary);
    assert_string_equal(attachment_mime(SPAN("a/B.PNG")), "image/png");
    assert_null(attachment_mime(SPAN("png")));
    assert_null(attachment_mime(SPAN(".png")));
}

static void test_what_cannot_be_saved_stays(void **state)
{
    const struct content_options with = {.attachments = "/nonexistent/folder", .attach_limit = 1};
    struct content c;

    (void)state;
    log_set_level(LOG_ERROR);
    content_read(&c, SPAN("{\"content\":[{\"type\":\"image\",\"data\":\"aGVsbG8=\"}]}"), &with);
    assert_non_null(strstr(buf_cstr(&c.blocks), "\"data\":\"aGVsbG8=\""));
    content_fini(&c);
    const struct content_options real = {.attachments = folder, .attach_limit = 1};
    content_read(&c, SPAN("{\"content\":[{\"type\":\"image\",\"data\":\"!!!\"}]}"), &real);
    assert_non_null(strstr(buf_cstr(&c.blocks), "\"data\":\"!!!\""));
    content_fini(&c);
    log_set_level(LOG_INFO);
}

static void assert_resource(const char *result, const struct content_options *options,
                            const char *expected)
{
    struct buf out = {0};

    content_put_resource(&out, span_str(result), options);
    assert_string_equal(buf_cstr(&out), expected);
    buf_fini(&out);
}

static void test_resources(void **state)
{
    (void)state;
    assert_resource(
        "{\"contents\":[{\"uri\":\"u:1\",\"mimeType\":\"text/plain\",\"text\":\"ok\"}]}", &plain,
        "[{\"uri\":\"u:1\",\"mimeType\":\"text/plain\",\"text\":\"ok\",\"path\":null,"
        "\"name\":null,\"size\":2,\"note\":null}]");
    /* 21 bytes, of which the last two are one character. */
    assert_resource(
        "{\"contents\":[{\"uri\":\"u:1\",\"text\":\"1234567890123456789\xc3\xa9\"}]}", &plain,
        "[{\"uri\":\"u:1\",\"mimeType\":null,\"text\":\"1234567890123456789\","
        "\"path\":null,\"name\":null,\"size\":21,\"note\":\"Cut: these are the first 19 "
        "of 21 bytes.\"}]");
    assert_resource(
        "{\"contents\":[{\"uri\":\"u:1\",\"blob\":\"AAAA\"}]}", &plain,
        "[{\"uri\":\"u:1\",\"mimeType\":null,\"text\":null,\"path\":null,\"name\":null,"
        "\"size\":3,\"note\":\"Binary content of 3 bytes. The bridge has no attachments "
        "folder to put it in; its operator can set one (bus.attachments).\"}]");
    assert_resource("{}", &plain, "[]");
}

static void test_large_resources_go_to_files(void **state)
{
    const struct content_options with = {.attachments = folder, .inline_limit = 4};
    struct buf out = {0}, file = {0};
    char path[512];

    (void)state;
    content_put_resource(
        &out,
        SPAN("{\"contents\":[{\"uri\":\"u:1\",\"mimeType\":\"text/csv\",\"text\":\"a,b,c\"}]}"),
        &with);
    read_only_file(&file, path);
    assert_string_equal(buf_cstr(&file), "a,b,c");
    assert_non_null(strstr(buf_cstr(&out), "\"text\":null,\"path\":\""));
    assert_non_null(strstr(buf_cstr(&out), ".csv\",\"size\":5,\"note\":\"The text has 5 bytes"));
    buf_fini(&file);
    buf_fini(&out);
}

static void test_messages_of_prompts(void **state)
{
    struct buf out = {0};

    (void)state;
    content_put_messages(&out,
                         SPAN("{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\","
                              "\"text\":\"hi\"}},{\"role\":\"assistant\",\"content\":{\"type\":"
                              "\"image\",\"data\":\"AA\"}}]}"));
    assert_string_equal(buf_cstr(&out),
                        "[{\"role\":\"user\",\"content\":\"hi\",\"contentType\":\"text\"},"
                        "{\"role\":\"assistant\",\"content\":\"{\\\"type\\\":\\\"image\\\","
                        "\\\"data\\\":\\\"AA\\\"}\",\"contentType\":\"image\"}]");
    buf_fini(&out);
}

static void test_a_line_is_a_line(void **state)
{
    struct buf out = {0};
    char longest[3000];

    (void)state;
    content_put_line(&out, SPAN("one\r\n\r\n- two\tthree\x7f"));
    assert_string_equal(buf_cstr(&out), "one - two three ");
    out.n = 0;
    memset(longest, 'x', sizeof longest);
    content_put_line(&out, span_of(longest, sizeof longest));
    assert_int_equal(out.n, 2003);
    out.n = 0;
    log_add_secret(SPAN("tops3cret"));
    content_put_line(&out, SPAN("key tops3cret refused"));
    assert_string_equal(buf_cstr(&out), "key *** refused");
    log_forget_secrets();
    buf_fini(&out);
}

/* --- hints --- */

static const char schema[] =
    "{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\"},\"n\":{\"type\":"
    "\"integer\"},\"any\":{},\"both\":{\"type\":[\"string\",\"null\"]}},\"required\":[\"path\"]}";

static void test_hints_need_evidence(void **state)
{
    static const struct {
        const char *arguments, *error, *hint;
    } rows[] = {
        /* The arguments are fine: no hint. */
        {"{\"path\":\"/a\"}", "no such file", ""},
        {"{\"path\":\"/a\",\"n\":3,\"any\":[],\"both\":null}", "disk full", ""},
        /* A wrong key: one is missing and one is unknown. */
        {"{\"file\":\"/a\"}", "boom",
         "\n\nHint: check the arguments. Missing: path. Unknown: file. 'read' takes path (string, "
         "required), n (integer), any (any), both ([\"string\",\"null\"])."},
        {"{\"path\":7}", "boom",
         "\n\nHint: check the arguments. Of the wrong type: path (is a number, should be string). "
         "'read' takes path (string, required), n (integer), any (any), both "
         "([\"string\",\"null\"])."},
        {"{\"path\":\"\",\"n\":1.5}", "boom",
         "\n\nHint: check the arguments. Of the wrong type: n (is a number, should be integer). "
         "'read' takes path (string, required), n (integer), any (any), both "
         "([\"string\",\"null\"])."},
        /* 2.0 is a whole number in JSON Schema. */
        {"{\"path\":\"\",\"n\":2.0}", "boom", ""},
        {"{\"path\":\"/a\"}", "1 validation error for read",
         "\n\nHint: check the arguments. 'read' takes path (string, required), n (integer), any "
         "(any), both ([\"string\",\"null\"])."},
        /* The error has no details. */
        {"{\"path\":\"/a\"}", "An error occurred invoking 'read'.",
         "\n\nHint: the server gave no details. If the arguments are at fault: 'read' takes path "
         "(string, required), n (integer), any (any), both ([\"string\",\"null\"])."},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct buf out = {0};
        bool said = hints_put(&out, SPAN("read"), span_str(schema), span_str(rows[i].arguments),
                              span_str(rows[i].error));
        assert_string_equal(buf_cstr(&out), rows[i].hint);
        assert_int_equal(said, out.n > 0);
        buf_fini(&out);
    }
}

static void test_schemas_that_allow_more(void **state)
{
    static const struct {
        const char *schema;
        bool hint;
    } rows[] = {{"{\"properties\":{},\"additionalProperties\":true}", false},
                {"{\"type\":\"object\"}", false},
                {"{\"type\":\"object\",\"additionalProperties\":false}", true},
                {"{\"properties\":{}}", true},
                {"", false}};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct buf out = {0};
        assert_int_equal(
            hints_put(&out, SPAN("t"), span_str(rows[i].schema), SPAN("{\"x\":1}"), SPAN("boom")),
            rows[i].hint);
        buf_fini(&out);
    }
}

/* An agent may send very many arguments with very long names: the hint stays short. */
static void test_a_hint_is_short(void **state)
{
    struct buf arguments = {0}, out = {0};

    (void)state;
    buf_str(&arguments, "{\"");
    for (int i = 0; i < 100000; i++)
        buf_char(&arguments, 'k');
    buf_str(&arguments, "\":1");
    for (int i = 0; i < 50000; i++)
        buf_printf(&arguments, ",\"key_%d\":1", i);
    buf_char(&arguments, '}');
    assert_true(
        hints_put(&out, SPAN("read"), span_str(schema), buf_view(&arguments), SPAN("boom")));
    assert_true(out.n < 2000);
    assert_non_null(strstr(buf_cstr(&out), "Missing: path. Unknown: kkkk"));
    assert_non_null(strstr(buf_cstr(&out), ", key_0, key_1, "));
    assert_non_null(strstr(buf_cstr(&out), " and more. 'read' takes path"));
    buf_fini(&out);
    buf_fini(&arguments);
}

/* --- fingerprints --- */

static void test_fingerprints(void **state)
{
    char a[FINGERPRINT_SIZE], b[FINGERPRINT_SIZE];
    struct buf out = {0};

    (void)state;
    fingerprint_of(a, SPAN("abc"));
    assert_string_equal(a, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    fingerprint_put_canonical(&out, SPAN("{\"b\" : [ 1 , {\"d\":2,\"c\":null} ],\n\"a\":\"x y\"}"));
    assert_string_equal(buf_cstr(&out), "{\"a\":\"x y\",\"b\":[1,{\"c\":null,\"d\":2}]}");
    buf_fini(&out);
    fingerprint_of_tool(a, SPAN("t"), SPAN("d"), SPAN("{\"x\":1,\"y\":2}"));
    fingerprint_of_tool(b, SPAN("t"), SPAN("d"), SPAN("{ \"y\":2, \"x\":1 }"));
    assert_string_equal(a, b);
    fingerprint_of_tool(b, SPAN("td"), SPAN(""), SPAN("{\"x\":1,\"y\":2}"));
    assert_string_not_equal(a, b);
    fingerprint_of_tool(b, SPAN("t"), SPAN("d"), SPAN("{\"x\":1,\"y\":3}"));
    assert_string_not_equal(a, b);
}

/* --- recent messages --- */

static void test_recent_remembers_and_forgets(void **state)
{
    struct recent r;
    int work;
    char id[32];

    (void)state;
    recent_init(&r);
    struct recent_entry *first = recent_add(&r, SPAN("A"), SPAN("1"), &work);
    assert_ptr_equal(recent_find(&r, SPAN("A"), SPAN("1")), first);
    assert_null(recent_find(&r, SPAN("B"), SPAN("1")));
    struct recent_entry *second = recent_add(&r, SPAN("A"), SPAN("2"), &work);
    recent_finish(&r, second, SPAN("topic"), &(struct message){.body = SPAN("reply")});
    assert_null(second->work);
    assert_string_equal(second->topic, "topic");
    struct message kept;
    message_pack_read(second->reply, &kept);
    assert_span(kept.body, "reply");
    /* The oldest entries are dropped first, but never one that is still being handled. */
    for (int i = 0; i < RECENT_ENTRIES; i++) {
        snprintf(id, sizeof id, "more %d", i);
        recent_finish(&r, recent_add(&r, SPAN("A"), span_str(id), &work), SPAN("t"),
                      &(struct message){.body = SPAN("x")});
    }
    assert_ptr_equal(recent_find(&r, SPAN("A"), SPAN("1")), first);
    assert_null(recent_find(&r, SPAN("A"), SPAN("2")));
    assert_int_equal(r.n, RECENT_ENTRIES);
    recent_fini(&r);
}

static void test_recent_keeps_few_bytes(void **state)
{
    enum { BIG = RECENT_BYTES / 4 };
    struct recent r;
    char *body = mem_zalloc(BIG);
    char id[32];
    int work;

    (void)state;
    recent_init(&r);
    for (int i = 0; i < 10; i++) {
        snprintf(id, sizeof id, "%d", i);
        recent_finish(&r, recent_add(&r, SPAN("A"), span_str(id), &work), SPAN("t"),
                      &(struct message){.body = span_of(body, BIG)});
        assert_true(r.bytes <= RECENT_BYTES);
    }
    assert_int_equal(r.n, 10);
    assert_null(recent_find(&r, SPAN("A"), SPAN("0"))->reply);
    assert_non_null(recent_find(&r, SPAN("A"), SPAN("9"))->reply);
    recent_fini(&r);
    mem_free(body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts_are_joined),
        cmocka_unit_test(test_other_blocks_are_kept),
        cmocka_unit_test(test_structured_content_alone_is_text),
        cmocka_unit_test_setup_teardown(test_large_data_goes_to_a_file, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_names_of_files, make_folder, remove_folder),
        cmocka_unit_test(test_what_is_binary),
        cmocka_unit_test_setup_teardown(test_what_cannot_be_saved_stays, make_folder,
                                        remove_folder),
        cmocka_unit_test(test_resources),
        cmocka_unit_test_setup_teardown(test_large_resources_go_to_files, make_folder,
                                        remove_folder),
        cmocka_unit_test(test_messages_of_prompts),
        cmocka_unit_test(test_a_line_is_a_line),
        cmocka_unit_test(test_hints_need_evidence),
        cmocka_unit_test(test_schemas_that_allow_more),
        cmocka_unit_test(test_a_hint_is_short),
        cmocka_unit_test(test_fingerprints),
        cmocka_unit_test(test_recent_remembers_and_forgets),
        cmocka_unit_test(test_recent_keeps_few_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
