/* The second reference is what a kernel gives that is too simple to share a template's faults, emitted in f64 and
 * called with the same operands in f64.
 *
 * No bound of rounding errors is known for every operation: an element of a sum that cancels may be off by much of its
 * value. So the second reference only singles lines out, and float64 decides.
 *
 * A line passes if it differs from the second reference by less than its tolerance times its largest element, which is
 * at most the size of the terms that float64 measures errors by, except where terms cancel. Positions pass if they are
 * equal. The rows of all other lines are compared with the float64 reference of these rows. The size of the terms that
 * it finds for a line is kept, so a line that cancels is singled out for the first result only. */
#include "tuner/whole_check.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "core/problem/element.h"
#include "core/reference/reference.h"
#include "generator/generator.h"
#include "tuner/tolerance.h"

enum { BATCH_ROWS = 4096, BATCH_NUMBERS = 1 << 22 /* of edges */ };
static const double host_share = 0.25; /* of its memory, for the second reference */

struct wlmi_whole_check {
  const wlmi_operands *operands;
  double *reference[WLMI_MAX_OUTPUTS]; /* of each output, lines without padding: numbers, or positions */
  float *sizes[WLMI_MAX_OUTPUTS];      /* of the terms of each line of numbers, as far as known */
  char *rows, *edges;                  /* of each of op(A) and of A: 1 = a line of the present result is singled out */
};

/* ---- the call in f64 --------------------------------------------------------------------------------------- */

typedef struct wide {
  void *values, *workspace;
  wlm_matrix *matrix;
  wlmi_operands operands;
  wlm_plan *plan;
} wide;

static wlm_status widen_values(const wlmi_operands *o, wide *w) {
  const int64_t heads = o->spec.problem.heads, count = o->a.nnz * heads;
  double *values = NULL;
  if (!o->a.values && !o->a.wide) return WLM_OK;
  WLM_CHECK(wlmi_alloc_array(count, sizeof *values, "values", (void **)&values));
  for (int64_t i = 0; i < count; i++)
    values[o->order ? o->order[i / heads] * heads + i % heads : i] = wlmi_csr_value(&o->a, i);
  wlm_status status = o->device->ops->allocate(o->device, (size_t)count * sizeof *values + 1, &w->values);
  if (status == WLM_OK) status = o->device->ops->copy_in(o->device, w->values, values, (size_t)count * sizeof *values);
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
  return wide->array->is_output ? WLM_OK : wlmi_call_array_put(to, wide);
}

const char *wlmi_simple_kernel(const wlmi_candidate_list *list) {
  for (int64_t i = 0; i < list->count; i++)
    if (list->candidates[i].simple && !list->candidates[i].prepares) return list->candidates[i].variant;
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

static wlm_status call_wide(const wlmi_operands *o, wide *w) {
  wlm_problem problem = o->spec.problem;
  wlmi_operands *to = &w->operands;
  problem.dense_type = WLM_F64;
  WLM_CHECK(make_matrix(o, w));
  WLM_CHECK(wlmi_operands_create(o->context, w->matrix, &problem, &o->call, o->seed, to));
  for (int i = 0; i < o->inputs; i++) WLM_CHECK(take(to, &o->input[i], &to->input[i]));
  for (int i = 0; i < o->outputs; i++) WLM_CHECK(take(to, &o->output[i], &to->output[i]));
  WLM_CHECK(make_plan(o, w));
  WLM_CHECK(wlmi_operands_poison(to));
  WLM_CHECK(wlmi_operands_call(to, w->plan, w->workspace, NULL));
  return o->device->ops->synchronize(o->device, NULL);
}

static void release_wide(wlmi_device *device, wide *w) {
  wlm_plan_destroy(w->plan);
  wlmi_operands_release(&w->operands);
  wlm_matrix_destroy(w->matrix);
  device->ops->release(device, w->values);
  device->ops->release(device, w->workspace);
}

/* ---- the second reference ---------------------------------------------------------------------------------- */

static wlm_status allocate(wlmi_whole_check *check) {
  const wlmi_operands *o = check->operands;
  const double memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
  double bytes = 0;
  for (int i = 0; i < o->outputs; i++)
    bytes += (double)o->output[i].lines * (double)o->output[i].width * sizeof(double);
  if (bytes > host_share * memory)
    return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "a second reference of %.1f GB", bytes / 1e9);
  for (int i = 0; i < o->outputs; i++) {
    const wlmi_call_array *output = &o->output[i];
    WLM_CHECK(wlmi_alloc_array(output->lines * output->width, sizeof(double), "second reference",
                               (void **)&check->reference[i]));
    check->sizes[i] = wlmi_alloc_zero((size_t)output->lines, sizeof *check->sizes[i]);
    if (!check->sizes[i]) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "sizes of lines");
  }
  check->rows = wlmi_alloc_zero((size_t)o->a.rows, 1);
  check->edges = wlmi_alloc_zero(wlmi_edge_numbers(o) ? (size_t)o->a.nnz : 1, 1);
  return check->rows && check->edges ? WLM_OK : wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "marks of lines");
}

static wlm_status read_output(const wlmi_operands *from, int i, double *to) {
  const wlmi_call_array *output = &from->output[i];
  const int64_t n = output->width;
  wlm_status status = WLM_OK;
  for (wlmi_pieces p = {.operands = from, .array = output}; wlmi_pieces_next(&p, &status);)
    for (int64_t line = 0; line < p.lines; line++, to += n) {
      const char *const at = p.data + line * output->ld * (int64_t)output->size;
      for (int64_t j = 0; j < n; j++)
        to[j] = output->is_positions ? (double)wlmi_position_at(from, output, at, j, p.first + line)
                                     : wlmi_element_get(output->type, at, j);
    }
  return status;
}

static wlm_status make(wlmi_whole_check *check, const wlmi_output_check *chosen) {
  const wlmi_operands *o = check->operands;
  wide w = {0};
  double error;
  WLM_CHECK(allocate(check));
  wlm_status status = call_wide(o, &w);
  if (status == WLM_OK) status = wlmi_output_check_result(chosen, &w.operands, 1, &error);
  for (int i = 0; i < o->outputs && status == WLM_OK; i++) status = read_output(&w.operands, i, check->reference[i]);
  release_wide(o->device, &w);
  return status;
}

wlm_status wlmi_whole_check_create(const wlmi_operands *operands, const wlmi_output_check *chosen,
                                   wlmi_whole_check **out) {
  wlmi_whole_check *check = wlmi_alloc_zero(1, sizeof *check);
  *out = check;
  if (!check) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "a check of whole results");
  check->operands = operands;
  const wlm_status status = make(check, chosen);
  if (status == WLM_OK) return status;
  *out = NULL;
  wlmi_whole_check_destroy(check);
  return status;
}

void wlmi_whole_check_destroy(wlmi_whole_check *check) {
  if (!check) return;
  for (int i = 0; i < WLMI_MAX_OUTPUTS; i++) {
    wlmi_free(check->reference[i]);
    wlmi_free(check->sizes[i]);
  }
  wlmi_free(check->rows);
  wlmi_free(check->edges);
  wlmi_free(check);
}

/* ---- singling lines out ---------------------------------------------------------------------------------- */

/* How many times its tolerance a line is off. */
static double excess_of(const wlmi_whole_check *check, int i, int64_t line, const char *found) {
  const wlmi_call_array *output = &check->operands->output[i];
  const int64_t n = output->width;
  const double *reference = check->reference[i] + line * n;
  for (int64_t j = 0; j < n && output->is_positions; j++)
    if ((double)wlmi_position_at(check->operands, output, found, j, line) != reference[j]) return INFINITY;
  const double off =
      output->is_positions ? 0 : wlmi_reference_error(output->type, found, n, NULL, 1, n, reference, NULL);
  if (off == 0) return 0;
  double size = check->sizes[i][line];
  for (int64_t j = 0; j < n; j++)
    if (isfinite(reference[j])) size = fmax(size, fabs(reference[j]));
  return off / (wlmi_output_tolerance(check->operands, output, line) * size);
}

/* Marks the rows or the edges whose lines are not close to the reference. */
static wlm_status mark_lines(wlmi_whole_check *check, int i, double leeway) {
  const wlmi_call_array *output = &check->operands->output[i];
  char *const marks = output->of_edges ? check->edges : check->rows;
  wlm_status status = WLM_OK;
  for (wlmi_pieces p = {.operands = check->operands, .array = output}; wlmi_pieces_next(&p, &status);) {
#pragma omp parallel for schedule(static)
    for (int64_t line = 0; line < p.lines; line++) {
      const char *found = p.data + line * output->ld * (int64_t)output->size;
      if (!(excess_of(check, i, p.first + line, found) <= leeway)) marks[p.first + line] = 1;
    }
  }
  return status;
}

/* Marks the rows of op(A) whose edges are marked. */
static void mark_rows(wlmi_whole_check *check) {
  const wlmi_operands *o = check->operands;
#pragma omp parallel for schedule(dynamic, 1024)
  for (int64_t row = 0; row < o->a.rows; row++)
    for (int64_t at = o->a.rowptr[row]; at < o->a.rowptr[row + 1]; at++)
      check->rows[row] |= check->edges[o->order ? o->order[at] : at];
}

static wlm_status mark(wlmi_whole_check *check, double leeway) {
  const wlmi_operands *o = check->operands;
  const int has_edges = wlmi_edge_numbers(o) > 0;
  memset(check->rows, 0, (size_t)o->a.rows);
  if (has_edges) memset(check->edges, 0, (size_t)o->a.nnz);
  for (int i = 0; i < o->outputs; i++) WLM_CHECK(mark_lines(check, i, leeway));
  if (has_edges) mark_rows(check);
  return WLM_OK;
}

/* ---- float64 decides ------------------------------------------------------------------------------------- */

static wlm_status decide(wlmi_whole_check *check, const int64_t *rows, int64_t count, double leeway,
                         double *max_rel_err) {
  const wlmi_operands *o = check->operands;
  double error = 0;
  wlmi_output_check *exact = NULL;
  WLM_CHECK(wlmi_output_check_create(o, rows, count, INT64_MAX, &exact));
  const wlm_status status = wlmi_output_check_result(exact, o, leeway, &error);
  *max_rel_err = fmax(*max_rel_err, error);
  for (int i = 0; i < o->outputs && status == WLM_OK; i++)
    if (!o->output[i].is_positions) wlmi_output_check_sizes(exact, i, check->sizes[i]);
  wlmi_output_check_destroy(exact);
  return status;
}

wlm_status wlmi_whole_check_result(wlmi_whole_check *check, double leeway, double *max_rel_err) {
  const wlmi_operands *o = check->operands;
  const int64_t each = wlmi_edge_numbers(o);
  int64_t rows[BATCH_ROWS], count = 0, numbers = 0;
  WLM_CHECK(mark(check, leeway));
  for (int64_t row = 0; row < o->a.rows; row++) {
    if (!check->rows[row]) continue;
    const int64_t more = each * (o->a.rowptr[row + 1] - o->a.rowptr[row]);
    if (count == BATCH_ROWS || (count && numbers + more > BATCH_NUMBERS)) {
      WLM_CHECK(decide(check, rows, count, leeway, max_rel_err));
      count = numbers = 0;
    }
    rows[count++] = row;
    numbers += more;
  }
  return count ? decide(check, rows, count, leeway, max_rel_err) : WLM_OK;
}
