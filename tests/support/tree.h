/* Walks the C files of the source tree. Include after cmocka. */
#ifndef WLM_TESTS_SUPPORT_TREE_H
#define WLM_TESTS_SUPPORT_TREE_H

#include <stdint.h>

/* Calls found(path) for every .c and .h file below source/folder; `path` is relative to `source`. */
void tree_each(const char *source, const char *folder, void (*found)(const char *path));

#endif
