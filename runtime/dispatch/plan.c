#include "runtime/dispatch/plan.h"

#include "common/element.h"
#include "common/pointer.h"

wlm_status wlmi_launch_make(const wlmi_pass *pass, wlmi_target target, int64_t units, int64_t n, void *kernel,
                            wlmi_launch *launch) {
  const int64_t fast_limit = INT32_MAX, fold = 65535; /* of a CUDA grid's x, and of its y and z */
  const int64_t columns = wlmi_pass_column_blocks(pass, n);
  *launch = (wlmi_launch){.kernel = kernel,
                          .unit_blocks = units,
                          .threads = (unsigned int)pass->threads,
                          .shared_bytes = (unsigned int)pass->shared_bytes,
                          .dependent = pass->dependent};
  if (target == WLM_TARGET_HOST) return WLM_OK;
  int64_t fast = pass->axis == WLM_AXIS_UNITS_FIRST ? units : columns;
  int64_t slow = pass->axis == WLM_AXIS_UNITS_FIRST ? columns : units;
  if (fast > fast_limit || slow > fold * fold)
    return wlmi_fail(WLM_ERR_OVERFLOW, "kernel %s needs a grid of %lld x %lld blocks, more than the device has",
                     pass->kernel, (long long)fast, (long long)slow);
  int64_t y = slow < fold ? slow : fold;
  launch->grid[0] = (unsigned int)fast;
  launch->grid[1] = (unsigned int)y;
  launch->grid[2] = (unsigned int)(y ? (slow + y - 1) / y : 0);
  return WLM_OK;
}

/* The generator states how many blocks the device holds from the registers that a kernel may use; a compiler that
 * used fewer makes it more. */
static wlm_status correct_wave(const wlmi_device *device, void *kernel, wlmi_pass *pass) {
  wlmi_launch launch;
  wlmi_kernel_facts facts;
  wlm_status status = WLM_OK;
  if (!pass->wave || !device->ops->kernel_facts) return WLM_OK;
  WLM_TRY(wlmi_launch_make(pass, device->info.limits.target, 1, 1, kernel, &launch));
  WLM_TRY(device->ops->kernel_facts(device, &launch, &facts));
  if (facts.blocks) pass->wave = facts.blocks * pass->processors;
done:
  return status;
}

wlm_status wlmi_plan_fill(wlm_plan *plan, wlmi_device *device, const wlmi_program *program,
                          void *const kernels[WLM_MAX_PASSES], const wlm_csr *csr, const wlmi_spec *spec) {
  wlm_status status = WLM_OK;
  const wlm_problem *p = &spec->problem;
  plan->device = device;
  plan->empty = (program->walks_a ? csr->cols : csr->rows) == 0 || p->n == 0;
  plan->is_sddmm = p->operation == WLM_SDDMM;
  plan->wants_arg = p->want_arg;
  plan->samples = p->sample != WLM_SAMPLE_NONE;
  plan->dense_size = wlmi_type_size(p->dense_type);
  plan->sum_size = wlmi_type_size(wlmi_accumulator_type(p->dense_type));
  plan->arg_size = wlmi_index_size(p->arg_type);
  plan->args = (struct wlm_args){
      .rows = csr->rows,
      .cols = csr->cols,
      .nnz = csr->nnz,
      .n = p->n,
      .ldb = p->ldb,
      .ldc = p->ldc,
      .rowptr = csr->rowptr,
      .colind = csr->colind,
      .values = csr->values,
      .bias = p->bias,
      .alpha = p->alpha,
      .beta = p->beta,
      .scaled = p->alpha != 1 || p->beta != 0,
      .seed = p->seed,
      .sample_width = p->sample_width,
      .heads = p->heads,
      .head_width = p->n / p->heads,
  };
  plan->pass_count = program->pass_count;
  plan->deterministic = program->deterministic;
  plan->uses_b = program->uses_b;
  snprintf(plan->split, sizeof plan->split, "%s", program->split);
  const wlmi_pass *stated = wlmi_program_first_execute(program);
  wlmi_pass first = *stated;
  WLM_TRY(correct_wave(device, kernels[stated - program->passes], &first));
  const wlmi_extent extent = {csr->rows, csr->cols, csr->nnz, p->n};
  const int64_t blocks = wlmi_pass_unit_blocks(&first, &extent, 0);
  plan->args.blocks = blocks;
  plan->args.units = wlmi_pass_units_each(&first, &extent, 0);
  for (int i = 0; i < program->pass_count; i++) {
    const wlmi_pass *pass = &program->passes[i];
    plan->when[i] = pass->when;
    const int64_t units = pass == stated ? blocks : wlmi_pass_unit_blocks(pass, &extent, blocks);
    WLM_TRY(wlmi_launch_make(pass, device->info.limits.target, units, p->n, kernels[i], &plan->launches[i]));
  }
  WLM_TRY(wlmi_bytes_size(&program->workspace, &extent, blocks, &plan->workspace_size));
  WLM_TRY(wlmi_bytes_size(&program->prepared, &extent, blocks, &plan->prepared_size));
done:
  return status;
}

const char *wlm_plan_variant(const wlm_plan *plan) { return plan->decision.variant; }

size_t wlm_plan_prepared_size(const wlm_plan *plan) { return plan->prepared_size; }

size_t wlm_plan_workspace_size(const wlm_plan *plan) { return plan->workspace_size; }

static wlm_status launch_all(const wlm_plan *plan, wlmi_when when, const struct wlm_args *args, void *stream) {
  for (int i = 0; i < plan->pass_count; i++) {
    if (plan->when[i] != when || !plan->launches[i].unit_blocks) continue;
    wlm_status status = plan->device->ops->launch(plan->device, &plan->launches[i], args, stream);
    if (status != WLM_OK) return status;
  }
  return WLM_OK;
}

wlm_status wlm_plan_prepare(wlm_plan *plan, void *prepared, void *stream) {
  if (!plan->prepared_size) return WLM_OK;
  const wlmi_pointer given = {"prepared", prepared, WLM_WORK_ALIGNMENT, 1};
  wlm_status status = wlmi_check_pointers("wlm_plan_prepare", &given, 1);
  if (status != WLM_OK) return status;
  plan->args.prepared = prepared;
  status = plan->empty ? WLM_OK : launch_all(plan, WLM_WHEN_PREPARE, &plan->args, stream);
  plan->is_prepared = status == WLM_OK;
  return status;
}

/* Of a product with positions or without. */
static wlm_status multiply(const wlm_plan *plan, const char *call, const void *b, void *c, void *arg, uint64_t seed,
                           void *workspace, void *stream) {
  if (plan->empty) return WLM_OK;
  if (plan->prepared_size && !plan->is_prepared)
    return wlmi_fail(WLM_ERR_NOT_READY, "%s must be prepared first: call wlm_plan_prepare", plan->decision.variant);
  const wlmi_pointer given[] = {{"c", c, plan->dense_size, 1},
                                {"b", b, plan->dense_size, plan->uses_b && plan->args.nnz},
                                {"arg", arg, plan->arg_size, plan->wants_arg},
                                {"workspace", workspace, WLM_WORK_ALIGNMENT, plan->workspace_size != 0}};
  wlm_status status = wlmi_check_pointers(call, given, 4);
  if (status != WLM_OK) return status;
  struct wlm_args args = plan->args;
  args.b = b;
  args.c = c;
  args.arg = arg;
  args.seed = seed;
  args.workspace = workspace;
  return launch_all(plan, WLM_WHEN_EXECUTE, &args, stream);
}

wlm_status wlm_plan_execute(const wlm_plan *plan, const void *b, void *c, void *workspace, void *stream) {
  if (plan->is_sddmm)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "the plan is for an sddmm: call wlm_plan_execute_sddmm");
  if (plan->wants_arg)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "the plan gives positions, too: call wlm_plan_execute_arg");
  return multiply(plan, "wlm_plan_execute", b, c, NULL, plan->args.seed, workspace, stream);
}

wlm_status wlm_plan_execute_arg(const wlm_plan *plan, const void *b, void *c, void *arg, void *workspace,
                                void *stream) {
  if (!plan->wants_arg)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "the plan gives no positions: make it with want_arg = 1");
  return multiply(plan, "wlm_plan_execute_arg", b, c, arg, plan->args.seed, workspace, stream);
}

wlm_status wlm_plan_execute_seed(const wlm_plan *plan, const void *b, void *c, void *arg, uint64_t seed,
                                 void *workspace, void *stream) {
  if (!plan->samples)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT,
                     "wlm_plan_execute_seed: the plan samples no edges: make it with a sample");
  return multiply(plan, "wlm_plan_execute_seed", b, c, plan->wants_arg ? arg : NULL, seed, workspace, stream);
}

wlm_status wlm_plan_execute_sddmm(const wlm_plan *plan, const void *dc, const void *b, void *dvalues, void *workspace,
                                  void *stream) {
  if (!plan->is_sddmm) return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "the plan is for a product: call wlm_plan_execute");
  if (plan->empty || !plan->args.nnz) return WLM_OK;
  const wlmi_pointer given[] = {{"dc", dc, plan->dense_size, 1},
                                {"b", b, plan->dense_size, plan->uses_b},
                                {"dvalues", dvalues, plan->dense_size, 1},
                                {"workspace", workspace, WLM_WORK_ALIGNMENT, plan->workspace_size != 0}};
  wlm_status status = wlmi_check_pointers("wlm_plan_execute_sddmm", given, 4);
  if (status != WLM_OK) return status;
  struct wlm_args args = plan->args;
  args.x = dc;
  args.b = b;
  args.c = dvalues;
  args.workspace = workspace;
  return launch_all(plan, WLM_WHEN_EXECUTE, &args, stream);
}
