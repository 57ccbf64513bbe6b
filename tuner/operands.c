#include "tuner/operands.h"

#include <math.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/csr/shares.h"
#include "core/problem/element.h"
#include "core/problem/sampling.h"
#include "core/problem/structs.h"
#include "runtime/dispatch/plan.h"

static wlm_status read_back(wlmi_device *device, const void *from, int64_t count, size_t size, const char *what,
                            void **to) {
  wlm_status status = wlmi_alloc_array(count, size, what, to);
  if (status != WLM_OK || !count) return status;
  return device->ops->copy_out(device, NULL, *to, from, (size_t)count * size);
}

/* Reads back offsets as int64_t. */
static wlm_status read_back_offsets(wlmi_device *device, const void *from, wlm_index type, int64_t count,
                                    const char *what, int64_t **to) {
  int32_t *narrow = NULL;
  wlm_status status;
  if (type == WLM_I64) return read_back(device, from, count, sizeof **to, what, (void **)to);
  WLM_TRY(read_back(device, from, count, sizeof *narrow, what, (void **)&narrow));
  WLM_TRY(wlmi_alloc_array(count, sizeof **to, what, (void **)to));
  for (int64_t i = 0; i < count; i++) (*to)[i] = narrow[i];
done:
  wlmi_free(narrow);
  return status;
}

static wlm_status read_back_rowptr(wlmi_device *device, const wlm_csr *csr, int64_t **rowptr) {
  WLM_CHECK(read_back_offsets(device, csr->rowptr, csr->rowptr_type, csr->rows + 1, "rowptr", rowptr));
  for (int64_t i = 0; csr->base && i <= csr->rows; i++) (*rowptr)[i] -= csr->base;
  return WLM_OK;
}

/* Reads back colind as int32_t, the type of the reference. */
static wlm_status read_back_raw_colind(wlmi_device *device, const wlm_csr *csr, int32_t **colind) {
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

static wlm_status read_back_colind(wlmi_device *device, const wlm_csr *csr, int32_t **colind) {
  WLM_CHECK(read_back_raw_colind(device, csr, colind));
  for (int64_t p = 0; csr->base && p < csr->nnz; p++) (*colind)[p] -= (int32_t)csr->base;
  return WLM_OK;
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
  *a = (wlmi_csr_host){.rows = csr->rows, .cols = csr->cols, .nnz = csr->nnz};
  WLM_CHECK(read_back_rowptr(device, csr, &a->rowptr));
  WLM_CHECK(read_back_colind(device, csr, &a->colind));
  if (csr->has_values && !csr->values && csr->nnz)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_csr.values is NULL; kernels are compared with the matrix's values");
  if (csr->values) WLM_CHECK(read_back_values(device, csr, heads, a));
  return WLM_OK;
}

/* Moves the values, which are read back in A's order, to the order of the transpose. */
static wlm_status take_order(const int64_t *order, int64_t heads, wlmi_csr_host *a) {
  const char *from = a->wide ? (const char *)a->wide : (const char *)a->values;
  const size_t size = (size_t)heads * (a->wide ? sizeof *a->wide : sizeof *a->values); /* of an edge */
  char *values = NULL;
  if (!order || !from) return WLM_OK;
  WLM_CHECK(wlmi_alloc_array(a->nnz, size, "values", (void **)&values));
  for (int64_t q = 0; q < a->nnz; q++) memcpy(values + (size_t)q * size, from + (size_t)order[q] * size, size);
  memcpy(a->wide ? (void *)a->wide : (void *)a->values, values, (size_t)a->nnz * size);
  wlmi_free(values);
  return WLM_OK;
}

/* The shares of the edges of op(A) in the sample of A's rows. Of products only those of A^T, of messages all. */
static wlm_status make_shares(wlmi_device *device, const wlm_csr *csr, const wlm_problem *problem, uint64_t seed,
                              const int64_t *order, wlmi_csr_host *a) {
  wlmi_csr_host sampled = {.rows = csr->rows, .nnz = csr->nnz};
  wlmi_edge_share *shares = NULL;
  wlm_status status = WLM_OK;
  const int has_shares = order || problem->operation == WLM_MESSAGE;
  if (!has_shares || problem->sampling.sample == WLM_SAMPLE_NONE) return status;
  WLM_TRY(read_back_rowptr(device, csr, &sampled.rowptr));
  WLM_TRY(wlmi_sample_shares(&sampled, problem, seed, &shares));
  WLM_TRY(wlmi_alloc_array(a->nnz, sizeof *a->shares, "shares of edges", (void **)&a->shares));
  for (int64_t q = 0; q < a->nnz; q++) a->shares[q] = shares[order ? order[q] : q];
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
  WLM_CHECK(args ? wlmi_struct_read(&wlmi_struct_execute_args, args, &given) : WLM_OK);
  WLM_CHECK(wlmi_check_factors(&given));
  *call = defaults;
  call->alpha = given.alpha;
  call->beta = given.beta;
  call->seed = given.seed;
  call->stream = given.stream;
  call->ldb = given.ldb ? given.ldb : n;
  call->ldc = given.ldc ? given.ldc : n;
  if (call->ldb >= n && call->ldc >= n) return WLM_OK;
  return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_execute_args.%s is %lld, less than n = %lld",
                   call->ldb < n ? "ldb" : "ldc", (long long)(call->ldb < n ? call->ldb : call->ldc), (long long)n);
}

/* ---- what the arrays hold --------------------------------------------------------------------------------- */

/* The rowptr of A, from the columns of A^T. */
static wlm_status make_rowptr(const wlmi_csr_host *transposed, int64_t **rowptr) {
  const int64_t rows = transposed->cols;
  WLM_CHECK(wlmi_alloc_array(rows + 1, sizeof **rowptr, "rowptr", (void **)rowptr));
  for (int64_t row = 0; row <= rows; row++) (*rowptr)[row] = 0;
  for (int64_t p = 0; p < transposed->nnz; p++) (*rowptr)[(int64_t)transposed->colind[p] + 1]++;
  for (int64_t row = 0; row < rows; row++) (*rowptr)[row + 1] += (*rowptr)[row];
  return WLM_OK;
}

static void fill_positions(const wlmi_call_array *array, const int64_t *rowptr, uint64_t seed) {
#pragma omp parallel for
  for (int64_t row = 0; row < array->lines; row++)
    for (int64_t j = 0; j < array->ld; j++) {
      const int64_t at = row * array->ld + j, degree = rowptr[row + 1] - rowptr[row];
      const int64_t edge = (int64_t)(wlmi_sample_hash(seed, at) % (uint64_t)(degree + 1));
      const int64_t position = edge < degree ? rowptr[row] + edge : -1;
      if (array->size == sizeof(int64_t))
        ((int64_t *)array->host)[at] = position;
      else
        ((int32_t *)array->host)[at] = (int32_t)position;
    }
}

static void fill(const wlmi_operands *operands, const wlmi_call_array *array, uint64_t seed) {
  const wlmi_message_operands *m = operands->message;
  const int64_t count = array->lines * array->ld;
  if (array->is_positions) {
    fill_positions(array, m && m->rowptr ? m->rowptr : operands->a.rowptr, seed);
    return;
  }
  wlmi_fill_uniform(array->type, array->host, count, seed);
  for (int64_t i = 0; i < count && wlmi_width_is_pair(array->array->width); i++) {
    const double x = wlmi_element_get(array->type, array->host, i);
    wlmi_element_put(array->type, array->host, i, i % 2 ? fabs(x) : x + 2);
  }
}

/* ---- making them ------------------------------------------------------------------------------------------ */

/* The struct that has an array: that of the call, or that of the host. */
static char *struct_of(wlmi_operands *operands, const wlmi_array *array, int of_host) {
  wlmi_message_operands *m = operands->message;
  if (array->in == WLMI_IN_ATTENTION) return (char *)&operands->attention[of_host];
  if (array->in == WLMI_IN_MESSAGE) return (char *)(of_host ? &m->host : &m->call);
  return (char *)(of_host ? &operands->host : &operands->call);
}

/* The inputs come first, then the outputs. */
static const wlmi_call_array *array_at(const wlmi_operands *operands, int i) {
  return i < operands->inputs ? &operands->input[i] : &operands->output[i - operands->inputs];
}

/* Sets the pointers of the call. */
static void fill_call(wlmi_operands *operands) {
  for (int i = 0; i < operands->inputs + operands->outputs; i++) {
    const wlmi_call_array *o = array_at(operands, i);
    const char *const memory = wlmi_call_array_memory(operands, o);
    memcpy(struct_of(operands, o->array, 0) + o->array->from, &memory, sizeof memory);
    memcpy(struct_of(operands, o->array, 1) + o->array->from, &o->host, sizeof o->host);
  }
  if (operands->message) operands->call.operands = &operands->message->call;
  if (!wlmi_is_attention(&operands->spec.problem)) return;
  operands->call.attention = &operands->attention[0];
  operands->host.attention = &operands->attention[1];
}

static int is_by_columns(const wlmi_array *array) { return array->by_columns && array->columns > 1; }

/* That of the call, where it is given; of a message ldb and ldc are for arrays that are n wide. Column-major arrays
 * have no padding, and the host's copies are by rows. */
static int64_t take_ld(wlmi_operands *operands, const wlmi_array *array, int64_t lines) {
  int64_t ld = array->columns, given = 0;
  if (!array->ld_name) return ld;
  memcpy(&given, struct_of(operands, array, 0) + array->ld_from, sizeof given);
  if (operands->message && ld == operands->spec.problem.n)
    given = array->is_output ? operands->call.ldc : operands->call.ldb;
  if (given && !array->by_columns) ld = given;
  const int64_t of_call = array->by_columns ? lines : ld; /* also of one column */
  for (int of_host = 0; of_host < 2; of_host++)
    memcpy(struct_of(operands, array, of_host) + array->ld_from, of_host ? &ld : &of_call, sizeof ld);
  return ld;
}

/* How many numbers an element is the sum of, besides the edges of its row. */
static int64_t more_terms(const wlm_problem *p, const wlmi_array *array) {
  const int64_t of_head = p->n / p->heads;
  if (wlmi_is_attention(p) || (array->place == WLM_PLACE_EDGE && array->width == WLM_WIDTH_HEADS)) return of_head;
  return array->place == WLM_PLACE_EDGE;
}

static wlm_status make(wlmi_operands *operands, const wlmi_array *array, uint64_t seed) {
  const wlm_problem *p = &operands->spec.problem;
  const wlm_csr *a = wlmi_matrix_csr(operands->matrix);
  const int is_out = array->is_output, is_positions = array->element == WLMI_ELEMENT_POSITION;
  const int is_read = !is_out || (!array->result && !is_positions && operands->call.beta != 0);
  const int64_t lines = wlmi_array_lines(array, a->rows, a->cols, a->nnz);
  wlmi_call_array *o = is_out ? &operands->output[operands->outputs++] : &operands->input[operands->inputs++];
  *o = (wlmi_call_array){.array = array,
                         .name = array->name,
                         .result = array->result,
                         .is_positions = is_positions,
                         .of_edges = array->place == WLM_PLACE_EDGE,
                         .moves = array->columns == p->n && array->place != WLM_PLACE_ALL,
                         .byte = is_positions ? WLMI_POSITION_POISON : WLMI_RESULT_POISON,
                         .type = wlmi_array_type(array, p),
                         .size = array->size,
                         .by_columns = is_by_columns(array),
                         .lines = lines,
                         .width = array->columns,
                         .ld = take_ld(operands, array, lines),
                         .more_terms = more_terms(p, array)};
  const wlm_status status =
      wlmi_buffer_make(operands->device, o->size, o->lines, o->ld, o->name, is_read ? &o->host : NULL, &o->buffer);
  if (status == WLM_OK && is_read) fill(operands, o, seed);
  return status;
}

static wlm_status make_message(wlmi_operands *operands) {
  static const wlm_message_args none = WLM_MESSAGE_ARGS_INIT;
  wlmi_message_operands *m = operands->message = wlmi_alloc_zero(1, sizeof *m);
  if (!m) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "operands of a message");
  m->host = m->call = none;
  WLM_CHECK(wlmi_message_parse(operands->spec.custom, &m->message));
  for (int i = 0; i < m->message.operands; i++)
    m->host.scalars[i] = m->call.scalars[i] =
        m->message.operand[i].source == WLMI_SOURCE_KEPT ? 0.4375 : 0.8125 - i / 8.0;
  if (operands->spec.problem.transpose) return make_rowptr(&operands->a, &m->rowptr);
  return WLM_OK;
}

/* Copies what the call reads; with `moved` only what a shift moves. */
static wlm_status copy_inputs(wlmi_operands *operands, int moved) {
  wlm_status status = WLM_OK;
  for (int i = 0; i < operands->inputs && status == WLM_OK; i++) {
    const wlmi_call_array *o = &operands->input[i];
    if (wlmi_call_array_bytes(o) && o->moves >= moved) status = wlmi_call_array_put(operands, o);
  }
  fill_call(operands);
  return status;
}

static wlm_status make_all(wlmi_operands *operands) {
  static const wlm_attention_operands none = WLM_ATTENTION_OPERANDS_INIT;
  operands->attention[0] = operands->attention[1] = none;
  WLM_CHECK(wlmi_arrays_make(&operands->spec, &operands->arrays));
  if (operands->spec.problem.operation == WLM_MESSAGE) WLM_CHECK(make_message(operands));
  operands->host = operands->call;
  for (int i = 0; i < operands->arrays.count; i++) {
    const wlmi_array *array = &operands->arrays.list[i];
    if (array->need != WLMI_NEED_REFUSED) WLM_CHECK(make(operands, array, operands->seed + (uint64_t)i));
  }
  return copy_inputs(operands, 0);
}

wlm_status wlmi_check_comparable(const wlm_problem *problem) {
  if (problem->operation == WLM_ARGMAX_GRADIENT)
    return wlmi_fail(WLM_ERR_UNSUPPORTED, "wlm_problem: argmax_gradient has one kernel, so there is nothing to tune");
  if (problem->batch == 1) return WLM_OK;
  return wlmi_fail(WLM_ERR_UNSUPPORTED, "wlm_problem.batch is %lld: kernels are compared on one product; leave it at 1",
                   (long long)problem->batch);
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
  WLM_TRY(read_back_matrix(device, csr, p->heads, &operands->a));
  if (view.order)
    WLM_TRY(
        read_back_offsets(device, view.order, csr->rowptr_type, csr->nnz, "order of the transpose", &operands->order));
  WLM_TRY(take_order(operands->order, p->heads, &operands->a));
  WLM_TRY(make_shares(device, wlmi_matrix_csr(matrix), p, call->seed, operands->order, &operands->a));
  operands->edges = edges_used(&operands->a, p);
  WLM_TRY(make_all(operands));
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
         p->heads == q->heads && p->b_order == q->b_order && p->c_order == q->c_order && !lender->a.shares &&
         (!p->transpose || p->sampling.sample == WLM_SAMPLE_NONE);
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
  *operands = *lender;
  operands->context = context;
  operands->call = call;
  operands->host = call;
  operands->seed = seed;
  operands->shift = 0;
  operands->borrowed = 1;
  operands->edges = edges_used(&operands->a, &spec.problem);
  status = wlmi_context_spec(context, matrix, problem, &operands->spec); /* set here because the spec points into itself
                                                                          */
  fill_call(operands);
  return status;
}

void wlmi_operands_release(wlmi_operands *operands) {
  if (operands->device && !operands->borrowed) {
    for (int i = 0; i < operands->inputs + operands->outputs; i++) {
      operands->device->ops->release(operands->device, array_at(operands, i)->buffer.memory);
      wlmi_free(array_at(operands, i)->host);
    }
    if (operands->message) wlmi_message_release(&operands->message->message);
    if (operands->message) wlmi_free(operands->message->rowptr);
    wlmi_free(operands->message);
    wlmi_csr_host_release(&operands->a);
    wlmi_free(operands->order);
  }
  *operands = (wlmi_operands){0};
}

/* ---- moving, and the call --------------------------------------------------------------------------------  */

const wlmi_call_array *wlmi_operands_find(const wlmi_operands *operands, const char *name) {
  for (int i = 0; i < operands->inputs + operands->outputs; i++)
    if (!strcmp(array_at(operands, i)->name, name)) return array_at(operands, i);
  return NULL;
}

size_t wlmi_operands_moved(const wlmi_operands *operands) {
  size_t moved = 0;
  for (int i = 0; i < operands->inputs; i++) moved += operands->input[i].moves ? operands->input[i].buffer.size : 0;
  return moved;
}

wlm_status wlmi_operands_shift(wlmi_operands *operands, int shift) {
  operands->shift = shift;
  return copy_inputs(operands, 1);
}

wlm_status wlmi_operands_call(const wlmi_operands *operands, const wlm_plan *plan, void *workspace, void *stream) {
  wlm_execute_args call = operands->call;
  call.workspace = workspace;
  call.workspace_size = wlm_plan_workspace_size(plan);
  call.prepared = NULL;
  call.stream = stream;
  return wlm_plan_execute(plan, &call);
}
