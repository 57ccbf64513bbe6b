/* Decides whether the results of a call are right.
 *
 * Rows are compared with float64 (tuner/output_check.h), all of them if that is cheap, or if it is not too dear and
 * there is no second reference. Otherwise some rows are compared with float64, and every row with the second reference
 * (tuner/whole_check.h). */
#include "tuner/verify.h"

#include <math.h>
#include <stdlib.h>

#include "core/base/memory.h"
#include "core/problem/sampling.h"
#include "tuner/whole_check.h"

enum { NAMED_ROWS = 4, SPOTS = 33, SPOT_NUMBERS = 1000000 }; /* rows that spots are, and numbers of their edges */
static const double edge_numbers = 32e6;                     /* of edges, that chosen rows may have */

struct wlmi_verifier {
  wlmi_operands *operands;
  int64_t count;                     /* of rows that are compared with float64 */
  wlmi_output_check *chosen, *spots; /* of those rows; of the first few of them */
  wlmi_whole_check *whole;           /* NULL if every row is compared anyway, or there is no second reference */
  double leeway;                     /* the factor of the tolerance */
};

/* ---- the rows -------------------------------------------------------------------------------------------- */

static int compare(const void *left, const void *right) {
  int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
  return (a > b) - (a < b);
}

static int64_t degree(const wlmi_csr_host *a, int64_t row) { return a->rowptr[row + 1] - a->rowptr[row]; }

/* Sorts, and keeps each once; returns how many are left. */
static int64_t sort_rows(int64_t *rows, int64_t count) {
  int64_t kept = 0;
  qsort(rows, (size_t)count, sizeof *rows, compare);
  for (int64_t i = 0; i < count; i++)
    if (!i || rows[i] != rows[i - 1]) rows[kept++] = rows[i];
  return kept;
}

/* The operands and results that a product of the problem reads or writes. */
static double arrays_of(const wlmi_operands *operands) {
  return operands->message ? operands->message->message.operands + operands->message->message.results : 1;
}

static int is_within(const wlmi_operands *o, double products, double elements) {
  const double columns = (double)o->spec.problem.n * arrays_of(o);
  return (double)o->a.nnz * columns <= products && (double)o->a.rows * columns <= elements;
}

/* All rows, or the first, the last, the longest, an empty one and a seeded one of each of equal parts, ascending;
 * returns how many. */
static int64_t choose_rows(const wlmi_csr_host *a, uint64_t seed, int64_t wanted, int64_t *rows) {
  int64_t longest = 0, empty = 0;
  for (int64_t row = 0; row < a->rows; row++) {
    if (wanted == a->rows) rows[row] = row;
    if (degree(a, row) > degree(a, longest)) longest = row;
    if (!degree(a, row)) empty = row;
  }
  if (wanted == a->rows) return wanted;
  const int64_t named[NAMED_ROWS] = {0, a->rows - 1, longest, empty}, parts = wanted - NAMED_ROWS;
  for (int64_t i = 0; i < NAMED_ROWS; i++) rows[i] = named[i];
  for (int64_t i = 0; i < parts; i++) {
    const int64_t begin = i * a->rows / parts, end = (i + 1) * a->rows / parts;
    rows[NAMED_ROWS + i] = begin + (int64_t)(wlmi_sample_hash(seed, i) % (uint64_t)(end - begin));
  }
  return sort_rows(rows, wanted);
}

/* ---- the verifier ---------------------------------------------------------------------------------------- */

/* Compares `wanted` rows with float64, and at most so many numbers of their edges; *count gets how many rows. */
static wlm_status choose(const wlmi_operands *o, uint64_t seed, int64_t wanted, double numbers, int64_t *count,
                         wlmi_output_check **check) {
  int64_t *rows = NULL;
  wlmi_output_check_destroy(*check);
  *check = NULL;
  WLM_CHECK(wlmi_alloc_array(wanted, sizeof *rows, "rows to check", (void **)&rows));
  *count = choose_rows(&o->a, seed, wanted, rows);
  const wlm_status status = wlmi_output_check_create(o, rows, *count, (int64_t)numbers, check);
  wlmi_free(rows);
  return status;
}

static wlm_status make(wlmi_verifier *verifier, uint64_t seed, const wlmi_verify_limits *limits) {
  const wlmi_operands *o = verifier->operands;
  const int64_t total = o->a.rows, some = limits->rows + NAMED_ROWS, few = some < SPOTS ? some : SPOTS;
  const int all = total <= some || is_within(o, limits->products, limits->elements);
  const double numbers = all ? fmax(limits->products, edge_numbers) : edge_numbers;
  WLM_CHECK(choose(o, seed, few < total ? few : total, SPOT_NUMBERS, &verifier->count, &verifier->spots));
  WLM_CHECK(choose(o, seed, all ? total : some, numbers, &verifier->count, &verifier->chosen));
  if (all && (double)o->a.nnz * (double)wlmi_edge_numbers(o) <= numbers) return WLM_OK;
  if (wlmi_whole_check_create(o, verifier->chosen, &verifier->whole) == WLM_OK) return WLM_OK;
  const int is_cheap = is_within(o, limits->host_products, limits->elements);
  wlmi_log(WLM_LOG_INFO, "%s rows of results are compared: %s", is_cheap ? "with float64 all" : "only some",
           wlm_error_detail());
  wlmi_clear_error();
  if (!is_cheap) return WLM_OK;
  return choose(o, seed, total, fmax(limits->products, edge_numbers), &verifier->count, &verifier->chosen);
}

wlm_status wlmi_verifier_create_within(wlmi_operands *operands, uint64_t seed, const wlmi_verify_limits *limits,
                                       wlmi_verifier **out) {
  wlmi_verifier *verifier = *out = wlmi_alloc_zero(1, sizeof *verifier);
  if (!verifier) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "a verifier");
  verifier->operands = operands;
  verifier->leeway = 1;
  const wlm_status status = make(verifier, seed, limits);
  if (status == WLM_OK) return status;
  wlmi_verifier_destroy(verifier);
  *out = NULL;
  return status;
}

wlm_status wlmi_verifier_create(wlmi_operands *operands, uint64_t seed, wlmi_verifier **out) {
  static const wlmi_verify_limits limits = WLMI_VERIFY_LIMITS_INIT;
  return wlmi_verifier_create_within(operands, seed, &limits, out);
}

void wlmi_verifier_destroy(wlmi_verifier *verifier) {
  if (!verifier) return;
  wlmi_output_check_destroy(verifier->chosen);
  wlmi_output_check_destroy(verifier->spots);
  wlmi_whole_check_destroy(verifier->whole);
  wlmi_free(verifier);
}

void wlmi_verifier_set_leeway(wlmi_verifier *verifier, double leeway) { verifier->leeway = leeway; }

int64_t wlmi_verifier_rows(const wlmi_verifier *verifier) { return verifier->count; }
int64_t wlmi_verifier_edges(const wlmi_verifier *verifier) { return wlmi_output_check_edges(verifier->chosen); }

/* ---- one result ------------------------------------------------------------------------------------------ */

wlm_status wlmi_verify_result(wlmi_verifier *verifier, double *max_rel_err) {
  WLM_CHECK(wlmi_output_check_result(verifier->chosen, verifier->operands, verifier->leeway, max_rel_err));
  if (verifier->whole) return wlmi_whole_check_result(verifier->whole, verifier->leeway, max_rel_err);
  return WLM_OK;
}

wlm_status wlmi_verify_spots(wlmi_verifier *verifier, double *max_rel_err) {
  return wlmi_output_check_result(verifier->spots, verifier->operands, verifier->leeway, max_rel_err);
}
