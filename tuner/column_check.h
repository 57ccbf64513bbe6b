/* Checks C by one number per column that depends on every row; used where comparing every row with float64 takes too
 * long. */
#pragma once

#include "tuner/operands.h"

typedef struct wlmi_column_check wlmi_column_check;

/* Computes the signed sum that each column of C should have, once for many results. `row_tolerance` gives the error
 * allowed for a row with that many edges, relative to sum |a b|. *check stays NULL where the check does not apply:
 * messages that are not linear in B (a / b), reductions other than sum and mean, a bias or an activation, several
 * heads, and other operations than SpMM. */
wlm_status wlmi_column_check_create(const wlmi_operands *operands, uint64_t seed,
                                    double (*row_tolerance)(const wlm_problem *problem, int64_t edges),
                                    wlmi_column_check **check);
void wlmi_column_check_destroy(wlmi_column_check *check); /* NULL is fine */

/* Begin a result, then add all its rows once, in pieces of whole rows with leading dimension ldc. */
void wlmi_column_check_begin(wlmi_column_check *check);
void wlmi_column_check_add(wlmi_column_check *check, int64_t first_row, int64_t rows, const void *c, int64_t ldc);
/* WLM_ERR_MISMATCH naming the worst column whose error is more than `leeway` times the tolerance. */
wlm_status wlmi_column_check_finish(const wlmi_column_check *check, double leeway);
