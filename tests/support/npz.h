/* Writes files as numpy.savez does. */
#pragma once

#include <stddef.h>

typedef struct npz_writer {
  void *zip;
  int level; /* of deflate; 0 = stored */
} npz_writer;

void npz_begin(npz_writer *writer, const char *path, int level);
/* Adds a file of these bytes. */
void npz_file(npz_writer *writer, const char *name, const void *data, size_t size);
/* Adds an array: `type` as in "<i4", `shape` as in "(3,)". */
void npz_array(npz_writer *writer, const char *name, const char *type, const char *shape, const void *data,
               size_t size);
void npz_end(npz_writer *writer);
