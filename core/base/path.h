/* The default paths of the databases, and giving files their names so that a crash leaves a whole one. */
#pragma once

#include "core/base/text.h"

/* $XDG_DATA_HOME/warploom/tuned.db or $HOME/.local/share/..., $XDG_CACHE_HOME/warploom/kernels.db or $HOME/.cache/...;
 * WLM_ERR_NOT_FOUND where neither variable holds an absolute path, or if the home does not exist; it is not created.
 * Appended to `out`. */
wlm_status wlmi_store_default_path(wlmi_text *out);
wlm_status wlmi_kernel_cache_default_path(wlmi_text *out);

/* Makes a new name of the file durable by syncing its folder. */
void wlmi_path_sync_folder(const char *path);
/* Renames the file `fresh` to `path` in one step. WLM_ERR_INVALID_ARGUMENT if `path` exists already. */
wlm_status wlmi_path_place_new(const char *fresh, const char *path);
/* Replaces `path` by `fresh` in one step. The old file is kept as PATH.damaged, or as the first free PATH.damaged-N;
 * its new name is appended to `kept_as`. */
wlm_status wlmi_path_replace_damaged(const char *fresh, const char *path, wlmi_text *kept_as);
