/* Compares the result of a call with the float64 reference; the result's memory is poisoned before the call. */
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

/* Compares what the operands' C holds now, or all results and positions of a message. *max_rel_err is relative to sum
 * |a b| and may be infinite; WLM_ERR_MISMATCH, with the worst row or column in the detail text, if one exceeds its
 * tolerance. */
wlm_status wlmi_verify_result(wlmi_verifier *verifier, double *max_rel_err);

/* Compares a few evenly spaced rows and the longest one only; enough for candidates that are only screened. */
wlm_status wlmi_verify_spots(wlmi_verifier *verifier, double *max_rel_err);

/* Multiplies the tolerance by `leeway` from now on; 1 at first. For results of other libraries, which may round more
 * often. */
void wlmi_verifier_set_leeway(wlmi_verifier *verifier, double leeway);

/* The largest relative error that a row of this many edges may have. */
double wlmi_tolerance(const wlm_problem *problem, int64_t edges);

#endif
