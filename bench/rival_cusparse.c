/* The rival at its best: every CSR algorithm, with and without preprocessing, each with a descriptor and a buffer of
 * its own, since preprocessing leaves what it learned in them. SDDMM has one algorithm, which is preprocessed. B is
 * given to it as it lies in memory, to be read transposed. */
#include "bench/rival_cusparse.h"

#ifdef WLM_HAVE_CUDA
#include <time.h>

#include "bench/cusparse_library.h"
#include "common/memory.h"
#include "runtime/cuda/device.h"

static const struct {
  const char *name;
  cusparseSpMMAlg_t algorithm;
  int preprocess;
} ways[] = {
    {"default_nopre", CUSPARSE_SPMM_ALG_DEFAULT, 0}, {"default", CUSPARSE_SPMM_ALG_DEFAULT, 1},
    {"alg1_nopre", CUSPARSE_SPMM_CSR_ALG1, 0},       {"alg1", CUSPARSE_SPMM_CSR_ALG1, 1},
    {"alg2_nopre", CUSPARSE_SPMM_CSR_ALG2, 0},       {"alg2", CUSPARSE_SPMM_CSR_ALG2, 1},
    {"alg3_nopre", CUSPARSE_SPMM_CSR_ALG3, 0},       {"alg3", CUSPARSE_SPMM_CSR_ALG3, 1},
    [WLM_CUSPARSE_SDDMM] = {"sddmm", 0, 1},
};

struct wlmi_cusparse {
  wlmi_device *device;
  int way;
  wlmi_cusparse_product product;
  wlm_csr csr; /* the product's */
  cusparseHandle_t handle;
  cusparseSpMatDescr_t sparse;
  cusparseDnMatDescr_t b, dense;
  void *buffer;
  double preprocess_seconds;
};

static const struct {
  cudaDataType data, sums;
} types[] = {[WLM_F32] = {CUDA_R_32F, CUDA_R_32F},
             [WLM_F16] = {CUDA_R_16F, CUDA_R_32F},
             [WLM_BF16] = {CUDA_R_16BF, CUDA_R_32F},
             [WLM_F64] = {CUDA_R_64F, CUDA_R_64F}};

/* alpha and beta, of the type of the sums */
static const struct scalars {
  float narrow;
  double wide;
} one = {1, 1}, zero = {0, 0};

static void unset(wlmi_cusparse *rival) {
  if (rival->sparse) wlmi_cusparse_api.cusparseDestroySpMat(rival->sparse);
  rival->device->ops->release(rival->device, rival->buffer);
  rival->sparse = NULL;
  rival->buffer = NULL;
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* ---- the calls of a way ---------------------------------------------------------------------------- */

static int is_sddmm(const wlmi_cusparse *rival) { return rival->way == WLM_CUSPARSE_SDDMM; }

static const void *scalar(const wlmi_cusparse *rival, const struct scalars *value) {
  return rival->product.type == WLM_F64 ? (const void *)&value->wide : (const void *)&value->narrow;
}

#define SPMM_ARGUMENTS(rival)                                                                               \
  (rival)->handle, CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_NON_TRANSPOSE, scalar(rival, &one), \
      (rival)->sparse, (rival)->b, scalar(rival, &zero), (rival)->dense, types[(rival)->product.type].sums, \
      ways[(rival)->way].algorithm
#define SDDMM_ARGUMENTS(rival)                                                                              \
  (rival)->handle, CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_TRANSPOSE, scalar(rival, &one),     \
      (rival)->dense, (rival)->b, scalar(rival, &zero), (rival)->sparse, types[(rival)->product.type].sums, \
      CUSPARSE_SDDMM_ALG_DEFAULT

static wlm_status buffer_size(wlmi_cusparse *rival, size_t *size) {
  return is_sddmm(rival) ? WLM_CUSPARSE(cusparseSDDMM_bufferSize, SDDMM_ARGUMENTS(rival), size)
                         : WLM_CUSPARSE(cusparseSpMM_bufferSize, SPMM_ARGUMENTS(rival), size);
}

static wlm_status preprocess(wlmi_cusparse *rival) {
  return is_sddmm(rival) ? WLM_CUSPARSE(cusparseSDDMM_preprocess, SDDMM_ARGUMENTS(rival), rival->buffer)
                         : WLM_CUSPARSE(cusparseSpMM_preprocess, SPMM_ARGUMENTS(rival), rival->buffer);
}

static wlm_status multiply(wlmi_cusparse *rival) {
  return is_sddmm(rival) ? WLM_CUSPARSE(cusparseSDDMM, SDDMM_ARGUMENTS(rival), rival->buffer)
                         : WLM_CUSPARSE(cusparseSpMM, SPMM_ARGUMENTS(rival), rival->buffer);
}

/* ---- setting up ------------------------------------------------------------------------------------- */

/* Descriptor of the sparse matrix and the buffer, preprocessed where this way does so. */
static wlm_status set(wlmi_cusparse *rival) {
  const wlm_csr *csr = &rival->csr;
  wlmi_device *device = rival->device;
  const wlm_type type = is_sddmm(rival) ? rival->product.type : csr->value_type;
  void *values = is_sddmm(rival) ? rival->product.values : (void *)csr->values;
  size_t size = 0;
  wlm_status status;
  WLM_TRY(WLM_CUSPARSE(cusparseCreateCsr, &rival->sparse, csr->rows, csr->cols, csr->nnz, (void *)csr->rowptr,
                       (void *)csr->colind, values,
                       csr->rowptr_type == WLM_I64 ? CUSPARSE_INDEX_64I : CUSPARSE_INDEX_32I,
                       csr->colind_type == WLM_I64 ? CUSPARSE_INDEX_64I : CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
                       types[type].data));
  WLM_TRY(buffer_size(rival, &size));
  WLM_TRY(device->ops->allocate(device, size, &rival->buffer));
  if (!ways[rival->way].preprocess) goto done;
  WLM_TRY(device->ops->synchronize(device, NULL));
  double start = now();
  WLM_TRY(preprocess(rival));
  WLM_TRY(device->ops->synchronize(device, NULL));
  rival->preprocess_seconds = now() - start;
done:
  return status;
}

static wlm_status set_up(wlmi_cusparse *rival) {
  const wlmi_cusparse_product *p = &rival->product;
  const wlm_csr *csr = &rival->csr;
  const cudaDataType type = types[p->type].data;
  wlm_status status;
  WLM_TRY(WLM_CUSPARSE(cusparseCreate, &rival->handle));
  WLM_TRY(WLM_CUSPARSE(cusparseCreateDnMat, &rival->b, csr->cols, p->n, p->n, (void *)p->b, type, CUSPARSE_ORDER_ROW));
  WLM_TRY(WLM_CUSPARSE(cusparseCreateDnMat, &rival->dense, csr->rows, p->n, p->n, p->dense, type, CUSPARSE_ORDER_ROW));
  WLM_TRY(set(rival));
  if (ways[rival->way].preprocess) { /* once more, so that loading code is not counted as preprocessing */
    unset(rival);
    WLM_TRY(set(rival));
  }
done:
  return status;
}

const char *wlmi_cusparse_name(int way) { return ways[way].name; }

wlm_status wlmi_cusparse_create(wlmi_device *device, int way, const wlmi_cusparse_product *product,
                                wlmi_cusparse **out) {
  *out = NULL;
  wlm_status status = wlmi_cusparse_open();
  if (status != WLM_OK) return status;
  if (!product->a->values && way != WLM_CUSPARSE_SDDMM) return wlmi_fail(WLM_ERR_UNSUPPORTED, "cuSPARSE needs values");
  wlmi_cuda_scope scope;
  wlmi_cusparse *rival = wlmi_alloc_zero(1, sizeof *rival);
  if (!rival) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "cuSPARSE rival");
  rival->device = device;
  rival->way = way;
  rival->product = *product;
  rival->csr = *product->a;
  status = wlmi_cuda_enter(device, &scope);
  if (status == WLM_OK) {
    status = set_up(rival);
    wlmi_cuda_leave(&scope);
  }
  if (status != WLM_OK)
    wlmi_cusparse_destroy(rival);
  else
    *out = rival;
  return status;
}

void wlmi_cusparse_destroy(wlmi_cusparse *rival) {
  wlmi_cuda_scope scope;
  if (!rival) return;
  if (wlmi_cuda_enter(rival->device, &scope) == WLM_OK) {
    unset(rival);
    if (rival->b) wlmi_cusparse_api.cusparseDestroyDnMat(rival->b);
    if (rival->dense) wlmi_cusparse_api.cusparseDestroyDnMat(rival->dense);
    if (rival->handle) wlmi_cusparse_api.cusparseDestroy(rival->handle);
    wlmi_cuda_leave(&scope);
  }
  wlmi_free(rival);
}

wlm_status wlmi_cusparse_enqueue(void *user, void *stream) {
  wlmi_cusparse *rival = user;
  wlm_status status;
  WLM_TRY(WLM_CUSPARSE(cusparseSetStream, rival->handle, stream));
  status = multiply(rival);
done:
  return status;
}

double wlmi_cusparse_preprocess_seconds(const wlmi_cusparse *rival) { return rival->preprocess_seconds; }

#else /* a build without CUDA headers: no device calls any of this */

const char *wlmi_cusparse_name(int way) {
  (void)way;
  return "cusparse";
}

wlm_status wlmi_cusparse_create(wlmi_device *device, int way, const wlmi_cusparse_product *product,
                                wlmi_cusparse **rival) {
  (void)device, (void)way, (void)product;
  *rival = NULL;
  return wlmi_fail(WLM_ERR_UNSUPPORTED, "this build has no cuda device");
}

void wlmi_cusparse_destroy(wlmi_cusparse *rival) { (void)rival; }

wlm_status wlmi_cusparse_enqueue(void *rival, void *stream) {
  (void)rival, (void)stream;
  return wlmi_fail(WLM_ERR_UNSUPPORTED, "this build has no cuda device");
}

double wlmi_cusparse_preprocess_seconds(const wlmi_cusparse *rival) {
  (void)rival;
  return 0;
}
#endif
