/* The rival at its best: every CSR algorithm, with and without preprocessing, each with a descriptor and a buffer of
 * its own, since preprocessing leaves what it learned in them. */
#include "bench/rival_cusparse.h"

#ifdef WLM_HAVE_CUDA
#include <cusparse.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "common/memory.h"
#include "runtime/cuda_device.h"
#include "runtime/cuda_library.h"

static const struct {
  const char *name;
  cusparseSpMMAlg_t algorithm;
  int preprocess;
} ways[WLM_CUSPARSE_WAYS] = {
    {"default_nopre", CUSPARSE_SPMM_ALG_DEFAULT, 0}, {"default", CUSPARSE_SPMM_ALG_DEFAULT, 1},
    {"alg1_nopre", CUSPARSE_SPMM_CSR_ALG1, 0},       {"alg1", CUSPARSE_SPMM_CSR_ALG1, 1},
    {"alg2_nopre", CUSPARSE_SPMM_CSR_ALG2, 0},       {"alg2", CUSPARSE_SPMM_CSR_ALG2, 1},
    {"alg3_nopre", CUSPARSE_SPMM_CSR_ALG3, 0},       {"alg3", CUSPARSE_SPMM_CSR_ALG3, 1},
};

// clang-format off
#define CUSPARSE_FUNCTIONS(X) \
  X(cusparseGetErrorString)   \
  X(cusparseCreate)           \
  X(cusparseDestroy)          \
  X(cusparseSetStream)        \
  X(cusparseCreateCsr)        \
  X(cusparseDestroySpMat)     \
  X(cusparseCreateDnMat)      \
  X(cusparseDestroyDnMat)     \
  X(cusparseSpMM_bufferSize)  \
  X(cusparseSpMM_preprocess)  \
  X(cusparseSpMM)
// clang-format on

static struct {
#define CUSPARSE_FIELD(name) __typeof__(&name) name;
  CUSPARSE_FUNCTIONS(CUSPARSE_FIELD)
#undef CUSPARSE_FIELD
} cusparse;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char missing[512];

struct wlm_cusparse {
  wlm_device *device;
  int way;
  wlm_csr csr;
  int64_t n;
  cusparseHandle_t handle;
  cusparseSpMatDescr_t a;
  cusparseDnMatDescr_t b, c;
  void *buffer;
  double preprocess_seconds;
};

static const float one = 1, zero = 0;

static wlm_status find(void) {
  static const char *const names[] = {"libcusparse.so.13", "libcusparse.so.12", NULL};
  void *library;
  wlm_status status;
  WLM_TRY(wlm_cuda_library_open("cuSPARSE", "WARPLOOM_CUSPARSE", names, &library));
#define CUSPARSE_FIND(name) WLM_TRY(wlm_cuda_library_symbol(library, #name, &cusparse.name));
  CUSPARSE_FUNCTIONS(CUSPARSE_FIND)
#undef CUSPARSE_FIND
done:
  return status;
}

static void load(void) {
  if (find() != WLM_OK) snprintf(missing, sizeof missing, "%s", wlm_error_detail());
}

static wlm_status check(cusparseStatus_t result, const char *call) {
  if (result == CUSPARSE_STATUS_SUCCESS) return WLM_OK;
  wlm_status status = result == CUSPARSE_STATUS_NOT_SUPPORTED || result == CUSPARSE_STATUS_INVALID_VALUE
                          ? WLM_ERR_UNSUPPORTED
                          : WLM_ERR_DEVICE;
  return wlm_fail(status, "%s: %s", call, cusparse.cusparseGetErrorString(result));
}

#define CUSPARSE(name, ...) check(cusparse.name(__VA_ARGS__), #name)

static void unset(wlm_cusparse *rival) {
  if (rival->a) cusparse.cusparseDestroySpMat(rival->a);
  rival->device->ops->release(rival->device, rival->buffer);
  rival->a = NULL;
  rival->buffer = NULL;
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

#define SPMM_ARGUMENTS                                                                                                \
  rival->handle, CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, rival->a, rival->b, &zero, \
      rival->c, CUDA_R_32F, ways[rival->way].algorithm

/* Descriptor of A and the buffer, preprocessed where this way does so. */
static wlm_status set(wlm_cusparse *rival) {
  const wlm_csr *csr = &rival->csr;
  wlm_device *device = rival->device;
  size_t size = 0;
  wlm_status status;
  WLM_TRY(CUSPARSE(cusparseCreateCsr, &rival->a, csr->rows, csr->cols, csr->nnz, (void *)csr->rowptr,
                   (void *)csr->colind, (void *)csr->values,
                   csr->rowptr_type == WLM_I64 ? CUSPARSE_INDEX_64I : CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                   CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F));
  WLM_TRY(CUSPARSE(cusparseSpMM_bufferSize, SPMM_ARGUMENTS, &size));
  WLM_TRY(device->ops->allocate(device, size, &rival->buffer));
  if (!ways[rival->way].preprocess) goto done;
  WLM_TRY(device->ops->synchronize(device, NULL));
  double start = now();
  WLM_TRY(CUSPARSE(cusparseSpMM_preprocess, SPMM_ARGUMENTS, rival->buffer));
  WLM_TRY(device->ops->synchronize(device, NULL));
  rival->preprocess_seconds = now() - start;
done:
  return status;
}

static wlm_status set_up(wlm_cusparse *rival, const void *b, void *c) {
  const wlm_csr *csr = &rival->csr;
  wlm_status status;
  WLM_TRY(CUSPARSE(cusparseCreate, &rival->handle));
  WLM_TRY(CUSPARSE(cusparseCreateDnMat, &rival->b, csr->cols, rival->n, rival->n, (void *)b, CUDA_R_32F,
                   CUSPARSE_ORDER_ROW));
  WLM_TRY(CUSPARSE(cusparseCreateDnMat, &rival->c, csr->rows, rival->n, rival->n, c, CUDA_R_32F, CUSPARSE_ORDER_ROW));
  WLM_TRY(set(rival));
  if (ways[rival->way].preprocess) { /* once more, so that loading code is not counted as preprocessing */
    unset(rival);
    WLM_TRY(set(rival));
  }
done:
  return status;
}

const char *wlm_cusparse_name(int way) { return ways[way].name; }

wlm_status wlm_cusparse_create(wlm_device *device, int way, const wlm_csr *csr, int64_t n, const void *b, void *c,
                               wlm_cusparse **out) {
  *out = NULL;
  pthread_once(&once, load);
  if (missing[0]) return wlm_fail(WLM_ERR_UNSUPPORTED, "%s", missing);
  if (!csr->values) return wlm_fail(WLM_ERR_UNSUPPORTED, "cuSPARSE needs values");
  wlm_cuda_scope scope;
  wlm_cusparse *rival = wlm_alloc_zero(1, sizeof *rival);
  if (!rival) return wlm_fail(WLM_ERR_OUT_OF_MEMORY, "cuSPARSE rival");
  rival->device = device;
  rival->way = way;
  rival->csr = *csr;
  rival->n = n;
  wlm_status status = wlm_cuda_enter(device, &scope);
  if (status == WLM_OK) {
    status = set_up(rival, b, c);
    wlm_cuda_leave(&scope);
  }
  if (status != WLM_OK)
    wlm_cusparse_destroy(rival);
  else
    *out = rival;
  return status;
}

void wlm_cusparse_destroy(wlm_cusparse *rival) {
  wlm_cuda_scope scope;
  if (!rival) return;
  if (wlm_cuda_enter(rival->device, &scope) == WLM_OK) {
    unset(rival);
    if (rival->b) cusparse.cusparseDestroyDnMat(rival->b);
    if (rival->c) cusparse.cusparseDestroyDnMat(rival->c);
    if (rival->handle) cusparse.cusparseDestroy(rival->handle);
    wlm_cuda_leave(&scope);
  }
  wlm_free(rival);
}

wlm_status wlm_cusparse_enqueue(void *user, void *stream) {
  wlm_cusparse *rival = user;
  wlm_status status;
  WLM_TRY(CUSPARSE(cusparseSetStream, rival->handle, stream));
  status = CUSPARSE(cusparseSpMM, SPMM_ARGUMENTS, rival->buffer);
done:
  return status;
}

double wlm_cusparse_preprocess_seconds(const wlm_cusparse *rival) { return rival->preprocess_seconds; }

#else /* a build without CUDA headers: no device calls any of this */

const char *wlm_cusparse_name(int way) {
  (void)way;
  return "cusparse";
}

wlm_status wlm_cusparse_create(wlm_device *device, int way, const wlm_csr *csr, int64_t n, const void *b, void *c,
                               wlm_cusparse **rival) {
  (void)device, (void)way, (void)csr, (void)n, (void)b, (void)c;
  *rival = NULL;
  return wlm_fail(WLM_ERR_UNSUPPORTED, "this build has no cuda device");
}

void wlm_cusparse_destroy(wlm_cusparse *rival) { (void)rival; }

wlm_status wlm_cusparse_enqueue(void *rival, void *stream) {
  (void)rival, (void)stream;
  return wlm_fail(WLM_ERR_UNSUPPORTED, "this build has no cuda device");
}

double wlm_cusparse_preprocess_seconds(const wlm_cusparse *rival) {
  (void)rival;
  return 0;
}
#endif
