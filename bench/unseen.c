#include "bench/unseen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/groups.h"
#include "common/memory.h"
#include "common/temporary.h"
#include "db/store.h"
#include "warploom/warploom_tune.h"

static wlm_status put_others(const wlmi_unseen *u, const char *group, const char *path) {
  wlmi_measurement_record *others = NULL; /* their strings are those of u->records */
  wlm_store *store = NULL;
  int64_t count = 0;
  wlm_status status;
  WLM_TRY(wlmi_alloc_array(u->count, sizeof *others, "measurements", (void **)&others));
  for (int64_t i = 0; i < u->count; i++) {
    char its[WLM_GROUP_NAME];
    wlmi_group_of(u->records[i].matrix_name ? u->records[i].matrix_name : "", its);
    if (strcmp(its, group)) others[count++] = u->records[i];
  }
  WLM_TRY(wlmi_store_open(path, WLM_STORE_WRITE, &store));
  status = wlmi_store_put(store, others, count);
done:
  wlmi_store_close(store);
  wlmi_free(others);
  return status;
}

/* The database is needed only until the context has read it. */
wlm_status wlmi_unseen_without(wlmi_unseen *u, const char *matrix) {
  wlm_context_options options = WLM_CONTEXT_OPTIONS_INIT;
  char group[WLM_GROUP_NAME], folder[WLM_TEMPORARY_NAME], path[WLM_TEMPORARY_NAME + 16] = "";
  wlm_status status;
  wlmi_group_of(matrix, group);
  if (u->context && !strcmp(group, u->group)) return WLM_OK;
  wlmi_unseen_close(u);
  status = wlmi_temporary_folder(folder);
  if (status != WLM_OK) return status;
  snprintf(path, sizeof path, "%s/others.db", folder);
  WLM_TRY(put_others(u, group, path));
  options.device = u->device;
  options.database = path;
  options.system_database = options.kernel_cache = "";
  WLM_TRY(wlm_context_create(&options, &u->context));
  WLM_TRY(wlm_train(u->context));
  snprintf(u->group, sizeof u->group, "%s", group);
done:
  unlink(path);
  rmdir(folder);
  if (status != WLM_OK) wlmi_unseen_close(u);
  return status;
}

void wlmi_unseen_close(wlmi_unseen *u) {
  wlm_context_destroy(u->context);
  u->context = NULL;
  *u->group = 0;
}
