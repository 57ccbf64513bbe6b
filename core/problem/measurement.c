#include "core/problem/measurement.h"

#include <string.h>

void wlmi_device_class(const wlmi_device_record *device, wlmi_text *out) {
  wlmi_text_printf(out, "%s/%s/%s/%d", device->kind ? device->kind : "", device->arch ? device->arch : "",
                   device->name ? device->name : "", device->processors);
}

static int has_clock(const wlmi_measurement_record *record, const char *clock) {
  return record->clock && !strcmp(record->clock, clock);
}

int wlmi_measurement_is_cold(const wlmi_measurement_record *record) { return has_clock(record, WLMI_CLOCK_COLD); }
int wlmi_measurement_is_online(const wlmi_measurement_record *record) { return has_clock(record, WLMI_CLOCK_ONLINE); }

int wlmi_failure_is_lasting(wlm_status status) {
  switch (status) {
    case WLM_ERR_UNSUPPORTED:
    case WLM_ERR_OVERFLOW:
    case WLM_ERR_DEVICE:
    case WLM_ERR_COMPILE:
    case WLM_ERR_TEMPLATE:
    case WLM_ERR_MISMATCH: return 1;
    default: return 0;
  }
}

/* The reason of a failure begins with the message of its status and a colon (tuner/tune_record.c). */
int wlmi_measurement_is_passing(const wlmi_measurement_record *record) {
  static const wlm_status passing[] = {WLM_ERR_OUT_OF_MEMORY, WLM_ERR_IO,        WLM_ERR_NO_DEVICE, WLM_ERR_NO_COMPILER,
                                       WLM_ERR_DATABASE,      WLM_ERR_CANCELLED, WLM_ERR_INTERNAL};
  if (!record->failed || !record->reason) return 0;
  for (size_t i = 0; i < sizeof passing / sizeof *passing; i++) {
    const char *message = wlm_status_message(passing[i]);
    const size_t length = strlen(message);
    if (!strncmp(record->reason, message, length) && record->reason[length] == ':') return 1;
  }
  return 0;
}

static const double noisy_spread = 0.25, noisy_screening = 1;

int wlmi_spread_is_noisy(double spread, int samples) {
  return spread > (samples < WLMI_PRECISE_SAMPLES ? noisy_screening : noisy_spread);
}

int wlmi_measurement_is_noisy(const wlmi_measurement_record *record) {
  if (record->failed || wlmi_measurement_is_cold(record) || wlmi_measurement_is_online(record)) return 0;
  return wlmi_spread_is_noisy((double)record->spread_ps / (double)record->time_ps, record->samples);
}

const char *wlmi_stats_fault(const wlm_stats *s) {
  if (s->longest > s->nnz) return "longest must not be greater than nnz";
  if (s->empty_rows > s->rows_le_4 || s->rows_le_4 > s->rows_le_16 || s->rows_le_16 > s->rows)
    return "empty_rows <= rows_le_4 <= rows_le_16 <= rows must hold";
  return s->nnz && !s->rows ? "nnz must be 0 where rows is 0" : NULL;
}

double wlmi_device_unlikeness(const wlmi_device_record *a, const wlmi_device_record *b) {
  const int is_renamed = strcmp(a->name, b->name) != 0, is_another_arch = strcmp(a->arch, b->arch) != 0;
  const int is_host = strcmp(a->kind, "cuda") != 0;
  const double x = a->processors, y = b->processors, ratio = x > y ? x / y : y / x;
  if (strcmp(a->kind, b->kind) || (is_host && (is_another_arch || !(ratio <= 2)))) return 0;
  if (!is_renamed && !is_another_arch && x == y) return 0;
  return ratio + 2 * is_renamed + 4 * is_another_arch;
}
