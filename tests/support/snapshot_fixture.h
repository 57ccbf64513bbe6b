/* Makes snapshots by hand. Include after cmocka. */
#ifndef WLM_TESTS_SUPPORT_SNAPSHOT_FIXTURE_H
#define WLM_TESTS_SUPPORT_SNAPSHOT_FIXTURE_H

#include "select/select.h"

/* What names stand for in snapshots that have no families of their own: those of the rules for the host, and any other
 * name, once snapshot_variant was asked for it, as a family without parameters; one with a slash
 * stays unknown. */
const wlmi_families *snapshot_families(void);
wlmi_variant snapshot_variant(const wlmi_snapshot *snapshot, const char *name);

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
