/* A product whose sums are exact in any order, so that every kernel gives the same bits: values of A are multiples of
 * 1/128, as in twins, and B has small integers. */
#pragma once

#include "core/csr/csr.h"

typedef struct exact_product {
  float *b, *c; /* dense, n columns; c = A b */
  size_t b_size, c_size;
} exact_product;

void exact_product_make(const wlmi_csr_host *a, int64_t n, exact_product *product);
void exact_product_release(exact_product *product);
