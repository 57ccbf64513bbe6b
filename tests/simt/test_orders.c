/* Plans and calls of a context whose device is the simt shim: emitted CUDA for column-major arrays and for indices that
 * count from 1, with the copies between columns and rows and the kernels that build A^T. */
#include "runtime/context.h"
#include "simt/shim/simt_device.h"
#include "support/orders_check.h"
#include "support/test.h"

TEST(every_request_in_every_order) {
  wlm_context_options options = BARE_OPTIONS();
  GET(wlmi_device *, device, simt_device_open(&device));
  device->info.limits.processors = 4; /* which the rules divide by */
  GET(wlm_context *, context, wlmi_context_create_on(device, &options, &context));
  orders_check(context, 6, 51);
  wlm_context_destroy(context);
}
