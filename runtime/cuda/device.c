/* Opens an NVIDIA GPU as a device and describes it. Work runs in its primary context, so pointers and streams of the
 * CUDA runtime and of PyTorch are valid here. */
#include "runtime/cuda/device.h"

#include <stdio.h>
#include <string.h>

#include "core/base/fork.h"
#include "core/base/memory.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/devices.h"

static void cuda_close(wlmi_device *device) {
  wlmi_cuda_device *cuda = (wlmi_cuda_device *)device;
  wlmi_cuda_pool_close(cuda);
  if (cuda->context && wlmi_cuda_check_process(device) == WLM_OK) wlmi_cuda.cuDevicePrimaryCtxRelease(cuda->handle);
  pthread_mutex_destroy(&cuda->block_lock);
  wlmi_free(cuda);
}

static const wlmi_device_ops cuda_ops = {
    .close = cuda_close,
    .compile = wlmi_cuda_compile,
    .load = wlmi_cuda_load,
    .unload = wlmi_cuda_unload,
    .launch = wlmi_cuda_launch,
    .kernel_facts = wlmi_cuda_kernel_facts,
    .allocate = wlmi_cuda_allocate,
    .release = wlmi_cuda_release,
    .allocate_on = wlmi_cuda_allocate_on,
    .release_on = wlmi_cuda_release_on,
    .copy_in = wlmi_cuda_copy_in,
    .copy_out = wlmi_cuda_copy_out,
    .fill = wlmi_cuda_fill,
    .synchronize = wlmi_cuda_synchronize,
    .wait = wlmi_cuda_wait,
    .timer_create = wlmi_cuda_timer_create,
    .timer_sample = wlmi_cuda_timer_sample,
    .timer_destroy = wlmi_cuda_timer_destroy,
    .watch_create = wlmi_cuda_watch_create,
    .watch_start = wlmi_cuda_watch_start,
    .watch_stop = wlmi_cuda_watch_stop,
    .watch_poll = wlmi_cuda_watch_poll,
    .watch_destroy = wlmi_cuda_watch_destroy,
    .is_captured = wlmi_cuda_is_captured,
};

/* "CUDA 13.0" and, if /sys has it, the driver's own version: "CUDA 13.0, 580.159.04". */
static void describe_driver(char *text, size_t capacity) {
  char version[32] = "";
  FILE *file = fopen("/sys/module/nvidia/version", "r");
  if (file) {
    if (!fgets(version, sizeof version, file)) version[0] = 0;
    fclose(file);
  }
  version[strcspn(version, "\n")] = 0;
  snprintf(text, capacity, "CUDA %d.%d%s%s", wlmi_cuda.version / 1000, wlmi_cuda.version % 1000 / 10,
           version[0] ? ", " : "", version);
}

static void describe_compiler(char *text, size_t capacity) {
  int major, minor;
  text[0] = 0;
  if (wlmi_nvrtc_version(&major, &minor) == WLM_OK)
    snprintf(text, capacity, "nvrtc %d.%d %s", major, minor, wlmi_nvrtc_flags());
  else
    wlmi_clear_error();
}

static wlm_status describe(wlmi_cuda_device *cuda) {
  wlmi_device_info *info = &cuda->base.info;
  int major, minor, threads, shared, processors, l2, domain, bus, slot;
  size_t memory;
  const struct {
    int *value;
    CUdevice_attribute attribute;
  } attributes[] = {
      {&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},
      {&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
      {&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK},
      {&shared, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN},
      {&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
      {&l2, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE},
      {&domain, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID},
      {&bus, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID},
      {&slot, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID},
  };
  for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
    WLM_CHECK(WLM_CUDA(cuDeviceGetAttribute, attributes[i].value, attributes[i].attribute, cuda->handle));
  WLM_CHECK(WLM_CUDA(cuDeviceGetName, info->name, (int)sizeof info->name, cuda->handle));
  WLM_CHECK(WLM_CUDA(cuDeviceTotalMem, &memory, cuda->handle));
  info->kind = "cuda";
  cuda->arch = 10 * major + minor;
  snprintf(info->bus, sizeof info->bus, "%04x:%02x:%02x", (unsigned)domain & 0xFFFF, (unsigned)bus & 0xFFFF,
           (unsigned)slot & 0xFFFF);
  snprintf(info->arch, sizeof info->arch, "sm_%d%d", major, minor);
  describe_driver(info->driver, sizeof info->driver);
  info->flags = wlmi_nvrtc_flags();
  describe_compiler(info->compiler, sizeof info->compiler);
  WLM_CHECK(wlmi_nvrtc_identify(info->compiler_file));
  info->limits = (wlmi_limits){.target = WLMI_TARGET_CUDA,
                               .arch = wlmi_nvrtc_arch(cuda->arch),
                               .threads_per_block = threads,
                               .shared_bytes = shared,
                               .processors = processors,
                               .l2_bytes = l2};
  info->memory_bytes = (int64_t)memory;
  return WLM_OK;
}

wlm_status wlmi_cuda_device_open(int ordinal, wlmi_device **device) {
  *device = NULL;
  wlm_status status = wlmi_cuda_driver_open();
  if (status != WLM_OK) return status;
  if (ordinal < 0 || ordinal >= wlmi_cuda.devices)
    return wlmi_fail(WLM_ERR_NO_DEVICE, "there is no cuda:%d: the driver sees %d GPU%s, from cuda:0 on", ordinal,
                     wlmi_cuda.devices, wlmi_cuda.devices == 1 ? "" : "s");
  if ((status = wlmi_fork_check()) != WLM_OK) return status;
  wlmi_cuda_device *cuda = wlmi_alloc_zero(1, sizeof *cuda);
  if (!cuda) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "cuda device");
  cuda->base.ops = &cuda_ops;
  cuda->ordinal = ordinal;
  cuda->forks = wlmi_fork_count();
  pthread_mutex_init(&cuda->block_lock, NULL);
  WLM_TRY(WLM_CUDA(cuDeviceGet, &cuda->handle, ordinal));
  WLM_TRY(describe(cuda));
  WLM_TRY(WLM_CUDA(cuDevicePrimaryCtxRetain, &cuda->context, cuda->handle));
  WLM_TRY(wlmi_cuda_pool_open(cuda));
done:
  if (status != WLM_OK)
    cuda_close(&cuda->base);
  else
    *device = &cuda->base;
  return status;
}
