#include "bench/cusparse_library.h"

#ifdef WLM_HAVE_CUSPARSE
#include <pthread.h>
#include <stdio.h>

#include "runtime/cuda/library.h"

struct wlmi_cusparse_functions wlmi_cusparse_api;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char missing[512];

static wlm_status find(void) {
  static const char *const names[] = {"libcusparse.so.13", "libcusparse.so.12", NULL};
  void *library;
  WLM_CHECK(wlmi_cuda_library_open("cuSPARSE", "WARPLOOM_CUSPARSE", names, &library));
#define CUSPARSE_FIND(name) WLM_CHECK(wlmi_cuda_library_symbol(library, #name, &wlmi_cusparse_api.name));
  WLM_CUSPARSE_FUNCTIONS(CUSPARSE_FIND)
#undef CUSPARSE_FIND
  return WLM_OK;
}

static void load(void) {
  if (find() != WLM_OK) snprintf(missing, sizeof missing, "%s", wlm_error_detail());
}

wlm_status wlmi_cusparse_open(void) {
  pthread_once(&once, load);
  return missing[0] ? wlmi_fail(WLM_ERR_UNSUPPORTED, "%s", missing) : WLM_OK;
}

wlm_status wlmi_cusparse_check(cusparseStatus_t result, const char *call) {
  if (result == CUSPARSE_STATUS_SUCCESS) return WLM_OK;
  wlm_status status = result == CUSPARSE_STATUS_NOT_SUPPORTED || result == CUSPARSE_STATUS_INVALID_VALUE
                          ? WLM_ERR_UNSUPPORTED
                          : WLM_ERR_DEVICE;
  return wlmi_fail(status, "%s: %s", call, wlmi_cusparse_api.cusparseGetErrorString(result));
}
#else

wlm_status wlmi_cusparse_open(void) {
  return wlmi_fail(WLM_ERR_UNSUPPORTED,
                   "this build has no cuSPARSE: the CUDA Toolkit's headers were missing when it was configured");
}
#endif
