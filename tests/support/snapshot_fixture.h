/* Snapshots by hand. Include after cmocka. */
#ifndef WLM_TESTS_SUPPORT_SNAPSHOT_FIXTURE_H
#define WLM_TESTS_SUPPORT_SNAPSHOT_FIXTURE_H

#include "select/select.h"

/* An empty case of a matrix (exact) or of its bucket. */
void snapshot_case(wlmi_snapshot *snapshot, const wlm_stats *stats, int exact, const char *problem, int64_t n);
/* To the last case: a candidate behind the others; cost and prepare in microseconds where it is of a matrix. */
void snapshot_measured(wlmi_snapshot *snapshot, const char *variant, double cost, double prepare);
/* To the last case, behind all candidates that work. */
void snapshot_failure(wlmi_snapshot *snapshot, const char *variant, const char *reason);

/* wlmi_select with stats that were measured. */
wlm_status select_for(const wlmi_snapshot *snapshot, const wlm_stats *stats, const char *problem, const wlmi_spec *spec,
                      const wlmi_limits *limits, const wlmi_variant_set *variants, wlmi_decision *decision);

#endif
