/* The arrays of a file of numpy.savez: a zip archive with one file of NumPy's format .npy for each array.
 * https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html */
#pragma once

#include "core/base/text.h"

typedef struct wlmi_npz {
  const char *path;
  void *zip;   /* minizip's; one array is open at a time */
  size_t size; /* of the file */
} wlmi_npz;

enum { WLMI_NPZ_DIMENSIONS = 4 };

/* One array of the file. */
typedef struct wlmi_npz_array {
  const char *name; /* "data.npy" */
  char kind;        /* b, i, u, f: NumPy's letter of the type, as S and U of texts */
  int item;         /* bytes of one element */
  int dimensions;   /* 0 = one element without an axis */
  int64_t shape[WLMI_NPZ_DIMENSIONS];
  int64_t count; /* of elements */
} wlmi_npz_array;

/* Where a zip archive is in memory; it must outlive the wlmi_npz. */
typedef struct wlmi_npz_bytes {
  const char *data;
  size_t size;
} wlmi_npz_bytes;

/* `path` is for messages. All functions: WLM_ERR_PARSE for what is damaged, contradicts itself or is out of range,
 * WLM_ERR_UNSUPPORTED for types that are not read, with "path: name: what is wrong; what to do". */
wlm_status wlmi_npz_open(const char *path, const wlmi_npz_bytes *bytes, wlmi_npz *npz);
void wlmi_npz_close(wlmi_npz *npz); /* also of a zeroed one */

/* Opens an array and reads what it holds. Its elements are then read once by one of the functions below, which close
 * it and check that nothing follows. The sizes fit to each other and to that of the file, so memory may be taken for
 * `count` elements. */
wlm_status wlmi_npz_enter(wlmi_npz *npz, const char *name, wlmi_npz_array *array);
/* Integers from 0 to `most`. */
wlm_status wlmi_npz_int64s(wlmi_npz *npz, const wlmi_npz_array *array, int64_t most, int64_t *out);
wlm_status wlmi_npz_int32s(wlmi_npz *npz, const wlmi_npz_array *array, int64_t most, int32_t *out);
/* Numbers in the range of float, rounded to nearest, NaN and infinities; true is 1. */
wlm_status wlmi_npz_floats(wlmi_npz *npz, const wlmi_npz_array *array, float *out);
/* A text of at most `size` - 1 characters, which must be ASCII. */
wlm_status wlmi_npz_text(wlmi_npz *npz, const wlmi_npz_array *array, char *out, size_t size);
