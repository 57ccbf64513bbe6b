/* A second reference of all outputs, where comparing every line with float64 takes too long: what a kernel gives that
 * is too simple to share a template's faults, emitted in f64 and called with the same operands in f64. */
#pragma once

#include "generator/generator.h"
#include "tuner/output_check.h"

/* Of each output, lines without padding, in host memory; numbers or positions. */
typedef struct wlmi_second_reference {
  double *numbers[WLMI_MAX_OUTPUTS];
  int64_t *positions[WLMI_MAX_OUTPUTS];
} wlmi_second_reference;

/* Computes it; its numbers must pass `check`. An error where there is no memory for it or no such kernel. Release it,
 * also after an error. */
wlm_status wlmi_second_reference_make(const wlmi_operands *operands, const wlmi_output_check *check,
                                      wlmi_second_reference *reference);
/* Of the families of the simplest kernels, the first variant of the first one in the list; NULL = there is none. */
const char *wlmi_simple_kernel(const wlmi_candidate_list *list);
void wlmi_second_reference_release(wlmi_second_reference *reference); /* also of a zeroed one */
