/* Every line of every output against a second reference, where comparing all of them with float64 takes too long. */
#pragma once

#include "core/problem/program.h"
#include "tuner/output_check.h"

typedef struct wlmi_whole_check wlmi_whole_check;

/* Computes the second reference once for many results; the numbers of its chosen rows must pass. An error where there
 * is no memory for it, or no simple kernel or compiler. */
wlm_status wlmi_whole_check_create(const wlmi_operands *operands, const wlmi_output_check *chosen,
                                   wlmi_whole_check **check);
void wlmi_whole_check_destroy(wlmi_whole_check *check); /* NULL is fine */

/* Compares what the outputs hold now. Lines that are close to the second reference are right; the rows of all others
 * are compared with float64, which decides: errors and *max_rel_err are those of wlmi_output_check_result. */
wlm_status wlmi_whole_check_result(wlmi_whole_check *check, double leeway, double *max_rel_err);

/* The first variant of the list whose family is simple; NULL = there is none. */
const char *wlmi_simple_kernel(const wlmi_candidate_list *list);
