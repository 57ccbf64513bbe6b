/* Reads and writes whole files. */
#pragma once

#include <stddef.h>

#include "core/base/hash.h"
#include "core/base/status.h"

/* The whole content with a NUL appended; release it with wlmi_free. WLM_ERR_IO names the path. */
wlm_status wlmi_file_read(const char *path, char **data, size_t *size);
/* The same of a file in a folder that is open as a descriptor; does not follow a symbolic link. */
wlm_status wlmi_file_read_in(int folder, const char *name, char **data, size_t *size);
wlm_status wlmi_file_write(const char *path, const char *text);

/* Identifies a version of a file without reading it: a hash of its real path, size and time of the last change. ""
 * where there is no such file. WLM_ERR_OUT_OF_MEMORY alone. */
wlm_status wlmi_file_identity(const char *path, char hex[WLM_HASH_HEX]);
