/* Where template text comes from: the archive inside the library, or a folder. */
#ifndef WLM_GENERATOR_FILES_H
#define WLM_GENERATOR_FILES_H

#include "common/status.h"

/* NULL where there is no such file in the library. */
const char *wlmi_archive_find(const char *name, size_t *size);

/* Calls `found` with the name of every family.lua, sorted; folder NULL = the archive. */
wlm_status wlmi_template_names(const char *folder, void (*found)(void *user, const char *name), void *user);
/* *text is the caller's (wlmi_free). A prelude file that a folder does not have comes from the archive,
 * so a folder may hold just the families that are being developed. */
wlm_status wlmi_template_read(const char *folder, const char *name, char **text, size_t *size);

#endif
