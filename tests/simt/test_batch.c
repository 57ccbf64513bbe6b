/* Batches on the simt shim: emitted CUDA of one candidate of each family that a run draws, for products of every kind,
 * and batches in every layout. */
#include "runtime/context.h"
#include "simt/shim/simt_device.h"
#include "support/strided_check.h"
#include "support/test.h"

enum { ONE_IN = 3 }; /* families of a product */

static wlm_context *context;

static int begin(void **state) {
  wlmi_device *device;
  (void)state;
  wlm_context_options options = BARE_OPTIONS();
  if (simt_device_open(&device) != WLM_OK) return 1;
  device->info.limits.processors = 4;                                  /* which the rules divide by */
  snprintf(device->info.compiler, sizeof device->info.compiler, "cc"); /* without one, products run one by one */
  return wlmi_context_create_on(device, &options, &context) != WLM_OK;
}

FIXTURE(end) {
  wlm_context_destroy(context);
  return 0;
}

TEST_BETWEEN(every_family, begin, end) {
  int families = 0;
  for (int p = 0; p < STRIDED_PRODUCTS; p++)
    for (int64_t n = p % 3 ? 16 : 4; n <= 16; n += 12) /* some are for few columns */
      families += strided_check(context, &strided_products[p], &strided_layouts[3], n, ONE_IN, (uint64_t)p + 61);
  assert_in_range(families, 50, 200);
}

TEST_BETWEEN(every_layout, begin, end) {
  for (int l = 3; l < STRIDED_LAYOUTS; l++)
    for (int p = 0; p < STRIDED_PRODUCTS; p += p < 8 ? 4 : 1) /* positions and SDDMM are the last */
      strided_check(context, &strided_products[p], &strided_layouts[l], strided_products[p].heads ? 6 : 7, 0,
                    (uint64_t)(10 * l + p) + 71);
}
