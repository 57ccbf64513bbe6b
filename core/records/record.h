/* Checks, JSON and ids of a measurement: one candidate timed once on one matrix and one device.
 *
 * Every text may be NULL, which means "". The id of a record is the xxh3-128 of its canonical JSON line (below). So a
 * measurement that is imported twice is one row, any difference makes another row, and merging two stores is a union
 * without conflicts. Devices, matrices and variants have ids that are made the same way from their part of the line.
 *
 * The canonical line is one flat JSON object with exactly the keys of core/records/fields.h in that order, no spaces,
 * integers in decimal and reals in the fewest of 15 to 17 digits that give the same double. A field that was added
 * later is left out if it is 0, so older lines and ids stay valid. */
#pragma once

#include "core/records/fields.h"

typedef struct wlmi_record_ids {
  char device[WLMI_HASH_HEX], matrix[WLMI_HASH_HEX], variant[WLMI_HASH_HEX], measurement[WLMI_HASH_HEX];
} wlmi_record_ids;

/* 1 for a clock of core/problem/measurement.h. Others are refused, because they would count as hot. */
int wlmi_clock_is_known(const char *clock);
/* WLM_ERR_INVALID_ARGUMENT naming the first invalid field. */
wlm_status wlmi_measurement_check(const wlmi_measurement_record *record);
/* The canonical line without a line end; its first member is the id, with the key "id". */
void wlmi_measurement_line(const wlmi_measurement_record *record, wlmi_text *out);
/* Appends the members of one table as they stand in the line, each after a comma. */
void wlmi_measurement_members(const wlmi_measurement_record *record, wlmi_field_table table, wlmi_text *out);
/* The id of a text of members: those of one table, or those of all tables in their order. */
void wlmi_members_id(wlmi_text *members, char id[WLMI_HASH_HEX]);
wlm_status wlmi_measurement_id(const wlmi_measurement_record *record, char id[WLMI_HASH_HEX]);
wlm_status wlmi_measurement_ids(const wlmi_measurement_record *record, wlmi_record_ids *ids);

/* A copy that owns its strings; release it. Releasing a zeroed record does nothing. */
wlm_status wlmi_measurement_copy(const wlmi_measurement_record *record, wlmi_measurement_record *copy);
void wlmi_measurement_release(wlmi_measurement_record *record);
/* An array that grows: room for one more record after the first `count`. */
wlm_status wlmi_measurements_reserve(wlmi_measurement_record **records, int64_t count, int64_t *capacity);
/* Releases each record and the array. */
void wlmi_measurements_free(wlmi_measurement_record *records, int64_t count);
