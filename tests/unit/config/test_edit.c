/* Single servers put into and taken out of a file of JSON or YAML, the rest left as it is. */
#include "config_test.h"

#include "config/edit.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static void added(const char *text, const char *name, const char *expected)
{
    struct buf out = {0};
    struct err err = {0};

    assert_int_equal(
        edit_add_server(&out, span_str(text), span_str(name), SPAN("{\"url\":1}"), &err), 0);
    assert_string_equal(buf_cstr(&out), expected);
    buf_fini(&out);
}

static void removed(const char *text, const char *name, const char *expected)
{
    struct buf out = {0};
    struct err err = {0};

    assert_int_equal(edit_remove_server(&out, span_str(text), span_str(name), &err), 0);
    assert_string_equal(buf_cstr(&out), expected);
    buf_fini(&out);
}

static void a_server_is_added_as_the_last(void **state)
{
    (void)state;
    added("{\"mcpServers\":{}}", "a", "{\"mcpServers\":{\n    \"a\": {\"url\":1}\n  }}");
    added("{ \"x\": 1e5, \"mcpServers\": {\"b\": {\"mine\": [1, 2]} }, \"y\": null }\n", "a",
          "{ \"x\": 1e5, \"mcpServers\": {\"b\": {\"mine\": [1, 2]},\n    \"a\": {\"url\":1} }, "
          "\"y\": null }\n");
    added("{\"servers\":{\"b\":{}}}", "q\"",
          "{\"servers\":{\"b\":{},\n    \"q\\\"\": {\"url\":1}}}");
}

/* A bridge that begins with no servers is told of its first by an agent. */
static void a_file_without_servers_gets_a_map_of_them(void **state)
{
    (void)state;
    added("{}", "a", "{\n  \"servers\": {\n    \"a\": {\"url\":1}\n  }}");
    added(" {\n  \"bus\": {} }\n", "a",
          " {\n  \"servers\": {\n    \"a\": {\"url\":1}\n  },\n  \"bus\": {} }\n");
}

static void a_server_is_removed_with_its_comma(void **state)
{
    (void)state;
    removed("{\"mcpServers\":{\"a\":{}}}", "a", "{\"mcpServers\":{}}");
    removed("{\"mcpServers\":{\"a\":{\"b\":{}} , \"b\":{}}}", "a", "{\"mcpServers\":{ \"b\":{}}}");
    removed("{\"mcpServers\":{\"a\":{}, \"b\":{} }}", "b", "{\"mcpServers\":{\"a\":{} }}");
    removed("{\"mcpServers\":{\"a\":{},\n\"\\u0062\":{},\n\"c\":{}}}", "b",
            "{\"mcpServers\":{\"a\":{},\n\n\"c\":{}}}");
}

/* An agent could register servers with a bridge whose file is JSON, and with no other. */
static void a_server_is_added_to_yaml_with_all_comments_kept(void **state)
{
    (void)state;
    added("# top\nservers: # ours\n    b: # first\n        url: x\n        # in b\n\n    # off: "
          "{}\n\n# the "
          "bus\nbus: {}\n",
          "a",
          "# top\nservers: # ours\n    b: # first\n        url: x\n        # in b\n\n    # off: "
          "{}\n    "
          "\"a\": {\"url\":1}\n\n# the bus\nbus: {}\n");
    added("mcpServers:\n  b: {url: x}", "a", "mcpServers:\n  b: {url: x}\n  \"a\": {\"url\":1}\n");
    /* What looks like a comment in a text of several lines is none. */
    added("servers:\n  b:\n    url: x\n    description: |\n      one\n      # two\n", "a",
          "servers:\n  b:\n    url: x\n    description: |\n      one\n      # two\n  \"a\": "
          "{\"url\":1}\n");
    added("servers: {} # none yet\nbus: {}\n", "a",
          "servers:  # none yet\n  \"a\": {\"url\":1}\nbus: {}\n");
    added("servers:\nbus: {}\n", "a", "servers:\n  \"a\": {\"url\":1}\nbus: {}\n");
    added("servers: ~\n", "a", "servers: \n  \"a\": {\"url\":1}\n");
    added("# only a comment", "a", "# only a comment\nservers:\n  \"a\": {\"url\":1}\n");
}

static void a_server_is_removed_from_yaml_with_its_lines(void **state)
{
    (void)state;
    removed("servers:\n  # of b\n  b: {url: x}\n  a:\n    url: y # why\n    # in a\n\n  # of c\n  "
            "c: {url: "
            "z}\n",
            "a", "servers:\n  # of b\n  b: {url: x}\n\n  # of c\n  c: {url: z}\n");
    removed("servers:\n  b: {url: x}\n  \"a\": {\"url\":1}\n# the bus\nbus: {}\n", "a",
            "servers:\n  b: {url: x}\n# the bus\nbus: {}\n");
    removed("servers:\n  a: {url: x}\n", "a", "servers:\n");
}

static void what_cannot_be_edited_is_refused(void **state)
{
    struct buf out = {0};
    struct err err = {0};

    (void)state;
    assert_true(edit_add_server(&out, SPAN("{\"a\": "), SPAN("a"), SPAN("{}"), &err) < 0);
    assert_non_null(strstr(err.text, "neither plain JSON nor YAML"));
    static const char *const odd[] = {
        "servers: {b: {url: x}}\n",                     /* all on one line */
        "x: &s {b: {url: x}}\nservers: *s\n",           /* they stand elsewhere */
        "servers:\n  b: {url: x}\n...\n",               /* the document has ended */
        "{bus: {}}\n",                                  /* no line can follow */
        "servers:\n  b: {url: x}\n  \"a\": {url: y}\n", /* it is there already */
    };
    for (size_t i = 0; i < COUNT_OF(odd); i++) {
        assert_true(edit_add_server(&out, span_str(odd[i]), SPAN("a"), SPAN("{}"), &err) < 0);
        assert_non_null(strstr(err.hint, "by hand"));
    }
    assert_true(edit_add_server(&out, SPAN("{\"mcpServers\":[]}"), SPAN("a"), SPAN("{}"), &err) <
                0);
    assert_non_null(strstr(err.text, "no map of servers"));
    assert_true(edit_remove_server(&out, SPAN("{\"servers\":{}}"), SPAN("a"), &err) < 0);
    assert_non_null(strstr(err.text, "no server 'a'"));
    assert_int_equal(out.n, 0);
    buf_fini(&out);
}

static void read_back(const char *path, const char *expected)
{
    char text[64] = {0};
    FILE *f = fopen(path, "r");

    assert_non_null(f);
    assert_true(fread(text, 1, sizeof text - 1, f) > 0);
    fclose(f);
    assert_string_equal(text, expected);
}

static void a_file_is_replaced_at_once_and_the_old_one_kept(void **state)
{
    char folder[] = "/tmp/rialto-test-XXXXXX", path[64], old[80];
    struct err err = {0};
    struct stat st;

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/mcp.json", folder);
    snprintf(old, sizeof old, "%s.bak", path);
    assert_true(edit_replace_file(path, SPAN("x"), &err) < 0); /* there is none to replace */
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("one", f);
    fclose(f);
    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(edit_replace_file(path, SPAN("two"), &err), 0);
    assert_int_equal(edit_replace_file(path, SPAN("three"), &err), 0);
    read_back(path, "three");
    read_back(old, "two");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(unlink(old), 0);
    assert_int_equal(rmdir(folder), 0); /* nothing else is left in it */
}

/* A daemon of root's made the file of its user root's own, whom alone it could be read by then. */
static void a_file_stays_its_owners(void **state)
{
    char folder[] = "/tmp/rialto-test-XXXXXX", path[64], old[80];
    struct err err = {0};
    struct stat st;

    (void)state;
    if (geteuid() != 0)
        skip();
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/mcp.json", folder);
    snprintf(old, sizeof old, "%s.bak", path);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fclose(f);
    assert_int_equal(chown(path, 12345, 12346), 0);
    assert_int_equal(edit_replace_file(path, SPAN("two"), &err), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_uid, 12345);
    assert_int_equal(st.st_gid, 12346);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(unlink(old), 0);
    assert_int_equal(rmdir(folder), 0);
}

/* Who keeps such files elsewhere and links to them found a file in the place of the link, and the
 * one that it had led to unchanged. */
static void a_link_to_the_file_stays_one(void **state)
{
    char folder[] = "/tmp/rialto-test-XXXXXX", kept[64], path[64], old[80];
    struct err err = {0};
    struct stat st;

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(kept, sizeof kept, "%s/kept.json", folder);
    snprintf(path, sizeof path, "%s/mcp.json", folder);
    snprintf(old, sizeof old, "%s.bak", kept);
    FILE *f = fopen(kept, "w");
    assert_non_null(f);
    fputs("one", f);
    fclose(f);
    assert_int_equal(symlink("kept.json", path), 0);
    assert_int_equal(edit_replace_file(path, SPAN("two"), &err), 0);
    assert_int_equal(lstat(path, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    read_back(kept, "two");
    read_back(old, "one");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(unlink(kept), 0);
    assert_int_equal(unlink(old), 0);
    assert_int_equal(rmdir(folder), 0);
}

static void token_added(const char *text, const char *expected)
{
    struct buf out = {0};
    struct err err = {0};
    int code = edit_add_token(&out, span_str(text), SPAN("{\"name\":\"t\"}"), &err);

    if (!expected)
        assert_int_equal(code, ERR_CONFIG);
    else if (code)
        fail_msg("%s", err.text);
    else
        assert_string_equal(buf_cstr(&out), expected);
    buf_fini(&out);
}

static void token_removed(const char *text, const char *name, const char *expected)
{
    struct buf out = {0};
    struct err err = {0};

    if (edit_remove_token(&out, span_str(text), span_str(name), &err))
        fail_msg("%s", err.text);
    assert_string_equal(buf_cstr(&out), expected);
    buf_fini(&out);
}

/* Wherever the file has its tokens, or none yet: one more line, and every comment stays. */
static void a_token_is_added_where_its_place_is(void **state)
{
#define T "{\"name\":\"t\"}"
    (void)state;
    token_added("", "auth:\n  tokens:\n    - " T "\n");
    token_added("names: bare # x", "names: bare # x\nauth:\n  tokens:\n    - " T "\n");
    token_added("auth: # who\n  anonymous: false # y\n# end\nnames: bare\n",
                "auth: # who\n  anonymous: false # y\n  tokens:\n    - " T
                "\n# end\nnames: bare\n");
    token_added("auth: {}\n", "auth: \n  tokens:\n    - " T "\n");
    token_added(
        "auth:\n  tokens:\n    # first\n    - {name: a} # a\n    - name: b\n      hash: h\n\n"
        "# servers\nservers: {}\n",
        "auth:\n  tokens:\n    # first\n    - {name: a} # a\n    - name: b\n      hash: h\n"
        "    - " T "\n\n# servers\nservers: {}\n");
    token_added("auth:\n  tokens:\n  - {name: a}\n  anonymous: false\n",
                "auth:\n  tokens:\n  - {name: a}\n  - " T "\n  anonymous: false\n");
    token_added("auth:\n  tokens: [] # none\n", "auth:\n  tokens:  # none\n    - " T "\n");
    token_added("auth: {tokens: [{name: a}]}\n", NULL); /* not edited: the user has to */
    token_added("{}", "{\"auth\": {\"tokens\": [" T "]}}");
    token_added("{\"names\": \"bare\"}\n",
                "{\"names\": \"bare\", \"auth\": {\"tokens\": [" T "]}}\n");
    token_added("{\"auth\": {\"anonymous\": true}}",
                "{\"auth\": {\"anonymous\": true, \"tokens\": [" T "]}}");
    token_added("{\"auth\": {\"tokens\": [{\"name\":\"a\"} ]}}",
                "{\"auth\": {\"tokens\": [{\"name\":\"a\"}, " T " ]}}");
#undef T
}

/* The last one leaves an empty list, which lets nobody in; no list would let everybody in. */
static void a_token_is_removed_and_the_door_stays_closed(void **state)
{
    (void)state;
    token_removed("auth:\n  tokens: # all\n    - {name: a} # a\n    # of b\n    - name: b\n"
                  "      hash: h\n\nservers: {}\n",
                  "b", "auth:\n  tokens: # all\n    - {name: a} # a\n    # of b\n\nservers: {}\n");
    token_removed("auth:\n  tokens: # all\n    - {name: a} # a\n    - {name: b}\n", "a",
                  "auth:\n  tokens: # all\n    - {name: b}\n");
    token_removed("auth:\n  tokens: # all\n    - {name: a} # a\nnames: bare\n", "a",
                  "auth:\n  tokens: [] # all\nnames: bare\n");
    token_removed("{\"auth\": {\"tokens\": [{\"name\":\"a\"} , {\"name\":\"b\"}]}}", "a",
                  "{\"auth\": {\"tokens\": [ {\"name\":\"b\"}]}}");
    token_removed("{\"auth\": {\"tokens\": [{\"name\":\"a\"}]}}", "a",
                  "{\"auth\": {\"tokens\": []}}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_link_to_the_file_stays_one),
        cmocka_unit_test(a_file_stays_its_owners),
        cmocka_unit_test(a_server_is_added_as_the_last),
        cmocka_unit_test(a_file_without_servers_gets_a_map_of_them),
        cmocka_unit_test(a_server_is_removed_with_its_comma),
        cmocka_unit_test(a_server_is_added_to_yaml_with_all_comments_kept),
        cmocka_unit_test(a_server_is_removed_from_yaml_with_its_lines),
        cmocka_unit_test(a_token_is_added_where_its_place_is),
        cmocka_unit_test(a_token_is_removed_and_the_door_stays_closed),
        cmocka_unit_test(what_cannot_be_edited_is_refused),
        cmocka_unit_test(a_file_is_replaced_at_once_and_the_old_one_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
