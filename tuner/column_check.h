/* One number a column that depends on every row of C: what is held against float64 where comparing every row would
 * take too long. */
#ifndef WLM_TUNER_COLUMN_CHECK_H
#define WLM_TUNER_COLUMN_CHECK_H

#include "tuner/operands.h"

typedef struct wlmi_column_check wlmi_column_check;

/* What the columns must come to, once for many results. `row_tolerance` is the error that a row of so many edges may
 * have, relative to sum |a b|. *check stays NULL where the problem has no such number: what is not linear in B
 * (max, min, prod, a / b), a bias, an sddmm, several heads. */
wlm_status wlmi_column_check_create(const wlmi_operands *operands, uint64_t seed,
                                    double (*row_tolerance)(const wlm_problem *problem, int64_t edges),
                                    wlmi_column_check **check);
void wlmi_column_check_destroy(wlmi_column_check *check); /* NULL is fine */

/* Rows of one result, all of them once, in pieces, whole rows with leading dimension ldc. */
void wlmi_column_check_begin(wlmi_column_check *check);
void wlmi_column_check_add(wlmi_column_check *check, int64_t first_row, int64_t rows, const void *c, int64_t ldc);
/* WLM_ERR_MISMATCH names the worst column that is beyond `leeway` times the tolerance. */
wlm_status wlmi_column_check_finish(const wlmi_column_check *check, double leeway);

#endif
