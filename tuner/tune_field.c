/* Compiles, sets up and checks candidates for the search. On a GPU kernels are compiled while others are measured. On
 * the host compilers would disturb the timing, so batches of compiling and measuring alternate; if the budget runs out,
 * some candidates are already measured. */
#include <math.h>

#include "runtime/dispatch/plan.h"
#include "tuner/compile_ahead.h"
#include "tuner/tune_state.h"

int wlmi_tuning_out_of_budget(const wlmi_tuning *t) {
  return t->options->budget_seconds > 0 && wlmi_seconds() - t->started > t->options->budget_seconds;
}

enum { BATCH_PER_THREAD = 8, BATCH_IN_BUDGET = 1 };

static int compile_tick(void *user) {
  wlmi_tuning *t = user;
  return wlmi_tuning_report(t, NULL) != WLM_OK || (t->summary.measured && wlmi_tuning_out_of_budget(t));
}

/* On a GPU waits for job i; on the host compiles the batch that contains it. */
static void compile(wlmi_tuning *t, int64_t i) {
  const double start = wlmi_seconds();
  if (t->compiling) wlmi_compile_wait(t->compiling, i, compile_tick, t);
  while (!t->compiling && t->compiled <= i) {
    const int64_t each = t->options->budget_seconds > 0 ? BATCH_IN_BUDGET : BATCH_PER_THREAD;
    const int64_t batch = each * wlmi_compile_threads(), left = t->fresh - t->compiled;
    const int64_t count = left < batch ? left : batch;
    wlmi_compile_ahead(t->context, t->jobs + t->compiled, count, compile_tick, t);
    t->compiled += count;
    wlmi_tuning_report(t, NULL); /* an interrupt also ends the compiler; without this it would count as a failure */
  }
  t->summary.compiling += wlmi_seconds() - start;
}

/* Checks the kernel's use of resources before it runs. */
static wlm_status check_fit(wlmi_tuning *t, const wlm_plan *plan) {
  wlmi_text reason = {0};
  wlm_status status = WLM_OK;
  int spills = 0;
  if (!t->device->ops->kernel_facts) return WLM_OK;
  for (int i = 0; i < plan->shape.loaded.program.pass_count && status == WLM_OK && !reason.size; i++) {
    wlmi_kernel_facts facts;
    status = t->device->ops->kernel_facts(t->device, &plan->bound.launches[i], &facts);
    if (status != WLM_OK) break;
    wlmi_kernel_refusal(&facts, plan->bound.launches[i].threads, t->spared, &reason);
    spills |= wlmi_kernel_spills(&facts);
  }
  if (reason.size) status = wlmi_fail(WLM_ERR_UNSUPPORTED, "%s", reason.data);
  wlmi_text_release(&reason);
  t->last_spills = spills;
  return status;
}

static void enter(void *user, int64_t i, wlmi_method *method) {
  wlmi_tuning *t = user;
  *method = (wlmi_method){.max_rel_err = NAN};
  if (i < t->fresh) compile(t, i);
  const double start = wlmi_seconds();
  const wlmi_compile_job *job = i < t->fresh ? &t->jobs[i] : NULL;
  if (job && job->status != WLM_OK) {
    wlmi_fail(job->status, "%s", job->detail ? job->detail : "");
    wlmi_method_give_up(method, job->status);
  } else {
    wlmi_method_variant(t->context, &t->operands, t->candidates[i].variant, method);
    const int is_first = !(t->candidates[i].seconds > 0);
    const wlm_status status = is_first && !method->failure ? check_fit(t, method->plan) : WLM_OK;
    if (status != WLM_OK) wlmi_method_give_up(method, status);
  }
  t->summary.entering += wlmi_seconds() - start;
}

static void glance(void *user, wlmi_method *method, double *seconds) {
  wlmi_tuning *t = user;
  const double start = wlmi_seconds();
  wlmi_method_glance(method, &t->operands, t->verifier, seconds);
  t->summary.checking += wlmi_seconds() - start;
}

static void verify(void *user, wlmi_method *method) {
  wlmi_tuning *t = user;
  const double start = wlmi_seconds();
  wlmi_method_verify(method, &t->operands, t->verifier);
  t->summary.checking += wlmi_seconds() - start;
}

static const size_t most_shifted = 256 << 20; /* bytes of operands above which this check is left out, because copying
                                               * is too slow */

/* Checks a few rows with B and C moved by one element, so that vectors are not aligned. */
static void check_misaligned(wlmi_tuning *t, wlmi_finals *finals) {
  double seconds;
  wlm_status status = WLM_OK;
  if (wlmi_operands_moved(&t->operands) > most_shifted) return;
  status = wlmi_operands_shift(&t->operands, 1);
  for (int i = 0; i < finals->count && status == WLM_OK; i++) {
    wlmi_method *method = &finals->list[i];
    const double error = method->max_rel_err;
    wlmi_method_glance(method, &t->operands, t->verifier, &seconds);
    if (!method->failure) method->max_rel_err = fmax(error, method->max_rel_err);
  }
  const wlm_status back = wlmi_operands_shift(&t->operands, 0);
  status = status == WLM_OK ? back : status;
  for (int i = 0; i < finals->count && status != WLM_OK; i++) wlmi_method_give_up(&finals->list[i], status);
}

static void check_again(void *user, wlmi_finals *finals) {
  wlmi_tuning *t = user;
  const double start = wlmi_seconds();
  for (int i = 0; i < finals->count; i++) wlmi_method_verify_again(&finals->list[i], &t->operands, t->verifier);
  check_misaligned(t, finals);
  t->summary.checking += wlmi_seconds() - start;
}

/* 1 if only doubtful candidates are left, and at the present pace they would take more time than there is. */
static int is_not_worth_it(const wlmi_tuning *t) {
  const int64_t left = t->fresh - t->summary.measured;
  if (left > t->doubtful || !t->summary.measured) return 0;
  const double elapsed = wlmi_seconds() - t->started;
  return elapsed + (elapsed - t->summary.making) / (double)t->summary.measured * (double)left > t->share;
}

static int out_of_time(void *user) { return wlmi_tuning_out_of_budget(user) || is_not_worth_it(user); }

static int in_a_hurry(void *user) { return wlmi_tuning_out_of_budget(user); }

wlmi_search_field wlmi_tuning_field(wlmi_tuning *t) {
  return (wlmi_search_field){
      .device = t->device,
      .count = t->count,
      .candidates = t->candidates,
      .user = t,
      .clock = wlmi_seconds,
      .enter = enter,
      .glance = glance,
      .verify = verify,
      .check_again = check_again,
      .out_of_time = out_of_time,
      .in_a_hurry = in_a_hurry,
  };
}
