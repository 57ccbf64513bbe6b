#include "bench/entrant.h"

#include <stdio.h>

#include "bench/rival_cusparse.h"
#include "common/memory.h"
#include "tuner/timing.h"

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
  size_t workspace = wlm_plan_workspace_size(variant->plan), prepared = wlm_plan_prepared_size(variant->plan);
  if (workspace) WLM_TRY(device->ops->allocate(device, workspace, &variant->workspace));
  if (!prepared) goto done;
  WLM_TRY(device->ops->allocate(device, prepared, &variant->prepared));
  WLM_TRY(wlm_plan_prepare(variant->plan, variant->prepared, NULL));
  WLM_TRY(device->ops->synchronize(device, NULL));
done:
  return status;
}

void wlm_entrant_variant(wlm_context *context, const wlm_operands *operands, const char *name, wlm_entrant *entrant) {
  *entrant = (wlm_entrant){.enqueue = enqueue_variant, .destroy = destroy_variant};
  snprintf(entrant->name, sizeof entrant->name, "%s", name ? name : "");
  struct variant *variant = wlm_alloc_zero(1, sizeof *variant);
  entrant->user = variant;
  if (!variant) {
    wlm_entrant_fail(entrant, "out of memory");
    return;
  }
  *variant = (struct variant){.device = operands->device, .b = operands->b.memory, .c = operands->c.memory};
  if (set_up_variant(context, operands, name, variant) != WLM_OK) wlm_entrant_fail(entrant, wlm_error_detail());
  entrant->plan = variant->plan;
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

wlm_status wlm_entrant_sample(wlm_device *device, const wlm_entrant *entrant, int64_t calls, double *seconds) {
  wlm_timer *timer;
  wlm_status status = device->ops->timer_create(device, entrant->enqueue, entrant->user, calls, &timer);
  if (status != WLM_OK) return status;
  status = device->ops->timer_sample(timer, seconds);
  *seconds /= (double)calls;
  device->ops->timer_destroy(timer);
  return status;
}

wlm_status wlm_entrants_time(wlm_device *device, wlm_entrant *entrants, int count, int64_t calls, int samples) {
  wlm_status status;
  wlm_timer **timers = NULL;
  double *seconds = NULL; /* count x samples */
  WLM_TRY(wlm_alloc_array((int64_t)count * samples, sizeof *seconds, "samples", (void **)&seconds));
  timers = wlm_alloc_zero((size_t)count, sizeof *timers);
  if (!timers) WLM_TRY(wlm_fail(WLM_ERR_OUT_OF_MEMORY, "timers"));
  for (int i = 0; i < count; i++)
    if (!entrants[i].failure &&
        device->ops->timer_create(device, entrants[i].enqueue, entrants[i].user, calls, &timers[i]) != WLM_OK)
      wlm_entrant_fail(&entrants[i], wlm_error_detail());
  for (int round = 0; round < samples; round++)
    for (int i = 0; i < count; i++)
      if (!entrants[i].failure && device->ops->timer_sample(timers[i], &seconds[i * samples + round]) != WLM_OK)
        wlm_entrant_fail(&entrants[i], wlm_error_detail());
  for (int i = 0; i < count; i++) {
    if (entrants[i].failure) continue;
    wlm_timing_summarise(&seconds[i * samples], samples, &entrants[i].seconds, &entrants[i].spread);
    entrants[i].seconds /= (double)calls;
  }
done:
  for (int i = 0; timers && i < count; i++)
    if (timers[i]) device->ops->timer_destroy(timers[i]);
  wlm_free(timers);
  wlm_free(seconds);
  return status;
}
