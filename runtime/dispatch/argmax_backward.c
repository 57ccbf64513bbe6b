/* The gradients of max and min: each element of dC goes to the one edge that the element of C came from
 * (templates/programs/arg_backward.cu.in has the kernels). A plan with argmax indices is usually for training, so its
 * backward kernels are compiled at plan creation; they are the same for every variant. */
#include <string.h>

#include "runtime/dispatch/batch.h"
#include "runtime/dispatch/layout.h"
#include "runtime/dispatch/overlap.h"

wlm_status wlmi_plan_bind_backward(wlm_plan *plan, const wlmi_bound *bound, const wlm_csr *csr) {
  const wlmi_target target = plan->device->info.limits.target;
  const int64_t rows[WLMI_BACKWARD_PASSES] = {bound->args.cols, bound->args.rows}; /* rows of dB and of dC */
  wlmi_launch launches[WLMI_BACKWARD_PASSES];
  for (int i = 0; i < WLMI_BACKWARD_PASSES; i++) {
    const wlmi_pass *pass = &plan->backward_passes[i];
    const wlmi_extent extent = {rows[i], csr->cols, csr->nnz, plan->shape.n};
    const int64_t units = wlmi_pass_unit_blocks(pass, &extent, 0);
    WLM_CHECK(
        wlmi_launch_make(pass, target, units ? units : 1, plan->shape.n, plan->backward_kernels[i], &launches[i]));
  }
  WLM_CHECK(wlmi_layout_bind(&plan->shape, &plan->backward_arrays, &bound->args, 0, &plan->backward_layout));
  memcpy(plan->backward, launches, sizeof launches);
  plan->a_rowptr = csr->rowptr;
  plan->a_colind = csr->colind;
  return WLM_OK;
}

void wlmi_plan_set_backward(wlm_plan *plan, const wlmi_program *program, void *const kernels[WLMI_MAX_PASSES],
                            const wlmi_spec *spec) {
  wlmi_arrays_make_backward(spec, &plan->backward_arrays);
  if (!program->uses_b) wlmi_arrays_make_optional(&plan->backward_arrays, "b");
  plan->no_backward = spec->problem.epilogue.activation
                          ? "an activation: leave it out and pass the gradient before it as x"
                      : spec->problem.policy.deterministic && !program->deterministic
                          ? "deterministic: on a GPU terms are added atomically, in any order"
                          : NULL;
  for (int i = 0; i < WLMI_BACKWARD_PASSES; i++) {
    plan->backward_passes[i] = program->passes[i];
    plan->backward_kernels[i] = kernels[i];
  }
}

static wlm_status launch(const wlm_plan *plan, const struct wlm_args *args, void *stream) {
  for (int i = 0; i < WLMI_BACKWARD_PASSES; i++)
    WLM_CHECK(plan->device->ops->launch(plan->device, &plan->backward[i], args, stream));
  return WLM_OK;
}

/* The passes for one product, between the copies of column-major arrays. */
static wlm_status run_one(const wlm_plan *plan, struct wlm_batch_launch *kernel, void *workspace, void *stream) {
  wlmi_given given[WLMI_MOST_COPIES];
  const wlmi_arrays *arrays = &plan->backward_arrays;
  const wlmi_layout *layout = &plan->backward_layout;
  WLM_CHECK(wlmi_layout_begin(&plan->shape, arrays, layout, workspace, 1, kernel, given, stream));
  WLM_CHECK(launch(plan, &kernel->args, stream));
  return wlmi_layout_end(&plan->shape, arrays, layout, 1, kernel, given, stream);
}

wlm_status wlmi_plan_run_backward(const char *function, const wlm_plan *plan, const wlm_execute_args *call) {
  struct wlm_batch_launch all = {.args = plan->bound.args};
  struct wlm_args *args = &all.args;
  const wlmi_shape *shape = &plan->shape;
  const wlmi_arrays *arrays = &plan->backward_arrays;
  const size_t copies = plan->backward_layout.size;
  if (plan->no_backward)
    return wlmi_fail(WLM_ERR_UNSUPPORTED, "%s: no gradients by argmax with %s", function, plan->no_backward);
  if (!args->n || (!call->argmax_db && !call->argmax_dvalues)) return WLM_OK;
  const wlmi_call structs = {{[WLMI_IN_ARGS] = call}};
  WLM_CHECK(wlmi_take_call(function, shape, call, args));
  WLM_CHECK(wlmi_take_arrays(function, shape, arrays, &plan->bound, &structs, &all));
  WLM_CHECK(wlmi_take_workspace(function, call, copies));
  if (shape->batch > 1) WLM_CHECK(wlmi_batch_take(function, shape, arrays, call, &all));
  args->rowptr = plan->a_rowptr;
  args->colind = plan->a_colind;
  const int64_t a_rows = shape->is_transposed ? args->cols : args->rows;
  const wlmi_work work = {a_rows + 1, copies, 0, copies ? call->workspace : NULL};
  WLM_CHECK(wlmi_check_overlap(function, shape, arrays, &work, &all));
  for (int64_t i = 0; i < shape->batch; i++) {
    struct wlm_batch_launch one = wlmi_batch_part(shape, arrays, &all, i, 1);
    WLM_CHECK(run_one(plan, &one, call->workspace, call->stream));
  }
  return WLM_OK;
}
