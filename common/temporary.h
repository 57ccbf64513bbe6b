/* Temporary folders. */
#ifndef WLM_COMMON_TEMPORARY_H
#define WLM_COMMON_TEMPORARY_H

#include "warploom/warploom.h"

enum { WLM_TEMPORARY_NAME = 512 };

/* Makes a new folder under $TMPDIR, or /tmp. The caller empties and removes it. WLM_ERR_IO. */
wlm_status wlmi_temporary_folder(char folder[WLM_TEMPORARY_NAME]);

#endif
