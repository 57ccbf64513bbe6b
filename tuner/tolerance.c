/* The tolerance of a result, relative to the size of its terms.
 *
 * Errors are measured against sum |a b|, the scale at which float32 arithmetic itself works: with u = 2^-24 the worst
 * case of adding d products in any order is d u of it, and the expected error of independent roundings is sqrt(d) u
 * (Higham & Mary, "A new approach to probabilistic rounding error analysis", 2019). B is random, so roundings are
 * independent, and the tolerance is u (8 + 2 sqrt(d)): 8 u for the product, alpha, beta, the division of a mean and the
 * store, 2 sqrt(d) for the additions. For f64, u = 2^-53, it is twice that, because the reference rounds as much.
 * 16-bit types are accumulated in f32 and rounded once at the end, which adds their own u. A product of d messages is
 * rounded twice for each, and each rounding counts in full. Sums of equal terms are rounded in the same direction each
 * time, so their tolerance is d u: messages without B, and FastRand as published, whose stride of 577 takes the same
 * edge S times in a row of 577 edges. Repeated entries of a matrix add u for each repetition. Each row has the
 * tolerance of its own length; a wrong edge in a row of d edges causes an error of about 1 / d, far above the tolerance
 * for any d below a million. The scores and products of attention are sums over the columns of a head, which count as
 * terms, too. */
#include "tuner/tolerance.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/problem/element.h"

/* The unit roundoff u of kernel and reference together. */
static double unit_of(const wlm_problem *problem) {
  const wlm_type accumulator = wlmi_accumulator_type(problem->dense_type);
  return wlmi_element_unit(accumulator) * (accumulator == WLM_F64 ? 2 : 1);
}

/* Of a result that is stored in this type. */
static double tolerance(const wlm_problem *problem, wlm_type type, int64_t terms) {
  const double d = (double)terms;
  const double rounded = wlmi_accumulator_type(type) != type ? wlmi_element_unit(type) : 0;
  const int equal_terms = problem->message == WLM_COPY_A || problem->sampling.sample == WLM_SAMPLE_FASTRAND;
  const double roundings = problem->reduce == WLM_PROD ? 2 * d : d;
  return rounded + unit_of(problem) * (8 + (equal_terms ? d : 2 * sqrt(roundings)));
}

double wlmi_tolerance(const wlm_problem *problem, int64_t terms) {
  return tolerance(problem, problem->dense_type, terms);
}

double wlmi_output_tolerance(const wlmi_operands *operands, const wlmi_call_array *output, int64_t row) {
  const wlm_problem *p = &operands->spec.problem;
  return tolerance(p, output->type,
                   output->more_terms + (output->of_edges ? 0 : wlmi_edges_of_row(&operands->a, p, row)));
}

static int compare_columns(const void *left, const void *right) {
  const int32_t a = *(const int32_t *)left, b = *(const int32_t *)right;
  return (a > b) - (a < b);
}

/* The edges of the row whose column an earlier edge of the row has. */
static int64_t repeats(const wlmi_csr_host *a, int64_t row, int32_t *columns) {
  const int64_t d = a->rowptr[row + 1] - a->rowptr[row];
  int ascending = 1;
  int64_t count = 0;
  memcpy(columns, a->colind + a->rowptr[row], (size_t)d * sizeof *columns);
  for (int64_t i = 1; i < d && ascending; i++) ascending = columns[i - 1] <= columns[i];
  if (!ascending) qsort(columns, (size_t)d, sizeof *columns, compare_columns);
  for (int64_t i = 1; i < d; i++) count += columns[i - 1] == columns[i];
  return count;
}

wlm_status wlmi_repeats_tolerance(const wlmi_operands *operands, const int64_t *rows, int64_t count, double *more) {
  const wlmi_csr_host *a = &operands->a;
  const wlm_problem *p = &operands->spec.problem;
  int64_t longest = 0;
  int32_t *columns = NULL;
  wlm_status status;
  for (int64_t i = 0; i < count; i++) more[i] = 0;
  for (int64_t i = 0; i < count; i++) {
    const int64_t edges = a->rowptr[rows[i] + 1] - a->rowptr[rows[i]];
    if (edges > longest) longest = edges;
  }
  WLM_TRY(wlmi_alloc_array(longest, sizeof *columns, "columns of a row", (void **)&columns));
  for (int64_t i = 0; i < count && longest; i++) more[i] = unit_of(p) * (double)repeats(a, rows[i], columns);
done:
  wlmi_free(columns);
  return status;
}
