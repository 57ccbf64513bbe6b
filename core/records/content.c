#include "core/records/content.h"

#include <string.h>

#include "core/base/json_value.h"
#include "core/base/memory.h"
#include "core/base/printable.h"
#include "core/problem/bucket.h"
#include "core/problem/size.h"
#include "core/records/record.h"

/* ---- pins ---- */

wlm_status wlmi_pin_check(const wlmi_pin_record *pin) {
  const struct {
    const char *key, *text;
  } texts[] = {
      {"pin", pin->target}, {"class", pin->device_class}, {"problem", pin->problem}, {"variant", pin->variant}};
  wlmi_bucket bucket;
  wlmi_hash fingerprint;
  char printed[WLMI_BUCKET_TEXT];
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    if (!texts[i].text || !*texts[i].text || !wlmi_is_utf8(texts[i].text))
      return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "%s must be a string that is not empty", texts[i].key);
  const int is_bucket = wlmi_bucket_parse(pin->target, &bucket);
  if (is_bucket)
    wlmi_bucket_print(&bucket, printed);
  else if (wlmi_hash_from_hex(pin->target, &fingerprint))
    wlmi_hash_to_hex(fingerprint, printed);
  else
    *printed = 0;
  if (strcmp(printed, pin->target))
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT,
                     "pin must be a bucket, \"v1 rows=14 mean=6 cv=0\", or a fingerprint of 32 lower-case hexadecimal "
                     "digits");
  if (is_bucket && wlmi_bucket_fault(&bucket))
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "pin %s: %s", pin->target, wlmi_bucket_fault(&bucket));
  if (wlmi_is_size(pin->n)) return WLM_OK;
  return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "n must be an integer from 0 to " WLMI_MOST_SIZE_TEXT);
}

void wlmi_pin_json(const wlmi_pin_record *pin, wlmi_text *out) {
  wlmi_json_dump(json_pack("{s:s,s:s,s:s,s:I,s:s}", "pin", pin->target, "class", pin->device_class, "problem",
                           pin->problem, "n", (json_int_t)pin->n, "variant", pin->variant),
                 JSON_COMPACT, out);
}

int wlmi_pin_compare(const wlmi_pin_record *a, const wlmi_pin_record *b) {
  int order = strcmp(a->device_class, b->device_class);
  if (!order) order = strcmp(a->target, b->target);
  if (!order) order = strcmp(a->problem, b->problem);
  return order ? order : (a->n > b->n) - (a->n < b->n);
}

void wlmi_pin_release(wlmi_pin_record *pin) {
  wlmi_free(pin->device_class);
  wlmi_free(pin->target);
  wlmi_free(pin->problem);
  wlmi_free(pin->variant);
}

wlm_status wlmi_pin_copy(const wlmi_pin_record *pin, wlmi_pin_record *copy) {
  *copy = (wlmi_pin_record){wlmi_strdup(pin->device_class), wlmi_strdup(pin->target), wlmi_strdup(pin->problem), pin->n,
                            wlmi_strdup(pin->variant)};
  if (copy->device_class && copy->target && copy->problem && copy->variant) return WLM_OK;
  wlmi_pin_release(copy);
  return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "copy of a pin");
}

void wlmi_pins_free(wlmi_pin_record *pins, int64_t count) {
  for (int64_t i = 0; i < count; i++) wlmi_pin_release(&pins[i]);
  wlmi_free(pins);
}

/* ---- recorded problems ---- */

wlmi_measurement_record wlmi_recorded_fields(const wlmi_recorded *recorded) {
  return (wlmi_measurement_record){.stats = recorded->stats, .problem = recorded->problem, .n = recorded->n};
}

wlm_status wlmi_recorded_check(const wlmi_recorded *recorded) {
  const wlmi_measurement_record record = wlmi_recorded_fields(recorded);
  const char *class = recorded->device_class;
  if (!class || !*class || !wlmi_is_utf8(class))
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "recorded must be a device class, a string that is not empty");
  for (int i = 0; i < WLMI_FIELD_COUNT; i++)
    if ((wlmi_fields[i].of & WLMI_OF_RECORDED) && !wlmi_field_is_possible(&wlmi_fields[i], &record))
      return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "%s must be %s", wlmi_fields[i].key, wlmi_fields[i].must_be);
  const char *fault = wlmi_stats_fault(&recorded->stats);
  return fault ? wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "%s", fault) : WLM_OK;
}

void wlmi_recorded_json(const wlmi_recorded *recorded, wlmi_text *out) {
  const wlmi_measurement_record record = wlmi_recorded_fields(recorded);
  wlmi_text_puts(out, "{\"recorded\":");
  wlmi_text_json_string(out, recorded->device_class);
  for (int i = 0; i < WLMI_FIELD_COUNT; i++)
    if (wlmi_fields[i].of & WLMI_OF_RECORDED) wlmi_field_json(&wlmi_fields[i], &record, out);
  wlmi_text_puts(out, "}");
}

wlm_status wlmi_recorded_id(const wlmi_recorded *recorded, char id[WLMI_HASH_HEX]) {
  wlmi_text line = {0};
  wlmi_recorded_json(recorded, &line);
  const wlm_status status =
      line.failed ? wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "canonical line of a recorded problem") : WLM_OK;
  if (status == WLM_OK) wlmi_hash_to_hex(wlmi_hash_bytes(line.data, line.size), id);
  wlmi_text_release(&line);
  return status;
}

wlm_status wlmi_recorded_copy(const wlmi_recorded *recorded, wlmi_recorded *copy) {
  *copy = *recorded;
  copy->device_class = wlmi_strdup(recorded->device_class);
  copy->problem = wlmi_strdup(recorded->problem);
  if (copy->device_class && copy->problem) return WLM_OK;
  wlmi_recorded_release(copy);
  return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "copy of a recorded problem");
}

void wlmi_recorded_release(wlmi_recorded *recorded) {
  wlmi_free(recorded->device_class);
  wlmi_free(recorded->problem);
  *recorded = (wlmi_recorded){0};
}

void wlmi_recorded_free(wlmi_recorded *list, int64_t count) {
  for (int64_t i = 0; i < count; i++) wlmi_recorded_release(&list[i]);
  wlmi_free(list);
}

/* ---- the whole content ---- */

void wlmi_content_release(wlmi_content *content) {
  wlmi_measurements_free(content->records, content->count);
  wlmi_pins_free(content->pins, content->pin_count);
  wlmi_recorded_free(content->recorded, content->recorded_count);
  *content = (wlmi_content){0};
}
