/* Reads and writes whole files. */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "core/base/hash.h"
#include "core/base/text.h"

/* The whole content with a NUL appended; release it with wlmi_free. WLM_ERR_IO names the path. */
wlm_status wlmi_file_read(const char *path, char **data, size_t *size);
/* The same of a file in a folder that is open as a descriptor; does not follow a symbolic link. */
wlm_status wlmi_file_read_in(int folder, const char *name, char **data, size_t *size);
wlm_status wlmi_file_write(const char *path, const char *text);

/* Identifies a version of a file without reading it: a hash of its real path, size and time of the last change. ""
 * where there is no such file. WLM_ERR_OUT_OF_MEMORY alone. */
wlm_status wlmi_file_identity(const char *path, char hex[WLMI_HASH_HEX]);

/* Writing a file so that it is always whole: a new file is written beside it, synced to the disk and renamed to it. A
 * reader sees the old content or the new one, also after a failure or a crash. What is no regular file (a pipe, a
 * device such as /dev/stdout) is written as it is, and so is a file that is named by its descriptor (/dev/fd/3). */

typedef struct wlmi_output {
  const char *path; /* the caller's, which lives until the end */
  FILE *file;
  wlmi_text target, fresh; /* the file to replace and the one beside it; empty for what is written as it is */
} wlmi_output;

/* Keeps the mode of a file that is there. WLM_ERR_IO for a file without permission to write, and for a symbolic link
 * that leads nowhere. */
wlm_status wlmi_output_open(const char *path, wlmi_output *output);
/* Ends the writing. If `status` is WLM_OK and everything was written, the file is replaced; otherwise the new file is
 * removed and the old one stays. Returns `status`, or WLM_ERR_IO. */
wlm_status wlmi_output_close(wlmi_output *output, wlm_status status);

/* Whether the file can be written, to know it before long work. Writes nothing; what is no regular file is not opened.
 */
wlm_status wlmi_output_check(const char *path);

/* All of it in one call. */
wlm_status wlmi_output_write(const char *path, const char *data, size_t size);
