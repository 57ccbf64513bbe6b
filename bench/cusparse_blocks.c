/* cuSPARSE's generic API for a matrix that is used once. */
#include "bench/blocks.h"
#include "bench/cusparse_library.h"

static const char *const names[WLMI_CUSPARSE_ALGORITHMS] = {"default", "alg1", "alg2", "alg3"};

#ifdef WLM_HAVE_CUSPARSE
#include "core/base/memory.h"

struct cusparse_blocks {
  wlmi_device *device;
  cusparseHandle_t handle; /* bound to the stream */
  cusparseSpMMAlg_t algorithm;
  void *buffer;
  size_t buffer_size;
};

static const cusparseSpMMAlg_t algorithms[WLMI_CUSPARSE_ALGORITHMS] = {
    CUSPARSE_SPMM_ALG_DEFAULT, CUSPARSE_SPMM_CSR_ALG1, CUSPARSE_SPMM_CSR_ALG2, CUSPARSE_SPMM_CSR_ALG3};

/* Releasing the old buffer waits for its users; in timed runs the buffer is large enough. */
static wlm_status reserve(struct cusparse_blocks *s, size_t size) {
  if (size <= s->buffer_size) return WLM_OK;
  s->device->ops->release(s->device, s->buffer);
  s->buffer = NULL;
  s->buffer_size = 0;
  wlm_status status = s->device->ops->allocate(s->device, size, &s->buffer);
  if (status == WLM_OK) s->buffer_size = size;
  return status;
}

static wlm_status multiply(void *user, const wlmi_block_product *p) {
  static const float one = 1, zero = 0;
  struct cusparse_blocks *s = user;
  const wlm_csr *a = p->a;
  const int64_t b_rows = p->transpose ? a->rows : a->cols, c_rows = p->transpose ? a->cols : a->rows;
  const cusparseOperation_t operation = p->transpose ? CUSPARSE_OPERATION_TRANSPOSE : CUSPARSE_OPERATION_NON_TRANSPOSE;
  cusparseSpMatDescr_t sparse = NULL;
  cusparseDnMatDescr_t b = NULL, c = NULL;
  size_t size = 0;
  wlm_status status;
  WLM_TRY(WLM_CUSPARSE(cusparseCreateCsr, &sparse, a->rows, a->cols, a->nnz, (void *)a->rowptr, (void *)a->colind,
                       (void *)a->values, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
                       CUDA_R_32F));
  WLM_TRY(WLM_CUSPARSE(cusparseCreateDnMat, &b, b_rows, p->n, p->n, (void *)p->b, CUDA_R_32F, CUSPARSE_ORDER_ROW));
  WLM_TRY(WLM_CUSPARSE(cusparseCreateDnMat, &c, c_rows, p->n, p->n, p->c, CUDA_R_32F, CUSPARSE_ORDER_ROW));
  WLM_TRY(WLM_CUSPARSE(cusparseSpMM_bufferSize, s->handle, operation, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, sparse, b,
                       &zero, c, CUDA_R_32F, s->algorithm, &size));
  WLM_TRY(reserve(s, size));
  status = WLM_CUSPARSE(cusparseSpMM, s->handle, operation, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, sparse, b, &zero, c,
                        CUDA_R_32F, s->algorithm, s->buffer);
done:
  if (sparse) wlmi_cusparse_api.cusparseDestroySpMat(sparse);
  if (b) wlmi_cusparse_api.cusparseDestroyDnMat(b);
  if (c) wlmi_cusparse_api.cusparseDestroyDnMat(c);
  return status;
}

static void destroy(void *user) {
  struct cusparse_blocks *s = user;
  if (s->handle) wlmi_cusparse_api.cusparseDestroy(s->handle);
  s->device->ops->release(s->device, s->buffer);
  wlmi_free(s);
}

wlm_status wlmi_block_cusparse(const wlmi_bench_stream *stream, int algorithm, wlmi_block_method *method) {
  wlm_status status;
  *method = (wlmi_block_method){.name = names[algorithm], .multiply = multiply};
  struct cusparse_blocks *s = wlmi_alloc_zero(1, sizeof *s);
  if (!s) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "cuSPARSE");
  *s = (struct cusparse_blocks){.device = stream->device, .algorithm = algorithms[algorithm]};
  WLM_TRY(wlmi_cusparse_open());
  WLM_TRY(WLM_CUSPARSE(cusparseCreate, &s->handle));
  WLM_TRY(WLM_CUSPARSE(cusparseSetStream, s->handle, stream->handle));
  method->user = s;
  method->destroy = destroy;
  return WLM_OK;
done:
  destroy(s);
  return status;
}

#else /* a build without the header of cuSPARSE: no device calls this */

wlm_status wlmi_block_cusparse(const wlmi_bench_stream *stream, int algorithm, wlmi_block_method *method) {
  (void)stream;
  *method = (wlmi_block_method){.name = names[algorithm]};
  return wlmi_cusparse_open();
}
#endif
