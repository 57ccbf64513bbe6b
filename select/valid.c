/* Decides which variants may be chosen: valid ones that did not fail on this very matrix. */
#include <stdio.h>
#include <string.h>

#include "core/base/memory.h"
#include "select/state.h"

void wlmi_copy_name(char *to, size_t capacity, const char *from) { snprintf(to, capacity, "%s", from ? from : ""); }

int wlmi_may_prepare(const wlmi_selection *s) { return s->calls > 1; }

/* Finds the variant among the candidates of a case, beginning at index `from`. */
static const wlmi_measured *find(const wlmi_case *c, int64_t from, const wlmi_variant *variant) {
  for (int64_t i = from; i < c->count + c->failed; i++)
    if (wlmi_variant_same(&c->candidates[i].value, variant)) return &c->candidates[i];
  return NULL;
}

int wlmi_case_has(const wlmi_case *c, const wlmi_variant *variant) { return find(c, 0, variant) != NULL; }

static const wlmi_measured *failure_of(const wlmi_selection *s, const wlmi_variant *variant) {
  for (int i = 0; i <= WLMI_SIMPLER; i++) {
    const wlmi_case *c = s->same_matrix[i];
    const wlmi_measured *failure = c ? find(c, c->count, variant) : NULL;
    if (failure) return failure;
  }
  return NULL;
}

int wlmi_is_allowed(const wlmi_selection *s, const wlmi_variant *variant, int may_prepare) {
  const wlmi_variant_set *variants = s->request->variants;
  if (!variant->family || failure_of(s, variant)) return 0;
  if (variants->is_valid) return variants->is_valid(variants->user, variant, may_prepare);
  const wlmi_candidate *candidate = wlmi_candidate_find(variants->list, variant);
  return candidate && (may_prepare || !candidate->prepares);
}

int wlmi_failed_here(const wlmi_selection *s, const wlmi_variant *variant) { return failure_of(s, variant) != NULL; }

int wlmi_was_wrong(const wlmi_selection *s, const wlmi_variant *variant) {
  const wlmi_measured *failure = failure_of(s, variant);
  const char *wrong = wlm_status_message(WLM_ERR_MISMATCH);
  return failure && failure->reason && !strncmp(failure->reason, wrong, strlen(wrong));
}

void wlmi_explain_refusal(const wlmi_selection *s, const wlmi_variant *variant, const char *name, char *out) {
  const wlmi_variant_set *variants = s->request->variants;
  const wlmi_measured *failure = failure_of(s, variant);
  wlmi_text reason = {0};
  if (failure)
    wlmi_text_printf(&reason, "failed on this very matrix: %s", failure->reason ? failure->reason : "");
  else if (variants->explain)
    variants->explain(variants->user, name, wlmi_may_prepare(s), &reason);
  wlmi_copy_name(out, WLMI_REASON, reason.data && !reason.failed ? reason.data : "is not valid");
  wlmi_text_release(&reason);
}

void wlmi_refuse(const wlmi_selection *s, const wlmi_variant *variant, const char *name, wlmi_decision *decision) {
  const int index = decision->refused++;
  decision->refused_failed += failure_of(s, variant) != NULL;
  if (index >= WLMI_REFUSALS) return;
  wlmi_refusal *refusal = &decision->refusals[index];
  wlmi_copy_name(refusal->variant, sizeof refusal->variant, name);
  wlmi_explain_refusal(s, variant, name, refusal->reason);
}

int64_t wlmi_failure_count(const wlmi_selection *s) {
  int64_t count = 0;
  for (int i = 0; i <= WLMI_SIMPLER; i++) count += s->same_matrix[i] ? s->same_matrix[i]->failed : 0;
  return count;
}

void wlmi_list_candidates(wlmi_selection *s) {
  const wlmi_candidate_list *list = s->request->variants->list;
  int64_t kept = 0;
  if (s->listed || !list) return;
  s->listed = 1;
  s->candidates = list->candidates;
  s->candidate_count = list->count;
  if (!wlmi_failure_count(s) || !s->candidate_count) return;
  const wlm_status status = wlmi_alloc_array(s->candidate_count, sizeof *s->kept, "candidates", (void **)&s->kept);
  s->out_of_memory |= status != WLM_OK;
  if (status == WLM_OK)
    for (int64_t i = 0; i < s->candidate_count; i++)
      if (!failure_of(s, &s->candidates[i].value)) s->kept[kept++] = s->candidates[i];
  s->candidates = s->kept;
  s->candidate_count = kept;
}

void wlmi_selection_release(wlmi_selection *s) {
  wlmi_free(s->kept);
  s->kept = NULL;
}

void wlmi_describe_failures(const wlmi_selection *s, wlmi_decision *decision) {
  for (int i = 0; i <= WLMI_SIMPLER; i++)
    for (int64_t k = 0; s->same_matrix[i] && k < s->same_matrix[i]->failed; k++) {
      const wlmi_measured *failure = &s->same_matrix[i]->candidates[s->same_matrix[i]->count + k];
      if (decision->failed++ >= WLMI_REFUSALS) continue;
      wlmi_refusal *shown = &decision->failures[decision->failed - 1];
      wlmi_copy_name(shown->variant, sizeof shown->variant, failure->variant);
      wlmi_copy_name(shown->reason, sizeof shown->reason, failure->reason);
    }
}

void wlmi_add_entry(wlmi_decision *decision, const wlmi_variant *variant, double seconds, wlmi_step step,
                    const char *reason) {
  const int limit = step == WLMI_STEP_BUILTIN ? WLMI_ENTRIES : WLMI_ENTRIES - 1;
  if (decision->entry_count >= limit) return;
  for (int i = 0; i < decision->entry_count; i++)
    if (wlmi_variant_same(&decision->entries[i].variant, variant)) return;
  decision->entries[decision->entry_count++] = (wlmi_entry){*variant, seconds, step, reason};
}
