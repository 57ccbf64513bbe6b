#include "select/classes.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"

/* Orders by the fields that wlmi_device_class consists of. */
static int by_class(const void *left, const void *right) {
  const wlmi_device_record *a = &((const wlmi_measurement_record *)left)->device;
  const wlmi_device_record *b = &((const wlmi_measurement_record *)right)->device;
  int order = strcmp(a->kind, b->kind);
  if (!order) order = strcmp(a->arch ? a->arch : "", b->arch ? b->arch : "");
  if (!order) order = strcmp(a->name, b->name);
  return order ? order : (a->processors > b->processors) - (a->processors < b->processors);
}

wlm_status wlmi_classes_make(wlmi_measurement_record *records, int64_t count, wlmi_class **classes,
                             int64_t *class_count) {
  wlm_status status = WLM_OK;
  int64_t capacity = 0;
  *classes = NULL;
  *class_count = 0;
  if (count) qsort(records, (size_t)count, sizeof *records, by_class);
  for (int64_t first = 0, end; first < count; first = end) {
    wlmi_text name = {0};
    for (end = first + 1; end < count && !by_class(&records[first], &records[end]);) end++;
    WLM_TRY(wlmi_grow((void **)classes, *class_count, &capacity, sizeof **classes, "device classes"));
    wlmi_class *class = &(*classes)[*class_count];
    *class = (wlmi_class){.records = records + first, .count = end - first};
    wlmi_device_class(&records[first].device, &name);
    WLM_TRY(wlmi_text_take(&name, &class->name));
    ++*class_count;
    WLM_TRY(wlmi_cases_make(class->records, class->count, &class->choices));
  }
done:
  if (status == WLM_OK) return status;
  wlmi_classes_free(*classes, *class_count);
  *classes = NULL;
  *class_count = 0;
  return status;
}

void wlmi_classes_free(wlmi_class *classes, int64_t class_count) {
  for (int64_t i = 0; i < class_count; i++) {
    wlmi_free(classes[i].name);
    wlmi_cases_release(&classes[i].choices);
  }
  wlmi_free(classes);
}
