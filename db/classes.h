/* Measurements by device class, each class with its choices. */
#ifndef WLM_DB_CLASSES_H
#define WLM_DB_CLASSES_H

#include "db/choice.h"

typedef struct wlm_class {
  char *name; /* wlm_device_class */
  const wlm_measurement_record *records;
  int64_t count;
  wlm_choices choices;
} wlm_class;

/* Sorts the records by class; they must outlive the classes. */
wlm_status wlm_classes_make(wlm_measurement_record *records, int64_t count, wlm_class **classes, int64_t *class_count);
void wlm_classes_free(wlm_class *classes, int64_t class_count);

#endif
