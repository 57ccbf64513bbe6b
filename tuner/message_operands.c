#include "tuner/message_operands.h"

#include "core/base/memory.h"
#include "core/problem/sampling.h"

char *wlmi_message_array_memory(const wlmi_operands *operands, const wlmi_message_array *array) {
  return (char *)array->buffer.memory + (array->moves ? (size_t)operands->shift * array->size : 0);
}

static void fill_call(wlmi_operands *operands) {
  wlmi_message_operands *m = operands->message;
  for (int i = 0; i < WLM_MAX_OPERANDS; i++)
    if (m->operand[i].size) m->call.operands[i] = wlmi_message_array_memory(operands, &m->operand[i]);
  for (int r = 0; r < WLM_MAX_RESULTS; r++) {
    if (m->result[r].size) m->call.results[r] = wlmi_message_array_memory(operands, &m->result[r]);
    if (m->positions[r].size) m->call.positions[r] = wlmi_message_array_memory(operands, &m->positions[r]);
  }
  operands->call.operands = &m->call;
}

/* ---- what they hold ------------------------------------------------------------------------------------- */

/* Of A, from the columns of A^T. */
static wlm_status make_rowptr(const wlmi_csr_host *transposed, int64_t **rowptr) {
  const int64_t rows = transposed->cols;
  const wlm_status status = wlmi_alloc_array(rows + 1, sizeof **rowptr, "rowptr", (void **)rowptr);
  if (status != WLM_OK) return status;
  for (int64_t row = 0; row <= rows; row++) (*rowptr)[row] = 0;
  for (int64_t p = 0; p < transposed->nnz; p++) (*rowptr)[transposed->colind[p] + 1]++;
  for (int64_t row = 0; row < rows; row++) (*rowptr)[row + 1] += (*rowptr)[row];
  return WLM_OK;
}

static void fill_positions(const wlmi_message_array *array, const int64_t *rowptr, uint64_t seed) {
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

/* ---- making them ---------------------------------------------------------------------------------------- */

/* Leading dimensions of the call are those of arrays that are n wide. */
static wlm_status make_array(const wlmi_operands *operands, const wlmi_array *shape, int64_t ld, int is_in,
                             wlmi_message_array *array) {
  const int moves = shape->width == operands->spec.problem.n;
  const wlm_csr *a = wlmi_matrix_csr(operands->matrix);
  if (!shape->size) return WLM_OK;
  *array = (wlmi_message_array){.name = shape->name,
                                .lines = wlmi_array_lines(shape, a->rows, a->cols, a->nnz),
                                .width = shape->width,
                                .ld = moves ? ld : shape->width,
                                .size = shape->size,
                                .moves = moves};
  return wlmi_buffer_make(operands->device, array->size, array->lines, array->ld, array->name,
                          is_in ? &array->host : NULL, &array->buffer);
}

static wlm_status make_operand(wlmi_operands *operands, int i, uint64_t seed) {
  const wlm_problem *p = &operands->spec.problem;
  wlmi_message_operands *m = operands->message;
  wlmi_message_array *array = &m->operand[i];
  const wlm_status status = make_array(operands, &m->shape.operand[i], operands->call.ldb, 1, array);
  m->host.scalars[i] = m->call.scalars[i] = 0.8125 - i / 8.0;
  if (status != WLM_OK || !array->size) return status;
  if (m->message.operand[i].width == WLM_WIDTH_WINS)
    fill_positions(array, m->rowptr ? m->rowptr : operands->a.rowptr, seed);
  else
    wlmi_fill_uniform(p->dense_type, array->host, array->lines * array->ld, seed);
  m->host.operands[i] = array->host;
  m->host.operand_ld[i] = m->call.operand_ld[i] = array->ld;
  return WLM_OK;
}

static wlm_status make_result(wlmi_operands *operands, int r) {
  wlmi_message_operands *m = operands->message;
  const int64_t ld = operands->call.ldc;
  const wlm_status status = make_array(operands, &m->shape.result[r], ld, 0, &m->result[r]);
  m->call.result_ld[r] = m->result[r].ld;
  return status == WLM_OK ? make_array(operands, &m->shape.positions[r], ld, 0, &m->positions[r]) : status;
}

static void add_output(wlmi_operands *operands, int r, const wlmi_message_array *array, int is_positions) {
  const wlm_problem *p = &operands->spec.problem;
  const wlmi_result_kind kind = operands->message->message.result[r].kind;
  if (!array->size) return;
  wlmi_operands_add_output(operands, (wlmi_output){.name = array->name,
                                                   .result = r,
                                                   .is_positions = is_positions,
                                                   .of_edges = !wlmi_result_is_of_row(kind),
                                                   .moves = array->moves,
                                                   .type = p->dense_type,
                                                   .lines = array->lines,
                                                   .width = array->width,
                                                   .ld = array->ld,
                                                   .more_terms = kind == WLM_RESULT_EDGE       ? 1
                                                                 : kind == WLM_RESULT_EDGE_SUM ? p->n / p->heads
                                                                                               : 0,
                                                   .buffer = array->buffer});
}

wlm_status wlmi_message_operands_make(wlmi_operands *operands, uint64_t seed) {
  static const wlm_message_args none = WLM_MESSAGE_ARGS_INIT;
  wlm_status status;
  wlmi_message_operands *m = operands->message = wlmi_alloc_zero(1, sizeof *m);
  if (!m) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "operands of a message");
  m->host = m->call = none;
  WLM_TRY(wlmi_message_parse(operands->spec.custom, &m->message));
  WLM_TRY(wlmi_message_shape_make(&operands->spec, &m->shape));
  if (operands->spec.problem.transpose) WLM_TRY(make_rowptr(&operands->a, &m->rowptr));
  for (int i = 0; i < m->message.operands; i++) WLM_TRY(make_operand(operands, i, seed + (uint64_t)i));
  for (int r = 0; r < m->message.results; r++) {
    WLM_TRY(make_result(operands, r));
    add_output(operands, r, &m->result[r], 0);
    add_output(operands, r, &m->positions[r], 1);
  }
  status = wlmi_message_operands_shift(operands);
done:
  return status;
}

static double bytes_of(const wlmi_array *arrays, int count, const wlm_stats *a) {
  double bytes = 0;
  for (int i = 0; i < count; i++)
    bytes += (double)wlmi_array_lines(&arrays[i], a->rows, a->cols, a->nnz) * (double)arrays[i].width *
             (double)arrays[i].size;
  return bytes;
}

wlm_status wlmi_message_bytes(const wlmi_spec *spec, const wlm_stats *a, double *operands, double *results) {
  wlmi_message_shape shape;
  *operands = *results = 0;
  if (spec->problem.operation != WLM_MESSAGE) return WLM_OK;
  const wlm_status status = wlmi_message_shape_make(spec, &shape);
  if (status != WLM_OK) return status;
  *operands = bytes_of(shape.operand, shape.operands, a);
  *results = bytes_of(shape.result, shape.results, a) + bytes_of(shape.positions, shape.results, a);
  return WLM_OK;
}

void wlmi_message_operands_release(wlmi_operands *operands) {
  wlmi_message_operands *m = operands->message;
  if (!m) return;
  for (int i = 0; i < WLM_MAX_OPERANDS; i++) {
    operands->device->ops->release(operands->device, m->operand[i].buffer.memory);
    wlmi_free(m->operand[i].host);
  }
  for (int r = 0; r < WLM_MAX_RESULTS; r++) {
    operands->device->ops->release(operands->device, m->result[r].buffer.memory);
    operands->device->ops->release(operands->device, m->positions[r].buffer.memory);
  }
  wlmi_message_release(&m->message);
  wlmi_free(m->rowptr);
  wlmi_free(m);
  operands->message = NULL;
}

wlmi_message_walk wlmi_message_operands_walk(const wlmi_operands *operands) {
  const wlmi_message_operands *m = operands->message;
  return (wlmi_message_walk){.a = &operands->a,
                             .seed = operands->call.seed,
                             .problem = &operands->spec.problem,
                             .message = &m->message,
                             .call = &m->host,
                             .order = operands->order,
                             .rowptr = m->rowptr};
}

/* ---- what a call may read and write --------------------------------------------------------------------- */

size_t wlmi_message_operands_moved(const wlmi_operands *operands) {
  const wlmi_message_operands *m = operands->message;
  size_t moved = 0;
  for (int i = 0; i < m->message.operands; i++) moved += m->operand[i].moves ? m->operand[i].buffer.size : 0;
  return moved;
}

wlm_status wlmi_message_operands_shift(wlmi_operands *operands) {
  const wlmi_message_operands *m = operands->message;
  wlmi_device *device = operands->device;
  wlm_status status = WLM_OK;
  for (int i = 0; i < m->message.operands; i++) {
    const wlmi_message_array *array = &m->operand[i];
    const size_t bytes = (size_t)(array->lines * array->ld) * array->size;
    if (bytes) WLM_TRY(device->ops->copy_in(device, wlmi_message_array_memory(operands, array), array->host, bytes));
  }
  fill_call(operands);
done:
  return status;
}
