/* Writes tables and their kernels as C text: tables.c, a file for each host kernel, and the GPUs' kernels as binary
 * files that kernels.S includes. `warploom export --format c` writes an exported library this way, and the build the
 * built-in kernels of the full one. */
#pragma once

#include "core/base/text.h"
#include "exported/tables.h"

/* A source text and, for a GPU, the binary. Kernels with equal sources share it. */
typedef struct wlmi_exported_source {
  wlmi_hash key; /* of the source and the architecture */
  wlmi_program program;
  wlmi_limits limits;
  int is_ptx;
  void *data; /* NULL for the host */
  size_t size;
} wlmi_exported_source;

extern const char wlmi_exported_by[]; /* the first line of tables.c */

/* Writes the tables, with `families` and `sources` in place of theirs, into a folder that is there. Appends the names
 * of the objects of host kernels, each behind a space. */
wlm_status wlmi_exported_write(const wlmi_exported *tables, const wlmi_families *families,
                               const wlmi_exported_source *sources, int64_t source_count, const char *folder,
                               wlmi_text *objects);

/* Writes a file below the folder, and the folders of its name; the second releases the text. */
wlm_status wlmi_exported_file(const char *folder, const char *name, const void *data, size_t size);
wlm_status wlmi_exported_text(const char *folder, const char *name, wlmi_text *text);
