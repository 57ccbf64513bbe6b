/* Small matrices with difficult shapes: row lengths around every multiple of a kernel's step, one row longer than all
 * others together, empty rows first, last and in between, no rows, no columns, no non-zeros. Columns are unsorted and
 * repeated. */
#pragma once

#include "core/csr/csr.h"

typedef struct test_random {
  uint64_t state; /* never 0 */
} test_random;
uint64_t test_draw(test_random *random, uint64_t below);
float test_draw_between(test_random *random, float low, float high);

int test_shape_count(void);
const char *test_shape_name(int shape);

/* `step` is the number of non-zeros that a kernel processes at once, `longest` the length of the longest row in
 * skewed shapes. Makes the structure only: values are NULL. */
wlm_status test_shape_make(int shape, int64_t step, int64_t longest, test_random *random, wlmi_csr_host *out);

/* Whether the shapes above never use this column; there is one in every run of 7. */
int test_column_is_unreferenced(int64_t column);
