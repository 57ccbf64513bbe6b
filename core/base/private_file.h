/* Files that no other user may write, because their content is trusted, and kernels in them are run. */
#pragma once

#include <stdint.h>
#include <sys/stat.h>

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
