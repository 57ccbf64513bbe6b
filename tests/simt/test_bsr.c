/* The kernels of wlm_csr_from_bsr, as fibers under ASan and UBSan. */
#include "simt/shim/simt_device.h"
#include "support/blocks_check.h"
#include "support/test.h"

TEST(every_kind_of_blocks) {
  wlm_context_options options = BARE_OPTIONS();
  GET(wlmi_device *, device, simt_device_open(&device));
  OWN(wlm_context, context, wlmi_context_create_on(device, &options, &context));
  blocks_check(context);
}
