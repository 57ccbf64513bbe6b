/* How far a right result may be off. */
#pragma once

#include "tuner/operands.h"

/* The largest relative error of a sum of this many terms, in the dense type. */
double wlmi_tolerance(const wlm_problem *problem, int64_t terms);

/* That of the elements of an output; `row` is a row of the result, not used for outputs of edges. Repeated entries are
 * not counted. */
double wlmi_output_tolerance(const wlmi_operands *operands, const wlmi_call_array *output, int64_t row);

/* What the repeated entries of each row in the list add to it. */
wlm_status wlmi_repeats_tolerance(const wlmi_operands *operands, const int64_t *rows, int64_t count, double *more);
