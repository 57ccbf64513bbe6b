/* Column-major B and C, and batches, on a GPU: every product in every layout by wlm_spmm and by plans, with a kernel of
 * each family for the plain ones, compared with float64. NaN between the elements stays. And blocks that become CSR. */
#include "support/blocks_check.h"
#include "support/gpu.h"
#include "support/strided_check.h"
#include "support/test.h"

TEST(every_product_in_every_layout) {
  static const int64_t widths[] = {16, 7, 1};
  OWNED(wlm_context) *context = test_gpu_context();
  for (int p = 0; p < STRIDED_PRODUCTS; p++)
    for (int l = 0; l < STRIDED_LAYOUTS; l++) {
      const int64_t n = strided_products[p].heads ? 16 : widths[(p + l) % 3];
      strided_check(context, &strided_products[p], &strided_layouts[l], n, 0, (uint64_t)(100 * p + l) + 1);
    }
}

TEST(every_family_with_batches) {
  OWNED(wlm_context) *context = test_gpu_context();
  for (int p = 0; p < STRIDED_PRODUCTS; p++)
    for (int l = 3; l < 6; l++)
      strided_check(context, &strided_products[p], &strided_layouts[l], p % 2 ? 16 : 4, 1, (uint64_t)(100 * p + l) + 2);
}

/* Column-major B and C where they are, alone and in batches. */
TEST(every_family_by_columns) {
  static const int layouts[] = {0, 6, 1, 2, 7};
  static const int64_t widths[] = {2, 16, 4, 16}; /* some families are for few columns */
  OWNED(wlm_context) *context = test_gpu_context();
  for (int p = 0; p < STRIDED_PRODUCTS; p++)
    strided_check(context, &strided_products[p], &strided_layouts[layouts[p % 5]], widths[p % 4], 1,
                  (uint64_t)(100 * p) + 3);
}

TEST(blocks_become_csr) {
  OWNED(wlm_context) *context = test_gpu_context();
  blocks_check(context);
}

GROUP(NULL, test_gpu_close)
