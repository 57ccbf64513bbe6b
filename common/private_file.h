/* Files that no other user may write to: what they hold is believed, and of kernels it is run. */
#ifndef WLM_COMMON_PRIVATE_FILE_H
#define WLM_COMMON_PRIVATE_FILE_H

#include <sys/stat.h>

#include "common/text.h"

/* Makes a new file beside `path` under a name that nobody can guess, PATH.tmp- and 16 hexadecimal digits, which is
 * appended to `fresh`, and opens it for writing. It never follows a link. Its mode is 0600 whatever the umask, or, not
 * is_private, what the umask leaves of 0666. */
wlm_status wlmi_private_fresh(const char *path, int is_private, wlmi_text *fresh, int *fd);

/* An empty file of mode 0600, whatever the umask, where there is none. */
wlm_status wlmi_private_make(const char *path);

/* A folder of mode 0700, whatever the umask. errno as mkdir. */
int wlmi_private_folder(const char *path);

/* WLM_ERR_IO, with a way out, where a file is another user's (root may own it), or its group or others may write to it.
 * Of code the same for its folder, unless that is sticky. */
wlm_status wlmi_private_check(const char *path, const struct stat *file, int is_code);

#endif
