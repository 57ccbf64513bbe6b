/* What may be chosen: valid variants that did not fail on this very matrix. */
#include <stdio.h>
#include <string.h>

#include "common/memory.h"
#include "select/state.h"

void wlmi_copy_name(char *to, size_t capacity, const char *from) { snprintf(to, capacity, "%s", from ? from : ""); }

int wlmi_may_prepare(const wlmi_selection *s) { return s->calls > 1; }

static const wlmi_measured *failure_in(const wlmi_case *c, const char *variant) {
  for (int64_t i = c ? c->count : 0; c && i < c->count + c->failed; i++)
    if (!strcmp(c->candidates[i].variant, variant)) return &c->candidates[i];
  return NULL;
}

static const wlmi_measured *failure_of(const wlmi_selection *s, const char *variant) {
  const wlmi_measured *failure = NULL;
  for (int i = 0; i <= WLM_SIMPLER && !failure; i++) failure = failure_in(s->same_matrix[i], variant);
  return failure;
}

int wlmi_case_has(const wlmi_case *c, const char *variant) {
  for (int64_t i = 0; i < c->count + c->failed; i++)
    if (!strcmp(c->candidates[i].variant, variant)) return 1;
  return 0;
}

static int is_valid(const wlmi_selection *s, const char *variant, int may_prepare) {
  const wlmi_variant_set *variants = s->request->variants;
  wlmi_validities *known = s->validities;
  for (int i = 0; i < known->count; i++)
    if (known->list[i].may_prepare == may_prepare && !strcmp(known->list[i].variant, variant))
      return known->list[i].is_valid;
  const int answer = variants->is_valid(variants->user, variant, may_prepare);
  if (known->count == WLM_VALIDITIES) return answer;
  struct wlmi_validity *next = &known->list[known->count++];
  next->may_prepare = may_prepare;
  next->is_valid = answer;
  wlmi_copy_name(next->variant, sizeof next->variant, variant);
  return answer;
}

int wlmi_is_allowed(const wlmi_selection *s, const char *variant, int may_prepare) {
  return !failure_of(s, variant) && is_valid(s, variant, may_prepare);
}

void wlmi_explain_refusal(const wlmi_selection *s, const char *variant, char *out) {
  const wlmi_variant_set *variants = s->request->variants;
  const wlmi_measured *failure = failure_of(s, variant);
  wlmi_text reason = {0};
  if (failure)
    wlmi_text_printf(&reason, "failed on this very matrix: %s", failure->reason ? failure->reason : "");
  else if (variants->explain)
    variants->explain(variants->user, variant, wlmi_may_prepare(s), &reason);
  wlmi_copy_name(out, WLM_REASON, reason.data && !reason.failed ? reason.data : "is not valid");
  wlmi_text_release(&reason);
}

void wlmi_refuse(const wlmi_selection *s, const char *variant, wlmi_decision *decision) {
  const int index = decision->refused++;
  decision->refused_failed += failure_of(s, variant) != NULL;
  if (index >= WLM_REFUSALS) return;
  wlmi_refusal *refusal = &decision->refusals[index];
  wlmi_copy_name(refusal->variant, sizeof refusal->variant, variant);
  wlmi_explain_refusal(s, variant, refusal->reason);
}

int64_t wlmi_failure_count(const wlmi_selection *s) {
  int64_t count = 0;
  for (int i = 0; i <= WLM_SIMPLER; i++) count += s->same_matrix[i] ? s->same_matrix[i]->failed : 0;
  return count;
}

void wlmi_list_candidates(wlmi_selection *s) {
  const wlmi_variant_set *variants = s->request->variants;
  int64_t kept = 0;
  if (s->listed || !variants->list) return;
  s->listed = 1;
  s->candidate_count = variants->list(variants->user, &s->candidates);
  if (!wlmi_failure_count(s) || !s->candidate_count) return;
  if (wlmi_alloc_array(s->candidate_count, sizeof *s->kept, "candidates", (void **)&s->kept) == WLM_OK)
    for (int64_t i = 0; i < s->candidate_count; i++)
      if (!failure_of(s, s->candidates[i].variant)) s->kept[kept++] = s->candidates[i];
  s->candidates = s->kept; /* none where there is no memory: then no model is used */
  s->candidate_count = kept;
}

void wlmi_selection_release(wlmi_selection *s) {
  wlmi_free(s->kept);
  s->kept = NULL;
}

void wlmi_describe_failures(const wlmi_selection *s, wlmi_decision *decision) {
  for (int i = 0; i <= WLM_SIMPLER; i++)
    for (int64_t k = 0; s->same_matrix[i] && k < s->same_matrix[i]->failed; k++) {
      const wlmi_measured *failure = &s->same_matrix[i]->candidates[s->same_matrix[i]->count + k];
      if (decision->failed++ >= WLM_REFUSALS) continue;
      wlmi_refusal *shown = &decision->failures[decision->failed - 1];
      wlmi_copy_name(shown->variant, sizeof shown->variant, failure->variant);
      wlmi_copy_name(shown->reason, sizeof shown->reason, failure->reason);
    }
}

void wlmi_add_entry(wlmi_decision *decision, const char *variant, double seconds, wlm_step step, const char *reason) {
  const int limit = step == WLM_STEP_BUILTIN ? WLM_ENTRIES : WLM_ENTRIES - 1;
  if (decision->entry_count >= limit) return;
  for (int i = 0; i < decision->entry_count; i++)
    if (!strcmp(decision->entries[i].variant, variant)) return;
  wlmi_entry *entry = &decision->entries[decision->entry_count++];
  *entry = (wlmi_entry){.seconds = seconds, .step = step, .reason = reason};
  wlmi_copy_name(entry->variant, sizeof entry->variant, variant);
}
