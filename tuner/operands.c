#include "tuner/operands.h"

#include "common/memory.h"
#include "common/sampling.h"

/* Uniform in [-1, 1): multiples of 2^-23, exact in float. */
static float uniform(uint64_t seed, int64_t i) {
  return (float)(int32_t)(wlm_sample_hash(seed, i) >> 40) * 0x1p-23f - 1.0f;
}

static void fill_uniform(float *to, int64_t count, uint64_t seed) {
#pragma omp parallel for
  for (int64_t i = 0; i < count; i++) to[i] = uniform(seed, i);
}

/* Grows only: the contents are lost. */
static wlm_status buffer_reserve(wlm_device *device, wlm_buffer *buffer, size_t size) {
  if (size <= buffer->size) return WLM_OK;
  device->ops->release(device, buffer->memory);
  *buffer = (wlm_buffer){0};
  wlm_status status = device->ops->allocate(device, size, &buffer->memory);
  if (status == WLM_OK) buffer->size = size;
  return status;
}

static wlm_status read_back(wlm_device *device, const void *from, int64_t count, size_t size, const char *what,
                            void **to) {
  wlm_status status = wlm_alloc_array(count, size, what, to);
  if (status != WLM_OK || !count) return status;
  return device->ops->copy_out(device, *to, from, (size_t)count * size);
}

static wlm_status read_back_rowptr(wlm_device *device, const wlm_csr *csr, int64_t **rowptr) {
  if (csr->rowptr_type == WLM_I64)
    return read_back(device, csr->rowptr, csr->rows + 1, sizeof **rowptr, "rowptr", (void **)rowptr);
  int32_t *narrow = NULL;
  wlm_status status;
  WLM_TRY(read_back(device, csr->rowptr, csr->rows + 1, sizeof *narrow, "rowptr", (void **)&narrow));
  WLM_TRY(wlm_alloc_array(csr->rows + 1, sizeof **rowptr, "rowptr", (void **)rowptr));
  for (int64_t row = 0; row <= csr->rows; row++) (*rowptr)[row] = narrow[row];
done:
  wlm_free(narrow);
  return status;
}

/* The spec was checked: colind is i32, values are f32 or not there. */
static wlm_status read_back_matrix(wlm_device *device, const wlm_csr *csr, wlm_csr_host *a) {
  wlm_status status;
  *a = (wlm_csr_host){.rows = csr->rows, .cols = csr->cols, .nnz = csr->nnz};
  WLM_TRY(read_back_rowptr(device, csr, &a->rowptr));
  WLM_TRY(read_back(device, csr->colind, csr->nnz, sizeof *a->colind, "colind", (void **)&a->colind));
  if (csr->values) WLM_TRY(read_back(device, csr->values, csr->nnz, sizeof *a->values, "values", (void **)&a->values));
done:
  return status;
}

/* `count` rows of `ld` seeded floats on the host and space for them on the device. */
static wlm_status dense(wlm_device *device, int64_t rows, int64_t ld, const char *what, float **host,
                        wlm_buffer *buffer) {
  int64_t count;
  if (__builtin_mul_overflow(rows, ld, &count) || count > INT64_MAX / (int64_t)sizeof(float))
    return wlm_fail(WLM_ERR_OVERFLOW, "%s of %lld x %lld floats", what, (long long)rows, (long long)ld);
  if (host) {
    wlm_status status = wlm_alloc_array(count, sizeof **host, what, (void **)host);
    if (status != WLM_OK) return status;
  }
  wlm_status status = buffer_reserve(device, buffer, count ? (size_t)count * sizeof(float) : 1);
  return status == WLM_OK ? status
                          : wlm_fail_in(status, "%s of %lld x %lld floats", what, (long long)rows, (long long)ld);
}

static int64_t edges_used(const wlm_csr_host *a, const wlm_problem *problem) {
  int64_t edges = 0;
  for (int64_t row = 0; row < a->rows; row++)
    edges += wlm_sample_kept(problem->sample, a->rowptr[row + 1] - a->rowptr[row], problem->sample_width);
  return edges;
}

wlm_status wlm_operands_create(wlm_context *context, const wlm_matrix *matrix, const wlm_problem *problem,
                               uint64_t seed, wlm_operands *operands) {
  wlm_status status;
  wlm_device *device = wlm_context_device(context);
  const wlm_csr *csr = wlm_matrix_csr(matrix);
  *operands = (wlm_operands){.device = device, .matrix = matrix};
  WLM_TRY(wlm_context_spec(context, matrix, problem, &operands->spec));
  const wlm_problem *p = &operands->spec.problem;
  WLM_TRY(read_back_matrix(device, csr, &operands->a));
  operands->edges = edges_used(&operands->a, p);
  if (p->bias)
    WLM_TRY(read_back(device, p->bias, p->n, sizeof *operands->bias_host, "bias", (void **)&operands->bias_host));
  WLM_TRY(dense(device, csr->cols, p->ldb, "B", &operands->b_host, &operands->b));
  WLM_TRY(dense(device, csr->rows, p->ldc, "C", p->beta != 0 ? &operands->c_old : NULL, &operands->c));
  fill_uniform(operands->b_host, csr->cols * p->ldb, seed);
  if (operands->c_old) fill_uniform(operands->c_old, csr->rows * p->ldc, ~seed);
  WLM_TRY(
      device->ops->copy_in(device, operands->b.memory, operands->b_host, (size_t)(csr->cols * p->ldb) * sizeof(float)));
done:
  if (status != WLM_OK) wlm_operands_release(operands);
  return status;
}

void wlm_operands_release(wlm_operands *operands) {
  wlm_device *device = operands->device;
  if (!device) return;
  device->ops->release(device, operands->b.memory);
  device->ops->release(device, operands->c.memory);
  device->ops->release(device, operands->workspace.memory);
  device->ops->release(device, operands->prepared.memory);
  wlm_csr_host_release(&operands->a);
  wlm_free(operands->b_host);
  wlm_free(operands->c_old);
  wlm_free(operands->bias_host);
  *operands = (wlm_operands){0};
}

wlm_status wlm_operands_prepare(const wlm_operands *operands, wlm_plan *plan, void *stream) {
  return wlm_plan_prepare(plan, operands->prepared.memory, stream);
}

wlm_status wlm_operands_bind(wlm_operands *operands, wlm_plan *plan) {
  wlm_status status;
  wlm_device *device = operands->device;
  const size_t prepared = wlm_plan_prepared_size(plan);
  WLM_TRY(buffer_reserve(device, &operands->workspace, wlm_plan_workspace_size(plan)));
  WLM_TRY(buffer_reserve(device, &operands->prepared, prepared));
  if (!prepared) goto done;
  WLM_TRY(device->ops->fill(device, operands->prepared.memory, 0xFF, prepared));
  WLM_TRY(device->ops->synchronize(device, NULL));
  status = wlm_operands_prepare(operands, plan, NULL);
  if (status == WLM_OK) status = device->ops->synchronize(device, NULL);
  if (status != WLM_OK) wlm_fail_in(status, "preparing");
done:
  return status;
}

wlm_status wlm_operands_poison(wlm_operands *operands) {
  wlm_status status;
  wlm_device *device = operands->device;
  const wlm_buffer *c = &operands->c, *workspace = &operands->workspace;
  size_t used = (size_t)(operands->a.rows * operands->spec.problem.ldc) * sizeof(float);
  if (operands->c_old)
    WLM_TRY(device->ops->copy_in(device, c->memory, operands->c_old, used));
  else
    WLM_TRY(device->ops->fill(device, c->memory, 0xFF, c->size));
  if (workspace->size) WLM_TRY(device->ops->fill(device, workspace->memory, 0xFF, workspace->size));
  status = device->ops->synchronize(device, NULL);
done:
  return status;
}

wlm_status wlm_operands_execute(const wlm_operands *operands, const wlm_plan *plan, void *stream) {
  return wlm_plan_execute(plan, operands->b.memory, operands->c.memory, operands->workspace.memory, stream);
}
