/* Every result of a message, and the positions of max and min, against the float64 reference. */
#ifndef WLM_TUNER_MESSAGE_CHECK_H
#define WLM_TUNER_MESSAGE_CHECK_H

#include "tuner/operands.h"

typedef struct wlmi_message_check wlmi_message_check;

/* Computes the reference of the named rows once for many calls: their row results and positions, and the edge results
 * of their edges.
 *   tolerances         of the rows' sums
 *   tolerance          that of a sum of so many terms; a leeway multiplies both
 *   most_edge_numbers  the reference of edge results may have so many; rows beyond have no edges compared */
wlm_status wlmi_message_check_create(const wlmi_operands *operands, const int64_t *rows, int64_t count,
                                     const double *tolerances,
                                     double (*tolerance)(const wlm_problem *problem, int64_t terms),
                                     int64_t most_edge_numbers, wlmi_message_check **check);
void wlmi_message_check_destroy(wlmi_message_check *check); /* NULL is fine */

/* Compares what the results hold now. *max_rel_err may be infinite; WLM_ERR_MISMATCH with the result and its worst row
 * or edge in the detail text.
 *
 * Positions must be those of the reference, except where the messages of two edges differ by less than float arithmetic
 * may be off by: then either may win. */
wlm_status wlmi_message_check_result(const wlmi_message_check *check, double leeway, double *max_rel_err);

#endif
