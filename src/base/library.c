/* The table of the libraries that are loaded when they are needed, the jumps to their functions,
 * and loading. Called where a library is first used: in io/ by crypt.c, http_engine.c, http_url.c,
 * jws.c, reach.c, scrypt.c and tls.c, by config/yaml.c and bus/nats_login.c; and by
 * cmd/version.c. */
#include "base/library.h"

#include "base/mem.h"

static const struct {
    const char *file, *package, *what;
} libraries[] = {
#define LIBRARY(id, file, package, what) {file, package, what},
#define FUNCTION(name)
#include "base/library_rows.h"
};

const char *library_what(enum library id)
{
    return libraries[id].what;
}

#ifndef RIALTO_LIBRARIES_LOADED

const char *library_file(enum library id)
{
    (void)id;
    return NULL;
}

int library_load(enum library id, struct err *err)
{
    (void)id, (void)err;
    return 0;
}

#else

#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

/*
 * The jump to a function goes through a slot, as calls of linked libraries do; C cannot express
 * that. The slots have pages of their own, which cannot be written to once they are filled (-z
 * relro does the same for what is linked). A library's first slot is its handle. All of this is one
 * statement, because the compiler may change the order of several.
 */
#if defined __x86_64__
#define PAGE "4096"
#define JUMP "endbr64; jmp *9b(%rip)\n"
#elif defined __aarch64__
#define PAGE "65536"
#define JUMP "hint #34; adrp x16, 9b; ldr x16, [x16, :lo12:9b]; br x16\n" /* the hint: bti c */
#else
#error "no jumps for this machine: configure with -Dlibraries=linked"
#endif

#define IN_SLOTS(lines) ".pushsection .library_slots, \"aw\", %nobits\n" lines ".popsection\n"
#define IN_TEXT(lines)  ".pushsection .text\n" lines ".popsection\n"

__asm__(IN_SLOTS(".balign " PAGE "\nlibrary_slots:\n")

#define LIBRARY(id, file, package, what) IN_SLOTS(".skip 8\n")
#define FUNCTION(name)                                                                             \
    IN_SLOTS("9: .skip 8\n")                                                                       \
    IN_TEXT(".globl " #name "\n.hidden " #name "\n.type " #name ", %function\n.balign 16\n" #name  \
            ": " JUMP ".size " #name ", . - " #name "\n")
#include "base/library_rows.h"
            IN_SLOTS(".balign " PAGE "\nlibrary_slots_end:\n"));

extern void *library_slots[], *library_slots_end[];

/* The function for each slot; NULL for the slot of a handle, and at the end. */
static const char *const names[] = {
#define LIBRARY(id, file, package, what) NULL,
#define FUNCTION(name)                   #name,
#include "base/library_rows.h"
    NULL,
};

/* Notes that tell packaging tools which libraries the program loads, since it is not linked with
 * them (systemd.io/ELF_DLOPEN_METADATA). */
#define NOTE(id, file, what)                                                                       \
    "[{\"feature\":\"" #id "\",\"description\":\"" what                                            \
    "\",\"priority\":\"recommended\",\"soname\":[\"" file "\"]}]"
#define LIBRARY(id, file, package, what)                                                           \
    __attribute__((used, section(".note.dlopen"), aligned(4))) static const struct {               \
        uint32_t vendor_n, text_n, type;                                                           \
        char vendor[4];                                                                            \
        char text[sizeof NOTE(id, file, what)];                                                    \
    } note_##id = {4, sizeof NOTE(id, file, what), 0x407c0c0a, "FDO", NOTE(id, file, what)};
#define FUNCTION(name)
#include "base/library_rows.h"

const char *library_file(enum library id)
{
    return libraries[id].file;
}

static int fail(enum library id, const char *why, struct err *err)
{
    return err_set(err, -ELIBACC, "%s needs %s: install the package %s (%s)", libraries[id].what,
                   libraries[id].file, libraries[id].package, why);
}

/* The first slot of a library, which is that of its handle. */
static size_t first_slot(enum library id)
{
    size_t at = 0;

    for (size_t before = id; before || names[at]; at++)
        before -= !names[at];
    return at;
}

static int fill(enum library id, void *handle, struct err *err)
{
    size_t first = first_slot(id);

    for (size_t i = first + 1; names[i]; i++)
        if (!(library_slots[i] = dlsym(handle, names[i])))
            return fail(id, dlerror(), err);
    library_slots[first] = handle;
    return 0;
}

int library_load(enum library id, struct err *err)
{
    size_t size = (size_t)((char *)library_slots_end - (char *)library_slots);

    if (library_slots[first_slot(id)])
        return 0;
    void *handle = dlopen(libraries[id].file, RTLD_LAZY | RTLD_LOCAL);
    if (!handle)
        return fail(id, dlerror(), err);
    if (mprotect(library_slots, size, PROT_READ | PROT_WRITE) < 0)
        return fail(id, strerror(errno), err);
    int code = fill(id, handle, err);
    if (mprotect(library_slots, size, PROT_READ) < 0)
        abort(); /* the kernel has no memory left for its own tables */
    return code;
}

#endif
