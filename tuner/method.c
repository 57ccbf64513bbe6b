#include "tuner/method.h"

#include <math.h>
#include <stdio.h>

#include "core/base/memory.h"
#include "tuner/timing.h"

enum { MAX_CALLS = 4096, POISON = 0xFF, CHECKED_AGAIN = 4 };
static const double long_seconds = 20e-3;
static const double baseline_leeway = 16; /* cuSPARSE's results in 16-bit types had errors of up to 1.8 tolerances where
                                           * no row was long */

struct variant {
  wlmi_device *device;
  wlm_plan *plan;
  void *workspace, *prepared;
  const wlmi_operands *operands;
};

static wlm_status enqueue_variant(void *user, void *stream) {
  const struct variant *variant = user;
  return wlmi_operands_call(variant->operands, variant->plan, variant->workspace, stream);
}

static void destroy_variant(void *user) {
  struct variant *variant = user;
  wlm_plan_destroy(variant->plan);
  variant->device->ops->release(variant->device, variant->workspace);
  variant->device->ops->release(variant->device, variant->prepared);
  wlmi_free(variant);
}

static char unsaid[] = "no memory was left to say why"; /* the reason of a failure for which there is no memory */

static void fail(wlmi_method *method, wlm_status status, const char *reason) {
  if (method->failure) return;
  method->failure = wlmi_strdup(reason);
  if (!method->failure) method->failure = unsaid;
  method->status = status;
}

void wlmi_method_free_failure(char *failure) {
  if (failure != unsaid) wlmi_free(failure);
}

void wlmi_method_fail(wlmi_method *method, const char *reason) { fail(method, WLM_ERR_DEVICE, reason); }

void wlmi_method_give_up(wlmi_method *method, wlm_status status) { fail(method, status, wlm_error_detail()); }

/* ---- setting up -------------------------------------------------------------------------------------- */

static wlm_status prepare(const struct variant *variant) {
  wlm_status status;
  WLM_TRY(wlm_plan_prepare(variant->plan, variant->prepared, NULL));
  status = variant->device->ops->synchronize(variant->device, NULL);
done:
  return status == WLM_OK ? status : wlmi_fail_in(status, "preparing");
}

static wlm_status set_up_variant(wlm_context *context, const wlmi_operands *operands, const char *name,
                                 struct variant *variant) {
  wlmi_device *device = variant->device;
  WLM_CHECK(name ? wlm_plan_create_variant(context, operands->matrix, &operands->spec.problem, name, &variant->plan)
                 : wlm_plan_create(context, operands->matrix, &operands->spec.problem, &variant->plan));
  const size_t workspace = wlm_plan_workspace_size(variant->plan), prepared = wlm_plan_prepared_size(variant->plan);
  if (workspace) WLM_CHECK(device->ops->allocate(device, workspace + WLMI_GUARD, &variant->workspace));
  if (!prepared) return WLM_OK;
  WLM_CHECK(device->ops->allocate(device, prepared + WLMI_GUARD, &variant->prepared));
  WLM_CHECK(device->ops->fill(device, NULL, variant->prepared, POISON, prepared + WLMI_GUARD));
  WLM_CHECK(device->ops->synchronize(device, NULL));
  return prepare(variant);
}

void wlmi_method_variant(wlm_context *context, const wlmi_operands *operands, const char *name, wlmi_method *method) {
  *method = (wlmi_method){.enqueue = enqueue_variant, .destroy = destroy_variant, .max_rel_err = NAN};
  snprintf(method->name, sizeof method->name, "%s", name ? name : "(chosen)");
  struct variant *variant = wlmi_alloc_zero(1, sizeof *variant);
  method->user = variant;
  if (!variant) {
    fail(method, WLM_ERR_OUT_OF_MEMORY, "out of memory");
    return;
  }
  *variant = (struct variant){.device = operands->device, .operands = operands};
  const wlm_status status = set_up_variant(context, operands, name, variant);
  if (status != WLM_OK) wlmi_method_give_up(method, status);
  method->plan = variant->plan;
  method->prepared = variant->plan && wlm_plan_prepared_size(variant->plan);
  if (variant->plan) snprintf(method->name, sizeof method->name, "%s", wlm_plan_variant(variant->plan));
}

void wlmi_method_release(wlmi_method *method) {
  if (method->user) method->destroy(method->user);
  wlmi_method_free_failure(method->failure);
  *method = (wlmi_method){0};
}

void *wlmi_method_workspace(const wlmi_method *method) { return ((const struct variant *)method->user)->workspace; }

/* ---- checking ---------------------------------------------------------------------------------------- */

static wlm_status poison(const wlmi_method *method, wlmi_operands *operands) {
  wlmi_device *device = operands->device;
  const struct variant *ours = method->plan ? method->user : NULL;
  if (!ours) {
    WLM_CHECK(
        device->ops->fill(device, NULL, operands->output[0].buffer.memory, 0x7e, operands->output[0].buffer.size));
    WLM_CHECK(device->ops->synchronize(device, NULL));
    return WLM_OK;
  }
  if (ours->workspace)
    WLM_CHECK(
        device->ops->fill(device, NULL, ours->workspace, POISON, wlm_plan_workspace_size(ours->plan) + WLMI_GUARD));
  return wlmi_operands_poison(operands);
}

wlm_status wlmi_method_call(wlmi_device *device, const wlmi_method *method, double (*clock)(void), double *seconds) {
  const double start = clock();
  wlm_status status = method->enqueue(method->user, NULL);
  if (status == WLM_OK) status = device->ops->synchronize(device, NULL);
  *seconds = clock() - start;
  return status;
}

static wlm_status check_guard(const struct variant *ours, const void *memory, size_t size, const char *what) {
  return memory ? wlmi_guard_check(ours->device, (const char *)memory + size, WLMI_GUARD, POISON, what) : WLM_OK;
}

/* Checks that only memory was written that a call may write. */
static wlm_status check_bounds(const wlmi_method *method, const wlmi_operands *operands, int padding) {
  const struct variant *ours = method->plan ? method->user : NULL;
  if (!ours) return WLM_OK;
  WLM_CHECK(check_guard(ours, ours->workspace, wlm_plan_workspace_size(ours->plan), "behind the workspace"));
  WLM_CHECK(check_guard(ours, ours->prepared, wlm_plan_prepared_size(ours->plan), "behind the prepared memory"));
  return wlmi_operands_intact(operands, padding);
}

/* How a result is computed, and how much of it is compared. */
typedef struct checked_call {
  int64_t replayed; /* calls of a timer, of which the last result is compared; 0 = one plain call */
  int whole;
} checked_call;

static void check(wlmi_method *method, wlmi_operands *operands, wlmi_verifier *verifier, checked_call how,
                  double *seconds) {
  wlm_status status;
  if (method->failure) return;
  method->max_rel_err = NAN;
  wlmi_verifier_set_leeway(verifier, method->plan ? 1 : baseline_leeway);
  WLM_TRY(poison(method, operands));
  WLM_TRY(how.replayed ? wlmi_method_sample(operands->device, method, how.replayed, 0, seconds)
                       : wlmi_method_call(operands->device, method, wlmi_seconds, seconds));
  status = how.whole ? wlmi_verify_result(verifier, &method->max_rel_err)
                     : wlmi_verify_spots(verifier, &method->max_rel_err);
  if (status == WLM_OK) status = check_bounds(method, operands, how.whole);
done:
  if (status != WLM_OK) wlmi_method_give_up(method, status);
}

void wlmi_method_verify(wlmi_method *method, wlmi_operands *operands, wlmi_verifier *verifier) {
  double seconds;
  check(method, operands, verifier, (checked_call){.whole = 1}, &seconds);
}

void wlmi_method_glance(wlmi_method *method, wlmi_operands *operands, wlmi_verifier *verifier, double *seconds) {
  check(method, operands, verifier, (checked_call){0}, seconds);
}

void wlmi_method_verify_again(wlmi_method *method, wlmi_operands *operands, wlmi_verifier *verifier) {
  double seconds;
  const double error = method->max_rel_err;
  for (int i = 0; i < CHECKED_AGAIN; i++) wlmi_method_glance(method, operands, verifier, &seconds);
  /* with beta each call would read the previous result */
  check(method, operands, verifier, (checked_call){operands->output[0].host ? 0 : CHECKED_AGAIN + 1, 1}, &seconds);
  if (!method->failure) method->max_rel_err = fmax(error, method->max_rel_err);
}

/* ---- timing ------------------------------------------------------------------------------------------ */

wlm_status wlmi_method_time_prepare(const wlmi_method *method, int samples, double *seconds) {
  const struct variant *variant = method->user;
  double all[1 + WLMI_FEW_SAMPLES], spread;
  *seconds = 0;
  for (int i = 0; method->prepared && i <= samples; i++) {
    const double start = wlmi_seconds();
    WLM_CHECK(prepare(variant));
    all[i] = wlmi_seconds() - start;
  }
  if (method->prepared) wlmi_timing_summarise(all + 1, samples, seconds, &spread);
  return WLM_OK;
}

int64_t wlmi_calls_for(double target, double seconds) {
  double calls = seconds > 0 ? ceil(target / seconds) : MAX_CALLS;
  return calls < 1 ? 1 : calls > MAX_CALLS ? MAX_CALLS : (int64_t)calls;
}

wlm_status wlmi_method_sample(wlmi_device *device, const wlmi_method *method, int64_t calls, int steady,
                              double *seconds) {
  wlmi_timer *timer = NULL;
  wlm_status status;
  WLM_TRY(device->ops->timer_create(device, method->enqueue, method->user, calls, &timer));
  if (steady) WLM_TRY(wlmi_timing_warm_up(device, timer));
  WLM_TRY(device->ops->timer_sample(timer, NULL, 0, seconds));
  *seconds /= (double)calls;
done:
  if (timer) device->ops->timer_destroy(timer);
  return status;
}

static int64_t calls_of(const wlmi_method *method, int64_t calls) {
  if (!(method->seconds * (double)calls > long_seconds)) return calls;
  return method->seconds < long_seconds ? (int64_t)ceil(long_seconds / method->seconds) : 1;
}

wlm_status wlmi_methods_time(wlmi_device *device, wlmi_method *methods, int count, int64_t calls, int samples) {
  wlm_status status;
  wlmi_timer **timers = NULL;
  double *seconds = NULL; /* count x samples, of one call */
  WLM_TRY(wlmi_alloc_array((int64_t)count * samples, sizeof *seconds, "samples", (void **)&seconds));
  timers = wlmi_alloc_zero((size_t)count, sizeof *timers);
  if (!timers) WLM_TRY(wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "timers"));
  for (int i = 0; i < count; i++) {
    wlmi_method *method = &methods[i];
    method->calls = calls_of(method, calls);
    method->samples = samples;
    if (method->failure) continue;
    status = device->ops->timer_create(device, method->enqueue, method->user, method->calls, &timers[i]);
    if (status != WLM_OK) wlmi_method_give_up(method, status);
  }
  for (int round = 0; round < samples; round++)
    for (int i = 0; i < count; i++) {
      double *sample = &seconds[i * samples + round];
      if (methods[i].failure) continue;
      status = device->ops->timer_sample(timers[i], NULL, 0, sample);
      if (status != WLM_OK) wlmi_method_give_up(&methods[i], status);
      *sample /= (double)methods[i].calls;
    }
  for (int i = 0; i < count; i++)
    if (!methods[i].failure)
      wlmi_timing_summarise(&seconds[i * samples], samples, &methods[i].seconds, &methods[i].spread);
  status = WLM_OK;
done:
  for (int i = 0; timers && i < count; i++)
    if (timers[i]) device->ops->timer_destroy(timers[i]);
  wlmi_free(timers);
  wlmi_free(seconds);
  return status;
}

/* The first call includes loading and first touches, so a warm call determines how many calls a sample needs. */
wlm_status wlmi_method_time(wlmi_device *device, wlmi_method *method, double sample_seconds, int samples) {
  for (int steady = 0; steady < 2; steady++) {
    const int64_t calls = steady ? wlmi_calls_for(sample_seconds, method->seconds) : 1;
    WLM_CHECK(wlmi_method_sample(device, method, calls, steady, &method->seconds));
  }
  WLM_CHECK(wlmi_methods_time(device, method, 1, wlmi_calls_for(sample_seconds, method->seconds), samples));
  if (method->failure) return wlmi_fail(method->status, "%s", method->failure);
  return WLM_OK;
}

wlm_status wlmi_method_time_cold(wlmi_device *device, const wlmi_method *method, const wlmi_buffer *flush, int samples,
                                 double *seconds, double *spread) {
  wlmi_timer *timer = NULL;
  double all[WLMI_FEW_SAMPLES];
  wlm_status status;
  WLM_TRY(device->ops->timer_create(device, method->enqueue, method->user, 1, &timer));
  for (int i = 0; i < samples; i++) WLM_TRY(device->ops->timer_sample(timer, flush->memory, flush->size, &all[i]));
  wlmi_timing_summarise(all, samples, seconds, spread);
done:
  if (timer) device->ops->timer_destroy(timer);
  return status;
}
