/* Folders in which no other user can change anything: neither add a file, nor replace or rename one, nor exchange a
 * folder above. Root may always. */
#pragma once

#include <sys/types.h>

#include "core/base/text.h"

/* Makes a folder of mode 0700, whatever the umask is. errno as for mkdir. */
int wlmi_private_folder(const char *path);

/* Checks all folders on the way to the file `path`, which need not exist, and the owners of symbolic links on that way.
 * make = 1 also makes missing folders. Sets `real`, which must be empty, to the path to open: it is absolute and has no
 * symbolic links, so it leads to the same file until this user or root changes something.
 *
 * A sticky folder such as /tmp may lie on the way, because others cannot touch what this user has there. If the file
 * itself is in one, others can add files beside it: that is *is_shared = 1, or an error where is_shared is NULL.
 *
 * WLM_ERR_IO, with what to do, if another user can do more. */
wlm_status wlmi_private_path(const char *path, int make, wlmi_text *real, int *is_shared);

/* Whether another user than this one and root has this number. */
int wlmi_is_foreign(uid_t owner);
