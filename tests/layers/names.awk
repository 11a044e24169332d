# Names of exported functions: awk -f names.awk OPEN FILE... (every .h and .c under src/).
#
# A thing is a header with the C files beside it that carry its name (stream.h: stream.c, stream_tls.c)
# or that its opening comment lists; a header without a C file of the same name belongs to the thing whose
# name it carries (stream_uv.h), and a C file without a header is a thing by itself. A thing has the
# noun of its name; a header that has other nouns instead lists all of them and its further files:
#    * Nouns: map_, idmap_. Files: hash.
# Refused: a noun of two things, a function that does not start with a noun of the thing that defines
# it (the longest noun that fits decides), a function that no other file uses, and one that is not
# used at all. OPEN lists exceptions:
#   noun THING       the name of the thing is the noun of another
#   name FUNCTION    starts with another noun
#   used FUNCTION    is used by no other file
# An exception that is no longer needed is refused as well.
function refuse(where, why) {
    print where ": " why
    bad = 1
}
function is_open(kind, what) {
    if (!((kind, what) in open))
        return 0
    needed[kind, what] = 1
    return 1
}
function folder_of(path) {
    sub(/[^\/]*$/, "", path)
    return path
}
function stem_of(path) {
    sub(/.*\//, "", path)
    sub(/\.[ch]$/, "", path)
    return path
}
# A line without comments, strings and characters; in_comment stays set from line to line.
function code_of(line, at, end) {
    if (in_comment) {
        at = index(line, "*/")
        if (!at)
            return ""
        line = substr(line, at + 2)
        in_comment = 0
    }
    gsub(/\\\\/, "", line)
    gsub(/\\"/, "", line)
    gsub(/'"'/, "0", line)
    gsub(/"[^"]*"/, "0", line)
    while ((at = index(line, "/*"))) {
        end = index(substr(line, at + 2), "*/")
        in_comment = !end
        line = substr(line, 1, at - 1) (end ? substr(line, at + end + 3) : "")
    }
    sub(/\/\/.*/, "", line)
    gsub(/'[^']*'/, "0", line)
    return line
}
# The first name before a parenthesis: what a prototype or definition is about.
function declared(text) {
    while (match(text, /[A-Za-z_][A-Za-z_0-9]*[ ]*\(/)) {
        name = substr(text, RSTART, RLENGTH - 1)
        sub(/ +$/, "", name)
        if (name ~ /^[a-z]/ && name != "typeof" && name != "sizeof")
            return name
        text = substr(text, RSTART + RLENGTH)
    }
    if (text ~ /^extern / && match(text, /[a-z_0-9]+(\[[^]]*\])*$/)) {
        name = substr(text, RSTART, RLENGTH)
        sub(/\[.*/, "", name)
        return name
    }
    return ""
}
# A statement outside of any function has ended at ";", "=" or "{".
function statement(text, ending) {
    gsub(/[ \t]+/, " ", text)
    sub(/^ /, "", text)
    if (text ~ /^(typedef|(struct|union|enum)( [a-z_0-9]+)?$)/ || (text ~ /^static/ && text !~ /^static inline/))
        return
    if (text ~ /^static inline/ && FILENAME !~ /\.h$/)
        return
    gsub(/__attribute__\(\([^()]*(\([^()]*\))?\)\)/, "", text)
    if (text ~ /^ *static [^(]*\(/ && text !~ /^ *static inline/)
        return
    name = declared(text)
    if (name == "" || name == "main") # of a program, called by the C runtime
        return
    uses[FILENAME, name]--
    if (ending == "{" && text ~ /\(/) {
        defined[name] = FILENAME
        defined_at[name] = FNR
        if (text ~ /^static/)
            is_inline[name] = 1
    }
}
FNR == 1 {
    which++
    depth = 0
    text = ""
    in_comment = 0
    macro = 0
}
which == 1 {
    if ($1 ~ /^(noun|name|used)$/)
        open[$1, $2] = FILENAME ":" FNR
    next
}
FNR == 1 {
    files[++n_files] = FILENAME
    exists[FILENAME] = 1
}
FILENAME ~ /\.h$/ && /^ \* Nouns: / {
    listing = 1
    sub(/Nouns: /, "")
}
listing && !/^ \* ./ {
    listing = 0
}
listing {
    listed[FILENAME] = listed[FILENAME] substr($0, 3) " "
    next
}
{
    line = code_of($0)
    rest = line
    while (match(rest, /[A-Za-z_][A-Za-z_0-9]*/)) {
        uses[FILENAME, substr(rest, RSTART, RLENGTH)]++
        rest = substr(rest, RSTART + RLENGTH)
    }
    if (macro || line ~ /^[ \t]*#/) {
        macro = line ~ /\\$/
        next
    }
    while (match(line, /[;{}]/)) {
        at = RSTART
        mark = substr(line, at, 1)
        if (depth == 0 && mark != "}")
            statement(text substr(line, 1, at - 1), mark)
        depth += mark == "{" ? 1 : mark == "}" ? -1 : 0
        text = ""
        line = substr(line, at + 1)
    }
    text = depth == 0 ? text " " line : ""
}
# Which thing a file belongs to, named by its folder and stem.
function thing_of(file, folder, stem, header) {
    folder = folder_of(file)
    stem = stem_of(file)
    if (file in thing_listed)
        return thing_listed[file]
    if (file ~ /\.h$/ ? exists[folder stem ".c"] : exists[folder stem ".h"])
        return folder stem
    header = stem
    while (sub(/_[^_]*$/, "", header))
        if (exists[folder header ".h"])
            return folder header
    return folder stem
}
function own(noun, thing) {
    sub(/_$/, "", noun)
    if (!((thing, noun) in begins))
        return
    if (("noun", thing) in open)
        claims[noun] = claims[noun] thing " "
    else if (noun in owner && owner[noun] != thing)
        refuse(thing, noun "_ belongs to " owner[noun] " already")
    else
        owner[noun] = thing
}
function read_list(header, line, words, n, i, thing, names) {
    thing = folder_of(header) stem_of(header)
    line = listed[header]
    n = split(line, words, /[ ,.]+/)
    for (i = 1; i <= n; i++)
        if (words[i] == "Files:")
            names = 1
        else if (names && words[i] ~ /^[a-z]/ && words[i] != "c")
            thing_listed[folder_of(header) words[i] ".c"] = thing
}
END {
    for (i = 1; i <= n_files; i++)
        if (files[i] in listed)
            read_list(files[i])
    for (i = 1; i <= n_files; i++)
        thing[files[i]] = thing_of(files[i])
    for (name in defined)
        for (noun = name; noun != ""; sub(/_?[^_]*$/, "", noun))
            begins[thing[defined[name]], noun] = 1
    for (i = 1; i <= n_files; i++) {
        if (files[i] in listed) {
            line = listed[files[i]]
                    sub(/ Files:.*/, "", line)
            n = split(line, words, /[ ,.]+/)
            for (k = 1; k <= n; k++)
                if (words[k] != "")
                    own(words[k], thing[files[i]])
            if (folder_of(files[i]) stem_of(files[i]) == thing[files[i]])
                named[thing[files[i]]] = 1
        }
    }
    for (i = 1; i <= n_files; i++)
        if (!named[thing[files[i]]] && folder_of(files[i]) stem_of(files[i]) == thing[files[i]])
            own(stem_of(files[i]), thing[files[i]])
    for (noun in claims)
        if (noun in owner) {
            n = split(claims[noun], words, " ")
            for (i = 1; i <= n; i++)
                needed["noun", words[i]] = 1
        }
    for (name in defined) {
        file = defined[name]
        noun = name
        while (!(noun in owner) && sub(/_?[^_]*$/, "", noun) && noun != "")
            ;
        if (!(noun in owner) || owner[noun] != thing[file]) {
            if (!is_open("name", name))
                refuse(file ":" defined_at[name], name " does not start with a noun of " thing[file] \
                    (noun in owner ? ", but with one of " owner[noun] : ""))
        }
        elsewhere = 0
        for (i = 1; i <= n_files && !elsewhere; i++)
            elsewhere = files[i] != file && uses[files[i], name] > 0
        if (elsewhere || is_inline[name] && uses[file, name] > 0)
            continue
        if (is_open("used", name))
            continue
        if (uses[file, name] > 0)
            refuse(file ":" defined_at[name], name " is used in no other file: make it static")
        else
            refuse(file ":" defined_at[name], name " is used by nobody")
    }
    for (line in open)
        if (!needed[line]) {
            split(line, words, SUBSEP)
            refuse(open[line], words[1] " " words[2] " is not needed any more")
        }
    exit bad
}
