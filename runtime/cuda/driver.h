/* The CUDA driver API, found at run time. wlmi_cuda.cuMemAlloc(...) and its like may be called once
 * wlmi_cuda_driver_open has succeeded. */
#pragma once

#include "core/base/status.h"
#include "runtime/cuda/api.h"

struct wlmi_cuda_functions {
#define WLM_CUDA_FIELD(name, version, parameters) CUresult(*name) parameters;
  WLM_CUDA_FUNCTIONS(WLM_CUDA_FIELD)
#undef WLM_CUDA_FIELD
  /* CUDA 12.4: kernels load lazily, and this makes them load now. NULL on an older driver. */
  CUresult (*cuFuncLoad)(CUfunction);
  int version; /* of the driver, 13000 for 13.0 */
  int devices; /* >= 1 */
};

extern struct wlmi_cuda_functions wlmi_cuda; /* written once, by the first wlmi_cuda_driver_open */

/* Finds and initialises the driver; any thread, any number of times. WLM_ERR_NO_DEVICE if there is no driver, only one
 * older than 12.0, or no GPU; the detail text says which. */
wlm_status wlmi_cuda_driver_open(void);

/* WLM_OK, or WLM_ERR_OUT_OF_MEMORY or WLM_ERR_DEVICE with "cuMemAlloc: CUDA_ERROR_... (text)" as detail. */
wlm_status wlmi_cuda_check(CUresult result, const char *call);

/* wlm_status of one driver call. */
#define WLM_CUDA(name, ...) wlmi_cuda_check(wlmi_cuda.name(__VA_ARGS__), #name)
