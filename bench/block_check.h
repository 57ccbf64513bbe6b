/* Compares products with blocks of mini-batches against float64. */
#pragma once

#include "bench/block_method.h"
#include "core/csr/csr.h"

typedef struct wlmi_block_check {
  const wlmi_csr_host *a; /* op(A): the block or */
  wlmi_csr_host transposed;
  wlm_problem problem;
  int64_t *rows; /* rows that are compared: at most 4,096, evenly spaced */
  int64_t row_count;
  double *expected, *scale; /* row_count x n */
  double tolerance;
  float *c; /* the whole result */
} wlmi_block_check;

/* `b` is B on the host. Neither the check nor its block may be moved in memory. */
wlm_status wlmi_block_check_create(const wlmi_csr_host *block, int transpose, int64_t n, const float *b,
                                   wlmi_block_check *check);
void wlmi_block_check_release(wlmi_block_check *check); /* also of a zeroed one */

/* Runs the method once and compares. Before the run C is filled with NaN; for a baseline with large finite numbers,
 * because it may multiply the old C by 0. A baseline gets 16 times the tolerance, because it may round more often.
 * WLM_ERR_MISMATCH if a compared row exceeds the tolerance or any element is not finite. *max_rel_err grows to the
 * largest error so far. */
wlm_status wlmi_block_check_run(const wlmi_block_check *check, wlmi_device *device, const wlmi_block_method *method,
                                const wlmi_block_product *product, double *max_rel_err);
