/* What was learned from the measurements, as bytes that this room does not look into. One for each device class and
 * name; a newer one takes the place of an older one, because it can always be learned again. */
#ifndef WLM_DB_MODEL_RECORD_H
#define WLM_DB_MODEL_RECORD_H

#include "db/store.h"

typedef struct wlm_model_record {
  char *name;
  int64_t made_at; /* seconds since 1970 */
  void *data;
  size_t size;
} wlm_model_record;

wlm_status wlm_store_put_model(wlm_store *store, const char *device_class, const wlm_model_record *record);
/* Those of a class, by name: wlm_model_records_free. */
wlm_status wlm_store_load_models(wlm_store *store, const char *device_class, wlm_model_record **records,
                                 int64_t *count);
void wlm_model_records_free(wlm_model_record *records, int64_t count);

#endif
