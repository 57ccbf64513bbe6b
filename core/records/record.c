#include "core/records/record.h"

#include <string.h>

#include "core/base/memory.h"

/* ---- checks ---- */

int wlmi_clock_is_known(const char *clock) {
  return !clock || !strcmp(clock, WLMI_CLOCK_HOT) || !*clock || !strcmp(clock, WLMI_CLOCK_COLD) ||
         !strcmp(clock, WLMI_CLOCK_ONLINE);
}

/* Rules between fields: the first one that is broken, as a message; NULL = none. */
static const char *broken_rule(const wlmi_measurement_record *r) {
  wlmi_hash hash;
  if (!wlmi_clock_is_known(r->clock))
    return "clock must be " WLMI_CLOCK_HOT ", " WLMI_CLOCK_COLD ", " WLMI_CLOCK_ONLINE
           " or empty, which is " WLMI_CLOCK_HOT;
  if (r->version && *r->version && !wlmi_hash_from_hex(r->version, &hash))
    return "source_hash must be 32 lower-case hexadecimal digits";
  if (wlmi_stats_fault(&r->stats)) return wlmi_stats_fault(&r->stats);
  if (r->failed) {
    if (r->time_ps || r->spread_ps || r->prepare_ps)
      return "time_ps, spread_ps and prepare_ps must be 0 where failed is true";
    return r->reason && *r->reason ? NULL : "reason must be a string that is not empty where failed is true";
  }
  if (!r->time_ps) return "time_ps must be a positive integer";
  if (!r->samples) return "samples must be a positive integer";
  if (!r->calls_per_sample) return "calls_per_sample must be a positive integer";
  if (!r->version || !*r->version) return "source_hash must be 32 lower-case hexadecimal digits";
  return r->reason && *r->reason ? "reason must be empty where failed is false" : NULL;
}

wlm_status wlmi_measurement_check(const wlmi_measurement_record *record) {
  for (int i = 0; i < WLMI_FIELD_COUNT; i++)
    if (!wlmi_field_is_possible(&wlmi_fields[i], record))
      return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "%s must be %s%s", wlmi_fields[i].key, wlmi_fields[i].must_be,
                       wlmi_fields[i].type == WLMI_FIELD_TEXT ? " of valid UTF-8" : "");
  const char *rule = broken_rule(record);
  return rule ? wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "%s", rule) : WLM_OK;
}

/* ---- canonical JSON and ids ---- */

void wlmi_measurement_members(const wlmi_measurement_record *record, wlmi_field_table table, wlmi_text *out) {
  for (int i = 0; i < WLMI_FIELD_COUNT; i++) {
    const wlmi_field *field = &wlmi_fields[i];
    const int is_left_out = field->type == WLMI_FIELD_INT64_OR_NONE && !wlmi_field_integer(field, record);
    if (field->of & WLM_OF(table) && !is_left_out) wlmi_field_json(field, record, out);
  }
}

/* Appends all members and the brace that ends the line. begins[t]: where those of table t begin. */
static void put_members(const wlmi_measurement_record *record, wlmi_text *line, size_t begins[WLMI_TABLE_COUNT + 1]) {
  for (int t = 0; t < WLMI_TABLE_COUNT; t++) {
    begins[t] = line->size;
    wlmi_measurement_members(record, (wlmi_field_table)t, line);
  }
  begins[WLMI_TABLE_COUNT] = line->size;
  wlmi_text_puts(line, "}");
}

/* The hash of these members as an object: its braces take the place of the commas only meanwhile. */
static void hash_members(wlmi_text *line, size_t begin, size_t end, char id[WLMI_HASH_HEX]) {
  const char after = line->data[end];
  line->data[begin] = '{';
  line->data[end] = '}';
  wlmi_hash_to_hex(wlmi_hash_bytes(line->data + begin, end + 1 - begin), id);
  line->data[begin] = ',';
  line->data[end] = after;
}

void wlmi_members_id(wlmi_text *members, char id[WLMI_HASH_HEX]) { hash_members(members, 0, members->size, id); }

void wlmi_measurement_line(const wlmi_measurement_record *record, wlmi_text *out) {
  size_t begins[WLMI_TABLE_COUNT + 1];
  char id[WLMI_HASH_HEX];
  wlmi_text_printf(out, "{\"id\":\"%0*d\"", WLMI_HASH_HEX - 1, 0); /* room for the id */
  put_members(record, out, begins);
  if (out->failed) return;
  hash_members(out, begins[0], begins[WLMI_TABLE_COUNT], id);
  memcpy(out->data + begins[0] - WLMI_HASH_HEX, id, WLMI_HASH_HEX - 1);
}

wlm_status wlmi_measurement_ids(const wlmi_measurement_record *record, wlmi_record_ids *ids) {
  char *const parts[WLMI_TABLE_COUNT - 1] = {ids->device, ids->matrix, ids->variant};
  size_t begins[WLMI_TABLE_COUNT + 1];
  wlmi_text line = {0};
  put_members(record, &line, begins);
  if (line.failed) {
    wlmi_text_release(&line);
    return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "canonical line of a measurement");
  }
  for (int t = 0; t < WLMI_TABLE_COUNT - 1; t++) hash_members(&line, begins[t], begins[t + 1], parts[t]);
  hash_members(&line, begins[0], begins[WLMI_TABLE_COUNT], ids->measurement);
  wlmi_text_release(&line);
  return WLM_OK;
}

wlm_status wlmi_measurement_id(const wlmi_measurement_record *record, char id[WLMI_HASH_HEX]) {
  wlmi_record_ids ids;
  const wlm_status status = wlmi_measurement_ids(record, &ids);
  if (status == WLM_OK) memcpy(id, ids.measurement, sizeof ids.measurement);
  return status;
}

/* ---- copies ---- */

wlm_status wlmi_measurement_copy(const wlmi_measurement_record *record, wlmi_measurement_record *copy) {
  *copy = *record;
  int failed = 0;
  for (int i = 0; i < WLMI_FIELD_COUNT; i++) {
    if (wlmi_fields[i].type != WLMI_FIELD_TEXT) continue;
    char *text = wlmi_strdup(wlmi_field_text(&wlmi_fields[i], record));
    failed |= !text;
    wlmi_field_set_text(&wlmi_fields[i], copy, text);
  }
  if (!failed) return WLM_OK;
  wlmi_measurement_release(copy);
  return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "copy of a measurement");
}

void wlmi_measurement_release(wlmi_measurement_record *record) {
  for (int i = 0; i < WLMI_FIELD_COUNT; i++)
    if (wlmi_fields[i].type == WLMI_FIELD_TEXT) wlmi_free(*(char **)((char *)record + wlmi_fields[i].offset));
  *record = (wlmi_measurement_record){0};
}

wlm_status wlmi_measurements_reserve(wlmi_measurement_record **records, int64_t count, int64_t *capacity) {
  return wlmi_grow((void **)records, count, capacity, sizeof **records, "measurements");
}

void wlmi_measurements_free(wlmi_measurement_record *records, int64_t count) {
  for (int64_t i = 0; i < count; i++) wlmi_measurement_release(&records[i]);
  wlmi_free(records);
}
