/* Elements of A, B and C in host memory, of any wlm_type, as doubles; and indices, i32 or i64, as int64_t. */
#pragma once

#include "core/base/status.h"

double wlmi_element_get(wlm_type type, const void *from, int64_t index);
/* Rounds to nearest, ties to even: infinity beyond the range, a quiet NaN for NaN. */
void wlmi_element_put(wlm_type type, void *to, int64_t index, double value);
/* `count` neighbours, the first of them at `index`. */
void wlmi_elements_read(wlm_type type, const void *from, int64_t index, int64_t count, double *to);
/* The value after rounding to the type. */
double wlmi_element_round(wlm_type type, double value);

/* The largest relative error of rounding a value in the type's range, and where that range begins. */
double wlmi_element_unit(wlm_type type);
double wlmi_element_least(wlm_type type);

/* f32 for f16 and bf16, the type itself for the others. */
wlm_type wlmi_accumulator_type(wlm_type type);

/* Which of the kernels for elements of 2, 4 and 8 bytes an element of these bytes has: 0, 1 or 2. */
static inline int wlmi_size_class(size_t bytes) { return bytes == 2 ? 0 : bytes == 4 ? 1 : 2; }

static inline int64_t wlmi_index_get(wlm_index type, const void *from, int64_t i) {
  return type == WLM_I64 ? ((const int64_t *)from)[i] : ((const int32_t *)from)[i];
}

static inline void wlmi_index_put(wlm_index type, void *to, int64_t i, int64_t value) {
  if (type == WLM_I64)
    ((int64_t *)to)[i] = value;
  else
    ((int32_t *)to)[i] = (int32_t)value;
}
