#include "runtime/devices.h"

#include <stdlib.h>
#include <string.h>

wlm_status wlmi_device_open(const char *name, wlmi_device **device) {
  *device = NULL;
  if (!name) {
    if (wlmi_cuda_device_open(0, device) == WLM_OK) return WLM_OK;
    wlmi_log(WLM_LOG_INFO, "no GPU, using the host device: %s", wlm_error_detail());
    wlmi_clear_error();
    return wlmi_host_device_open(device);
  }
  if (!strcmp(name, "host")) return wlmi_host_device_open(device);
  if (!strcmp(name, "cuda")) return wlmi_cuda_device_open(0, device);
  size_t digits = strncmp(name, "cuda:", 5) ? 0 : strspn(name + 5, "0123456789");
  if (digits >= 1 && digits <= 4 && !name[5 + digits]) return wlmi_cuda_device_open(atoi(name + 5), device);
  return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "device '%s' is unknown: use 'host', 'cuda' or 'cuda:0'", name);
}

wlmi_device_record wlmi_device_record_of(const wlmi_device *device) {
  const wlmi_device_info *info = &device->info;
  return (wlmi_device_record){(char *)info->name, (char *)info->kind, (char *)info->arch, info->limits.processors,
                              info->memory_bytes};
}
