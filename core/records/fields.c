#include "core/records/fields.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/locale.h"
#include "core/base/printable.h"
#include "core/problem/size.h"

/* The type follows from the member, unless it is given. */
#define AT(member, type) type, offsetof(wlmi_measurement_record, member)
#define MEMBER(member) \
  AT(member, _Generic(((wlmi_measurement_record *)0)->member, char *: WLMI_FIELD_TEXT, int: WLMI_FIELD_INT,     \
                      int64_t: WLMI_FIELD_INT64, double: WLMI_FIELD_REAL, uint64_t *: WLMI_FIELD_HASH))
#define DEVICE      WLM_OF(WLMI_TABLE_DEVICE)
#define MATRIX      WLM_OF(WLMI_TABLE_MATRIX)
#define STATS       MATRIX | WLMI_OF_RECORDED
#define VARIANT     WLM_OF(WLMI_TABLE_VARIANT)
#define MEASUREMENT WLM_OF(WLMI_TABLE_MEASUREMENT)
#define CHOICE      MEASUREMENT | WLMI_OF_CHOICE
#define PROBLEM     CHOICE | WLMI_OF_RECORDED
#define ANY         INT64_MIN, INT64_MAX
#define POSITIVE    1, INT64_MAX, "a positive integer"
#define NOT_BELOW_0 0, INT64_MAX, "an integer of at least 0"
#define SIZE        0, WLMI_MOST_SIZE, "an integer from 0 to " WLMI_MOST_SIZE_TEXT
#define TEXT        0, INT64_MAX, "a string"
#define FILLED      1, INT64_MAX, "a string that is not empty"
#define DIGITS      ANY, "32 lower-case hexadecimal digits"

const wlmi_field wlmi_fields[WLMI_FIELD_COUNT] = {
    {"device_kind", "kind", DEVICE, MEMBER(device.kind), FILLED},
    {"device_arch", "arch", DEVICE, MEMBER(device.arch), TEXT},
    {"device_name", "name", DEVICE, MEMBER(device.name), FILLED},
    {"device_processors", "processors", DEVICE, MEMBER(device.processors), POSITIVE},
    {"device_memory_bytes", "memory_bytes", DEVICE, MEMBER(device.memory_bytes), NOT_BELOW_0},
    {"matrix_name", "name", MATRIX, MEMBER(matrix_name), TEXT},
    {"fingerprint", "fingerprint", STATS, MEMBER(stats.fingerprint), DIGITS},
    {"rows", "rows", STATS, MEMBER(stats.rows), SIZE},
    {"cols", "cols", STATS, MEMBER(stats.cols), SIZE},
    {"nnz", "nnz", STATS, MEMBER(stats.nnz), SIZE},
    {"longest", "longest", STATS, MEMBER(stats.longest), SIZE},
    {"empty_rows", "empty_rows", STATS, MEMBER(stats.empty_rows), SIZE},
    {"rows_le_4", "rows_le_4", STATS, MEMBER(stats.rows_le_4), SIZE},
    {"rows_le_16", "rows_le_16", STATS, MEMBER(stats.rows_le_16), SIZE},
    {"cv", "cv", STATS, MEMBER(stats.cv), 0, INT64_MAX, "a number of at least 0"},
    {"top_share", "top_share", STATS, MEMBER(stats.top_share), 0, 1, "a number from 0 to 1"},
    {"variant", "name", VARIANT, MEMBER(variant), FILLED},
    /* Named when it was a hash; with another name all ids would change. */
    {"source_hash", "source_hash", VARIANT, MEMBER(version), TEXT},
    {"problem", "problem", PROBLEM, MEMBER(problem), FILLED},
    {"n", "n", PROBLEM, MEMBER(n), SIZE},
    {"compiler", "compiler", CHOICE, MEMBER(compiler), TEXT},
    {"driver", "driver", CHOICE, MEMBER(driver), TEXT},
    {"clock", "clock", CHOICE, MEMBER(clock), TEXT},
    {"time_ps", "time_ps", CHOICE, MEMBER(time_ps), 0, INT64_MAX, "a positive integer, or 0 where failed is true"},
    {"spread_ps", "spread_ps", CHOICE, MEMBER(spread_ps), NOT_BELOW_0},
    {"prepare_ps", "prepare_ps", CHOICE, AT(prepare_ps, WLMI_FIELD_INT64_OR_NONE), NOT_BELOW_0},
    {"samples", "samples", CHOICE, MEMBER(samples), NOT_BELOW_0},
    {"calls_per_sample", "calls_per_sample", MEASUREMENT, MEMBER(calls_per_sample), NOT_BELOW_0},
    {"max_rel_err", "max_rel_err", MEASUREMENT, AT(max_rel_err, WLMI_FIELD_REAL_OR_NULL), 0, INT64_MAX,
     "a number of at least 0, or null where failed is true"},
    {"failed", "failed", CHOICE, AT(failed, WLMI_FIELD_BOOL), 0, 1, "true or false"},
    {"reason", "reason", CHOICE, MEMBER(reason), TEXT},
    {"made_at", "made_at", CHOICE, MEMBER(made_at), 0, WLMI_LAST_SECOND,
     "seconds since 1970, from 0 up to the year 9999"},
};

static void *place(const wlmi_field *field, const wlmi_measurement_record *record) {
  return (char *)record + field->offset;
}

const char *wlmi_field_text(const wlmi_field *field, const wlmi_measurement_record *record) {
  const char *text = *(char **)place(field, record);
  return text ? text : "";
}

static int is_wide(const wlmi_field *field) {
  return field->type == WLMI_FIELD_INT64 || field->type == WLMI_FIELD_INT64_OR_NONE;
}

int64_t wlmi_field_integer(const wlmi_field *field, const wlmi_measurement_record *record) {
  if (is_wide(field)) return *(int64_t *)place(field, record);
  int value = *(int *)place(field, record);
  return field->type == WLMI_FIELD_BOOL ? value != 0 : value;
}

/* Adding 0 turns -0, which SQLite does not store, into 0. */
double wlmi_field_real(const wlmi_field *field, const wlmi_measurement_record *record) {
  return *(double *)place(field, record) + 0.0;
}

wlmi_hash wlmi_field_hash(const wlmi_field *field, const wlmi_measurement_record *record) {
  const uint64_t *parts = place(field, record);
  return (wlmi_hash){parts[0], parts[1]};
}

void wlmi_field_set_text(const wlmi_field *field, wlmi_measurement_record *record, char *text) {
  *(char **)place(field, record) = text;
}

int wlmi_field_set_integer(const wlmi_field *field, wlmi_measurement_record *record, int64_t value) {
  if (is_wide(field)) {
    *(int64_t *)place(field, record) = value;
    return 1;
  }
  *(int *)place(field, record) = (int)value;
  return (int)value == value;
}

void wlmi_field_set_real(const wlmi_field *field, wlmi_measurement_record *record, double value) {
  *(double *)place(field, record) = value;
}

int wlmi_field_set_hash(const wlmi_field *field, wlmi_measurement_record *record, const char *hex) {
  wlmi_hash hash;
  if (!wlmi_hash_from_hex(hex, &hash)) return 0;
  uint64_t *parts = place(field, record);
  parts[0] = hash.high;
  parts[1] = hash.low;
  return 1;
}

int wlmi_field_is_possible(const wlmi_field *field, const wlmi_measurement_record *record) {
  switch (field->type) {
    case WLMI_FIELD_TEXT: {
      const char *text = wlmi_field_text(field, record);
      const size_t length = strlen(text);
      return length <= WLMI_LONGEST_TEXT && (int64_t)length >= field->least && wlmi_is_utf8(text);
    }
    case WLMI_FIELD_INT:
    case WLMI_FIELD_INT64:
    case WLMI_FIELD_INT64_OR_NONE:
    case WLMI_FIELD_BOOL: {
      int64_t value = wlmi_field_integer(field, record);
      return value >= field->least && value <= field->most;
    }
    case WLMI_FIELD_REAL:
    case WLMI_FIELD_REAL_OR_NULL: {
      double value = wlmi_field_real(field, record);
      if (!isfinite(value)) return field->type == WLMI_FIELD_REAL_OR_NULL && record->failed;
      return value >= (double)field->least && value <= (double)field->most;
    }
    case WLMI_FIELD_HASH: return 1;
  }
  return 0;
}

void wlmi_fields_derive(wlmi_measurement_record *record) {
  wlm_stats *stats = &record->stats;
  stats->size = sizeof *stats;
  stats->mean = stats->rows ? (double)stats->nnz / (double)stats->rows : 0;
}

/* Decimal text of a finite double, whatever the program's locale is. */
static void print_real(double value, char text[32]) {
  const wlmi_c_locale locale = wlmi_c_locale_enter();
  for (int digits = 15; digits <= 17; digits++) {
    snprintf(text, 32, "%.*g", digits, value);
    if (digits == 17 || strtod(text, NULL) == value) break; /* 17 digits always give the same double */
  }
  wlmi_c_locale_leave(locale);
}

void wlmi_field_json(const wlmi_field *field, const wlmi_measurement_record *record, wlmi_text *out) {
  char digits[WLMI_HASH_HEX];
  wlmi_text_puts(out, ",\"");
  wlmi_text_puts(out, field->key);
  wlmi_text_puts(out, "\":");
  switch (field->type) {
    case WLMI_FIELD_TEXT: wlmi_text_json_string(out, wlmi_field_text(field, record)); break;
    case WLMI_FIELD_INT:
    case WLMI_FIELD_INT64:
    case WLMI_FIELD_INT64_OR_NONE: wlmi_text_integer(out, wlmi_field_integer(field, record)); break;
    case WLMI_FIELD_BOOL: wlmi_text_puts(out, wlmi_field_integer(field, record) ? "true" : "false"); break;
    case WLMI_FIELD_REAL:
    case WLMI_FIELD_REAL_OR_NULL: {
      double value = wlmi_field_real(field, record);
      if (isfinite(value)) print_real(value, digits);
      wlmi_text_puts(out, isfinite(value) ? digits : "null");
      break;
    }
    case WLMI_FIELD_HASH:
      wlmi_hash_to_hex(wlmi_field_hash(field, record), digits);
      wlmi_text_json_string(out, digits);
      break;
  }
}
