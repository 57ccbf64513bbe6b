/* Opens the driver library at run time, because only machines with a driver have it. One symbol is found by name;
 * cuGetProcAddress returns the others with the signature of a stated CUDA version, whatever the driver's version is. */
#include "runtime/cuda/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#include "runtime/cuda/library.h"

enum { OLDEST_DRIVER = 12000 };

struct wlmi_cuda_functions wlmi_cuda;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char missing[512]; /* why there is no device; "" = there is one */

static wlm_status too_old(const char *what) {
  return wlmi_fail(WLM_ERR_NO_DEVICE, "the NVIDIA driver is older than CUDA %d.%d (%s); update the driver",
                   OLDEST_DRIVER / 1000, OLDEST_DRIVER % 1000 / 10, what);
}

static wlm_status find_functions(void) {
  CUresult(*get) WLMI_CUDA_GET_PROC_ADDRESS;
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) return wlmi_fail(WLM_ERR_NO_DEVICE, "no NVIDIA driver: %s", dlerror());
  if (wlmi_cuda_library_symbol(library, "cuGetProcAddress_v2", &get) != WLM_OK)
    return too_old("no cuGetProcAddress_v2");
#define CUDA_FIND(name, version, parameters)                                                                    \
  if (get(#name, (void **)&wlmi_cuda.name, version, CU_GET_PROC_ADDRESS_LEGACY_STREAM, NULL) != CUDA_SUCCESS || \
      !wlmi_cuda.name)                                                                                          \
    return too_old("no " #name);
  WLM_CUDA_FUNCTIONS(CUDA_FIND)
#undef CUDA_FIND
  if (get("cuFuncLoad", (void **)&wlmi_cuda.cuFuncLoad, 12040, CU_GET_PROC_ADDRESS_LEGACY_STREAM, NULL) != CUDA_SUCCESS)
    wlmi_cuda.cuFuncLoad = NULL;
  return WLM_OK;
}

static wlm_status start(void) {
  WLM_CHECK(find_functions());
  WLM_CHECK(WLM_CUDA(cuDriverGetVersion, &wlmi_cuda.version));
  if (wlmi_cuda.version < OLDEST_DRIVER) return too_old("by its version");
  WLM_CHECK(WLM_CUDA(cuInit, 0));
  WLM_CHECK(WLM_CUDA(cuDeviceGetCount, &wlmi_cuda.devices));
  if (wlmi_cuda.devices < 1) return wlmi_fail(WLM_ERR_NO_DEVICE, "the NVIDIA driver sees no GPU");
  return WLM_OK;
}

static void start_once(void) {
  if (start() != WLM_OK) snprintf(missing, sizeof missing, "%s", wlm_error_detail());
}

wlm_status wlmi_cuda_driver_open(void) {
  pthread_once(&once, start_once);
  return missing[0] ? wlmi_fail(WLM_ERR_NO_DEVICE, "%s", missing) : WLM_OK;
}

wlm_status wlmi_cuda_check(CUresult result, const char *call) {
  const char *name = NULL, *text = NULL;
  if (result == CUDA_SUCCESS) return WLM_OK;
  wlmi_cuda.cuGetErrorName(result, &name);
  wlmi_cuda.cuGetErrorString(result, &text);
  return wlmi_fail(result == CUDA_ERROR_OUT_OF_MEMORY ? WLM_ERR_OUT_OF_MEMORY : WLM_ERR_DEVICE, "%s: %s (%s)", call,
                   name ? name : "unknown CUDA error", text ? text : "no text");
}
