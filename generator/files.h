/* Reads template files from the archive inside the library, or from a folder. */
#pragma once

#include "core/base/hash.h"
#include "core/base/status.h"

/* NULL if the library has no such file. */
const char *wlmi_archive_find(const char *name, size_t *size);

/* Calls `found` with the name of every family.lua, sorted; folder NULL = the archive. */
wlm_status wlmi_template_names(const char *folder, void (*found)(void *user, const char *name), void *user);
/* A hash of what the kernels of a folder's family are made from: its files, those of the folder's prelude/, and the
 * library's own files. */
wlm_status wlmi_template_hash(const char *folder, const char *family, wlmi_hash *hash);
/* *text is the caller's (wlmi_free). A prelude file that the folder lacks comes from the archive, so a folder may hold
 * only the families under development. */
wlm_status wlmi_template_read(const char *folder, const char *name, char **text, size_t *size);
