/* Properties that a kernel's results must have independently of a reference: linearity of sum, idempotence of max and
 * min, independence of the order of a row's edges and of where a row is split, mean against sum, a product against its
 * adjoints. Operands are small integers (for prod powers of 2), so operations are exact in any order and results must
 * have equal bits. The tests run on the host and on emitted CUDA in the simt shim. Include after cmocka. */
#pragma once

#include "runtime/dispatch/device.h"

typedef struct properties {
  wlm_status (*open)(wlmi_device **device); /* a device whose memory is host memory */
  int64_t n;                                /* columns */
  int64_t longest;                          /* non-zeros of the longest row */
  /* variants of each family, evenly spread over its candidates; fewer for properties that depend little on the
   * variant */
  int variants;
} properties;

/* Runs the properties as a group of cmocka; returns the number of failures. */
int properties_run(const properties *p);
