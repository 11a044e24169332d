/* What a program needs to be started: #! lines read, and the loader that an ELF file names. Called
 * by spawn.c and cmd/sandbox.c for a cage, and by cmd/doctor/program.c. */
#include "io/program.h"

#include "base/file.h"
#include "base/mem.h"

#include <elf.h>

enum { HEAD = 4096, DEPTH_MAX = 4 /* levels of scripts whose interpreter is a script */ };

/* --- scripts --- */

static struct span next_word(struct span *rest)
{
    struct span text = span_trim(*rest);
    size_t n = 0;

    while (n < text.n && text.p[n] != ' ' && text.p[n] != '\t')
        n++;
    *rest = span_from(text, n);
    return span_cut(text, 0, n);
}

static struct span last_part(struct span path)
{
    for (size_t i = path.n; i > 0; i--)
        if (path.p[i - 1] == '/')
            return span_from(path, i);
    return path;
}

struct script script_read(struct span head)
{
    struct script s = {0};

    if (!span_starts(head, SPAN("#!")))
        return s;
    struct span rest = span_from(span_cut(head, 0, span_find(head, '\n')), 2);
    if (rest.n && rest.p[rest.n - 1] == '\r') {
        s.dos = true;
        rest.n--;
    }
    s.interpreter = next_word(&rest);
    if (!span_is(last_part(s.interpreter), "env"))
        return s;
    /* Options and assignments of env stand before the program. */
    for (s.wanted = next_word(&rest);
         s.wanted.n && (s.wanted.p[0] == '-' || span_find(s.wanted, '=') < s.wanted.n);)
        s.wanted = next_word(&rest);
    return s;
}

/* --- files --- */

/* The loader that the head of an ELF file names; empty when there is none. */
static struct span loader_of(struct span head)
{
    Elf64_Ehdr elf;
    Elf64_Phdr part;

    if (head.n < sizeof elf || !span_starts(head, SPAN(ELFMAG)))
        return SPAN_EMPTY;
    memcpy(&elf, head.p, sizeof elf);
    for (size_t i = 0; i < elf.e_phnum; i++) {
        struct span at = span_cut(span_from(head, elf.e_phoff), i * sizeof part, sizeof part);
        if (at.n < sizeof part)
            break;
        memcpy(&part, at.p, sizeof part);
        if (part.p_type == PT_INTERP) {
            struct span name = span_cut(span_from(head, part.p_offset), 0, part.p_filesz);
            return span_cut(name, 0, span_find(name, '\0'));
        }
    }
    return SPAN_EMPTY;
}

static void add_file(const struct child_spec *spec, const char *name, struct cage_list *files,
                     int depth)
{
    BUF_SCOPED file = {0}, head = {0};

    if (depth > DEPTH_MAX || spawn_find(spec, name, &file))
        return;
    cage_list_add(files, buf_cstr(&file), CAGE_READ | CAGE_RUN);
    (void)file_read(&head, buf_cstr(&file), HEAD); /* only the beginning of a longer file */
    struct script script = script_read(buf_view(&head));
    struct span needs[] = {script.interpreter, script.wanted, loader_of(buf_view(&head))};
    for (size_t i = 0; i < COUNT_OF(needs); i++) {
        char *need = mem_span(needs[i]);
        if (*need)
            add_file(spec, need, files, depth + 1);
        mem_free(need);
    }
}

void program_files(const struct child_spec *spec, struct cage_list *files)
{
    add_file(spec, spec->argv[0], files, 0);
}
