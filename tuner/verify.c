/* Decides whether the results of a call are right.
 *
 * Rows are compared with float64 (tuner/output_check.h), all of them if that is cheap. Otherwise some rows are compared
 * with float64, and every row with a second reference (tuner/whole_check.h). */
#include "tuner/verify.h"

#include <math.h>
#include <stdlib.h>

#include "core/base/memory.h"
#include "core/problem/sampling.h"
#include "tuner/output_check.h"
#include "tuner/tolerance.h"
#include "tuner/whole_check.h"

enum { NAMED_ROWS = 4, SPOTS = 32 };
static const double spot_numbers = 1e6, edge_numbers = 32e6; /* of edges, that a few rows, and chosen ones, may have */

struct wlmi_verifier {
  wlmi_operands *operands;
  int64_t *rows; /* rows of the result (for an SDDMM edges x heads); ascending and distinct */
  int64_t count;
  wlmi_output_check *chosen; /* of those rows */
  wlmi_output_check *spots;  /* of a few of them; NULL if all are few */
  wlmi_whole_check *whole;   /* NULL if every row is compared anyway, or there is no second reference */
  double leeway;             /* the factor of the tolerance */
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

static wlm_status choose_rows(wlmi_verifier *verifier, uint64_t seed, const wlmi_verify_limits *limits) {
  const wlmi_operands *o = verifier->operands;
  const wlmi_csr_host *a = &o->a;
  const wlm_problem *p = &o->spec.problem;
  const int64_t total = a->rows, some = limits->rows + NAMED_ROWS;
  const int all = (double)a->nnz * (double)p->n * arrays_of(o) <= limits->products &&
                  (double)total * (double)p->n * arrays_of(o) <= limits->elements;
  const int64_t wanted = all || total <= some ? total : some;
  WLM_CHECK(wlmi_alloc_array(wanted, sizeof *verifier->rows, "rows to check", (void **)&verifier->rows));
  verifier->count = wanted;
  if (wanted == total) {
    for (int64_t row = 0; row < total; row++) verifier->rows[row] = row;
    return WLM_OK;
  }
  int64_t longest = 0, empty = 0;
  for (int64_t row = 0; row < a->rows; row++) {
    if (degree(a, row) > degree(a, longest)) longest = row;
    if (!degree(a, row)) empty = row;
  }
  const int64_t named[NAMED_ROWS] = {0, total - 1, longest, empty};
  for (int64_t i = 0; i < wanted; i++)
    verifier->rows[i] = i < NAMED_ROWS ? named[i] : (int64_t)(wlmi_sample_hash(seed, i) % (uint64_t)total);
  verifier->count = sort_rows(verifier->rows, wanted);
  return WLM_OK;
}

/* Spots are evenly spaced among the compared rows, with the first and the last; one more is the longest. */
static wlm_status make_spots(wlmi_verifier *verifier) {
  const wlmi_operands *o = verifier->operands;
  const int64_t count = verifier->count, *rows = verifier->rows;
  int64_t spots[SPOTS + 1] = {0};
  if (count <= 2 * SPOTS) return WLM_OK;
  for (int64_t k = 0; k < SPOTS; k++) spots[k] = rows[k * (count - 1) / (SPOTS - 1)];
  spots[SPOTS] = rows[0];
  for (int64_t i = 1; i < count; i++)
    if (wlmi_row_terms(o, rows[i]) > wlmi_row_terms(o, spots[SPOTS])) spots[SPOTS] = rows[i];
  return wlmi_output_check_create(o, spots, sort_rows(spots, SPOTS + 1), (int64_t)spot_numbers, &verifier->spots);
}

/* ---- the verifier ---------------------------------------------------------------------------------------- */

/* The edges of a long row may not have been compared. */
static int has_all(const wlmi_verifier *verifier, double most_edge_numbers) {
  const wlmi_operands *o = verifier->operands;
  return verifier->count == o->a.rows && (double)o->a.nnz * (double)wlmi_edge_numbers(o) <= most_edge_numbers;
}

wlm_status wlmi_verifier_create_within(wlmi_operands *operands, uint64_t seed, const wlmi_verify_limits *limits,
                                       wlmi_verifier **out) {
  wlm_status status;
  *out = NULL;
  wlmi_verifier *verifier = wlmi_alloc_zero(1, sizeof *verifier);
  if (!verifier) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "a verifier");
  verifier->operands = operands;
  verifier->leeway = 1;
  WLM_TRY(choose_rows(verifier, seed, limits));
  const double numbers = verifier->count < operands->a.rows ? edge_numbers : fmax(limits->products, edge_numbers);
  WLM_TRY(wlmi_output_check_create(operands, verifier->rows, verifier->count, (int64_t)numbers, &verifier->chosen));
  if (!has_all(verifier, numbers))
    WLM_TRY(wlmi_whole_check_create(operands, verifier->chosen, limits->host_products, &verifier->whole));
  WLM_TRY(make_spots(verifier));
  *out = verifier;
  verifier = NULL;
done:
  wlmi_verifier_destroy(verifier);
  return status;
}

wlm_status wlmi_verifier_create(wlmi_operands *operands, uint64_t seed, wlmi_verifier **out) {
  static const wlmi_verify_limits limits = WLM_VERIFY_LIMITS_INIT;
  return wlmi_verifier_create_within(operands, seed, &limits, out);
}

void wlmi_verifier_destroy(wlmi_verifier *verifier) {
  if (!verifier) return;
  wlmi_output_check_destroy(verifier->chosen);
  wlmi_output_check_destroy(verifier->spots);
  wlmi_whole_check_destroy(verifier->whole);
  wlmi_free(verifier->rows);
  wlmi_free(verifier);
}

void wlmi_verifier_set_leeway(wlmi_verifier *verifier, double leeway) { verifier->leeway = leeway; }

int64_t wlmi_verifier_rows(const wlmi_verifier *verifier) { return verifier->count; }
int64_t wlmi_verifier_edges(const wlmi_verifier *verifier) { return wlmi_output_check_edges(verifier->chosen); }

/* ---- one result ------------------------------------------------------------------------------------------ */

wlm_status wlmi_verify_result(wlmi_verifier *verifier, double *max_rel_err) {
  WLM_CHECK(wlmi_output_check_result(verifier->chosen, verifier->leeway, max_rel_err));
  if (verifier->whole) return wlmi_whole_check_result(verifier->whole, verifier->leeway, max_rel_err);
  return WLM_OK;
}

wlm_status wlmi_verify_spots(wlmi_verifier *verifier, double *max_rel_err) {
  return wlmi_output_check_result(verifier->spots ? verifier->spots : verifier->chosen, verifier->leeway, max_rel_err);
}
