/* A device that is not there: it compiles for an architecture and describes a common GPU of it, so that kernels can be
 * chosen and compiled on any machine. It has no memory and launches nothing. */
#include <stdio.h>

#include "core/base/memory.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/devices.h"

/* Machine code of an architecture, or PTX for all newer ones. Of the latter the driver makes machine code for GPUs from
 * `arch` on; the source is the one that such a GPU would get. */
static const struct gpu {
  const char *name; /* as the store names its device */
  int arch, ptx;    /* ptx: the architecture that the PTX is for; 0 = machine code */
  int processors;
  int64_t shared_bytes, l2_bytes, memory_bytes;
} gpus[] = {
    {"NVIDIA A100-SXM4-80GB", 80, 0, 108, 163 << 10, 40 << 20, INT64_C(80) << 30},
    {"NVIDIA A10", 86, 0, 72, 99 << 10, 6 << 20, INT64_C(24) << 30},
    {"NVIDIA Jetson AGX Orin", 87, 0, 16, 163 << 10, 4 << 20, INT64_C(64) << 30},
    {"NVIDIA L40S", 89, 0, 142, 99 << 10, 96 << 20, INT64_C(48) << 30},
    {"NVIDIA H200", 90, 0, 132, 227 << 10, 60 << 20, INT64_C(141) << 30},
    {"NVIDIA B200", 100, 90, 148, 227 << 10, 126 << 20, INT64_C(180) << 30},
    {"NVIDIA B300", 103, 90, 148, 227 << 10, 126 << 20, INT64_C(288) << 30},
    {"NVIDIA GeForce RTX 5090", 120, 90, 170, 99 << 10, 96 << 20, INT64_C(32) << 30},
};

static wlm_status find_gpu(int arch, const struct gpu **gpu) {
  for (size_t i = 0; i < sizeof gpus / sizeof *gpus; i++) {
    *gpu = &gpus[i];
    if (gpus[i].arch == arch) return WLM_OK;
  }
  return wlmi_fail(WLM_ERR_INVALID_ARGUMENT,
                   "sm_%d is none of sm_80, sm_86, sm_87, sm_89, sm_90, sm_100, sm_103 and sm_120", arch);
}

static wlmi_limits limits_of(const struct gpu *gpu) {
  return (wlmi_limits){.target = WLMI_TARGET_CUDA,
                       .arch = gpu->arch,
                       .threads_per_block = 1024,
                       .shared_bytes = gpu->shared_bytes,
                       .processors = gpu->processors,
                       .l2_bytes = gpu->l2_bytes};
}

wlm_status wlmi_common_gpu_limits(int arch, wlmi_limits *limits) {
  const struct gpu *gpu;
  const wlm_status status = find_gpu(arch, &gpu);
  if (status == WLM_OK) *limits = limits_of(gpu);
  return status;
}

int wlmi_common_gpu_ptx(int arch) {
  for (size_t i = 0; i < sizeof gpus / sizeof *gpus; i++)
    if (gpus[i].arch == arch) return gpus[i].ptx;
  return 0;
}

static void compile_only_close(wlmi_device *device) { wlmi_free(device); }

wlm_status wlmi_compiling_device_compile(wlmi_device *device, const wlmi_program *program, void **image, size_t *size,
                                         char **ptx, size_t *ptx_size) {
  const int arch = ((const wlmi_cuda_device *)device)->arch, is_ptx = arch != device->info.limits.arch;
  wlmi_nvrtc_code code, intermediate = {0};
  const wlm_status status = wlmi_nvrtc_both(program->source, program->variant, arch, is_ptx ? NULL : &code,
                                            is_ptx ? &code
                                            : ptx  ? &intermediate
                                                   : NULL,
                                            NULL);
  *image = code.bytes;
  *size = code.size;
  if (ptx) {
    *ptx = intermediate.bytes;
    *ptx_size = intermediate.size;
  }
  return status;
}

static wlm_status compile_only(wlmi_device *device, const wlmi_program *program, void **image, size_t *size) {
  return wlmi_compiling_device_compile(device, program, image, size, NULL, NULL);
}

static const wlmi_device_ops ops = {.close = compile_only_close, .compile = compile_only};

wlm_status wlmi_compiling_device_open(int arch, wlmi_device **device) {
  const struct gpu *gpu;
  int major, minor;
  *device = NULL;
  WLM_CHECK(find_gpu(arch, &gpu));
  WLM_CHECK(wlmi_nvrtc_version(&major, &minor));
  wlmi_cuda_device *cuda = wlmi_alloc_zero(1, sizeof *cuda);
  if (!cuda) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "cuda device");
  wlmi_device_info *info = &cuda->base.info;
  cuda->base.ops = &ops;
  cuda->arch = gpu->ptx ? gpu->ptx : gpu->arch;
  info->kind = "cuda";
  info->flags = wlmi_nvrtc_flags();
  info->memory_bytes = gpu->memory_bytes;
  info->limits = limits_of(gpu);
  snprintf(info->name, sizeof info->name, "%s", gpu->name);
  snprintf(info->arch, sizeof info->arch, "sm_%d", gpu->arch);
  snprintf(info->compiler, sizeof info->compiler, "nvrtc %d.%d %s", major, minor, info->flags);
  *device = &cuda->base;
  return WLM_OK;
}
