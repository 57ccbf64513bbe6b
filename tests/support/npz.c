#include "support/npz.h"

#include <minizip/zip.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "support/own.h"

void npz_begin(npz_writer *writer, const char *path, int level) {
  *writer = (npz_writer){.zip = zipOpen64(path, APPEND_STATUS_CREATE), .level = level};
  assert_non_null(writer->zip);
}

void npz_file(npz_writer *writer, const char *name, const void *data, size_t size) {
  const int method = writer->level ? Z_DEFLATED : 0;
  assert_int_equal(zipOpenNewFileInZip(writer->zip, name, NULL, NULL, 0, NULL, 0, NULL, method, writer->level), ZIP_OK);
  assert_int_equal(zipWriteInFileInZip(writer->zip, data, (unsigned)size), ZIP_OK);
  assert_int_equal(zipCloseFileInZip(writer->zip), ZIP_OK);
}

void npz_array(npz_writer *writer, const char *name, const char *type, const char *shape, const void *data,
               size_t size) {
  FREED char *all = malloc(size + 256);
  const int length = snprintf(all + 10, 200, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n", type, shape);
  memcpy(all, "\x93NUMPY\1\0", 8);
  all[8] = (char)length, all[9] = 0;
  if (size) memcpy(all + 10 + length, data, size);
  npz_file(writer, name, all, 10 + (size_t)length + size);
}

void npz_end(npz_writer *writer) { assert_int_equal(zipClose(writer->zip, NULL), ZIP_OK); }
