#include "runtime/dispatch/plan.h"

#include <math.h>
#include <string.h>

#include "core/base/locale.h"
#include "core/base/pointer.h"
#include "core/problem/element.h"
#include "core/problem/structs.h"
#include "runtime/dispatch/batch.h"
#include "runtime/dispatch/explain.h"
#include "runtime/dispatch/layout.h"
#include "runtime/dispatch/overlap.h"

/* The generator computes the blocks that the device holds from the registers that a kernel may use. If the compiler
 * used fewer, more blocks fit. */
static wlm_status correct_wave(const wlmi_device *device, void *kernel, wlmi_pass *pass) {
  wlmi_launch launch;
  wlmi_kernel_facts facts;
  if (!pass->wave || !device->ops->kernel_facts) return WLM_OK;
  WLM_CHECK(wlmi_launch_make(pass, device->info.limits.target, 1, 1, kernel, &launch));
  WLM_CHECK(device->ops->kernel_facts(device, &launch, &facts));
  if (facts.blocks) pass->wave = facts.blocks * pass->processors;
  return WLM_OK;
}

/* Computes everything that does not depend on a matrix; asks the device how many blocks of a kernel fit. */
static wlm_status make_shape(wlmi_device *device, const wlmi_loaded *loaded, const wlmi_spec *spec, wlmi_shape *shape) {
  const wlm_problem *p = &spec->problem;
  const wlmi_program *program = &loaded->program;
  *shape = (wlmi_shape){
      .device = device,
      .operation = p->operation,
      .n = p->n,
      .heads = p->heads,
      .sample_width = p->sampling.width,
      .rowptr_type = spec->rowptr_type,
      .colind_type = spec->colind_type,
      .argmax_type = p->argmax_type,
      .value_type = spec->value_type,
      .base = spec->base,
      .has_values = spec->has_values,
      .has_bias = p->epilogue.bias,
      .has_dropout = p->dropout,
      .is_attention = wlmi_is_attention(p),
      .is_transposed = p->transpose && (!program->walks_a || p->operation == WLM_ARGMAX_GRADIENT),
      .batch = p->batch,
      .loaded = *loaded,
  };
  const int64_t first = wlmi_program_first_execute(program) - program->passes;
  WLM_CHECK(wlmi_arrays_make(spec, &shape->arrays));
  if (!program->uses_b && p->operation != WLM_MESSAGE) wlmi_arrays_make_optional(&shape->arrays, "b");
  return correct_wave(device, loaded->kernels[first], &shape->loaded.program.passes[first]);
}

wlm_status wlmi_bind(const wlmi_shape *shape, const wlm_csr *csr, const void *a_rowptr, const void *order, int fresh,
                     wlmi_bound *bound) {
  const int turned = wlmi_is_turned(shape);
  const int64_t n = shape->n, rows = turned ? csr->cols : csr->rows, cols = turned ? csr->rows : csr->cols;
  const wlmi_extent extent = {rows, cols, csr->nnz, n};
  const wlmi_program *program = &shape->loaded.program;
  const wlmi_pass *first = wlmi_program_first_execute(program);
  const int64_t blocks = wlmi_pass_unit_blocks(first, &extent, 0);
  bound->empty = (program->walks_a ? cols : rows) == 0 || n == 0 || shape->batch == 0 ||
                 (shape->operation == WLM_SDDMM && !csr->nnz);
  bound->args = (struct wlm_args){
      .rows = rows,
      .cols = cols,
      .nnz = csr->nnz,
      .n = n,
      .rowptr = csr->rowptr,
      .colind = csr->colind,
      .values = csr->values,
      .order = order,
      .a_rowptr = a_rowptr,
      .sample_width = shape->sample_width,
      .heads = shape->heads,
      .head_width = n / shape->heads,
      .blocks = blocks,
      .units = wlmi_pass_units_each(first, &extent, 0),
      .fresh = fresh,
  };
  for (int i = 0; i < program->pass_count; i++) {
    const wlmi_pass *pass = &program->passes[i];
    const int64_t units = pass == first ? blocks : wlmi_pass_unit_blocks(pass, &extent, blocks);
    WLM_CHECK(wlmi_launch_make(pass, shape->device->info.limits.target, units, n, shape->loaded.kernels[i],
                               &bound->launches[i]));
  }
  WLM_CHECK(wlmi_bytes_size(&program->workspace, &extent, blocks, &bound->workspace_size));
  WLM_CHECK(wlmi_layout_bind(shape, &bound->args, bound->workspace_size, &bound->layout));
  bound->workspace_size = bound->layout.size;
  wlmi_batch_bind(shape, bound);
  return wlmi_bytes_size(&program->prepared, &extent, blocks, &bound->prepared_size);
}

wlm_status wlmi_plan_set_program(wlm_plan *plan, wlmi_device *device, const wlmi_loaded *loaded,
                                 const wlmi_spec *spec) {
  static const wlmi_bytes none;
  plan->device = device;
  if (memcmp(&loaded->program.prepared, &none, sizeof none))
    plan->no_rebind = "has prepared memory, which was filled for one matrix";
  return make_shape(device, loaded, spec, &plan->shape);
}

void wlmi_plan_keep_kernels(wlm_plan *plan) {
  if (plan->shape.loaded.users) atomic_fetch_add(plan->shape.loaded.users, 1);
}

void wlmi_plan_drop_kernels(wlm_plan *plan) {
  if (plan->shape.loaded.users) atomic_fetch_sub(plan->shape.loaded.users, 1);
}

/* The plan that runs: this one, or the current kernel's plan of a plan that tunes online. */
static const wlm_plan *current(const wlm_plan *plan) {
  if (plan->mode) return plan->mode->current(plan);
  const wlm_plan *better = plan->upgrade ? plan->upgraded(plan) : NULL;
  return better ? better : plan;
}

const char *wlm_plan_variant(const wlm_plan *plan) { return plan ? current(plan)->reason.decision.variant : NULL; }

wlm_status wlm_plan_explain(const wlm_plan *plan, int json, char **out) {
  wlmi_text text = {0};
  if (out) *out = NULL;
  WLM_CHECK(wlmi_need("wlm_plan_explain", "plan text", plan, out));
  const wlm_plan *shown = plan->mode ? plan->mode->current(plan) : plan;
  const wlmi_c_locale locale = wlmi_c_locale_enter();
  if (json)
    wlmi_explain_json(&text, shown);
  else
    wlmi_explain_text(&text, shown);
  wlmi_c_locale_leave(locale);
  return wlmi_finish(wlmi_text_take(&text, out));
}

size_t wlm_plan_prepared_size(const wlm_plan *plan) { return plan ? plan->bound.prepared_size : 0; }

/* Binds the plan's matrix to the kernel that was compiled in the background. */
static wlm_status bind_upgraded(const wlm_plan *plan, const wlm_plan *better, wlmi_bound *bound) {
  const struct wlm_args *a = &plan->bound.args;
  const int turned = wlmi_is_turned(&plan->shape);
  const wlm_csr csr = {.rows = turned ? a->cols : a->rows,
                       .cols = turned ? a->rows : a->cols,
                       .nnz = a->nnz,
                       .rowptr = a->rowptr,
                       .colind = a->colind,
                       .values = a->values};
  return wlmi_bind(&better->shape, &csr, a->a_rowptr, a->order, a->fresh != 0, bound);
}

/* Includes the kernel that was compiled in the background, so a caller that asks again provides its workspace. */
size_t wlm_plan_workspace_size(const wlm_plan *plan) {
  if (!plan) return 0;
  const wlm_plan *better = plan->mode ? plan : current(plan);
  wlmi_bound bound;
  const size_t size = plan->bound.workspace_size;
  if (better == plan || bind_upgraded(plan, better, &bound) != WLM_OK) return size;
  return bound.workspace_size > size ? bound.workspace_size : size;
}

static wlmi_work work_of(const wlmi_bound *bound, const void *workspace) {
  return (wlmi_work){workspace, bound->workspace_size, bound->prepared_size};
}

wlm_status wlm_plan_prepare(wlm_plan *plan, void *prepared, void *stream) {
  wlm_status status = wlmi_need("wlm_plan_prepare", "plan", plan);
  if (status != WLM_OK || !plan->bound.prepared_size) return wlmi_finish(status);
  const wlmi_pointer given = {"prepared", prepared, WLMI_WORK_ALIGNMENT, 1};
  status = wlmi_check_pointers("wlm_plan_prepare", &given, 1);
  if (status != WLM_OK) return status;
  struct wlm_args args = plan->bound.args;
  const wlmi_work work = work_of(&plan->bound, NULL);
  args.prepared = prepared;
  status = wlmi_check_work("wlm_plan_prepare", &plan->shape, &work, &args);
  if (status != WLM_OK) return status;
  plan->bound.args.prepared = prepared;
  const struct wlm_batch_launch once = {plan->bound.args, {.count = 1}, {1, 1}}; /* one pattern for the whole batch */
  if (!plan->bound.empty)
    status = wlmi_launch_all(&plan->shape, &plan->bound, WLMI_WHEN_PREPARE, 1, &once.args, stream);
  plan->is_prepared = status == WLM_OK;
  return wlmi_finish(status);
}

/* The arguments of any kernel. */
typedef union kernel_args {
  struct wlm_args args;
  struct wlm_attention_args attention;
  struct wlm_message_launch message;
  struct wlm_batch_launch batch;
} kernel_args;

static struct wlm_number number(double value) { return (struct wlm_number){value, (float)value}; }

static wlm_status take_attention(const char *function, const wlmi_shape *shape, const wlm_attention_operands *call,
                                 struct wlm_attention_args *kernel) {
  if (!(call->dropout >= 0 && call->dropout < 1) || (call->dropout > 0 && !shape->has_dropout))
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "%s: dropout is %g, must be %s", function, call->dropout,
                     shape->has_dropout ? "at least 0 and below 1" : "0, because wlm_problem.dropout is");
  kernel->attention = (struct wlm_attention){
      .slope = number(call->slope), .dropped = number(call->dropout), .kept = number(1 / (1 - call->dropout))};
  kernel->products = (struct wlm_products){.scale = number(call->scale)};
  return WLM_OK;
}

static wlm_status attend(const char *function, const wlmi_shape *shape, const wlmi_bound *bound,
                         const wlm_execute_args *call, struct wlm_attention_args *kernel) {
  static const wlm_attention_operands none = WLM_ATTENTION_OPERANDS_INIT;
  wlm_attention_operands copy;
  const void *seen = &none;
  wlm_status status = WLM_OK;
  if (call->attention) status = wlmi_struct_see(&wlmi_struct_attention_operands, call->attention, &copy, &seen);
  if (status == WLM_OK) status = take_attention(function, shape, seen, kernel);
  const wlmi_call structs = {{[WLMI_IN_ARGS] = call, [WLMI_IN_ATTENTION] = seen}};
  return status == WLM_OK ? wlmi_take_arrays(function, shape, bound, &structs, kernel) : status;
}

/* Of the operand that says which edges dropout keeps. */
static wlm_status take_dropout(const char *function, double dropout, int at, struct wlm_operands *to) {
  if (!(dropout >= 0 && dropout < 1))
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "%s: the scalar of operand kept is %g, must be at least 0 and below 1",
                     function, dropout);
  to->wide[at] = 1 / (1 - dropout);
  to->narrow[at] = (float)to->wide[at];
  to->in_ld[at] = (long long)ceil((float)dropout * 0x1p24);
  return WLM_OK;
}

static wlm_status take_message(const char *function, const wlmi_shape *shape, const wlmi_bound *bound,
                               const wlm_execute_args *call, struct wlm_message_launch *kernel) {
  const wlmi_arrays *arrays = &shape->arrays;
  struct wlm_args *args = &kernel->args;
  struct wlm_operands *to = &kernel->operands;
  wlm_message_args copy;
  const void *seen;
  if (!call->operands)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_execute_args.operands is NULL, and a message has operands");
  wlm_status status = wlmi_struct_see(&wlmi_struct_message_args, call->operands, &copy, &seen);
  if (status != WLM_OK) return status;
  const wlmi_call structs = {{[WLMI_IN_ARGS] = call, [WLMI_IN_MESSAGE] = seen}};
  *to = (struct wlm_operands){.in = {0}};
  for (int i = 0; i < arrays->operands; i++) {
    to->wide[i] = ((const wlm_message_args *)seen)->scalars[i];
    to->narrow[i] = (float)to->wide[i];
  }
  if (arrays->kept >= 0) status = take_dropout(function, to->wide[arrays->kept], arrays->kept, to);
  if (status == WLM_OK) status = wlmi_take_arrays(function, shape, bound, &structs, kernel);
  args->ldb = args->ldc = shape->n;
  if (arrays->as_b >= 0) args->b = to->in[arrays->as_b], args->ldb = to->in_ld[arrays->as_b];
  if (arrays->as_c >= 0) args->c = to->out[arrays->as_c], args->ldc = to->out_ld[arrays->as_c];
  return status;
}

/* Checks both memories. */
static wlm_status take_work(const char *function, const wlmi_bound *bound, const wlm_execute_args *call,
                            const struct wlm_args *args) {
  const wlmi_pointer prepared = {"prepared", args->prepared, WLMI_WORK_ALIGNMENT, 1};
  WLM_CHECK(wlmi_take_workspace(function, call, bound->workspace_size));
  return bound->prepared_size ? wlmi_check_pointers(function, &prepared, 1) : WLM_OK;
}

/* The passes, between the copies of column-major arrays that are copied. */
static wlm_status launch(const wlmi_shape *shape, const wlmi_bound *bound, kernel_args *kernel,
                         const wlm_execute_args *call) {
  void *const stream = call->stream;
  wlmi_given given[WLMI_MOST_COPIES];
  const wlmi_layout *layout = &bound->layout;
  const int64_t products = shape->loaded.program.is_batched ? kernel->batch.batch.count : 1;
  if (!layout->count && !layout->has_steps)
    return wlmi_launch_all(shape, bound, WLMI_WHEN_EXECUTE, products, &kernel->args, stream);
  WLM_CHECK(wlmi_layout_begin(shape, layout, call->workspace, products, kernel, given, stream));
  WLM_CHECK(wlmi_launch_all(shape, bound, WLMI_WHEN_EXECUTE, products, &kernel->args, stream));
  return wlmi_layout_end(shape, layout, products, kernel, given, stream);
}

static wlm_status launch_batch(const wlmi_shape *shape, const wlmi_bound *bound, const kernel_args *kernel,
                               const wlm_execute_args *call) {
  for (int64_t first = 0; first < shape->batch; first += bound->together) {
    kernel_args part;
    part.batch = wlmi_batch_part(shape, bound, &kernel->batch, first);
    WLM_CHECK(launch(shape, bound, &part, call));
  }
  return WLM_OK;
}

wlm_status wlmi_run(const char *function, const wlmi_shape *shape, const wlmi_bound *bound,
                    const wlm_execute_args *call, const void *prepared) {
  kernel_args kernel;
  if (bound->empty) return WLM_OK;
  kernel.args = bound->args;
  kernel.args.prepared = prepared;
  kernel.args.workspace = call->workspace; /* which in a gradient by argmax stands for an array */
  WLM_CHECK(wlmi_take_call(function, shape, call, &kernel.args));
  if (shape->operation == WLM_MESSAGE)
    WLM_CHECK(take_message(function, shape, bound, call, &kernel.message));
  else if (shape->is_attention)
    WLM_CHECK(attend(function, shape, bound, call, &kernel.attention));
  else
    WLM_CHECK(wlmi_take_arrays(function, shape, bound, &(wlmi_call){{[WLMI_IN_ARGS] = call}}, &kernel));
  WLM_CHECK(take_work(function, bound, call, &kernel.args));
  if (shape->batch > 1 || shape->loaded.program.is_batched)
    WLM_CHECK(wlmi_batch_take(function, shape, bound, call, &kernel.batch));
  const wlmi_work work = work_of(bound, call->workspace);
  WLM_CHECK(wlmi_check_overlap(function, shape, &work, &kernel));
  return shape->batch > 1 ? launch_batch(shape, bound, &kernel, call) : launch(shape, bound, &kernel, call);
}

static const char execute_name[] = "wlm_plan_execute";

/* Runs the kernel that was compiled in the background, if the caller's workspace is large enough. */
static wlm_status execute_upgraded(const wlm_plan *plan, const wlm_plan *better, const wlm_execute_args *args,
                                   int *done) {
  wlmi_bound bound;
  const wlm_status status = bind_upgraded(plan, better, &bound);
  *done = status != WLM_OK || bound.workspace_size <= args->workspace_size;
  return *done && status == WLM_OK ? wlmi_run(execute_name, &better->shape, &bound, args, NULL) : status;
}

static wlm_status execute(const wlm_plan *plan, const wlm_execute_args *args) {
  if (plan->mode) return plan->mode->execute(plan, args);
  if (!plan->bound.args.rowptr)
    return wlmi_fail(WLM_ERR_NOT_READY, "%s: the plan was made for a size; bind it to arrays with wlm_plan_rebind",
                     execute_name);
  const wlm_plan *better = current(plan);
  if (better != plan) {
    int done = 0;
    const wlm_status status = execute_upgraded(plan, better, args, &done);
    if (done) return status;
  }
  const void *prepared = args->prepared ? args->prepared : plan->bound.args.prepared;
  if (plan->bound.prepared_size && !plan->bound.empty && !args->prepared && !plan->is_prepared)
    return wlmi_fail(WLM_ERR_NOT_READY, "%s must be prepared first: call wlm_plan_prepare",
                     plan->reason.decision.variant);
  return wlmi_run(execute_name, &plan->shape, &plan->bound, args, prepared);
}

wlm_status wlm_plan_execute(const wlm_plan *plan, const wlm_execute_args *args) {
  wlm_execute_args copy;
  const void *seen;
  if (!plan) return wlmi_need(execute_name, "plan", plan);
  const wlm_status status = wlmi_struct_see(&wlmi_struct_execute_args, args, &copy, &seen);
  return status == WLM_OK ? wlmi_finish(execute(plan, seen)) : status;
}

wlm_status wlmi_shape_accepts(const wlmi_shape *shape, const wlm_csr *csr) {
  if (csr->rowptr_type != shape->rowptr_type || csr->colind_type != shape->colind_type)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_csr: the plan is for a rowptr of %s and a colind of %s, not %s, %s",
                     wlmi_index_name(shape->rowptr_type), wlmi_index_name(shape->colind_type),
                     wlmi_index_name(csr->rowptr_type), wlmi_index_name(csr->colind_type));
  if (csr->base != shape->base)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_csr: the plan is for arrays of base %d, not %d", shape->base,
                     (int)csr->base);
  const int has_values = wlmi_has_values(csr);
  if (has_values != shape->has_values || (has_values && csr->value_type != shape->value_type))
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "wlm_csr: the plan is for values of %s, not %s",
                     shape->has_values ? wlmi_type_name(shape->value_type) : "none",
                     has_values ? wlmi_type_name(csr->value_type) : "none");
  if (shape->arrays.has_positions && shape->argmax_type == WLM_I32 && csr->nnz > INT32_MAX)
    return wlmi_fail(WLM_ERR_OVERFLOW, "wlm_problem.argmax_type is i32, and %lld non-zeros have more positions",
                     (long long)csr->nnz);
  return WLM_OK;
}
