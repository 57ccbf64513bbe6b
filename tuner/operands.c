#include "tuner/operands.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/csr/presample.h"
#include "core/problem/element.h"
#include "core/problem/sampling.h"
#include "core/problem/structs.h"
#include "runtime/dispatch/plan.h"
#include "tuner/attention_operands.h"
#include "tuner/message_operands.h"

static wlm_status read_back(wlmi_device *device, const void *from, int64_t count, size_t size, const char *what,
                            void **to) {
  wlm_status status = wlmi_alloc_array(count, size, what, to);
  if (status != WLM_OK || !count) return status;
  return device->ops->copy_out(device, *to, from, (size_t)count * size);
}

static wlm_status read_back_rowptr(wlmi_device *device, const wlm_csr *csr, int64_t **rowptr) {
  if (csr->rowptr_type == WLM_I64)
    return read_back(device, csr->rowptr, csr->rows + 1, sizeof **rowptr, "rowptr", (void **)rowptr);
  int32_t *narrow = NULL;
  wlm_status status;
  WLM_TRY(read_back(device, csr->rowptr, csr->rows + 1, sizeof *narrow, "rowptr", (void **)&narrow));
  WLM_TRY(wlmi_alloc_array(csr->rows + 1, sizeof **rowptr, "rowptr", (void **)rowptr));
  for (int64_t row = 0; row <= csr->rows; row++) (*rowptr)[row] = narrow[row];
done:
  wlmi_free(narrow);
  return status;
}

/* Reads back colind as int32_t, the type of the reference. */
static wlm_status read_back_colind(wlmi_device *device, const wlm_csr *csr, int32_t **colind) {
  if (csr->colind_type == WLM_I32)
    return read_back(device, csr->colind, csr->nnz, sizeof **colind, "colind", (void **)colind);
  int64_t *wide = NULL;
  wlm_status status;
  if (csr->cols > (int64_t)INT32_MAX + 1)
    return wlmi_fail(WLM_ERR_OVERFLOW, "a matrix of %lld columns cannot be checked: at most 2^31 can",
                     (long long)csr->cols);
  WLM_TRY(read_back(device, csr->colind, csr->nnz, sizeof *wide, "colind", (void **)&wide));
  WLM_TRY(wlmi_alloc_array(csr->nnz, sizeof **colind, "colind", (void **)colind));
  for (int64_t p = 0; p < csr->nnz; p++) (*colind)[p] = (int32_t)wide[p];
done:
  wlmi_free(wide);
  return status;
}

/* Reads back the values: f64 as doubles, all other types as floats. */
static wlm_status read_back_values(wlmi_device *device, const wlm_csr *csr, int64_t heads, wlmi_csr_host *a) {
  const size_t size = wlmi_type_size(csr->value_type);
  int64_t count;
  void *narrow = NULL;
  wlm_status status;
  if (__builtin_mul_overflow(csr->nnz, heads, &count))
    return wlmi_fail(WLM_ERR_OVERFLOW, "values of %lld edges and %lld heads", (long long)csr->nnz, (long long)heads);
  if (csr->value_type == WLM_F64) return read_back(device, csr->values, count, size, "values", (void **)&a->wide);
  if (csr->value_type == WLM_F32) return read_back(device, csr->values, count, size, "values", (void **)&a->values);
  WLM_TRY(read_back(device, csr->values, count, size, "values", &narrow));
  WLM_TRY(wlmi_alloc_array(count, sizeof *a->values, "values", (void **)&a->values));
  for (int64_t p = 0; p < count; p++) a->values[p] = (float)wlmi_element_get(csr->value_type, narrow, p);
done:
  wlmi_free(narrow);
  return status;
}

static wlm_status read_back_matrix(wlmi_device *device, const wlm_csr *csr, int64_t heads, wlmi_csr_host *a) {
  wlm_status status;
  *a = (wlmi_csr_host){.rows = csr->rows, .cols = csr->cols, .nnz = csr->nnz};
  WLM_TRY(read_back_rowptr(device, csr, &a->rowptr));
  WLM_TRY(read_back_colind(device, csr, &a->colind));
  if (csr->values) WLM_TRY(read_back_values(device, csr, heads, a));
done:
  return status;
}

static wlm_status read_back_order(wlmi_device *device, const wlmi_matrix_view *view, int64_t **order) {
  const wlm_csr *csr = &view->csr;
  const size_t offset = wlmi_index_size(csr->rowptr_type);
  void *read = NULL;
  wlm_status status = WLM_OK;
  if (!view->order) return status;
  WLM_TRY(read_back(device, view->order, csr->nnz, offset, "order of the transpose", &read));
  WLM_TRY(wlmi_alloc_array(csr->nnz, sizeof **order, "order of the transpose", (void **)order));
  for (int64_t q = 0; q < csr->nnz; q++)
    (*order)[q] = offset == sizeof(int64_t) ? ((const int64_t *)read)[q] : ((const int32_t *)read)[q];
done:
  wlmi_free(read);
  return status;
}

/* Moves the values, which are read back in A's order, to the order of the transpose. */
static wlm_status take_order(const int64_t *order, int64_t heads, wlmi_csr_host *a) {
  const char *from = a->wide ? (const char *)a->wide : (const char *)a->values;
  const size_t size = (size_t)heads * (a->wide ? sizeof *a->wide : sizeof *a->values); /* of an edge */
  char *values = NULL;
  if (!order || !from) return WLM_OK;
  wlm_status status = wlmi_alloc_array(a->nnz, size, "values", (void **)&values);
  if (status != WLM_OK) return status;
  for (int64_t q = 0; q < a->nnz; q++) memcpy(values + (size_t)q * size, from + (size_t)order[q] * size, size);
  memcpy(a->wide ? (void *)a->wide : (void *)a->values, values, (size_t)a->nnz * size);
  wlmi_free(values);
  return WLM_OK;
}

/* The shares of the edges of A^T in the sample of A's rows. */
static wlm_status make_shares(wlmi_device *device, const wlm_csr *csr, const wlm_problem *problem, uint64_t seed,
                              const int64_t *order, wlmi_csr_host *a) {
  wlmi_csr_host sampled = {.rows = csr->rows, .nnz = csr->nnz};
  wlmi_edge_share *shares = NULL;
  wlm_status status = WLM_OK;
  if (!order || problem->sampling.sample == WLM_SAMPLE_NONE) return status;
  WLM_TRY(read_back_rowptr(device, csr, &sampled.rowptr));
  WLM_TRY(wlmi_sample_shares(&sampled, problem, seed, &shares));
  WLM_TRY(wlmi_alloc_array(a->nnz, sizeof *a->shares, "shares of edges", (void **)&a->shares));
  for (int64_t q = 0; q < a->nnz; q++) a->shares[q] = shares[order[q]];
done:
  wlmi_csr_host_release(&sampled);
  wlmi_free(shares);
  return status;
}

int64_t wlmi_edges_of_row(const wlmi_csr_host *a, const wlm_problem *problem, int64_t row) {
  const int64_t degree = a->rowptr[row + 1] - a->rowptr[row];
  int64_t edges = 0;
  if (!a->shares) return wlmi_sample_kept(problem->sampling.sample, degree, problem->sampling.width);
  for (int64_t p = a->rowptr[row]; p < a->rowptr[row + 1]; p++) edges += a->shares[p].times;
  return edges;
}

static int64_t edges_used(const wlmi_csr_host *a, const wlm_problem *problem) {
  int64_t edges = 0;
  for (int64_t row = 0; row < a->rows; row++) edges += wlmi_edges_of_row(a, problem, row);
  return edges;
}

/* Copies the caller's args except memory, and fills in leading dimensions. */
static wlm_status read_args(const wlm_execute_args *args, int64_t n, wlm_execute_args *call) {
  static const wlm_execute_args defaults = WLM_EXECUTE_ARGS_INIT;
  wlm_execute_args given = defaults;
  wlm_status status = args ? wlmi_struct_read(&wlmi_struct_execute_args, args, &given) : WLM_OK;
  if (status == WLM_OK) status = wlmi_check_factors(&given);
  if (status != WLM_OK) return status;
  *call = defaults;
  call->alpha = given.alpha;
  call->beta = given.beta;
  call->seed = given.seed;
  call->stream = given.stream;
  call->ldb = given.ldb ? given.ldb : n;
  call->ldc = given.ldc ? given.ldc : n;
  if (!isfinite(call->alpha) || !isfinite(call->beta))
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_execute_args.%s must be finite",
                     isfinite(call->alpha) ? "beta" : "alpha");
  if (call->ldb >= n && call->ldc >= n) return WLM_OK;
  return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_execute_args.%s is %lld, less than n = %lld",
                   call->ldb < n ? "ldb" : "ldc", (long long)(call->ldb < n ? call->ldb : call->ldc), (long long)n);
}

/* The same, filled with random numbers on both. */
static wlm_status random_dense(wlmi_device *device, wlm_type type, int64_t rows, int64_t ld, const char *what,
                               uint64_t seed, void **host, wlmi_buffer *buffer) {
  const size_t size = wlmi_type_size(type);
  wlm_status status = wlmi_buffer_make(device, size, rows, ld, what, host, buffer);
  if (status != WLM_OK) return status;
  wlmi_fill_uniform(type, *host, rows * ld, seed);
  return device->ops->copy_in(device, buffer->memory, *host, (size_t)(rows * ld) * size);
}

static int is_attention_gradient(const wlm_problem *p) { return p->operation == WLM_ATTENTION && p->transpose; }

/* Of a gradient B lies at the rows of op(A), and dC at its columns. */
static int64_t rows_of_b(const wlm_problem *p, int64_t rows, int64_t cols) {
  return is_attention_gradient(p) ? rows : cols;
}

/* The memory of the result: C, or the values of an SDDMM. */
static char *result_of(const wlmi_operands *operands) {
  return (char *)operands->c.memory + (size_t)operands->shift * wlmi_type_size(operands->spec.problem.dense_type);
}

/* Sets the pointers of the call. */
static void fill_call(wlmi_operands *operands) {
  const wlm_problem *p = &operands->spec.problem;
  wlm_execute_args *call = &operands->call;
  call->b = (char *)operands->b.memory + (size_t)operands->shift * wlmi_type_size(p->dense_type);
  call->bias = operands->bias.memory;
  call->argmax = operands->arg.memory;
  call->x = operands->x.memory;
  *(p->operation == WLM_SDDMM ? &call->dvalues : is_attention_gradient(p) ? &call->db : &call->c) = result_of(operands);
}

/* C, or what the operation has in its place, and the positions. */
static void add_outputs(wlmi_operands *operands) {
  const wlm_problem *p = &operands->spec.problem;
  const int is_sddmm = p->operation == WLM_SDDMM;
  wlmi_output output = {.name = is_sddmm                   ? "dvalues"
                                : is_attention_gradient(p) ? "db"
                                                           : "C",
                        .moves = 1,
                        .type = p->dense_type,
                        .lines = operands->result_rows,
                        .width = operands->result_columns,
                        .ld = operands->result_ld,
                        .more_terms = wlmi_is_attention(p) ? p->n / p->heads : 0,
                        .buffer = operands->c,
                        .before = operands->c_old};
  wlmi_operands_add_output(operands, output);
  if (!p->want_argmax) return;
  output.name = "argmax";
  output.is_positions = 1;
  output.moves = 0;
  output.buffer = operands->arg;
  output.before = NULL;
  wlmi_operands_add_output(operands, output);
}

/* B, C and whatever else the operation has; not for messages. `csr` is op(A). */
static wlm_status make_dense(wlmi_operands *operands, const wlm_csr *csr, uint64_t seed) {
  wlmi_device *device = operands->device;
  const wlm_problem *p = &operands->spec.problem;
  const wlm_execute_args *call = &operands->call;
  const int is_sddmm = p->operation == WLM_SDDMM, is_gradient = is_attention_gradient(p);
  wlm_status status;
  const wlm_type type = p->dense_type;
  const size_t size = wlmi_type_size(type);
  WLM_TRY(random_dense(device, type, rows_of_b(p, csr->rows, csr->cols), call->ldb, "B", seed, &operands->b_host,
                       &operands->b));
  if (p->epilogue.bias)
    WLM_TRY(random_dense(device, type, 1, p->n, "the bias", seed + 2, &operands->bias_host, &operands->bias));
  WLM_TRY(wlmi_buffer_make(device, size, operands->result_rows, operands->result_ld, is_sddmm ? "values" : "C",
                           call->beta != 0 ? &operands->c_old : NULL, &operands->c));
  if (operands->c_old) wlmi_fill_uniform(type, operands->c_old, operands->result_rows * operands->result_ld, ~seed);
  if (p->want_argmax)
    WLM_TRY(wlmi_buffer_make(device, wlmi_index_size(p->argmax_type), csr->rows, call->ldc, "positions", NULL,
                             &operands->arg));
  if (is_sddmm || is_gradient)
    WLM_TRY(random_dense(device, type, is_gradient ? csr->cols : csr->rows, call->ldc, "dC", seed + 1,
                         &operands->x_host, &operands->x));
  fill_call(operands);
  add_outputs(operands);
  if (wlmi_is_attention(p)) WLM_TRY(wlmi_attention_operands_make(operands, csr, seed));
done:
  return status;
}

wlm_status wlmi_operands_create(wlm_context *context, const wlm_matrix *matrix, const wlm_problem *problem,
                                const wlm_execute_args *args, uint64_t seed, wlmi_operands *operands) {
  wlm_status status;
  wlmi_device *device = wlmi_context_device(context);
  wlmi_matrix_view view;
  *operands = (wlmi_operands){.context = context, .device = device, .matrix = matrix, .seed = seed};
  WLM_TRY(wlmi_context_spec(context, matrix, problem, &operands->spec));
  const wlm_problem *p = &operands->spec.problem;
  wlm_execute_args *call = &operands->call;
  WLM_TRY(read_args(args, p->n, call));
  WLM_TRY(device->ops->synchronize(device, call->stream));
  WLM_TRY(wlmi_matrix_see(matrix, p, &view));
  const wlm_csr *csr = &view.csr;
  const int is_sddmm = p->operation == WLM_SDDMM, is_gradient = is_attention_gradient(p);
  operands->result_rows = is_sddmm ? csr->nnz * p->heads : csr->rows;
  operands->result_columns = is_sddmm ? 1 : p->n;
  operands->result_ld = is_sddmm ? 1 : is_gradient ? call->ldb : call->ldc;
  WLM_TRY(read_back_matrix(device, csr, p->heads, &operands->a));
  WLM_TRY(read_back_order(device, &view, &operands->order));
  WLM_TRY(take_order(operands->order, p->heads, &operands->a));
  WLM_TRY(make_shares(device, wlmi_matrix_csr(matrix), p, call->seed, operands->order, &operands->a));
  operands->edges = edges_used(&operands->a, p);
  WLM_TRY(p->operation == WLM_MESSAGE ? wlmi_message_operands_make(operands, seed) : make_dense(operands, csr, seed));
done:
  if (status != WLM_OK) wlmi_operands_release(operands);
  return status;
}

/* Whether A, B and C of this problem can be shared with others: it has no further operands in memory. */
static int is_plain(const wlm_problem *p, const wlm_execute_args *call) {
  return p->operation == WLM_SPMM && call->beta == 0 && !p->epilogue.bias && !p->want_argmax;
}

static int are_alike(const wlm_problem *p, const wlm_execute_args *call, const wlmi_operands *lender) {
  const wlm_problem *q = &lender->spec.problem;
  return is_plain(p, call) && is_plain(q, &lender->call) && p->dense_type == q->dense_type && p->n == q->n &&
         call->ldb == lender->call.ldb && call->ldc == lender->call.ldc && p->transpose == q->transpose &&
         p->heads == q->heads && !lender->a.shares && (!p->transpose || p->sampling.sample == WLM_SAMPLE_NONE);
}

wlm_status wlmi_operands_create_beside(const wlmi_operands *lender, wlm_context *context, const wlm_matrix *matrix,
                                       const wlm_problem *problem, const wlm_execute_args *args, uint64_t seed,
                                       wlmi_operands *operands) {
  wlmi_spec spec;
  wlm_execute_args call;
  wlm_status status = wlmi_context_spec(context, matrix, problem, &spec);
  if (status == WLM_OK) status = read_args(args, spec.problem.n, &call);
  if (status != WLM_OK || lender->matrix != matrix || !are_alike(&spec.problem, &call, lender))
    return wlmi_operands_create(context, matrix, problem, args, seed, operands);
  *operands = (wlmi_operands){.context = context,
                              .device = lender->device,
                              .matrix = matrix,
                              .a = lender->a,
                              .b_host = lender->b_host,
                              .b = lender->b,
                              .c = lender->c,
                              .result_rows = lender->result_rows,
                              .result_columns = lender->result_columns,
                              .result_ld = lender->result_ld,
                              .call = call,
                              .seed = seed,
                              .borrowed = 1};
  operands->edges = edges_used(&operands->a, &spec.problem);
  status = wlmi_context_spec(context, matrix, problem, &operands->spec); /* set here because the spec points into itself
                                                                          */
  fill_call(operands);
  add_outputs(operands);
  return status;
}

void wlmi_operands_release(wlmi_operands *operands) {
  wlmi_device *device = operands->device;
  if (!device) return;
  if (operands->borrowed) {
    operands->a = (wlmi_csr_host){0};
    operands->b_host = operands->b.memory = operands->c.memory = NULL;
  }
  device->ops->release(device, operands->b.memory);
  device->ops->release(device, operands->c.memory);
  device->ops->release(device, operands->arg.memory);
  device->ops->release(device, operands->x.memory);
  device->ops->release(device, operands->bias.memory);
  wlmi_attention_operands_release(operands);
  wlmi_message_operands_release(operands);
  wlmi_csr_host_release(&operands->a);
  wlmi_free(operands->order);
  wlmi_free(operands->b_host);
  wlmi_free(operands->c_old);
  wlmi_free(operands->x_host);
  wlmi_free(operands->bias_host);
  *operands = (wlmi_operands){0};
}

/* ---- moving, and the call --------------------------------------------------------------------------------  */

size_t wlmi_operands_moved(const wlmi_operands *operands) {
  return operands->message ? wlmi_message_operands_moved(operands) : operands->b.size;
}

wlm_status wlmi_operands_shift(wlmi_operands *operands, int shift) {
  const wlmi_device_ops *ops = operands->device->ops;
  const wlm_problem *p = &operands->spec.problem;
  const size_t size = wlmi_type_size(p->dense_type);
  operands->shift = shift;
  if (operands->message) return wlmi_message_operands_shift(operands);
  fill_call(operands);
  return ops->copy_in(operands->device, (char *)operands->b.memory + (size_t)shift * size, operands->b_host,
                      (size_t)(rows_of_b(p, operands->a.rows, operands->a.cols) * operands->call.ldb) * size);
}

wlm_status wlmi_operands_call(const wlmi_operands *operands, const wlm_plan *plan, void *workspace, void *stream) {
  wlm_execute_args call = operands->call;
  call.workspace = workspace;
  call.workspace_size = wlm_plan_workspace_size(plan);
  call.prepared = NULL;
  call.stream = stream;
  return wlm_plan_execute(plan, &call);
}
