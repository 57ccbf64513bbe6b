/* Files as a whole. */
#ifndef WLM_COMMON_FILE_H
#define WLM_COMMON_FILE_H

#include <stddef.h>

#include "common/status.h"

/* All of it, with a NUL behind; wlmi_free. WLM_ERR_IO names the path. */
wlm_status wlmi_file_read(const char *path, char **data, size_t *size);
wlm_status wlmi_file_write(const char *path, const char *text);

#endif
