/* Files and folders that no other user may write, because their content is trusted, and kernels in them are run. */
#pragma once

#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "core/base/text.h"

/* Creates a file beside `path` with an unpredictable name, PATH.tmp- and 16 hexadecimal digits, which is appended to
 * `fresh`, and opens it for writing. Never follows a link. Its mode is 0600 whatever the umask is, or 0666 less the
 * umask if is_private = 0. */
wlm_status wlmi_private_fresh(const char *path, int is_private, wlmi_text *fresh, int *fd);

/* Creates an empty file of mode 0600, whatever the umask is, unless it exists. */
wlm_status wlmi_private_make(const char *path);

/* WLM_ERR_IO, with what to do, if the file belongs to another user (except root), or its group or others may write it.
 */
wlm_status wlmi_private_check(const char *path, const struct stat *file);

/* Opens a file for reading that passes this check and lies in a folder of this user or root, or in a sticky one.
 * is_shipped: it lies beside the library, so its owner is not checked. Sets fd, which must be -1, and the size in
 * bytes. WLM_ERR_NOT_FOUND without such a file; WLM_ERR_DATABASE where it is no ordinary one; WLM_ERR_IO. */
wlm_status wlmi_private_open(const char *path, int is_shipped, int *fd, int64_t *size);

/* Folders in which no other user can change anything: neither add a file, nor replace or rename one, nor exchange a
 * folder above. Root may always. */

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
