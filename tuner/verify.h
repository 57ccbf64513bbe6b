/* Compares the result of a call into poisoned memory with the float64 reference. */
#ifndef WLM_TUNER_VERIFY_H
#define WLM_TUNER_VERIFY_H

#include "tuner/operands.h"

typedef struct wlmi_verifier wlmi_verifier;

/* Computes the reference once for many plans: of all rows where that is cheap, otherwise of the longest, the first,
 * the last, an empty one and 4,096 seeded others, and a check of all rows (tuner/column_check.h, tuner/row_check.h).
 * The operands must outlive the verifier. */
wlm_status wlmi_verifier_create(wlmi_operands *operands, uint64_t seed, wlmi_verifier **verifier);
void wlmi_verifier_destroy(wlmi_verifier *verifier);
int64_t wlmi_verifier_rows(const wlmi_verifier *verifier); /* how many are compared */

/* Compares what the operands' C holds now. *max_rel_err is relative to sum |a b| and may be infinite; WLM_ERR_MISMATCH
 * with the worst row or column in the detail text where one is beyond its tolerance. */
wlm_status wlmi_verify_result(wlmi_verifier *verifier, double *max_rel_err);

/* A look at a few of the rows only, evenly spread, the longest among them: what has no chance of winning need not be
 * compared whole. */
wlm_status wlmi_verify_spots(wlmi_verifier *verifier, double *max_rel_err);

/* From now on an error of `leeway` times the tolerance passes; 1 at first. For results of other libraries, which may
 * round oftener than we do and are right all the same. */
void wlmi_verifier_set_leeway(wlmi_verifier *verifier, double leeway);

/* The largest error that a row of so many edges may have. */
double wlmi_tolerance(const wlm_problem *problem, int64_t edges);

#endif
