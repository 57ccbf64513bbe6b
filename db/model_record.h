/* What was learned from the measurements, as bytes that this room does not look into. One for each device class and
 * name; a newer one takes the place of an older one, because it can always be learned again. */
#ifndef WLM_DB_MODEL_RECORD_H
#define WLM_DB_MODEL_RECORD_H

#include "db/store.h"

typedef struct wlmi_model_record {
  char *name;
  int64_t made_at; /* seconds since 1970 */
  void *data;
  size_t size;
} wlmi_model_record;

wlm_status wlmi_store_put_model(wlm_store *store, const char *device_class, const wlmi_model_record *record);
/* Those of a class, by name: wlmi_model_records_free. */
wlm_status wlmi_store_load_models(wlm_store *store, const char *device_class, wlmi_model_record **records,
                                  int64_t *count);
void wlmi_model_records_free(wlmi_model_record *records, int64_t count);

#endif
