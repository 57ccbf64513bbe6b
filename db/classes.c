#include "db/classes.h"

#include <stdlib.h>
#include <string.h>

#include "common/memory.h"

/* What wlm_device_class is made of, in an order of its own. */
static int by_class(const void *left, const void *right) {
  const wlm_device_record *a = &((const wlm_measurement_record *)left)->device;
  const wlm_device_record *b = &((const wlm_measurement_record *)right)->device;
  int order = strcmp(a->kind, b->kind);
  if (!order) order = strcmp(a->arch ? a->arch : "", b->arch ? b->arch : "");
  if (!order) order = strcmp(a->name, b->name);
  return order ? order : (a->processors > b->processors) - (a->processors < b->processors);
}

wlm_status wlm_classes_make(wlm_measurement_record *records, int64_t count, wlm_class **classes, int64_t *class_count) {
  wlm_status status = WLM_OK;
  int64_t capacity = 0;
  *classes = NULL;
  *class_count = 0;
  if (count) qsort(records, (size_t)count, sizeof *records, by_class);
  for (int64_t first = 0, end; first < count; first = end) {
    wlm_text name = {0};
    for (end = first + 1; end < count && !by_class(&records[first], &records[end]);) end++;
    WLM_TRY(wlm_grow((void **)classes, *class_count, &capacity, sizeof **classes, "device classes"));
    wlm_class *class = &(*classes)[*class_count];
    *class = (wlm_class){.records = records + first, .count = end - first};
    wlm_device_class(&records[first].device, &name);
    WLM_TRY(wlm_text_take(&name, &class->name));
    ++*class_count;
    WLM_TRY(wlm_choices_make(class->records, class->count, &class->choices));
  }
done:
  if (status == WLM_OK) return status;
  wlm_classes_free(*classes, *class_count);
  *classes = NULL;
  *class_count = 0;
  return status;
}

void wlm_classes_free(wlm_class *classes, int64_t class_count) {
  for (int64_t i = 0; i < class_count; i++) {
    wlm_free(classes[i].name);
    wlm_choices_release(&classes[i].choices);
  }
  wlm_free(classes);
}
