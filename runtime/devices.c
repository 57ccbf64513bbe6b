#include "runtime/devices.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"

#ifndef WLM_HAVE_CUDA
static const char no_cuda[] =
    "this build has no cuda device: the CUDA Toolkit's headers were missing when it was configured";
#endif

static wlm_status open_gpu(int ordinal, wlmi_device **device) {
#ifdef WLM_HAVE_CUDA
  return wlmi_cuda_device_open(ordinal, device);
#else
  (void)ordinal;
  *device = NULL;
  return wlmi_fail(WLM_ERR_NO_DEVICE, "%s", no_cuda);
#endif
}

#ifndef WLM_HAVE_CUDA
wlm_status wlmi_compiling_device_open(int arch, wlmi_device **device) {
  *device = NULL;
  return wlmi_fail(WLM_ERR_NO_COMPILER, "sm_%d: %s", arch, no_cuda);
}

int wlmi_compiling_device_ptx(const wlmi_device *device) { return (void)device, 0; }
#endif

wlm_status wlmi_device_open(const char *name, wlmi_device **device) {
  *device = NULL;
  if (!name) {
    if (open_gpu(0, device) == WLM_OK) return WLM_OK;
    wlmi_log(WLM_LOG_INFO, "no GPU, using the host device: %s", wlm_error_detail());
    wlmi_clear_error();
    return wlmi_host_device_open(device);
  }
  if (!strcmp(name, "host")) return wlmi_host_device_open(device);
  if (!strcmp(name, "cuda")) return open_gpu(0, device);
  size_t digits = strncmp(name, "cuda:", 5) ? 0 : strspn(name + 5, "0123456789");
  if (digits >= 1 && digits <= 4 && !name[5 + digits]) return open_gpu(atoi(name + 5), device);
  return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "device '%s' is unknown: use 'host', 'cuda' or 'cuda:0'", name);
}
