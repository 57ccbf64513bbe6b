#include "support/gpu.h"

#include <stdint.h>

#include "runtime/devices.h"
#include "support/test.h"

static wlmi_device *gpu;

wlmi_device *test_gpu(void) {
  wlm_status status = gpu ? WLM_OK : wlmi_device_open("cuda", &gpu);
  if (status == WLM_ERR_NO_DEVICE) test_missing("gpu", "GPU", wlm_error_detail());
  if (status != WLM_OK) fail_msg("%s: %s", wlm_status_name(status), wlm_error_detail());
  return gpu;
}

wlm_context *test_gpu_context(void) {
  test_gpu();
  test_needs_nvrtc();
  wlm_context_options options = BARE_OPTIONS(.device = "cuda");
  GET(wlm_context *, context, wlm_context_create(&options, &context));
  return context;
}

void *test_gpu_copy(const void *from, size_t size) {
  wlmi_device *device = test_gpu();
  void *memory;
  assert_status(WLM_OK, device->ops->allocate(device, size, &memory));
  assert_status(WLM_OK, device->ops->copy_in(device, memory, from, size));
  return memory;
}

int test_gpu_close(void **state) {
  (void)state;
  if (gpu) gpu->ops->close(gpu);
  gpu = NULL;
  return 0;
}
