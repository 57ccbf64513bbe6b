/* The layers of a context (wlm_context_options.layers): files of exported measurements that it reads besides its
 * databases, and kernel archives. */
#pragma once

#include "db/store.h"
#include "runtime/archived.h"

/* A file with measurements, and how to open it for reading. */
typedef struct wlmi_layer {
  char *path;
  wlm_status (*open)(const char *path, wlm_store **store);
} wlmi_layer;

typedef struct wlmi_layers {
  wlmi_layer *list; /* those that were named last come first */
  int64_t count, capacity;
} wlmi_layers;

/* Finds the files that the paths name, a folder its files of known endings, and opens the archives among them. The
 * archives that were named last come first, too. Both structs must be empty; release them also after an error.
 * WLM_ERR_INVALID_ARGUMENT for a path that is NULL or empty; WLM_ERR_NOT_FOUND for one that does not exist, and for a
 * folder without such files; WLM_ERR_PARSE for a file that is no exported data; else as wlmi_kernel_archive_open. */
wlm_status wlmi_layers_find(const char *const *paths, int64_t count, wlmi_layers *layers, wlmi_archives *archives);
void wlmi_layers_release(wlmi_layers *layers);
