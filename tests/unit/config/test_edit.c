/* Adding and removing single entries of a JSON, YAML or TOML file; every other byte is kept. */
#include "config_test.h"

#include "config/edit.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static int add(struct buf *out, const char *text, const char *name, const char *entry,
               struct err *err)
{
    struct edit_place place = edit_servers(span_str(text));

    return edit_put(out, edit_format_of(span_str(text)), &place, span_str(text), span_str(name),
                    span_str(entry), err);
}

static int take(struct buf *out, const char *text, const char *name, struct err *err)
{
    struct edit_place place = edit_servers(span_str(text));

    return edit_take(out, edit_format_of(span_str(text)), &place, span_str(text), span_str(name),
                     err);
}

static void removed(const char *text, const char *name, const char *expected)
{
    struct buf out = {0};
    struct err err = {0};

    if (take(&out, text, name, &err))
        fail_msg("%s: %s", text, err.text);
    assert_string_equal(buf_cstr(&out), expected);
    buf_fini(&out);
}

/* Adds a server; after removing it again the file must be as before. */
static void added(const char *text, const char *name, const char *expected)
{
    struct buf out = {0};
    struct err err = {0};

    if (add(&out, text, name, "{\"url\":1}", &err))
        fail_msg("%s: %s", text, err.text);
    assert_string_equal(buf_cstr(&out), expected);
    removed(buf_cstr(&out), name, text);
    buf_fini(&out);
}

#define A "\"a\": {\"url\":1}"

static void a_server_is_added_as_the_last(void **state)
{
    (void)state;
    added("{\"mcpServers\":{}}", "a", "{\"mcpServers\":{\n  " A "\n}}");
    added("{\n  \"mcpServers\": {}\n}", "a", "{\n  \"mcpServers\": {\n    " A "\n  }\n}");
    added("{ \"x\": 1e5, \"mcpServers\": {\"b\": {\"mine\": [1, 2]} }, \"y\": null }\n", "a",
          "{ \"x\": 1e5, \"mcpServers\": {\"b\": {\"mine\": [1, 2]}, " A " }, \"y\": null }\n");
    added("{\"servers\":{\"b\":{}}}", "q\"", "{\"servers\":{\"b\":{}, \"q\\\"\": {\"url\":1}}}");
    added("{\r\n\t\"servers\": {\r\n\t\t\"b\": {}\r\n\t}\r\n}\r\n", "a",
          "{\r\n\t\"servers\": {\r\n\t\t\"b\": {},\r\n\t\t" A "\r\n\t}\r\n}\r\n");
    added("\xef\xbb\xbf{\"servers\": {\n}}", "a", "\xef\xbb\xbf{\"servers\": {" A "\n}}");
}

static void comments_and_trailing_commas_of_json_stay(void **state)
{
    (void)state;
    added("{\n  \"servers\": {\n    \"b\": {} // about b\n    // off\n  }\n}", "a",
          "{\n  \"servers\": {\n    \"b\": {}, // about b\n    " A "\n    // off\n  }\n}");
    added("{\n  \"servers\": {\n    \"b\": {}, /* about b */\n  },\n}", "a",
          "{\n  \"servers\": {\n    \"b\": {}, /* about b */\n    " A ",\n  },\n}");
    added("{\"servers\": {\"b\": {} /* of\nb */ , }}", "a",
          "{\"servers\": {\"b\": {} /* of\nb */ , " A ", }}");
    added("{\"servers\": { // none yet\n}}", "a", "{\"servers\": {" A " // none yet\n}}");
    added("// a file\n{}\n", "a", "// a file\n{\n  \"servers\": {" A "}\n}\n");
    removed("{\n  \"servers\": {\n    // of a\n    \"a\": {}, // a, too\n    \"b\": {}\n  }\n}",
            "a", "{\n  \"servers\": {\n    // of a\n    \"b\": {}\n  }\n}");
    removed("{\n  \"servers\": {\n    \"a\": {}, // of a\n    \"b\": {} // of b\n  }\n}", "b",
            "{\n  \"servers\": {\n    \"a\": {} // of a\n  }\n}");
    /* A string that looks like a comment is none. */
    added("{\"servers\": {\"b\": {\"url\": \"http://x/*\"}}}", "a",
          "{\"servers\": {\"b\": {\"url\": \"http://x/*\"}, " A "}}");
}

/* A bridge may start without servers, and an agent adds the first. */
static void a_file_without_servers_gets_a_map_of_them(void **state)
{
    (void)state;
    added("{}", "a", "{\n  \"servers\": {" A "}\n}");
    added(" {\n  \"bus\": {} }\n", "a", " {\n  \"bus\": {},\n  \"servers\": {" A "} }\n");
}

#undef A

static void a_server_is_removed_with_its_comma(void **state)
{
    (void)state;
    removed("{\"mcpServers\":{\"a\":{}}}", "a", "{\"mcpServers\":{}}");
    removed("{\"mcpServers\":{\"a\":{\"b\":{}} , \"b\":{}}}", "a", "{\"mcpServers\":{ \"b\":{}}}");
    removed("{\"mcpServers\":{\"a\":{}, \"b\":{} }}", "b", "{\"mcpServers\":{\"a\":{} }}");
    removed("{\"mcpServers\":{\"a\":{},\n\"\\u0062\":{},\n\"c\":{}}}", "b",
            "{\"mcpServers\":{\"a\":{},\n\"c\":{}}}");
}

/* Agents could add servers only to a bridge whose file was JSON. */
static void a_server_is_added_to_yaml_with_all_comments_kept(void **state)
{
    (void)state;
    added("# top\nservers: # ours\n    b: # first\n        url: x\n        # in b\n\n    # off: "
          "{}\n\n# the bus\nbus: {}\n",
          "a",
          "# top\nservers: # ours\n    b: # first\n        url: x\n        # in b\n\n    # off: "
          "{}\n    a:\n      url: 1\n\n# the bus\nbus: {}\n");
    added("mcpServers:\n  b: {url: x}", "a", "mcpServers:\n  b: {url: x}\n  a:\n    url: 1");
    /* A line of a block scalar that looks like a comment is none. */
    added("servers:\n  b:\n    url: x\n    description: |\n      one\n      # two\n", "a",
          "servers:\n  b:\n    url: x\n    description: |\n      one\n      # two\n  a:\n    url: "
          "1\n");
    added("servers: {} # none yet\nbus: {}\n", "a",
          "servers:  # none yet\n  a:\n    url: 1\nbus: {}\n");
    added("servers: {}", "a", "servers: \n  a:\n    url: 1");
    added("servers:\nbus: {}\n", "a", "servers:\n  a:\n    url: 1\nbus: {}\n");
    added("bus: {}\nservers:\n", "a", "bus: {}\nservers:\n    a:\n      url: 1\n");
    added("# only a comment", "a", "# only a comment\nservers:\n  a:\n    url: 1");
    added("names: bare\r\nservers:\r\n  b: {url: x}\r\n", "a",
          "names: bare\r\nservers:\r\n  b: {url: x}\r\n  a:\r\n    url: 1\r\n");
    added("", "a", "servers:\n  a:\n    url: 1\n");
}

static void a_server_is_removed_from_yaml_with_its_lines(void **state)
{
    (void)state;
    removed("servers:\n  # of b\n  b: {url: x}\n  a:\n    url: y # why\n    # in a\n\n  # of c\n  "
            "c: {url: z}\n",
            "a", "servers:\n  # of b\n  b: {url: x}\n\n  # of c\n  c: {url: z}\n");
    removed("servers:\n  b: {url: x}\n  \"a\": {\"url\":1}\n# the bus\nbus: {}\n", "a",
            "servers:\n  b: {url: x}\n# the bus\nbus: {}\n");
    removed("servers: # ours\n  a: {url: x}\n", "a", "servers: # ours\n");
}

static void a_server_is_renamed_and_switched_in_its_place(void **state)
{
    static const struct {
        const char *before, *renamed, *off;
    } rows[] = {
        {"{\"servers\": {\"a\": {\"url\": \"u\"}, \"b\": {}}} // c\n",
         "{\"servers\": {\"x y\": {\"url\": \"u\"}, \"b\": {}}} // c\n",
         "{\"servers\": {\"a\": {\"url\": \"u\", \"enabled\": false}, \"b\": {}}} // c\n"},
        {"servers:\n  'a': # of a\n    url: u # of u\n  b: {}\n",
         "servers:\n  \"x y\": # of a\n    url: u # of u\n  b: {}\n",
         "servers:\n  'a': # of a\n    url: u # of u\n    enabled: false\n  b: {}\n"},
        {"servers:\n  a:\n    enabled: true # why\n",
         "servers:\n  \"x y\":\n    enabled: true # why\n",
         "servers:\n  a:\n    enabled: false # why\n"},
    };
    static const struct edit_place own = {.keys = {"servers", "a"}};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct span text = span_str(rows[i].before);
        struct edit_place all = edit_servers(text);
        enum edit_format format = edit_format_of(text);
        BUF_SCOPED renamed = {0}, off = {0};
        struct err err = {0};
        int code = edit_rename(&renamed, format, &all, text, SPAN("a"), SPAN("x y"), &err);
        assert_int_equal(code, 0);
        assert_string_equal(buf_cstr(&renamed), rows[i].renamed);
        code = edit_set(&off, format, &own, text, SPAN("enabled"), SPAN("false"), &err);
        assert_int_equal(code, 0);
        assert_string_equal(buf_cstr(&off), rows[i].off);
        code = edit_rename(&off, format, &all, text, SPAN("none"), SPAN("x"), &err);
        assert_int_equal(code, -ENOENT);
    }
}

static const struct edit_place codex = {.keys = {"mcp_servers"}};

static void a_table_of_toml(const char *text, const char *expected)
{
    BUF_SCOPED out = {0}, back = {0};
    struct err err = {0};

    if (edit_put(&out, EDIT_TOML, &codex, span_str(text), SPAN("a.b"),
                 SPAN("{\"command\":\"x\",\"args\":[\"-y\",\"\\n\"],\"env\":{\"K\":\"v\"}}"), &err))
        fail_msg("%s: %s", text, err.text);
    assert_string_equal(buf_cstr(&out), expected);
    assert_int_equal(edit_take(&back, EDIT_TOML, &codex, buf_view(&out), SPAN("a.b"), &err), 0);
    assert_string_equal(buf_cstr(&back), text);
}

static void tables_of_toml_come_and_go(void **state)
{
#define T "[mcp_servers.\"a.b\"]\ncommand = \"x\"\nargs = [\"-y\", \"\\n\"]\nenv = { K = \"v\" }"
    BUF_SCOPED out = {0};
    struct err err = {0};

    (void)state;
    a_table_of_toml("", T "\n");
    a_table_of_toml("model = 'o' # why", "model = 'o' # why\n\n" T);
    a_table_of_toml("[mcp_servers.c]\ncommand = '''\n[mcp_servers.a]\n'''\n\n",
                    "[mcp_servers.c]\ncommand = '''\n[mcp_servers.a]\n'''\n\n\n" T "\n");
#undef T
    struct span text = SPAN("a = 1\n[mcp_servers.b] # of b\ncommand = \"x\"\n[mcp_servers.b.env]\n"
                            "K = \"\"\"[x]\n[y]\"\"\"\n\n# of t\n[t]\nk = [ 1,\n  [2], ]\n"
                            "[mcp_servers.b.tools.z]\non = true\n");
    assert_int_equal(edit_take(&out, EDIT_TOML, &codex, text, SPAN("b"), &err), 0);
    assert_string_equal(buf_cstr(&out), "a = 1\n# of t\n[t]\nk = [ 1,\n  [2], ]\n");
    static const char *const odd[] = {
        "mcp_servers = { b = { command = 'x' } }\n", /* nothing can be added to it */
        "a = 1\na = 2\n",                            /* not TOML */
        "[mcp_servers.\"a.b\"]\ncommand = 'x'\n",    /* the server exists already */
        "[[mcp_servers]]\ncommand = 'x'\n",          /* a list */
    };
    for (size_t i = 0; i < COUNT_OF(odd); i++)
        assert_true(
            edit_put(&out, EDIT_TOML, &codex, span_str(odd[i]), SPAN("a.b"), SPAN("{}"), &err) < 0);
    text = SPAN("mcp_servers.b.command = 'x'\n");
    assert_true(edit_take(&out, EDIT_TOML, &codex, text, SPAN("b"), &err) < 0);
}

static void what_cannot_be_edited_is_refused(void **state)
{
    struct buf out = {0};
    struct err err = {0};

    (void)state;
    static const char *const odd[] = {
        "{\"a\": ",                           /* neither JSON nor YAML */
        "servers: {b: {url: x}}\n",           /* all on one line */
        "x: &s {b: {url: x}}\nservers: *s\n", /* an alias */
        "servers:\n  b: {url: x}\n...\n",     /* the document has ended */
        "{bus: {}}\n",                        /* no line can be added after it */
        "{\"servers\": {}, \"servers\": {}}", /* ambiguous */
        "{\"servers\": null}",                /* not a map */
        "servers: ~\n",                       /* removing could not restore it */
        "{\"mcpServers\":[]}",                /* a list */
    };
    for (size_t i = 0; i < COUNT_OF(odd); i++) {
        if (!add(&out, odd[i], "a", "{}", &err))
            fail_msg("%s: %s", odd[i], buf_cstr(&out));
        assert_non_null(strstr(err.hint, "by hand"));
    }
    assert_int_equal(add(&out, "servers:\n  \"a\": {url: y}\n", "a", "{}", &err), -EEXIST);
    assert_int_equal(take(&out, "{\"servers\":{}}", "a", &err), -ENOENT);
    assert_non_null(strstr(err.text, "no 'a'"));
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
    assert_true(edit_replace_file(path, SPAN("x"), &err) < 0); /* no file to replace */
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
    assert_int_equal(rmdir(folder), 0); /* fails if any other file is left */
}

/* When a daemon that ran as root replaced a user's file, root became its owner, and the user could
 * not read it any more. */
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

/* When the path was a symbolic link, the link was replaced by a file, and its target stayed
 * unchanged. */
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
    int code = edit_put(&out, edit_format_of(span_str(text)), &edit_tokens, span_str(text),
                        SPAN("t"), SPAN("{\"name\":\"t\"}"), &err);

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

    if (edit_take(&out, edit_format_of(span_str(text)), &edit_tokens, span_str(text),
                  span_str(name), &err))
        fail_msg("%s", err.text);
    assert_string_equal(buf_cstr(&out), expected);
    buf_fini(&out);
}

/* Adding a token adds one line, whether the file has tokens or not, and keeps every comment. */
static void a_token_is_added_where_its_place_is(void **state)
{
#define T "name: t"
#define J "{\"name\":\"t\"}"
    (void)state;
    token_added("", "auth:\n  tokens:\n    - " T "\n");
    token_added("names: bare # x", "names: bare # x\nauth:\n  tokens:\n    - " T);
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
    token_added("auth: {tokens: [{name: a}]}\n", NULL); /* refused: the user has to edit it */
    token_added("{}", "{\n  \"auth\": {\"tokens\": [" J "]}\n}");
    token_added("{\"names\": \"bare\"}\n",
                "{\"names\": \"bare\", \"auth\": {\"tokens\": [" J "]}}\n");
    token_added("{\"auth\": {\"anonymous\": true}}",
                "{\"auth\": {\"anonymous\": true, \"tokens\": [" J "]}}");
    token_added("{\"auth\": {\"tokens\": [{\"name\":\"a\"} ]}}",
                "{\"auth\": {\"tokens\": [{\"name\":\"a\"}, " J " ]}}");
#undef T
#undef J
}

/* Removing the last token leaves an empty list, which admits nobody; without a list everybody would
 * be admitted. */
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
        cmocka_unit_test(comments_and_trailing_commas_of_json_stay),
        cmocka_unit_test(a_server_is_renamed_and_switched_in_its_place),
        cmocka_unit_test(tables_of_toml_come_and_go),
        cmocka_unit_test(a_token_is_added_where_its_place_is),
        cmocka_unit_test(a_token_is_removed_and_the_door_stays_closed),
        cmocka_unit_test(what_cannot_be_edited_is_refused),
        cmocka_unit_test(a_file_is_replaced_at_once_and_the_old_one_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
