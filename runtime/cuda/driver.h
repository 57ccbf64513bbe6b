/* The CUDA driver API, found at run time. wlmi_cuda.cuMemAlloc(...) and its like may be called once
 * wlmi_cuda_driver_open has succeeded. */
#ifndef WLM_RUNTIME_CUDA_DRIVER_H
#define WLM_RUNTIME_CUDA_DRIVER_H

#include <cuda.h>
#include <cudaTypedefs.h>

#include "core/base/status.h"

/* Each entry point with the CUDA version in which the signature used here appeared; 12000 is CUDA 12.0. All are at most
 * 12.0, the oldest driver that is supported. */
// clang-format off
#define WLM_CUDA_FUNCTIONS(X)        \
  X(cuInit, 2000)                    \
  X(cuDriverGetVersion, 2020)        \
  X(cuGetErrorName, 6000)            \
  X(cuGetErrorString, 6000)          \
  X(cuDeviceGet, 2000)               \
  X(cuDeviceGetCount, 2000)          \
  X(cuDeviceGetName, 2000)           \
  X(cuDeviceGetAttribute, 2000)      \
  X(cuDeviceTotalMem, 3020)          \
  X(cuDevicePrimaryCtxRetain, 7000)  \
  X(cuDevicePrimaryCtxRelease, 11000) \
  X(cuCtxGetCurrent, 4000)           \
  X(cuCtxPushCurrent, 4000)          \
  X(cuCtxPopCurrent, 4000)           \
  X(cuCtxSynchronize, 2000)          \
  X(cuModuleLoadDataEx, 2010)        \
  X(cuModuleUnload, 2000)            \
  X(cuModuleGetFunction, 2000)       \
  X(cuFuncGetAttribute, 2020)        \
  X(cuFuncSetAttribute, 9000)        \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050) \
  X(cuLaunchKernelEx, 11060)         \
  X(cuMemAlloc, 3020)                \
  X(cuMemFree, 3020)                 \
  X(cuMemPoolCreate, 11020)          \
  X(cuMemPoolDestroy, 11020)         \
  X(cuMemPoolSetAttribute, 11020)    \
  X(cuMemAllocFromPoolAsync, 11020)  \
  X(cuMemFreeAsync, 11020)           \
  X(cuMemcpyHtoD, 3020)              \
  X(cuMemcpyDtoHAsync, 3020)         \
  X(cuMemsetD8Async, 3020)           \
  X(cuStreamCreate, 2000)            \
  X(cuStreamDestroy, 4000)           \
  X(cuStreamSynchronize, 2000)       \
  X(cuStreamBeginCapture, 10010)     \
  X(cuStreamEndCapture, 10000)       \
  X(cuStreamIsCapturing, 10000)      \
  X(cuThreadExchangeStreamCaptureMode, 10010) \
  X(cuGraphInstantiateWithFlags, 11040) \
  X(cuGraphDestroy, 10000)           \
  X(cuGraphExecDestroy, 10000)       \
  X(cuGraphUpload, 11010)            \
  X(cuGraphLaunch, 10000)            \
  X(cuEventCreate, 2000)             \
  X(cuEventDestroy, 4000)            \
  X(cuEventRecord, 2000)             \
  X(cuEventQuery, 2000)              \
  X(cuEventSynchronize, 2000)        \
  X(cuEventElapsedTime, 2000)
// clang-format on

struct wlmi_cuda_functions {
#define WLM_CUDA_FIELD(name, version) PFN_##name##_v##version name;
  WLM_CUDA_FUNCTIONS(WLM_CUDA_FIELD)
#undef WLM_CUDA_FIELD
  /* CUDA 12.4: kernels load lazily, and this makes them load now. NULL on an older driver. */
  CUresult(CUDAAPI *cuFuncLoad)(CUfunction);
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

#endif
