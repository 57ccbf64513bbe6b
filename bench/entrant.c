#include "bench/entrant.h"

#include <math.h>
#include <stdio.h>

#include "bench/rival_cusparse.h"
#include "common/memory.h"
#include "tuner/timing.h"

enum { PREPARE_SAMPLES = 7 };
static const double long_seconds = 20e-3;

struct variant {
  wlm_device *device;
  wlm_plan *plan;
  void *workspace, *prepared;
  const void *b;
  void *c;
};

static wlm_status enqueue_variant(void *user, void *stream) {
  const struct variant *variant = user;
  return wlm_plan_execute(variant->plan, variant->b, variant->c, variant->workspace, stream);
}

static void destroy_variant(void *user) {
  struct variant *variant = user;
  wlm_plan_destroy(variant->plan);
  variant->device->ops->release(variant->device, variant->workspace);
  variant->device->ops->release(variant->device, variant->prepared);
  wlm_free(variant);
}

void wlm_entrant_fail(wlm_entrant *entrant, const char *reason) {
  if (!entrant->failure) entrant->failure = wlm_strdup(reason);
}

static wlm_status set_up_variant(wlm_context *context, const wlm_operands *operands, const char *name,
                                 struct variant *variant) {
  wlm_device *device = variant->device;
  wlm_status status;
  WLM_TRY(name ? wlm_plan_create_variant(context, operands->matrix, &operands->spec.problem, name, &variant->plan)
               : wlm_plan_create(context, operands->matrix, &operands->spec.problem, &variant->plan));
  const size_t workspace = wlm_plan_workspace_size(variant->plan), prepared = wlm_plan_prepared_size(variant->plan);
  if (workspace) WLM_TRY(device->ops->allocate(device, workspace, &variant->workspace));
  if (!prepared) goto done;
  WLM_TRY(device->ops->allocate(device, prepared, &variant->prepared));
  WLM_TRY(device->ops->fill(device, variant->prepared, 0xFF, prepared));
  WLM_TRY(device->ops->synchronize(device, NULL));
  WLM_TRY(wlm_plan_prepare(variant->plan, variant->prepared, NULL));
  WLM_TRY(device->ops->synchronize(device, NULL));
done:
  return status;
}

void wlm_entrant_variant(wlm_context *context, const wlm_operands *operands, const char *name, wlm_entrant *entrant) {
  *entrant = (wlm_entrant){.enqueue = enqueue_variant, .destroy = destroy_variant};
  snprintf(entrant->name, sizeof entrant->name, "%s", name ? name : "(chosen)");
  struct variant *variant = wlm_alloc_zero(1, sizeof *variant);
  entrant->user = variant;
  if (!variant) {
    wlm_entrant_fail(entrant, "out of memory");
    return;
  }
  *variant = (struct variant){.device = operands->device, .b = operands->b.memory, .c = operands->c.memory};
  if (set_up_variant(context, operands, name, variant) != WLM_OK) wlm_entrant_fail(entrant, wlm_error_detail());
  entrant->plan = variant->plan;
  entrant->prepared = variant->prepared != NULL;
  if (variant->plan) snprintf(entrant->name, sizeof entrant->name, "%s", wlm_plan_variant(variant->plan));
}

static void destroy_cusparse(void *user) { wlm_cusparse_destroy(user); }

void wlm_entrant_cusparse(const wlm_operands *operands, int way, wlm_entrant *entrant, double *preprocess_seconds) {
  wlm_cusparse *rival;
  *entrant = (wlm_entrant){.enqueue = wlm_cusparse_enqueue, .destroy = destroy_cusparse};
  snprintf(entrant->name, sizeof entrant->name, "%s", wlm_cusparse_name(way));
  if (wlm_cusparse_create(operands->device, way, wlm_matrix_csr(operands->matrix), operands->spec.problem.n,
                          operands->b.memory, operands->c.memory, &rival) != WLM_OK)
    wlm_entrant_fail(entrant, wlm_error_detail());
  entrant->user = rival;
  if (preprocess_seconds) *preprocess_seconds = rival ? wlm_cusparse_preprocess_seconds(rival) : 0;
}

void wlm_entrant_release(wlm_entrant *entrant) {
  if (entrant->user) entrant->destroy(entrant->user);
  wlm_free(entrant->failure);
  *entrant = (wlm_entrant){0};
}

static wlm_status run_once(const wlm_entrant *entrant, const wlm_operands *operands) {
  wlm_device *device = operands->device;
  const struct variant *ours = entrant->plan ? entrant->user : NULL;
  wlm_status status;
  WLM_TRY(device->ops->fill(device, operands->c.memory, ours ? 0xFF : 0x7e, operands->c.size));
  if (ours && ours->workspace)
    WLM_TRY(device->ops->fill(device, ours->workspace, 0xFF, wlm_plan_workspace_size(ours->plan)));
  WLM_TRY(device->ops->synchronize(device, NULL));
  WLM_TRY(entrant->enqueue(entrant->user, NULL));
  status = device->ops->synchronize(device, NULL);
done:
  return status;
}

void wlm_entrant_verify(wlm_entrant *entrant, const wlm_operands *operands, wlm_verifier *verifier,
                        double *max_rel_err) {
  if (entrant->failure) return;
  if (run_once(entrant, operands) != WLM_OK || wlm_verify_result(verifier, max_rel_err) != WLM_OK)
    wlm_entrant_fail(entrant, wlm_error_detail());
}

wlm_status wlm_entrant_time_prepare(const wlm_entrant *entrant, double *seconds) {
  const struct variant *variant = entrant->user;
  double samples[PREPARE_SAMPLES + 1], spread;
  wlm_status status = WLM_OK;
  *seconds = 0;
  if (!entrant->prepared) return WLM_OK;
  for (int i = 0; i <= PREPARE_SAMPLES; i++) {
    const double start = wlm_seconds();
    WLM_TRY(wlm_plan_prepare(variant->plan, variant->prepared, NULL));
    WLM_TRY(variant->device->ops->synchronize(variant->device, NULL));
    samples[i] = wlm_seconds() - start;
  }
  wlm_timing_summarise(samples + 1, PREPARE_SAMPLES, seconds, &spread);
done:
  return status;
}

wlm_status wlm_entrant_sample(wlm_device *device, const wlm_entrant *entrant, int64_t calls, double *seconds) {
  wlm_timer *timer;
  wlm_status status = device->ops->timer_create(device, entrant->enqueue, entrant->user, calls, &timer);
  if (status != WLM_OK) return status;
  status = device->ops->timer_sample(timer, seconds);
  *seconds /= (double)calls;
  device->ops->timer_destroy(timer);
  return status;
}

static int64_t calls_of(const wlm_entrant *entrant, int64_t calls) {
  if (!(entrant->seconds * (double)calls > long_seconds)) return calls;
  return entrant->seconds < long_seconds ? (int64_t)ceil(long_seconds / entrant->seconds) : 1;
}

wlm_status wlm_entrants_time(wlm_device *device, wlm_entrant *entrants, int count, int64_t calls, int samples) {
  wlm_status status;
  struct race {
    wlm_timer *timer;
    int64_t calls;
  } *races = NULL;
  double *seconds = NULL; /* count x samples, of one call */
  WLM_TRY(wlm_alloc_array((int64_t)count * samples, sizeof *seconds, "samples", (void **)&seconds));
  races = wlm_alloc_zero((size_t)count, sizeof *races);
  if (!races) WLM_TRY(wlm_fail(WLM_ERR_OUT_OF_MEMORY, "timers"));
  for (int i = 0; i < count; i++) {
    races[i].calls = calls_of(&entrants[i], calls);
    if (!entrants[i].failure && device->ops->timer_create(device, entrants[i].enqueue, entrants[i].user, races[i].calls,
                                                          &races[i].timer) != WLM_OK)
      wlm_entrant_fail(&entrants[i], wlm_error_detail());
  }
  for (int round = 0; round < samples; round++)
    for (int i = 0; i < count; i++) {
      double *sample = &seconds[i * samples + round];
      if (entrants[i].failure) continue;
      if (device->ops->timer_sample(races[i].timer, sample) != WLM_OK)
        wlm_entrant_fail(&entrants[i], wlm_error_detail());
      else
        *sample /= (double)races[i].calls;
    }
  for (int i = 0; i < count; i++)
    if (!entrants[i].failure)
      wlm_timing_summarise(&seconds[i * samples], samples, &entrants[i].seconds, &entrants[i].spread);
done:
  for (int i = 0; races && i < count; i++)
    if (races[i].timer) device->ops->timer_destroy(races[i].timer);
  wlm_free(races);
  wlm_free(seconds);
  return status;
}
