/* Exports and imports a store's content as JSON lines (core/records/lines.h). Import is all or nothing: every line is
 * checked before the first one is stored, and all are stored in one transaction. */
#pragma once

#include "db/store.h"

wlm_status wlmi_store_export(wlm_store *store, wlmi_text *out);
wlm_status wlmi_store_export_file(wlm_store *store, FILE *file, const char *name);
wlm_status wlmi_store_export_path(wlm_store *store, const char *path); /* replaces the file at once, see output.h */

/* Adds what wlmi_lines_read_* read before the store was opened, so that no database is made for an invalid file. *added
 * (may be NULL) counts the measurements that were not there before. If a pin contradicts the store's, the store keeps
 * its own, and a warning is logged. */
wlm_status wlmi_store_import(wlm_store *store, const wlmi_content *content, int64_t *added);

/* A store in memory with the content of a file, which must be one that wlmi_private_open opens. */
wlm_status wlmi_store_open_lines(const char *path, wlm_store **store);
