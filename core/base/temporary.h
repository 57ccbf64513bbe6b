/* Temporary folders. */
#ifndef WLM_BASE_TEMPORARY_H
#define WLM_BASE_TEMPORARY_H

#include "warploom/warploom.h"

enum { WLM_TEMPORARY_NAME = 512 };

typedef struct wlmi_temporary {
  char folder[WLM_TEMPORARY_NAME];
  int lock; /* descriptor, whose lock says that the folder is in use; the system frees it when the process is killed */
} wlmi_temporary;

/* Makes a new folder under $TMPDIR, or /tmp, for files but not for subfolders. The first call of a process removes what
 * killed processes of this user left there. WLM_ERR_IO. */
wlm_status wlmi_temporary_open(wlmi_temporary *temporary);
/* Removes the folder and its files. */
void wlmi_temporary_close(wlmi_temporary *temporary);

#endif
