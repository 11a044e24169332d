/*
 * Runs a fuzz target over the files of corpus folders (or single files), one call a file, without
 * libFuzzer: inputs that were found once stay tested with any compiler. Exits with 1 when there was
 * nothing to run, so that a lost corpus is noticed.
 */
#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The input is in a block of exactly its size, so that the sanitizer notices reads past the end. */
static int replay_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    struct stat st;
    if (!f || fstat(fileno(f), &st) != 0) {
        perror(path);
        if (f)
            fclose(f);
        return -1;
    }
    size_t size = (size_t)st.st_size;
    uint8_t *data = malloc(size ? size : 1);
    int failed = !data || fread(data, 1, size, f) != size;
    fclose(f);
    if (!failed) {
        fprintf(stderr, "%s\n", path); /* the last name printed is the one that crashed */
        LLVMFuzzerTestOneInput(data, size);
    }
    free(data);
    return failed ? -1 : 0;
}

static long replay_folder(const char *folder)
{
    DIR *dir = opendir(folder);
    if (!dir)
        return replay_file(folder) == 0 ? 1 : -1;
    long n = 0;
    for (struct dirent *e; n >= 0 && (e = readdir(dir));) {
        char path[4096];
        if (e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
        n = replay_file(path) == 0 ? n + 1 : -1;
    }
    closedir(dir);
    return n;
}

int main(int argc, char **argv)
{
    long total = 0;
    for (int i = 1; i < argc; i++) {
        long n = replay_folder(argv[i]);
        if (n < 0)
            return 1;
        total += n;
    }
    printf("%ld inputs replayed\n", total);
    return total > 0 ? 0 : 1;
}
