/* Every output of a call against the float64 reference, on the lines of chosen rows. */
#pragma once

#include "tuner/operands.h"

typedef struct wlmi_output_check wlmi_output_check;

/* Computes the reference of the listed rows of the result (ascending and distinct) once for many calls: their lines of
 * all outputs, and those of their edges.
 *   most_edge_numbers  the reference of outputs of edges may have so many; rows beyond have no edges compared */
wlm_status wlmi_output_check_create(const wlmi_operands *operands, const int64_t *rows, int64_t count,
                                    int64_t most_edge_numbers, wlmi_output_check **check);
void wlmi_output_check_destroy(wlmi_output_check *check);        /* NULL is fine */
int64_t wlmi_output_check_edges(const wlmi_output_check *check); /* how many are compared */

/* Compares what the outputs of `found` hold now: the operands of the check, or others with equal values and as many
 * outputs, of which only numbers are compared. *max_rel_err may be infinite; WLM_ERR_MISMATCH with the output and its
 * worst row or edge in the detail text, if one is off by more than `leeway` times its tolerance.
 *
 * Positions must be those of the reference. Of messages, either of two edges may win whose messages differ by less than
 * float arithmetic may be off by. */
wlm_status wlmi_output_check_result(const wlmi_output_check *check, const wlmi_operands *found, double leeway,
                                    double *max_rel_err);

/* Raises the sizes of the lines of an output of numbers to what the reference found: the least of a line's elements. */
void wlmi_output_check_sizes(const wlmi_output_check *check, int output, float *sizes);

/* How many numbers the outputs of edges have for an edge. */
int64_t wlmi_edge_numbers(const wlmi_operands *operands);
