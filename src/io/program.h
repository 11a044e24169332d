/*
 * program: the file that a command names, and what the kernel needs to start that file.
 *
 * Nouns: program, script.
 */
#ifndef RIALTO_IO_PROGRAM_H
#define RIALTO_IO_PROGRAM_H

#include "io/cage.h"
#include "io/child.h"

/* The interpreter in the first line of a script ("#!..."), and the program that `env` is to find;
 * both empty when the text is no script, the latter also when the script does not use env. */
struct script {
    struct span interpreter, wanted;
    bool dos; /* the line ends with a carriage return, which the kernel takes as part of the name */
};
struct script script_read(struct span head);

/* The file of the command, its interpreter (also the one that `env` finds) and their loaders, each
 * with CAGE_READ and CAGE_RUN. Nothing when there is no such file. */
void program_files(const struct child_spec *spec, struct cage_list *files);

#endif
