/* Adds contents to a store, and loads them. */
#include <string.h>

#include "db/store_state.h"

wlm_status wlmi_content_load(wlm_store *store, wlmi_content *content) {
  *content = (wlmi_content){0};
  wlm_status status = wlmi_store_load(store, NULL, &content->records, &content->count);
  if (status == WLM_OK) status = wlmi_store_load_pins(store, NULL, &content->pins, &content->pin_count);
  if (status == WLM_OK) status = wlmi_store_load_recorded(store, NULL, &content->recorded, &content->recorded_count);
  if (status != WLM_OK) wlmi_content_release(content);
  return status;
}

static const wlmi_pin_record *find_pin(const wlmi_pin_record *pins, int64_t count, const wlmi_pin_record *like) {
  for (int64_t i = 0; i < count; i++)
    if (!wlmi_pin_compare(&pins[i], like)) return &pins[i];
  return NULL;
}

/* Adds pins, unless one for the same exists: among contradicting pins the first one stays. */
static wlm_status add_pins(wlm_store *store, const wlmi_content *content, wlmi_text *conflicts) {
  wlmi_pin_record *mine = NULL;
  int64_t count = 0;
  wlm_status status;
  if (!content->pin_count) return WLM_OK;
  WLM_TRY(wlmi_store_load_pins(store, NULL, &mine, &count));
  for (int64_t i = 0; i < content->pin_count; i++) {
    const wlmi_pin_record *pin = &content->pins[i], *other = find_pin(mine, count, pin);
    if (!other) other = find_pin(content->pins, i, pin);
    if (!other) WLM_TRY(wlmi_store_pin(store, pin));
    if (other && strcmp(other->variant, pin->variant) && conflicts)
      wlmi_text_printf(conflicts, "pin of %s, %s, n = %lld on %s: %s is kept, %s is not\n", pin->target, pin->problem,
                       (long long)pin->n, pin->device_class, other->variant, pin->variant);
  }
  if (conflicts && conflicts->failed) status = wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "list of conflicts");
done:
  wlmi_pins_free(mine, count);
  return status;
}

/* Adds what is no measurement within the caller's transaction. */
static wlm_status add_rest(wlm_store *store, const wlmi_content *content, wlmi_text *conflicts) {
  wlm_status status = add_pins(store, content, conflicts);
  for (int64_t i = 0; i < content->recorded_count && status == WLM_OK; i++)
    status = wlmi_store_record_one(store, &content->recorded[i]);
  return status;
}

wlm_status wlmi_store_copy_rest(wlm_store *from, wlm_store *to, wlmi_text *conflicts) {
  wlmi_content rest = {0};
  wlm_status status = wlmi_store_load_pins(from, NULL, &rest.pins, &rest.pin_count);
  if (status == WLM_OK) status = wlmi_store_load_recorded(from, NULL, &rest.recorded, &rest.recorded_count);
  if (status == WLM_OK) status = add_rest(to, &rest, conflicts);
  wlmi_content_release(&rest);
  return status;
}

wlm_status wlmi_store_add(wlm_store *store, const wlmi_content *content, wlmi_text *conflicts, int64_t *added) {
  int64_t fresh = 0;
  if (added) *added = 0;
  WLM_CHECK(wlmi_store_begin(store));
  wlm_status status = WLM_OK;
  for (int64_t i = 0; i < content->count && status == WLM_OK; i++)
    status = wlmi_store_put_one(store, &content->records[i], &fresh);
  if (status == WLM_OK) status = add_rest(store, content, conflicts);
  status = wlmi_store_end(store, status);
  if (added && status == WLM_OK) *added = fresh;
  return status;
}

wlm_status wlmi_store_put(wlm_store *store, const wlmi_measurement_record *records, int64_t count) {
  const wlmi_content content = {.records = (wlmi_measurement_record *)records, .count = count};
  return wlmi_store_add(store, &content, NULL, NULL);
}

wlm_status wlmi_store_record(wlm_store *store, const wlmi_recorded *list, int64_t count) {
  const wlmi_content content = {.recorded = (wlmi_recorded *)list, .recorded_count = count};
  return wlmi_store_add(store, &content, NULL, NULL);
}
