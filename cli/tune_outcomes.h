/* The results of tuning one matrix and N, for the table at the end. */
#pragma once

#include "cli/report.h"
#include "tuner/tuner.h"

typedef struct wlmi_tune_outcomes {
  struct wlmi_tune_outcome *list;
  int64_t count, capacity;
  int failed; /* out of memory */
} wlmi_tune_outcomes;

/* Adds a copy; a finalist's result replaces its screening result. */
void wlmi_tune_outcomes_keep(wlmi_tune_outcomes *outcomes, const wlm_candidate_result *result);
/* The table "candidates", the fastest first, with a star at the one that a plan for one call would choose by these
 * times alone, whose name goes to `starred` ("" = none). */
void wlmi_tune_outcomes_report(wlmi_tune_outcomes *outcomes, wlmi_report *report, char starred[WLMI_VARIANT_NAME]);
void wlmi_tune_outcomes_release(wlmi_tune_outcomes *outcomes);

/* Reports the measurements, the cases that are left, and how the time was spent. */
void wlmi_tune_summary_report(const wlmi_tune_summary *summary, wlmi_report *report);
