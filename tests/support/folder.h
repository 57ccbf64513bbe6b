/* A temporary folder, and small functions for files. */
#ifndef WLM_TESTS_SUPPORT_FOLDER_H
#define WLM_TESTS_SUPPORT_FOLDER_H

#include <stddef.h>

/* mkdtemp under $TMPDIR or /tmp; removed with all that is in it by folder_remove. */
typedef struct test_folder {
  char path[256];
  char file[300]; /* a name inside, from folder_file */
} test_folder;
void folder_make(test_folder *folder);
void folder_remove(test_folder *folder);
const char *folder_file(test_folder *folder, const char *name); /* folder->file = path/name */

/* The folder of a test program or of each of its tests: cmocka's setup and teardown make and remove it. */
extern test_folder folder;
int folder_begin(void **state);
/* In memory where there is such a file system: a kill leaves the same behind as on a disk (a loss of power would not),
 * and hundreds of them don't wait for one. */
int folder_begin_in_memory(void **state);
int folder_end(void **state);

unsigned char *read_whole(const char *path, size_t *size); /* free() */
void write_whole(const char *path, const void *data, size_t size);

#endif
