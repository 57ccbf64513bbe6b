#include "runtime/dispatch/question.h"

#include <stdio.h>
#include <string.h>

#include "common/memory.h"

void wlm_copy_name(char *to, size_t capacity, const char *from) { snprintf(to, capacity, "%s", from); }

int wlm_question_may_prepare(const wlm_question *q) { return q->calls > 1; }

static const wlm_failure *failure_of(const wlm_question *q, const char *variant) {
  const wlm_failure *all = q->snapshot->failures;
  for (int64_t i = 0; q->matrix && i < q->matrix->failure_count; i++)
    if (!strcmp(all[q->matrix->first_failure + i].variant, variant)) return &all[q->matrix->first_failure + i];
  return NULL;
}

int wlm_question_allows(const wlm_question *q, const char *variant, int prepare) {
  return !failure_of(q, variant) && q->judge->usable(q->judge->user, variant, prepare);
}

void wlm_question_reason(const wlm_question *q, const char *variant, char *out) {
  const wlm_failure *failure = failure_of(q, variant);
  wlm_text reason = {0};
  if (failure)
    wlm_text_printf(&reason, "failed on this very matrix: %s", failure->reason);
  else if (q->judge->why)
    q->judge->why(q->judge->user, variant, wlm_question_may_prepare(q), &reason);
  wlm_copy_name(out, WLM_REASON, reason.data && !reason.failed ? reason.data : "is not valid");
  wlm_text_release(&reason);
}

void wlm_question_refuse(const wlm_question *q, const char *variant, wlm_decision *choice) {
  const int index = choice->refused++;
  if (index >= WLM_REFUSALS) return;
  wlm_refusal *refusal = &choice->refusals[index];
  wlm_copy_name(refusal->variant, sizeof refusal->variant, variant);
  wlm_question_reason(q, variant, refusal->reason);
}

void wlm_question_describe(wlm_question *q) {
  int64_t kept = 0;
  if (q->described || !q->judge->describe) return;
  q->described = 1;
  q->candidate_count = q->judge->describe(q->judge->user, &q->candidates);
  if (!q->matrix || !q->matrix->failure_count || !q->candidate_count) return;
  if (wlm_alloc_array(q->candidate_count, sizeof *q->kept, "candidates", (void **)&q->kept) == WLM_OK)
    for (int64_t i = 0; i < q->candidate_count; i++)
      if (!failure_of(q, q->candidates[i].variant)) q->kept[kept++] = q->candidates[i];
  q->candidates = q->kept; /* none where there is no memory: then no model is asked */
  q->candidate_count = kept;
}

void wlm_question_release(wlm_question *q) {
  wlm_free(q->kept);
  q->kept = NULL;
}

void wlm_question_tell_failures(const wlm_question *q, wlm_decision *choice) {
  if (!q->matrix) return;
  const wlm_failure *failures = q->snapshot->failures + q->matrix->first_failure;
  choice->failed = (int)q->matrix->failure_count;
  for (int i = 0; i < choice->failed && i < WLM_REFUSALS; i++) {
    wlm_copy_name(choice->failures[i].variant, sizeof choice->failures[i].variant, failures[i].variant);
    wlm_copy_name(choice->failures[i].reason, sizeof choice->failures[i].reason, failures[i].reason);
  }
}
