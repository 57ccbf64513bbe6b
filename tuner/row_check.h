/* Every row of C against a second reference in float64, where comparing every row with the first one takes too long and
 * the operator has no check of its columns (tuner/column_check.h). */
#ifndef WLM_TUNER_ROW_CHECK_H
#define WLM_TUNER_ROW_CHECK_H

#include "tuner/operands.h"

typedef struct wlmi_row_check wlmi_row_check;

/* Computes the reference once for many results, into memory of the device.
 *   family       the simplest kernels of the device, one of which computes it in f64; NULL = the host does
 *   tolerances   of each row, relative to sum |a b|; copied
 *   typical      a typical sum |a b|, for operators of which no bound is known (users' expressions, a / b)
 * Of an sddmm, or where there is no memory or no time for it, *check stays NULL, with a line in the log. */
wlm_status wlmi_row_check_create(const wlmi_operands *operands, const char *family, const double *tolerances,
                                 double typical, wlmi_row_check **check);
void wlmi_row_check_destroy(wlmi_row_check *check); /* NULL is fine */

/* Rows of one result, all of them once, in pieces, with leading dimension ldc. */
void wlmi_row_check_begin(wlmi_row_check *check);
wlm_status wlmi_row_check_add(wlmi_row_check *check, int64_t first_row, int64_t rows, const void *c, int64_t ldc,
                              double leeway);
/* WLM_ERR_MISMATCH names the worst row that was beyond `leeway` times what it may be off by. */
wlm_status wlmi_row_check_finish(const wlmi_row_check *check);

#endif
