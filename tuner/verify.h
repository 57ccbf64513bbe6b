/* Compares the results of a call with the float64 reference; their memory is poisoned before the call. */
#pragma once

#include "tuner/operands.h"

typedef struct wlmi_verifier wlmi_verifier;

/* From where on a problem is too large to compare all with float64, and how many rows are drawn then. */
typedef struct wlmi_verify_limits {
  double products; /* edges x n, of a message times its operands and results */
  double elements; /* of the results */
  int64_t rows;
  double host_products; /* the same where no second reference can be made */
} wlmi_verify_limits;
#define WLMI_VERIFY_LIMITS_INIT \
  { 1e8, 32e6, 4096, 4e9 }

/* Computes the reference once for many plans: of all rows where that is cheap, otherwise of the longest, the first, the
 * last, an empty one and seeded others, and a check of all lines of all outputs (tuner/whole_check.h). Without a
 * compiler for that and with too many rows, only those are compared, with a line in the log. The operands must outlive
 * the verifier. */
wlm_status wlmi_verifier_create(wlmi_operands *operands, uint64_t seed, wlmi_verifier **verifier);
wlm_status wlmi_verifier_create_within(wlmi_operands *operands, uint64_t seed, const wlmi_verify_limits *limits,
                                       wlmi_verifier **verifier);
void wlmi_verifier_destroy(wlmi_verifier *verifier);
/* How many are compared with float64; edges: where an output has lines for them. */
int64_t wlmi_verifier_rows(const wlmi_verifier *verifier);
int64_t wlmi_verifier_edges(const wlmi_verifier *verifier);

/* Compares what the outputs hold now. *max_rel_err is relative to sum |a b| and may be infinite; WLM_ERR_MISMATCH, with
 * the output and its worst row, edge or column in the detail text, if one exceeds its tolerance. */
wlm_status wlmi_verify_result(wlmi_verifier *verifier, double *max_rel_err);

/* Compares the named rows and a few of the drawn ones only; enough for candidates that are only screened. */
wlm_status wlmi_verify_spots(wlmi_verifier *verifier, double *max_rel_err);

/* Multiplies the tolerance by `leeway` from now on; 1 at first. For results of other libraries, which may round more
 * often. */
void wlmi_verifier_set_leeway(wlmi_verifier *verifier, double leeway);
