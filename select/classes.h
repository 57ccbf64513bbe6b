/* Groups measurements by device class and derives the cases of each class. */
#pragma once

#include "select/case.h"

typedef struct wlmi_class {
  char *name; /* wlmi_device_class */
  const wlmi_measurement_record *records;
  int64_t count;
  wlmi_cases choices;
} wlmi_class;

/* Sorts the records by class; they must outlive the classes. */
wlm_status wlmi_classes_make(wlmi_measurement_record *records, int64_t count, wlmi_class **classes,
                             int64_t *class_count);
void wlmi_classes_free(wlmi_class *classes, int64_t class_count);
