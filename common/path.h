/* Where the databases live by default, and the few things done to files besides SQLite. */
#ifndef WLM_COMMON_PATH_H
#define WLM_COMMON_PATH_H

#include "common/text.h"

/* $XDG_DATA_HOME/warploom/tuned.db or $HOME/.local/share/..., $XDG_CACHE_HOME/warploom/kernels.db or
 * $HOME/.cache/...; WLM_ERR_NOT_FOUND where neither variable holds an absolute path. Appended to `out`. */
wlm_status wlmi_store_default_path(wlmi_text *out);
wlm_status wlmi_kernel_cache_default_path(wlmi_text *out);

/* Makes the folders above the file `path`, for this user alone. */
wlm_status wlmi_path_make_parents(const char *path);
/* Writes a whole file: into a new one beside it, to the disk, then renamed over `path`, so that a reader or a crash
 * sees the old content or the new, never a part. What is no ordinary file (a pipe, /dev/stdout) is written in place. */
wlm_status wlmi_path_write(const char *path, const char *data, size_t size);
/* Gives the whole file `fresh` the name `path` at once; WLM_ERR_INVALID_ARGUMENT where there is such a file already. */
wlm_status wlmi_path_place_new(const char *fresh, const char *path);
/* Puts `fresh` in the place of `path` at once. What was there stays, as PATH.damaged or the first free PATH.damaged-N,
 * a name that is added to `kept_as`. */
wlm_status wlmi_path_replace_damaged(const char *fresh, const char *path, wlmi_text *kept_as);

#endif
