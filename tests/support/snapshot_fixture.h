/* Makes snapshots by hand. Include after cmocka. */
#pragma once

#include "select/select.h"
#include "support/defaults.h"

/* The families of hand-made snapshots: those of the host that the rules name, and any other name that was passed to
 * snapshot_variant, as a family without parameters. A name with a slash stays unknown. */
const wlmi_families *snapshot_families(void);
wlmi_variant snapshot_variant(const wlmi_snapshot *snapshot, const char *name);

/* Of a square matrix with rows of one length; `cv` need not fit. */
#define SQUARE(rows_, nnz_, cv_, fingerprint_)                                                        \
  STATS(.rows = rows_, .cols = rows_, .nnz = nnz_, .longest = rows_ ? (nnz_ + rows_ - 1) / rows_ : 0, \
        .mean = rows_ ? (double)nnz_ / (double)rows_ : 0, .cv = cv_, .fingerprint[0] = fingerprint_)
wlm_stats snapshot_stats(int64_t rows, int64_t nnz, double cv, uint64_t fingerprint);

/* Appends an empty case of a matrix. */
void snapshot_case(wlmi_snapshot *snapshot, const wlm_stats *stats, const char *problem, int64_t n);
/* Appends a candidate to the last case; cost and prepare are in microseconds. */
void snapshot_measured(wlmi_snapshot *snapshot, const char *variant, double cost, double prepare);
/* Appends a failed candidate to the last case, behind all others. */
void snapshot_failure(wlmi_snapshot *snapshot, const char *variant, const char *reason);

/* Valid are all variants except those that begin with "no"; "turned", which now needs preparation, is valid only if
 * that is allowed. */
wlmi_variant_set snapshot_accepted(void);

/* wlmi_select with measured stats. */
wlm_status select_for(const wlmi_snapshot *snapshot, const wlm_stats *stats, const char *problem, const wlmi_spec *spec,
                      const wlmi_limits *limits, const wlmi_variant_set *variants, wlmi_decision *decision);
