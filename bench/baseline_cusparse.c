/* cuSPARSE at its best: every CSR algorithm, with and without preprocessing, each with its own descriptor and buffer,
 * because preprocessing stores its results there. SpMV takes B and C of one column as vectors. SDDMM has one algorithm,
 * which is preprocessed; it gets B in its memory layout, marked as transposed. */
#include "bench/baseline_cusparse.h"

#include "bench/cusparse_library.h"

#ifdef WLM_HAVE_CUSPARSE
#include <stdio.h>

#include "core/base/memory.h"
#include "runtime/cuda/device.h"
#include "tuner/timing.h"

enum operation { SPMM, SPMV, SDDMM };
static const struct {
  const char *name;
  enum operation operation;
  int algorithm; /* cusparseSpMMAlg_t or cusparseSpMVAlg_t */
  int preprocess;
} ways[] = {
    {"default_nopre", SPMM, CUSPARSE_SPMM_ALG_DEFAULT, 0},
    {"default", SPMM, CUSPARSE_SPMM_ALG_DEFAULT, 1},
    {"alg1_nopre", SPMM, CUSPARSE_SPMM_CSR_ALG1, 0},
    {"alg1", SPMM, CUSPARSE_SPMM_CSR_ALG1, 1},
    {"alg2_nopre", SPMM, CUSPARSE_SPMM_CSR_ALG2, 0},
    {"alg2", SPMM, CUSPARSE_SPMM_CSR_ALG2, 1},
    {"alg3_nopre", SPMM, CUSPARSE_SPMM_CSR_ALG3, 0},
    {"alg3", SPMM, CUSPARSE_SPMM_CSR_ALG3, 1},
    [WLMI_CUSPARSE_SPMV] = {"spmv_alg1_nopre", SPMV, CUSPARSE_SPMV_CSR_ALG1, 0},
    {"spmv_alg1", SPMV, CUSPARSE_SPMV_CSR_ALG1, 1},
    {"spmv_alg2_nopre", SPMV, CUSPARSE_SPMV_CSR_ALG2, 0},
    {"spmv_alg2", SPMV, CUSPARSE_SPMV_CSR_ALG2, 1},
    [WLMI_CUSPARSE_SDDMM] = {"sddmm", SDDMM, 0, 1},
};

/* C = A * B, or values = dC * B^T where A has entries. */
struct product {
  const wlm_csr *a; /* SDDMM does not read its values */
  int64_t n;
  wlm_type type; /* type of all dense matrices */
  int b_by_columns, dense_by_columns;
  const void *b; /* cols x n */
  void *dense;   /* rows x n: C, or dC, which is only read */
  void *values;  /* of SDDMM: the nnz results */
  int batch;     /* of SpMM; 0 = none */
  /* Elements from one product's to the next one's. entry_stride: of colind and of the values. */
  int64_t entry_stride, b_stride, dense_stride;
};

struct cusparse {
  wlmi_device *device;
  int way;
  struct product product;
  wlm_csr csr; /* the product's */
  cusparseHandle_t handle;
  cusparseSpMatDescr_t sparse;
  cusparseDnMatDescr_t b, dense;
  cusparseDnVecDescr_t x, y; /* of SpMV: B and C */
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

static void unset(struct cusparse *baseline) {
  if (baseline->sparse) wlmi_cusparse_api.cusparseDestroySpMat(baseline->sparse);
  baseline->device->ops->release(baseline->device, baseline->buffer);
  baseline->sparse = NULL;
  baseline->buffer = NULL;
}

/* ---- running ---------------------------------------------------------------------------------------- */

static enum operation operation_of(const struct cusparse *baseline) { return ways[baseline->way].operation; }

static const void *scalar(const struct cusparse *baseline, const struct scalars *value) {
  return baseline->product.type == WLM_F64 ? (const void *)&value->wide : (const void *)&value->narrow;
}

#define SPMM_ARGUMENTS(baseline)                                                                                  \
  (baseline)->handle, CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_NON_TRANSPOSE, scalar(baseline, &one), \
      (baseline)->sparse, (baseline)->b, scalar(baseline, &zero), (baseline)->dense,                              \
      types[(baseline)->product.type].sums, (cusparseSpMMAlg_t)ways[(baseline)->way].algorithm
#define SPMV_ARGUMENTS(baseline)                                                                                   \
  (baseline)->handle, CUSPARSE_OPERATION_NON_TRANSPOSE, scalar(baseline, &one), (baseline)->sparse, (baseline)->x, \
      scalar(baseline, &zero), (baseline)->y, types[(baseline)->product.type].sums,                                \
      (cusparseSpMVAlg_t)ways[(baseline)->way].algorithm
#define SDDMM_ARGUMENTS(baseline)                                                                             \
  (baseline)->handle, CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_TRANSPOSE, scalar(baseline, &one), \
      (baseline)->dense, (baseline)->b, scalar(baseline, &zero), (baseline)->sparse,                          \
      types[(baseline)->product.type].sums, CUSPARSE_SDDMM_ALG_DEFAULT
/* The function of the way's operation whose name ends with `step`, which may be empty. */
#define CALL(baseline, step, last)                                                                     \
  (operation_of(baseline) == SPMM   ? WLM_CUSPARSE(cusparseSpMM##step, SPMM_ARGUMENTS(baseline), last) \
   : operation_of(baseline) == SPMV ? WLM_CUSPARSE(cusparseSpMV##step, SPMV_ARGUMENTS(baseline), last) \
                                    : WLM_CUSPARSE(cusparseSDDMM##step, SDDMM_ARGUMENTS(baseline), last))

static wlm_status buffer_size(struct cusparse *baseline, size_t *size) { return CALL(baseline, _bufferSize, size); }

static wlm_status preprocess(struct cusparse *baseline) { return CALL(baseline, _preprocess, baseline->buffer); }

static wlm_status multiply(struct cusparse *baseline) { return CALL(baseline, , baseline->buffer); }

/* ---- setting up ------------------------------------------------------------------------------------- */

/* Makes the descriptor of the sparse matrix and the buffer, and preprocesses if this way does. */
static wlm_status set(struct cusparse *baseline) {
  const wlm_csr *csr = &baseline->csr;
  wlmi_device *device = baseline->device;
  const int is_sddmm = operation_of(baseline) == SDDMM;
  const wlm_type type = is_sddmm ? baseline->product.type : csr->value_type;
  void *values = is_sddmm ? baseline->product.values : (void *)csr->values;
  size_t size = 0;
  WLM_CHECK(WLM_CUSPARSE(cusparseCreateCsr, &baseline->sparse, csr->rows, csr->cols, csr->nnz, (void *)csr->rowptr,
                         (void *)csr->colind, values,
                         csr->rowptr_type == WLM_I64 ? CUSPARSE_INDEX_64I : CUSPARSE_INDEX_32I,
                         csr->colind_type == WLM_I64 ? CUSPARSE_INDEX_64I : CUSPARSE_INDEX_32I,
                         CUSPARSE_INDEX_BASE_ZERO, types[type].data));
  if (baseline->product.batch)
    WLM_CHECK(WLM_CUSPARSE(cusparseCsrSetStridedBatch, baseline->sparse, baseline->product.batch, 0,
                           baseline->product.entry_stride));
  WLM_CHECK(buffer_size(baseline, &size));
  WLM_CHECK(device->ops->allocate(device, size, &baseline->buffer));
  if (!ways[baseline->way].preprocess) return WLM_OK;
  WLM_CHECK(device->ops->synchronize(device, NULL));
  double start = wlmi_seconds();
  WLM_CHECK(preprocess(baseline));
  WLM_CHECK(device->ops->synchronize(device, NULL));
  baseline->preprocess_seconds = wlmi_seconds() - start;
  return WLM_OK;
}

static wlm_status describe(cusparseDnMatDescr_t *made, int64_t rows, int64_t n, const void *memory, cudaDataType type,
                           int by_columns) {
  return WLM_CUSPARSE(cusparseCreateDnMat, made, rows, n, by_columns ? rows : n, (void *)memory, type,
                      by_columns ? CUSPARSE_ORDER_COL : CUSPARSE_ORDER_ROW);
}

static wlm_status set_up(struct cusparse *baseline) {
  const struct product *p = &baseline->product;
  const wlm_csr *csr = &baseline->csr;
  const cudaDataType type = types[p->type].data;
  WLM_CHECK(WLM_CUSPARSE(cusparseCreate, &baseline->handle));
  if (operation_of(baseline) == SPMV) {
    WLM_CHECK(WLM_CUSPARSE(cusparseCreateDnVec, &baseline->x, csr->cols, (void *)p->b, type));
    WLM_CHECK(WLM_CUSPARSE(cusparseCreateDnVec, &baseline->y, csr->rows, p->dense, type));
  }
  WLM_CHECK(describe(&baseline->b, csr->cols, p->n, p->b, type, p->b_by_columns));
  WLM_CHECK(describe(&baseline->dense, csr->rows, p->n, p->dense, type, p->dense_by_columns));
  if (p->batch) {
    WLM_CHECK(WLM_CUSPARSE(cusparseDnMatSetStridedBatch, baseline->b, p->batch, p->b_stride));
    WLM_CHECK(WLM_CUSPARSE(cusparseDnMatSetStridedBatch, baseline->dense, p->batch, p->dense_stride));
  }
  WLM_CHECK(set(baseline));
  if (ways[baseline->way].preprocess) { /* a second time, so that the time of loading code is not counted */
    unset(baseline);
    WLM_CHECK(set(baseline));
  }
  return WLM_OK;
}

static void destroy(void *user) {
  struct cusparse *baseline = user;
  wlmi_cuda_scope scope;
  if (wlmi_cuda_enter(baseline->device, &scope) == WLM_OK) {
    unset(baseline);
    if (baseline->b) wlmi_cusparse_api.cusparseDestroyDnMat(baseline->b);
    if (baseline->dense) wlmi_cusparse_api.cusparseDestroyDnMat(baseline->dense);
    if (baseline->x) wlmi_cusparse_api.cusparseDestroyDnVec(baseline->x);
    if (baseline->y) wlmi_cusparse_api.cusparseDestroyDnVec(baseline->y);
    if (baseline->handle) wlmi_cusparse_api.cusparseDestroy(baseline->handle);
    wlmi_cuda_leave(&scope);
  }
  wlmi_free(baseline);
}

static wlm_status create(wlmi_device *device, int way, const struct product *product, struct cusparse **out) {
  wlmi_cuda_scope scope;
  wlm_status status;
  WLM_CHECK(wlmi_cusparse_open());
  if (!product->a->values && way != WLMI_CUSPARSE_SDDMM) return wlmi_fail(WLM_ERR_UNSUPPORTED, "cuSPARSE needs values");
  struct cusparse *baseline = wlmi_alloc_zero(1, sizeof *baseline);
  if (!baseline) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "cuSPARSE baseline");
  *baseline = (struct cusparse){.device = device, .way = way, .product = *product, .csr = *product->a};
  status = wlmi_cuda_enter(device, &scope);
  if (status == WLM_OK) {
    status = set_up(baseline);
    wlmi_cuda_leave(&scope);
  }
  if (status == WLM_OK)
    *out = baseline;
  else
    destroy(baseline);
  return status;
}

static wlm_status enqueue(void *user, void *stream) {
  struct cusparse *baseline = user;
  WLM_CUDA_SCOPE(baseline->device);
  WLM_CHECK(WLM_CUSPARSE(cusparseSetStream, baseline->handle, stream));
  return multiply(baseline);
}

static void enter(wlmi_device *device, int way, const struct product *product, wlmi_method *method,
                  double *preprocess_seconds) {
  struct cusparse *baseline = NULL;
  *method = (wlmi_method){.enqueue = enqueue, .destroy = destroy};
  snprintf(method->name, sizeof method->name, "%s", ways[way].name);
  if (create(device, way, product, &baseline) != WLM_OK) wlmi_method_fail(method, wlm_error_detail());
  method->user = baseline;
  if (preprocess_seconds) *preprocess_seconds = baseline ? baseline->preprocess_seconds : 0;
}

void wlmi_method_cusparse_batch(wlmi_device *device, const wlmi_cusparse_batch *batch, int way, wlmi_method *method) {
  const wlm_csr *a = &batch->a;
  const struct product product = {.a = a,
                                  .n = batch->n,
                                  .type = WLM_F32,
                                  .b = batch->b,
                                  .dense = batch->c,
                                  .batch = batch->count,
                                  .entry_stride = a->nnz,
                                  .b_stride = a->cols * batch->n,
                                  .dense_stride = a->rows * batch->n};
  enter(device, way, &product, method, NULL);
}

void wlmi_method_cusparse(const wlmi_operands *operands, int way, wlmi_method *method, double *preprocess_seconds) {
  const int is_sddmm = way == WLMI_CUSPARSE_SDDMM;
  const struct product product = {
      .a = wlmi_matrix_csr(operands->matrix),
      .n = operands->spec.problem.n,
      .type = operands->spec.problem.dense_type,
      .b_by_columns = operands->spec.problem.b_order == WLM_COLUMN_MAJOR,
      .dense_by_columns = operands->spec.problem.c_order == WLM_COLUMN_MAJOR,
      .b = wlmi_operands_find(operands, "b")->buffer.memory,
      .dense = is_sddmm ? wlmi_operands_find(operands, "x")->buffer.memory : operands->output[0].buffer.memory,
      .values = is_sddmm ? operands->output[0].buffer.memory : NULL};
  enter(operands->device, way, &product, method, preprocess_seconds);
}

#else /* a build without the header of cuSPARSE: no device calls any of this */

static void enter_none(wlmi_method *method) {
  *method = (wlmi_method){0};
  wlmi_cusparse_open();
  wlmi_method_fail(method, wlm_error_detail());
}

void wlmi_method_cusparse(const wlmi_operands *operands, int way, wlmi_method *method, double *preprocess_seconds) {
  (void)operands, (void)way;
  enter_none(method);
  if (preprocess_seconds) *preprocess_seconds = 0;
}

void wlmi_method_cusparse_batch(wlmi_device *device, const wlmi_cusparse_batch *batch, int way, wlmi_method *method) {
  (void)device, (void)batch, (void)way;
  enter_none(method);
}
#endif

int wlmi_cusparse_ways(int64_t n) { return n == 1 ? WLMI_CUSPARSE_WAYS : WLMI_CUSPARSE_SPMV; }
