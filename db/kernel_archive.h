/* A kernel archive: a file of compiled kernels that is written once and then only read. Kernels are found by a hash.
 *
 * The file is little-endian, and its integers have 64 bits:
 *
 *   header    8 bytes "wlmkerns", the version of the format, the number of kernels, the size of the file, and the hash
 *             of the index (16 bytes)
 *   index     for each kernel, by rising key: key (16 bytes), offset and size of its bytes in the file, its size, and
 *             the hash of its bytes in the file (16 bytes)
 *   bytes     of all kernels; those that are smaller than the kernel are compressed (xz)
 *
 * Hashes are xxh3-128, the high half first. Opening reads header and index alone. A kernel's bytes are read and checked
 * when it is asked for. */
#pragma once

#include <stddef.h>

#include "core/base/hash.h"
#include "core/base/status.h"

typedef struct wlmi_kernel_archive wlmi_kernel_archive;

/* Opens a file for reading. is_shipped: it lies beside the library, so that its owner is not checked; other files are
 * refused as databases are (docs/store.md, Other users).
 * WLM_ERR_NOT_FOUND without such a file; WLM_ERR_DATABASE for a damaged file and for one that is no kernel archive;
 * WLM_ERR_DATABASE_VERSION; WLM_ERR_IO. */
wlm_status wlmi_kernel_archive_open(const char *path, int is_shipped, wlmi_kernel_archive **archive);
void wlmi_kernel_archive_close(wlmi_kernel_archive *archive); /* NULL is allowed */

/* The functions that read are for any thread, several at once; an archive of NULL is empty. */

int wlmi_kernel_archive_has(const wlmi_kernel_archive *archive, wlmi_hash key);
/* A copy of the kernel's bytes (wlmi_free). WLM_ERR_NOT_FOUND if it is not there or damaged; the latter is logged. */
wlm_status wlmi_kernel_archive_get(const wlmi_kernel_archive *archive, wlmi_hash key, void **data, size_t *size);
int64_t wlmi_kernel_archive_count(const wlmi_kernel_archive *archive);

typedef struct wlmi_archived_kernel {
  wlmi_hash key;
  const void *data;
  size_t size; /* 0 is allowed: then only the key is of use */
} wlmi_archived_kernel;

/* Writes an archive; the same kernels give the same bytes. Sorts the kernels by key; of several with one key, which
 * must be equal, one is kept. file_bytes unless NULL, gets the size of the file. An existing file is replaced when the
 * new one is complete. WLM_ERR_IO, WLM_ERR_OUT_OF_MEMORY. */
wlm_status wlmi_kernel_archive_write(const char *path, wlmi_archived_kernel *kernels, int64_t count,
                                     int64_t *file_bytes);
