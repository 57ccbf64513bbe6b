/* The measurements of one device class in two stores, as the set that a merge of them would have. */
#ifndef WLM_RUNTIME_LEARNED_UNION_H
#define WLM_RUNTIME_LEARNED_UNION_H

#include "db/store.h"

typedef struct wlmi_learned_union {
  wlmi_measurement_record *records;
  int64_t count, capacity;
  char (*ids)[WLM_HASH_HEX]; /* of the records */
  int64_t id_capacity;
} wlmi_learned_union;

/* For each of the two: all that the store has of the class and the union has not, or nothing where it cannot be read.
 */
wlm_status wlmi_learned_union_add(wlmi_learned_union *all, wlm_store *store, const char *device_class);
void wlmi_learned_union_release(wlmi_learned_union *all);

#endif
