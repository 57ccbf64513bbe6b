/* A store gives its measurements in the order of their ids, each once, so that those of the first store can be searched
 * by halving while the second one's come. */
#include "runtime/learned_union.h"

#include <stdlib.h>
#include <string.h>

#include "common/memory.h"

typedef struct adding {
  wlmi_learned_union *all;
  int64_t before; /* of them came from the store before this one */
} adding;

static int compare_ids(const void *left, const void *right) { return memcmp(left, right, WLM_HASH_HEX); }

static wlm_status add_one(void *user, const char *id, const wlmi_measurement_record *record) {
  const adding *a = user;
  wlmi_learned_union *all = a->all;
  char key[WLM_HASH_HEX];
  wlm_status status;
  memcpy(key, id, sizeof key);
  if (a->before && bsearch(key, all->ids, (size_t)a->before, sizeof key, compare_ids)) return WLM_OK;
  WLM_TRY(wlmi_measurements_reserve(&all->records, all->count, &all->capacity));
  WLM_TRY(wlmi_grow((void **)&all->ids, all->count, &all->id_capacity, sizeof key, "ids of measurements"));
  WLM_TRY(wlmi_measurement_copy(record, &all->records[all->count]));
  memcpy(all->ids[all->count++], key, sizeof key);
done:
  return status;
}

wlm_status wlmi_learned_union_add(wlmi_learned_union *all, wlm_store *store, const char *device_class) {
  const adding a = {all, all->count};
  const wlm_status status = wlmi_store_each(store, device_class, add_one, (void *)&a);
  if (status != WLM_OK)
    while (all->count > a.before) wlmi_measurement_release(&all->records[--all->count]);
  return status;
}

void wlmi_learned_union_release(wlmi_learned_union *all) {
  wlmi_measurements_free(all->records, all->count);
  wlmi_free(all->ids);
  *all = (wlmi_learned_union){0};
}
