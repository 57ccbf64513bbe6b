#include "runtime/dispatch/question.h"

#include <stdio.h>
#include <string.h>

#include "common/memory.h"

void wlmi_copy_name(char *to, size_t capacity, const char *from) { snprintf(to, capacity, "%s", from); }

int wlmi_question_may_prepare(const wlmi_question *q) { return q->calls > 1; }

static const wlmi_failure *failure_in(const wlmi_question *q, const wlmi_case *c, const char *variant) {
  for (int64_t i = 0; c && i < c->failure_count; i++) {
    const wlmi_failure *failure = &q->snapshot->failures[c->first_failure + i];
    if (!strcmp(failure->variant, variant)) return failure;
  }
  return NULL;
}

static const wlmi_failure *failure_of(const wlmi_question *q, const char *variant) {
  const wlmi_failure *failure = NULL;
  for (int i = 0; i <= WLM_SIMPLER && !failure; i++) failure = failure_in(q, q->matrices[i], variant);
  return failure;
}

int wlmi_question_knows(const wlmi_question *q, const wlmi_case *c, const char *variant) {
  for (int64_t i = 0; i < c->count; i++)
    if (!strcmp(q->snapshot->ranked[c->first + i].variant, variant)) return 1;
  return failure_in(q, c, variant) != NULL;
}

int wlmi_question_allows(const wlmi_question *q, const char *variant, int prepare) {
  return !failure_of(q, variant) && q->judge->usable(q->judge->user, variant, prepare);
}

void wlmi_question_reason(const wlmi_question *q, const char *variant, char *out) {
  const wlmi_failure *failure = failure_of(q, variant);
  wlmi_text reason = {0};
  if (failure)
    wlmi_text_printf(&reason, "failed on this very matrix: %s", failure->reason);
  else if (q->judge->why)
    q->judge->why(q->judge->user, variant, wlmi_question_may_prepare(q), &reason);
  wlmi_copy_name(out, WLM_REASON, reason.data && !reason.failed ? reason.data : "is not valid");
  wlmi_text_release(&reason);
}

void wlmi_question_refuse(const wlmi_question *q, const char *variant, wlmi_decision *choice) {
  const int index = choice->refused++;
  choice->refused_failed += failure_of(q, variant) != NULL;
  if (index >= WLM_REFUSALS) return;
  wlmi_refusal *refusal = &choice->refusals[index];
  wlmi_copy_name(refusal->variant, sizeof refusal->variant, variant);
  wlmi_question_reason(q, variant, refusal->reason);
}

int64_t wlmi_question_failures(const wlmi_question *q) {
  int64_t count = 0;
  for (int i = 0; i <= WLM_SIMPLER; i++) count += q->matrices[i] ? q->matrices[i]->failure_count : 0;
  return count;
}

void wlmi_question_describe(wlmi_question *q) {
  int64_t kept = 0;
  if (q->described || !q->judge->describe) return;
  q->described = 1;
  q->candidate_count = q->judge->describe(q->judge->user, &q->candidates);
  if (!wlmi_question_failures(q) || !q->candidate_count) return;
  if (wlmi_alloc_array(q->candidate_count, sizeof *q->kept, "candidates", (void **)&q->kept) == WLM_OK)
    for (int64_t i = 0; i < q->candidate_count; i++)
      if (!failure_of(q, q->candidates[i].variant)) q->kept[kept++] = q->candidates[i];
  q->candidates = q->kept; /* none where there is no memory: then no model is asked */
  q->candidate_count = kept;
}

void wlmi_question_release(wlmi_question *q) {
  wlmi_free(q->kept);
  q->kept = NULL;
}

void wlmi_question_tell_failures(const wlmi_question *q, wlmi_decision *choice) {
  for (int i = 0; i <= WLM_SIMPLER; i++)
    for (int64_t k = 0; q->matrices[i] && k < q->matrices[i]->failure_count; k++) {
      const wlmi_failure *failure = &q->snapshot->failures[q->matrices[i]->first_failure + k];
      if (choice->failed++ >= WLM_REFUSALS) continue;
      wlmi_refusal *told = &choice->failures[choice->failed - 1];
      wlmi_copy_name(told->variant, sizeof told->variant, failure->variant);
      wlmi_copy_name(told->reason, sizeof told->reason, failure->reason);
    }
}
