#include "support/exact.h"

#include <stdlib.h>

void exact_product_make(const wlmi_csr_host *a, int64_t n, exact_product *product) {
  const size_t b_size = (size_t)(a->cols * n) * sizeof(float), c_size = (size_t)(a->rows * n) * sizeof(float);
  float *b = malloc(b_size), *c = calloc(1, c_size);
  for (int64_t i = 0; i < a->cols * n; i++) b[i] = (float)(i * 7 % 17 - 8);
  for (int64_t row = 0; row < a->rows; row++)
    for (int64_t p = a->rowptr[row]; p < a->rowptr[row + 1]; p++)
      for (int64_t j = 0; j < n; j++) c[row * n + j] += a->values[p] * b[a->colind[p] * n + j];
  *product = (exact_product){b, c, b_size, c_size};
}

void exact_product_release(exact_product *product) {
  free(product->b);
  free(product->c);
}
