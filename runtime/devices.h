/* Finds and opens devices. */
#pragma once

#include "core/problem/measurement.h"
#include "runtime/dispatch/device.h"

wlm_status wlmi_host_device_open(wlmi_device **device);
/* WLM_ERR_NO_DEVICE where there is no driver, no GPU or no such ordinal; the detail text says which. */
wlm_status wlmi_cuda_device_open(int ordinal, wlmi_device **device);
/* Opens a device that only compiles and needs no GPU, for a compute capability: 80, 86, 89 and 90 give machine code,
 * 100 gives PTX that newer GPUs run too. All its other functions are NULL. WLM_ERR_INVALID_ARGUMENT for another
 * capability; WLM_ERR_NO_COMPILER. */
wlm_status wlmi_compiling_device_open(int arch, wlmi_device **device);
/* What such a GPU allows; WLM_ERR_INVALID_ARGUMENT for an unknown architecture. */
wlm_status wlmi_common_gpu_limits(int arch, wlmi_limits *limits);
/* The architecture for which a compiling device of `arch` makes PTX; 0 where it makes machine code. */
int wlmi_common_gpu_ptx(int arch);
/* Compiles as the function `compile` of a compiling device does, and for machine code also gives the PTX that it was
 * made of, which is text ended by NUL. ptx may be NULL. The caller frees both (wlmi_free). */
wlm_status wlmi_compiling_device_compile(wlmi_device *device, const wlmi_program *program, void **image, size_t *size,
                                         char **ptx, size_t *ptx_size);

/* The device as the store describes it. The device owns the strings. */
wlmi_device_record wlmi_device_record_of(const wlmi_device *device);

/* "host", "cuda", "cuda:1"; NULL = the first GPU, or the host where there is none. */
wlm_status wlmi_device_open(const char *name, wlmi_device **device);
