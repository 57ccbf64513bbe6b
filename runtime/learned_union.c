/* A store gives its measurements in the order of their ids, each once, so that those of the first store can be searched
 * by halving while the second one's come. */
#include "runtime/learned_union.h"

#include <stdlib.h>
#include <string.h>

#include "common/memory.h"

typedef struct adding {
  wlm_learned_union *all;
  int64_t before; /* of them came from the store before this one */
} adding;

static int compare_ids(const void *left, const void *right) { return memcmp(left, right, WLM_HASH_HEX); }

static wlm_status add_one(void *user, const char *id, const wlm_measurement_record *record) {
  const adding *a = user;
  wlm_learned_union *all = a->all;
  char key[WLM_HASH_HEX];
  wlm_status status;
  memcpy(key, id, sizeof key);
  if (a->before && bsearch(key, all->ids, (size_t)a->before, sizeof key, compare_ids)) return WLM_OK;
  WLM_TRY(wlm_measurements_reserve(&all->records, all->count, &all->capacity));
  WLM_TRY(wlm_grow((void **)&all->ids, all->count, &all->id_capacity, sizeof key, "ids of measurements"));
  WLM_TRY(wlm_measurement_copy(record, &all->records[all->count]));
  memcpy(all->ids[all->count++], key, sizeof key);
done:
  return status;
}

wlm_status wlm_learned_union_add(wlm_learned_union *all, wlm_store *store, const char *device_class) {
  const adding a = {all, all->count};
  const wlm_status status = wlm_store_each(store, device_class, add_one, (void *)&a);
  if (status != WLM_OK)
    while (all->count > a.before) wlm_measurement_release(&all->records[--all->count]);
  return status;
}

void wlm_learned_union_release(wlm_learned_union *all) {
  wlm_measurements_free(all->records, all->count);
  wlm_free(all->ids);
  *all = (wlm_learned_union){0};
}
