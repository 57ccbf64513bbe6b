#include "runtime/dispatch/snapshot.h"

#include <string.h>

#include "common/memory.h"

/* Problems and variants repeat from one entry to the next, so looking back a little keeps most copies away. */
static wlm_status keep(wlmi_snapshot *s, const char *text, const char **kept) {
  enum { LOOK_BACK = 64 };
  for (int64_t i = s->string_count; i-- > 0 && i >= s->string_count - LOOK_BACK;) {
    if (strcmp(s->strings[i], text)) continue;
    *kept = s->strings[i];
    return WLM_OK;
  }
  wlm_status status =
      wlmi_grow((void **)&s->strings, s->string_count, &s->string_capacity, sizeof *s->strings, "snapshot");
  if (status != WLM_OK) return status;
  char *copy = wlmi_strdup(text);
  if (!copy) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "snapshot");
  *kept = s->strings[s->string_count++] = copy;
  return WLM_OK;
}

wlm_status wlmi_snapshot_add_case(wlmi_snapshot *s, const wlmi_case *new_case) {
  wlm_status status;
  wlmi_case c = *new_case;
  c.first = s->ranked_count;
  c.first_failure = s->failure_count;
  c.count = c.failure_count = 0;
  WLM_TRY(keep(s, new_case->problem, &c.problem));
  if (new_case->matrix) WLM_TRY(keep(s, new_case->matrix, &c.matrix));
  if (new_case->borrowed) WLM_TRY(keep(s, new_case->borrowed, &c.borrowed));
  WLM_TRY(wlmi_grow((void **)&s->cases, s->case_count, &s->case_capacity, sizeof *s->cases, "snapshot"));
  s->cases[s->case_count++] = c;
done:
  return status;
}

wlm_status wlmi_snapshot_add_ranked(wlmi_snapshot *s, const char *variant, double cost, double prepare) {
  wlm_status status;
  wlmi_ranked r = {.cost = cost, .prepare = prepare};
  WLM_TRY(keep(s, variant, &r.variant));
  WLM_TRY(wlmi_grow((void **)&s->ranked, s->ranked_count, &s->ranked_capacity, sizeof *s->ranked, "snapshot"));
  s->ranked[s->ranked_count++] = r;
  s->cases[s->case_count - 1].count++;
done:
  return status;
}

wlm_status wlmi_snapshot_mark_stale(wlmi_snapshot *s, const char *stale) {
  return keep(s, stale, &s->ranked[s->ranked_count - 1].stale);
}

void wlmi_snapshot_mark_measured(wlmi_snapshot *s, double spread, int online) {
  s->ranked[s->ranked_count - 1].spread = spread;
  s->ranked[s->ranked_count - 1].online = online;
}

wlm_status wlmi_snapshot_mark_stale_model(wlmi_snapshot *s, const char *stale) {
  return keep(s, stale, &s->models[s->model_count - 1].stale);
}

wlm_status wlmi_snapshot_add_failure(wlmi_snapshot *s, const char *variant, const char *reason) {
  wlm_status status;
  wlmi_failure f;
  WLM_TRY(keep(s, variant, &f.variant));
  WLM_TRY(keep(s, reason, &f.reason));
  WLM_TRY(wlmi_grow((void **)&s->failures, s->failure_count, &s->failure_capacity, sizeof *s->failures, "snapshot"));
  s->failures[s->failure_count++] = f;
  s->cases[s->case_count - 1].failure_count++;
done:
  return status;
}

wlm_status wlmi_snapshot_add_pin(wlmi_snapshot *s, const wlmi_pin *new_pin) {
  wlm_status status;
  wlmi_pin pin = *new_pin;
  WLM_TRY(keep(s, new_pin->problem, &pin.problem));
  WLM_TRY(keep(s, new_pin->variant, &pin.variant));
  WLM_TRY(wlmi_grow((void **)&s->pins, s->pin_count, &s->pin_capacity, sizeof *s->pins, "snapshot"));
  s->pins[s->pin_count++] = pin;
done:
  return status;
}

wlm_status wlmi_snapshot_add_model(wlmi_snapshot *s, wlmi_model *model, const char *borrowed) {
  wlm_status status;
  if (borrowed) WLM_TRY(keep(s, borrowed, &model->borrowed));
  WLM_TRY(wlmi_grow((void **)&s->models, s->model_count, &s->model_capacity, sizeof *s->models, "snapshot"));
  s->models[s->model_count++] = *model;
  *model = (wlmi_model){0};
done:
  return status;
}

void wlmi_snapshot_release(wlmi_snapshot *s) {
  for (int64_t i = 0; i < s->model_count; i++) wlmi_model_release(&s->models[i]);
  wlmi_free(s->models);
  for (int64_t i = 0; i < s->string_count; i++) wlmi_free(s->strings[i]);
  wlmi_free(s->strings);
  wlmi_free(s->cases);
  wlmi_free(s->ranked);
  wlmi_free(s->failures);
  wlmi_free(s->pins);
  *s = (wlmi_snapshot){0};
}
