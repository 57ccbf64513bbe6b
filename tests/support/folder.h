/* A temporary folder, and small functions for files. */
#pragma once

#include <stddef.h>

/* A folder made by mkdtemp under $TMPDIR or /tmp. folder_remove removes it with its contents. */
typedef struct test_folder {
  char path[256];
  char file[300]; /* a path inside, set by folder_file */
} test_folder;
void folder_make(test_folder *folder);
void folder_remove(test_folder *folder);
const char *folder_file(test_folder *folder, const char *name); /* sets folder->file to path/name and returns it */

/* The folder of a test program or of each of its tests; these are cmocka's setup and teardown. */
extern test_folder folder;
const char *in_folder(const char *name); /* a path inside, which stays until the program ends */
int folder_begin(void **state);
/* Makes the folder in a file system in memory, if there is one, so that hundreds of kills do not wait for a disk. A
 * killed process leaves the same files there as on a disk; only a power loss would differ. */
int folder_begin_in_memory(void **state);
int folder_end(void **state);

unsigned char *read_whole(const char *path, size_t *size); /* free() */
void write_whole(const char *path, const void *data, size_t size);
