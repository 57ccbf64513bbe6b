/* Reads template files from the archive inside the library, or from a folder. */
#pragma once

#include "core/base/status.h"

/* NULL if the library has no such file. */
const char *wlmi_archive_find(const char *name, size_t *size);

/* Calls `found` with the name of every family.lua, sorted; folder NULL = the archive. */
wlm_status wlmi_template_names(const char *folder, void (*found)(void *user, const char *name), void *user);
/* *text is the caller's (wlmi_free). A prelude file that the folder lacks comes from the archive, so a folder may hold
 * only the families under development. */
wlm_status wlmi_template_read(const char *folder, const char *name, char **text, size_t *size);
