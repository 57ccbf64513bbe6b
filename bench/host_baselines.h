/* The baselines of the host device: a table; all are set up together. */
#pragma once

#include "tuner/method.h"

/* C = A * B in f32, with 32-bit columns and values, B and C row-major without gaps; all in the host device's memory. */
typedef struct wlmi_host_product {
  const wlm_csr *csr;
  int64_t n;
  const float *b;
  float *c;
} wlmi_host_product;

enum { WLMI_HOST_BASELINES = 2 };

/* Sets `user`, `enqueue`, which has finished when it returns, and `destroy`. May write the product's C. */
wlm_status wlmi_baseline_graphblas(const wlmi_host_product *product, wlmi_method *method);

/* Sets up the first `count` baselines (the OpenMP loop is the first one) on the operands; one that cannot be set up has
 * a failure. */
void wlmi_host_baselines_enter(const wlmi_operands *operands, int count, wlmi_method *methods);
