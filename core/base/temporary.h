/* Temporary folders. */
#pragma once

#include "core/base/status.h"

enum { WLMI_TEMPORARY_NAME = 512 };

typedef struct wlmi_temporary {
  char folder[WLMI_TEMPORARY_NAME]; /* absolute, without symbolic links */
  int lock; /* descriptor, whose lock says that the folder is in use; the system frees it when the process is killed */
} wlmi_temporary;

/* Makes a new folder under $TMPDIR, or /tmp, for files but not for subfolders. The first call of a process removes what
 * killed processes of this user left there. WLM_ERR_IO, also if another user could exchange the folder for one of his,
 * because others may write to $TMPDIR and it is not sticky. */
wlm_status wlmi_temporary_open(wlmi_temporary *temporary);
/* The content of a file in the folder, read through the folder's descriptor instead of its path; wlmi_free. */
wlm_status wlmi_temporary_read(const wlmi_temporary *temporary, const char *name, char **data, size_t *size);
/* Removes the folder and its files. */
void wlmi_temporary_close(wlmi_temporary *temporary);
