/* What kernels must keep to whatever a reference says, between their own results: linearity of sum, idempotence of max
 * and min, the order of a row's edges, where a row is split, mean and sum, a product and its adjoints. Operands are
 * small whole numbers (for prod powers of 2), so that every order of every operation is exact and results must have
 * equal bits. The same tests on every device: the host, and emitted CUDA on the simt shim. Include after cmocka. */
#ifndef WLM_TESTS_PROPERTIES_H
#define WLM_TESTS_PROPERTIES_H

#include "runtime/dispatch/device.h"

typedef struct properties {
  wlm_status (*open)(wlmi_device **device); /* one whose memory is ordinary memory */
  int64_t n;                                /* columns */
  int64_t longest;                          /* non-zeros of the longest row */
  int variants; /* of each family, evenly spread over its candidates; fewer where a property has little to do with them
                 */
} properties;

/* Runs them as a group of cmocka; returns the number of failures. */
int properties_run(const properties *p);

#endif
