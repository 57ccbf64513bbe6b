#include "tuner/second_reference.h"

#include <string.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "core/problem/element.h"

static const double host_share = 0.25; /* of its memory */

/* ---- memory ---------------------------------------------------------------------------------------------- */

static wlm_status allocate(const wlmi_operands *o, wlmi_second_reference *reference) {
  const double memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
  double bytes = 0;
  wlm_status status = WLM_OK;
  for (int i = 0; i < o->outputs; i++)
    bytes += (double)o->output[i].lines * (double)o->output[i].width * sizeof(double);
  if (bytes > host_share * memory)
    return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "a second reference of %.1f GB", bytes / 1e9);
  for (int i = 0; i < o->outputs && status == WLM_OK; i++) {
    const wlmi_call_array *output = &o->output[i];
    void **const to = output->is_positions ? (void **)&reference->positions[i] : (void **)&reference->numbers[i];
    status = wlmi_alloc_array(output->lines * output->width, sizeof(double), "second reference", to);
  }
  return status;
}

void wlmi_second_reference_release(wlmi_second_reference *reference) {
  for (int i = 0; i < WLMI_MAX_OUTPUTS; i++) {
    wlmi_free(reference->numbers[i]);
    wlmi_free(reference->positions[i]);
  }
  *reference = (wlmi_second_reference){0};
}

/* ---- the call in f64 --------------------------------------------------------------------------------------- */

/* The call in f64. */
typedef struct wide {
  void *values, *workspace;
  wlm_matrix *matrix;
  wlmi_operands operands;
  wlm_plan *plan;
} wide;

static wlm_status widen_values(const wlmi_operands *o, wide *w) {
  const wlm_csr *csr = wlmi_matrix_csr(o->matrix);
  const int64_t count = csr->nnz * o->spec.problem.heads;
  const size_t size = wlmi_type_size(csr->value_type);
  void *narrow = NULL;
  double *values = NULL;
  wlm_status status = WLM_OK;
  if (!csr->values) return status;
  WLM_TRY(wlmi_alloc_array(count, size, "values", &narrow));
  WLM_TRY(wlmi_alloc_array(count, sizeof *values, "values", (void **)&values));
  WLM_TRY(o->device->ops->copy_out(o->device, narrow, csr->values, (size_t)count * size));
  wlmi_elements_read(csr->value_type, narrow, 0, count, values);
  WLM_TRY(o->device->ops->allocate(o->device, (size_t)count * sizeof *values + 1, &w->values));
  status = o->device->ops->copy_in(o->device, w->values, values, (size_t)count * sizeof *values);
done:
  wlmi_free(narrow);
  wlmi_free(values);
  return status;
}

static wlm_status make_matrix(const wlmi_operands *o, wide *w) {
  wlm_csr csr = *wlmi_matrix_csr(o->matrix);
  wlm_matrix_options options = WLM_MATRIX_OPTIONS_INIT;
  WLM_CHECK(widen_values(o, w));
  csr.values = w->values;
  csr.value_type = WLM_F64;
  options.grade = WLM_STATS_GIVEN;
  options.stats = wlm_matrix_stats(o->matrix);
  return wlm_matrix_create(o->context, &csr, &options, &w->matrix);
}

/* Gives an operand in f64 the values of the narrow one; an output is on the host only. */
static wlm_status take(const wlmi_operands *to, const wlmi_call_array *from, const wlmi_call_array *wide) {
  const int64_t count = from->lines * from->ld;
  double *const numbers = wide->host;
  if (!from->host || !count) return WLM_OK;
  if (from->is_positions) memcpy(wide->host, from->host, (size_t)count * from->size);
#pragma omp parallel for
  for (int64_t i = 0; i < (from->is_positions ? 0 : count); i++)
    numbers[i] = wlmi_element_get(from->type, from->host, i);
  if (wide->array->is_output) return WLM_OK;
  return wlmi_call_array_put(to, wide);
}

static wlm_status take_operands(const wlmi_operands *o, const wlmi_operands *to) {
  wlm_status status = WLM_OK;
  for (int i = 0; i < o->inputs && status == WLM_OK; i++) status = take(to, &o->input[i], &to->input[i]);
  for (int i = 0; i < o->outputs && status == WLM_OK; i++) status = take(to, &o->output[i], &to->output[i]);
  return status;
}

const char *wlmi_simple_kernel(const wlmi_candidate_list *list) {
  static const char *const families[] = {"row_naive/", "row_vec/",  "row_kept/",  "row_sample/",
                                         "sddmm_row/", "host_row/", "sddmm_host/"};
  for (size_t f = 0; f < sizeof families / sizeof *families; f++)
    for (int64_t i = 0; i < list->count; i++)
      if (!strncmp(list->candidates[i].variant, families[f], strlen(families[f])) && !list->candidates[i].prepares)
        return list->candidates[i].variant;
  return NULL;
}

static wlm_status make_plan(const wlmi_operands *o, wide *w) {
  const wlmi_candidate_list *list = NULL;
  wlm_status status;
  WLM_TRY(
      wlmi_generator_describe(wlmi_context_generator(o->context), &w->operands.spec, &o->device->info.limits, &list));
  const char *const name = wlmi_simple_kernel(list);
  if (!name) WLM_TRY(wlmi_fail(WLM_ERR_UNSUPPORTED, "no simple kernel serves it in f64"));
  WLM_TRY(wlm_plan_create_variant(o->context, w->matrix, &w->operands.spec.problem, name, &w->plan));
  const size_t workspace = wlm_plan_workspace_size(w->plan);
  if (workspace) status = o->device->ops->allocate(o->device, workspace, &w->workspace);
done:
  wlmi_candidates_drop(list);
  return status;
}

static wlm_status read_output(const wlmi_operands *from, int i, wlmi_second_reference *reference) {
  const wlmi_call_array *output = &from->output[i];
  const int64_t n = output->width;
  wlm_status status = WLM_OK;
  for (wlmi_pieces p = {.operands = from, .array = output}; wlmi_pieces_next(&p, &status);)
    for (int64_t line = 0; line < p.lines; line++) {
      const char *const at = p.data + line * output->ld * (int64_t)output->size;
      const int64_t to = (p.first + line) * n;
      if (!output->is_positions) memcpy(reference->numbers[i] + to, at, (size_t)n * sizeof(double));
      for (int64_t j = 0; j < n && output->is_positions; j++)
        reference->positions[i][to + j] = wlmi_position_at(from, output, at, j, p.first + line);
    }
  return status;
}

wlm_status wlmi_second_reference_make(const wlmi_operands *o, const wlmi_output_check *check,
                                      wlmi_second_reference *reference) {
  wlmi_device *device = o->device;
  wlm_problem problem = o->spec.problem;
  wide w = {0};
  wlm_status status;
  problem.dense_type = WLM_F64;
  WLM_TRY(allocate(o, reference));
  WLM_TRY(make_matrix(o, &w));
  WLM_TRY(wlmi_operands_create(o->context, w.matrix, &problem, &o->call, o->seed, &w.operands));
  WLM_TRY(take_operands(o, &w.operands));
  WLM_TRY(make_plan(o, &w));
  WLM_TRY(wlmi_operands_poison(&w.operands));
  WLM_TRY(wlmi_operands_call(&w.operands, w.plan, w.workspace, NULL));
  WLM_TRY(device->ops->synchronize(device, NULL));
  WLM_TRY(wlmi_output_check_numbers(check, &w.operands));
  for (int i = 0; i < o->outputs; i++) WLM_TRY(read_output(&w.operands, i, reference));
done:
  wlm_plan_destroy(w.plan);
  wlmi_operands_release(&w.operands);
  wlm_matrix_destroy(w.matrix);
  device->ops->release(device, w.values);
  device->ops->release(device, w.workspace);
  return status;
}
