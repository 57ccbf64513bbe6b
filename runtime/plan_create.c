/* Creates a plan from a matrix and a problem: adds the fingerprint if it can matter, decides, and binds. */
#include "core/base/memory.h"
#include "core/csr/stats.h"
#include "core/problem/cell.h"
#include "core/problem/structs.h"
#include "runtime/decide.h"
#include "runtime/transpose.h"
#include "select/features.h"

/* Whether only the size of the matrix is known. */
static int is_size(const wlm_matrix *matrix) { return !matrix->csr.rowptr; }

/* If a matrix of this size was tuned, adds the fingerprint, which shows whether it is this one. */
static wlm_status look_closer(wlm_context *context, const wlm_matrix *matrix, const wlm_problem *problem,
                              const wlm_stats *from) {
  wlm_stats stats;
  wlmi_matrix_read_stats(matrix, from, &stats);
  if (problem->transpose || wlmi_stats_has_fingerprint(&stats)) return WLM_OK; /* the stats of A^T have one already */
  if (!context->recorder.wanted && !wlmi_decisions_know_size(&context->decisions, stats.rows, stats.nnz, problem->n))
    return WLM_OK;
  return wlmi_matrix_fingerprint(matrix);
}

/* The view that kernels get: op(A), or A itself for kernels that walk it and need no A^T. */
static wlm_status see(const wlm_matrix *matrix, const wlm_problem *problem, int walks_a, wlmi_matrix_view *view) {
  wlm_problem seen = *problem;
  seen.transpose = wlmi_needs_transpose(problem) && !walks_a;
  if (is_size(matrix)) {
    *view = (wlmi_matrix_view){.csr = seen.transpose ? wlmi_transpose_given(&matrix->csr) : matrix->csr,
                               .stats = &matrix->stats};
    return WLM_OK;
  }
  return wlmi_matrix_see(matrix, &seen, view);
}

/* 1 for a transposed product whose matrix is used once, was not tuned and has no A^T yet. */
static int is_scattered(wlm_context *context, const wlm_matrix *matrix, const wlm_problem *problem) {
  const wlm_csr *a = &matrix->csr;
  return problem->transpose && problem->policy.expected_calls == 1 && !is_size(matrix) && !a->t_rowptr &&
         wlmi_scatter_pays(problem, a) && !wlmi_matrix_has_transpose(matrix) &&
         !wlmi_decisions_know_size(&context->decisions, a->cols, a->nnz, problem->n);
}

/* Decides. *view is set to the view on which the decision is based: op(A), or A for scattering. */
static wlm_status decide_for(wlm_context *context, const wlm_matrix *matrix, const wlm_problem *problem,
                             const wlmi_variant *variant, wlmi_decided **decided, wlmi_matrix_view *view) {
  wlmi_spec checked;
  if (problem->transpose) WLM_CHECK(wlmi_spec_make(problem, &matrix->csr, &checked)); /* before A^T is built */
  if (!variant && is_scattered(context, matrix, problem)) {
    wlm_stats stats;
    wlmi_matrix_read_stats(matrix, &matrix->stats, &stats);
    const wlmi_decide_request request = {problem, &matrix->csr, &stats, WLMI_USE_SCATTER, NULL};
    wlm_status status = wlmi_decide(context, &request, decided);
    if (status == WLM_OK) status = see(matrix, problem, 1, view);
    if (status != WLM_ERR_NOT_FOUND) return status;
    wlmi_clear_error();
  }
  wlm_stats stats;
  WLM_CHECK(see(matrix, problem, variant != NULL, view));
  if (is_size(matrix)) {
    wlmi_stats_estimate(view->csr.rows, view->csr.cols, view->csr.nnz, &stats);
    wlm_problem once = *problem;
    if (once.policy.expected_calls > 1) once.policy.expected_calls = 1;
    const wlmi_decide_request request = {&once, &view->csr, &stats, WLMI_USE_ONE_CALL, variant};
    return wlmi_decide(context, &request, decided);
  }
  WLM_CHECK(look_closer(context, matrix, problem, view->stats));
  const wlm_stats_grade grade = wlmi_matrix_read_stats(matrix, view->stats, &stats);
  const wlmi_decide_request request = {
      problem, &view->csr, &stats,
      grade == WLM_STATS_ESTIMATED && !view->order ? WLMI_USE_ESTIMATED : WLMI_USE_MEASURED, variant};
  return wlmi_decide(context, &request, decided);
}

static wlm_status check_rows(const wlmi_shape *shape, const wlm_stats *stats) {
  if (shape->argmax_type == WLM_I16 && stats->longest > WLMI_LONGEST_OF_I16)
    return wlmi_fail(WLM_ERR_OVERFLOW,
                     "wlm_problem.argmax_type is i16, and a row has %lld non-zeros, above %d; use i32 or i64",
                     (long long)stats->longest, WLMI_LONGEST_OF_I16);
  return WLM_OK;
}

static wlm_status create(wlm_context *context, const wlm_matrix *matrix, const wlm_problem *problem,
                         const wlmi_variant *variant, wlm_plan **out) {
  wlmi_matrix_view chosen_by, view;
  wlmi_decided *decided = NULL;
  wlm_plan *plan = NULL;
  wlm_status status;
  WLM_TRY(decide_for(context, matrix, problem, variant, &decided, &chosen_by));
  WLM_TRY(see(matrix, problem, decided->plan.shape.loaded.program.walks_a, &view));
  plan = wlmi_alloc(sizeof *plan);
  if (!plan) {
    status = wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "plan");
    goto done;
  }
  *plan = decided->plan;
  wlmi_upgrade_share(plan->upgrade);
  wlmi_plan_keep_kernels(plan);
  const wlm_stats_grade grade =
      wlmi_matrix_read_stats(matrix, variant ? view.stats : chosen_by.stats, &plan->reason.stats);
  if (grade != WLM_STATS_ESTIMATED) WLM_TRY(check_rows(&plan->shape, &plan->reason.stats));
  plan->reason.estimated = grade == WLM_STATS_ESTIMATED && !view.order;
  plan->reason.transpose_seconds = view.made_seconds;
  plan->reason.transpose_bytes = view.made_bytes;
  if (view.order) plan->no_rebind = "runs on the A^T of one matrix";
  WLM_TRY(wlmi_bind(&plan->shape, &view.csr, matrix->csr.rowptr, view.order, 0, &plan->bound));
  if (problem->batch == 1) wlmi_context_record(context, plan, problem->n);
  *out = plan;
done:
  wlmi_decided_drop(decided);
  if (status != WLM_OK) wlm_plan_destroy(plan);
  return status;
}

/* Checks the arguments of `call`; name: the variant, NULL = choose. */
static wlm_status create_for(const char *call, wlm_context *context, const wlm_matrix *matrix, const wlm_problem *given,
                             const char *name, wlm_plan **plan) {
  wlmi_variant variant;
  wlm_problem copy;
  const void *problem;
  WLM_CHECK(wlmi_matrix_of(matrix, context, call));
  WLM_CHECK(wlmi_struct_see(&wlmi_struct_problem, given, &copy, &problem));
  if (name) WLM_CHECK(wlmi_variant_parse(wlmi_generator_families(context->generator), name, &variant));
  return wlmi_finish(create(context, matrix, problem, name ? &variant : NULL, plan));
}

wlm_status wlm_plan_create_variant(wlm_context *context, const wlm_matrix *matrix, const wlm_problem *problem,
                                   const char *variant, wlm_plan **plan) {
  static const char call[] = "wlm_plan_create_variant";
  if (plan) *plan = NULL;
  WLM_CHECK(wlmi_need(call, "context matrix problem variant plan", context, matrix, problem, variant, plan));
  return create_for(call, context, matrix, problem, variant, plan);
}

wlm_status wlm_plan_create(wlm_context *context, const wlm_matrix *matrix, const wlm_problem *problem,
                           wlm_plan **plan) {
  static const char call[] = "wlm_plan_create";
  if (plan) *plan = NULL;
  WLM_CHECK(wlmi_need(call, "context matrix problem plan", context, matrix, problem, plan));
  return create_for(call, context, matrix, problem, NULL, plan);
}

/* The stats of op(A), with a fingerprint if the matrix may have been tuned; those of an A^T that is not built are
 * estimated. */
static wlm_status stats_for(wlm_context *context, const wlm_matrix *matrix, const wlm_problem *problem,
                            wlm_stats *stats, wlmi_use *use) {
  const wlm_csr *a = &matrix->csr;
  wlmi_matrix_view view;
  const int turned = problem->transpose;
  *use = WLMI_USE_ESTIMATED;
  if (is_size(matrix) || (turned && !wlmi_matrix_has_transpose(matrix))) {
    wlmi_stats_estimate(turned ? a->cols : a->rows, turned ? a->rows : a->cols, a->nnz, stats);
    return WLM_OK;
  }
  WLM_CHECK(wlmi_matrix_see(matrix, problem, &view));
  WLM_CHECK(look_closer(context, matrix, problem, view.stats));
  if (wlmi_matrix_read_stats(matrix, view.stats, stats) != WLM_STATS_ESTIMATED || view.order) *use = WLMI_USE_MEASURED;
  return WLM_OK;
}

wlm_status wlm_expected_seconds(wlm_context *context, const wlm_matrix *matrix, const wlm_problem *given,
                                double *seconds, double *simple) {
  static const char call[] = "wlm_expected_seconds";
  wlm_problem copy;
  const void *problem;
  wlmi_spec spec;
  wlm_stats stats;
  wlmi_use use;
  if (seconds) *seconds = 0;
  if (simple) *simple = 0;
  WLM_CHECK(wlmi_need(call, "context matrix problem seconds", context, matrix, given, seconds));
  WLM_CHECK(wlmi_matrix_of(matrix, context, call));
  WLM_CHECK(wlmi_struct_see(&wlmi_struct_problem, given, &copy, &problem));
  WLM_CHECK(wlmi_spec_make(problem, &matrix->csr, &spec));
  WLM_CHECK(stats_for(context, matrix, problem, &stats, &use));
  wlmi_stats_of_batch(problem, &stats);
  wlmi_decision *decision = wlmi_alloc_zero(1, sizeof *decision);
  if (!decision) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "decision");
  wlm_status status = wlmi_context_select(context, NULL, &stats, use, &spec, decision);
  if (status == WLM_OK) *seconds = wlmi_decision_seconds(decision);
  if (simple) *simple = wlmi_simple_seconds(&context->device->info.limits, &stats, spec.problem.n);
  wlmi_free(decision);
  return wlmi_finish(status);
}

static wlm_status bind_arrays(const wlm_plan *plan, const wlm_csr *csr, wlmi_bound *bound) {
  if (!plan->shape.is_transposed || plan->shape.loaded.program.walks_a)
    return wlmi_bind(&plan->shape, csr, csr->rowptr, NULL, 1, bound);
  const wlm_csr transposed = wlmi_transpose_given(csr);
  if (csr->t_rowptr) return wlmi_bind(&plan->shape, &transposed, csr->rowptr, csr->t_order, 1, bound);
  return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_csr.t_rowptr is NULL, and a transposed plan needs the arrays of A^T");
}

/* Binds a copy first, so that the plan stays as it was if the new matrix is refused. */
wlm_status wlm_plan_rebind(wlm_plan *plan, const wlm_csr *given) {
  wlm_csr copy;
  const void *seen;
  wlmi_bound bound;
  WLM_CHECK(wlmi_need("wlm_plan_rebind", "plan csr", plan, given));
  WLM_CHECK(wlmi_struct_see(&wlmi_struct_csr, given, &copy, &seen));
  const wlm_csr *csr = seen;
  if (plan->mode || plan->no_rebind)
    return wlmi_fail(WLM_ERR_UNSUPPORTED, "wlm_plan_rebind: the plan %s",
                     plan->mode ? "tunes online, which compares calls on one matrix" : plan->no_rebind);
  WLM_CHECK(wlmi_matrix_check(csr));
  WLM_CHECK(wlmi_shape_accepts(&plan->shape, csr));
  WLM_CHECK(bind_arrays(plan, csr, &bound));
  plan->bound = bound;
  return wlmi_finish(WLM_OK);
}

void wlm_plan_destroy(wlm_plan *plan) {
  if (!plan) return;
  if (plan->mode) plan->mode->destroy(plan);
  wlmi_upgrade_drop(plan->upgrade);
  wlmi_plan_drop_kernels(plan);
  wlmi_free(plan);
}
