/* cuSPARSE's functions, found when they are first needed. wlmi_cusparse_api.cusparseCreate(...) and its like may be
 * called once wlmi_cusparse_open has succeeded. */
#pragma once

#include "core/base/status.h"

/* Any thread, as often as you like. WLM_ERR_UNSUPPORTED, with what was tried, where there is no cuSPARSE, and in a
 * build without its header. */
wlm_status wlmi_cusparse_open(void);

#ifdef WLM_HAVE_CUSPARSE
#include <cusparse.h>

// clang-format off
#define WLM_CUSPARSE_FUNCTIONS(X) \
  X(cusparseGetErrorString)   \
  X(cusparseCreate)           \
  X(cusparseDestroy)          \
  X(cusparseSetStream)        \
  X(cusparseCreateCsr)        \
  X(cusparseDestroySpMat)     \
  X(cusparseCsrSetStridedBatch)   \
  X(cusparseDnMatSetStridedBatch) \
  X(cusparseCreateDnMat)      \
  X(cusparseDestroyDnMat)     \
  X(cusparseCreateDnVec)      \
  X(cusparseDestroyDnVec)     \
  X(cusparseSpMM_bufferSize)  \
  X(cusparseSpMM_preprocess)  \
  X(cusparseSpMM)             \
  X(cusparseSpMV_bufferSize)  \
  X(cusparseSpMV_preprocess)  \
  X(cusparseSpMV)             \
  X(cusparseSDDMM_bufferSize) \
  X(cusparseSDDMM_preprocess) \
  X(cusparseSDDMM)
// clang-format on

struct wlmi_cusparse_functions {
#define WLM_CUSPARSE_FIELD(name) __typeof__(&name) name;
  WLM_CUSPARSE_FUNCTIONS(WLM_CUSPARSE_FIELD)
#undef WLM_CUSPARSE_FIELD
};

extern struct wlmi_cusparse_functions wlmi_cusparse_api; /* written once, by the first wlmi_cusparse_open */

/* WLM_ERR_UNSUPPORTED for what cuSPARSE does not support, WLM_ERR_DEVICE for every other failure. */
wlm_status wlmi_cusparse_check(cusparseStatus_t result, const char *call);

/* wlm_status of one call. */
#define WLM_CUSPARSE(name, ...) wlmi_cusparse_check(wlmi_cusparse_api.name(__VA_ARGS__), #name)

#endif
