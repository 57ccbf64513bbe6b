/* Runs attention, whose kernels have additional arguments (templates/prelude/attention_args.h). The gradient walks A^T,
 * so its kernels get dC as B and db as C. */
#include "runtime/dispatch/attention.h"

#include "core/base/pointer.h"
#include "core/problem/spec.h"
#include "runtime/dispatch/plan.h"

/* The least leading dimension of left and right, or of q and k. */
static int64_t least_stride(const wlmi_shape *shape) {
  return wlmi_score_is_sum(shape->score) ? shape->n : shape->heads;
}

static wlm_status check(const char *name, const wlmi_shape *shape, const wlmi_bound *bound,
                        const wlm_execute_args *call) {
  const int gradient = shape->is_gradient, edges = bound->args.nnz != 0;
  const int terms = edges && shape->score == WLM_SCORE_GAT, products = edges && wlmi_score_is_sum(shape->score),
            keys = shape->score == WLM_SCORE_DOT;
  const size_t element = shape->dense_size, sum = shape->sum_size;
  const wlmi_pointer given[] = {
      {gradient ? "db" : "c", gradient ? call->db : call->c, element, 1},
      {"b", call->b, element, gradient || edges},
      {"x", gradient ? call->x : NULL, element, gradient && edges},
      {"values", call->values, wlmi_type_size(shape->value_type), 0},
      {"bias", shape->has_bias ? call->bias : NULL, element, shape->has_bias},
      {"left", call->left, sum, terms},
      {"right", call->right, sum, terms || (gradient && shape->score == WLM_SCORE_GAT)},
      {"lse", call->lse, sum, gradient && edges},
      {"delta", call->delta, sum, gradient && edges},
      {"dvalues", gradient ? call->dvalues : NULL, sum, gradient && edges},
      {"dright", gradient ? call->dright : NULL, sum, 0},
      {"q", call->q, element, products},
      {"att", call->att, sum, (products && !keys) || shape->is_rows},
      {"k", keys ? call->k : NULL, element, products && keys},
      {"dk", keys && gradient ? call->dk : NULL, element, 0},
      {"datt", shape->is_rows ? call->datt : NULL, sum, 0},
      {"workspace", call->workspace, WLM_WORK_ALIGNMENT, bound->workspace_size != 0},
  };
  const wlm_status status = wlmi_check_pointers(name, given, sizeof given / sizeof *given);
  if (status != WLM_OK) return status;
  if ((gradient || shape->is_rows) && (call->alpha != 1 || call->beta != 0))
    return wlmi_fail(WLM_ERR_UNSUPPORTED, "%s: the gradient of attention with alpha %g and beta %g; use 1 and 0", name,
                     call->alpha, call->beta);
  if (keys && gradient && call->dright)
    return wlmi_fail(WLM_ERR_UNSUPPORTED, "%s: dright with WLM_SCORE_DOT, which has no term right; leave it NULL",
                     name);
  if (call->ldt && (call->ldt < least_stride(shape) || call->ldt > UINT32_MAX / (int64_t)sum))
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "%s: ldt is %lld, must be %lld to %lld", name, (long long)call->ldt,
                     (long long)least_stride(shape), (long long)(UINT32_MAX / (int64_t)sum));
  if (!(call->dropout >= 0 && call->dropout < 1) || (call->dropout > 0 && !shape->has_dropout))
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "%s: dropout is %g, must be %s", name, call->dropout,
                     shape->has_dropout ? "at least 0 and below 1" : "0, because wlm_problem.dropout is");
  if (call->workspace_size < bound->workspace_size)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "%s: workspace_size is %zu, the plan needs %zu", name,
                     call->workspace_size, bound->workspace_size);
  return WLM_OK;
}

static struct wlm_number number(double value) { return (struct wlm_number){value, (float)value}; }

wlm_status wlmi_run_attention(const char *function, const wlmi_shape *shape, const wlmi_bound *bound,
                              const wlm_execute_args *call, const void *prepared) {
  struct wlm_attention_args full = {.args = bound->args};
  struct wlm_args *args = &full.args;
  wlm_status status;
  if (bound->empty) return WLM_OK;
  WLM_TRY(check(function, shape, bound, call));
  WLM_TRY(wlmi_take_call(shape, call, args));
  args->b = call->b;
  args->c = call->c;
  args->bias = shape->has_bias ? call->bias : NULL;
  args->workspace = call->workspace;
  args->prepared = prepared;
  full.attention = (struct wlm_attention){.left = call->left,
                                          .right = call->right,
                                          .delta = call->delta,
                                          .lse = call->lse,
                                          .dright = call->dright,
                                          .dvalues = call->dvalues,
                                          .slope = number(call->slope),
                                          .dropped = number(call->dropout),
                                          .kept = number(1 / (1 - call->dropout)),
                                          .term_stride = call->ldt ? call->ldt : least_stride(shape)};
  full.products = (struct wlm_products){
      .q = call->q, .att = call->att, .datt = call->datt, .k = call->k, .dk = call->dk, .scale = number(call->scale)};
  if (shape->is_gradient) {
    const int64_t ldb = args->ldb;
    args->ldb = args->ldc;
    args->ldc = ldb;
    args->b = call->x;
    args->c = call->db;
    args->x = call->b;
  }
  status = wlmi_launch_all(shape, bound, WLM_WHEN_EXECUTE, args, call->stream);
done:
  return status;
}
