/* Walks the C files of the source tree. Include after cmocka. */
#pragma once

#include <stdint.h>

/* Calls found(path) for every .c and .h file below source/folder; `path` is relative to `source`. */
void tree_each(const char *source, const char *folder, void (*found)(const char *path));
