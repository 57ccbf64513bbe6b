#include "select/prune.h"

#include <math.h>
#include <string.h>

#include "core/base/memory.h"
#include "select/select.h"

/* Whether a candidate's price, cost + preparing / calls, is the least for some number of calls: the shares 1 / calls at
 * which it is lie between `least` and `most`. Nothing is prepared for one call. Of the unprepared candidates only the
 * first verified one can win. */
static int wins(const wlmi_case *c, int64_t candidate) {
  const wlmi_measured *m = &c->candidates[candidate];
  double least = 0, most = m->prepare > 0 ? 0.5 : 1;
  int unprepared = 0;
  if (!wlmi_measured_is_verified(m)) return 0;
  for (int64_t i = 0; i < c->count; i++) {
    const wlmi_measured *other = &c->candidates[i];
    if (i == candidate || !wlmi_measured_is_verified(other) || (!(other->prepare > 0) && unprepared++)) continue;
    const double more = other->prepare - m->prepare, gap = m->cost - other->cost;
    if (more > 0)
      least = fmax(least, gap / more);
    else if (more < 0)
      most = fmin(most, gap / more);
    else if (i < candidate) /* the case's order decides */
      return 0;
  }
  return least <= most;
}

/* Marks the `keep` fastest candidates of either kind, those that win for some number of calls, and others until the
 * case can't be called thin. */
static void mark_kept(const wlmi_case *c, int64_t keep, char *kept) {
  int64_t plain = 0, prepared = 0, count = 0;
  for (int64_t i = 0; i < c->count; i++) {
    const int64_t before = c->candidates[i].prepare > 0 ? prepared++ : plain++;
    kept[i] = before < keep || wins(c, i);
    count += kept[i];
  }
  for (int64_t i = 0; i < c->count + c->failed && count < WLMI_THIN; i++) {
    count += !kept[i];
    kept[i] = 1;
  }
}

static int is_kept(const wlmi_class *class, const wlmi_measurement_record *record, const char *kept) {
  if (wlmi_measurement_is_cold(record)) return 0; /* decides nothing */
  const wlmi_case *c = wlmi_cases_find(&class->choices, record);
  for (int64_t i = 0; c && i < c->count + c->failed; i++)
    if (!strcmp(c->candidates[i].variant, record->variant)) return kept[c->candidates - class->choices.candidates + i];
  return 1;
}

static wlm_status mark_beaten(const wlmi_class *class, int64_t keep, char *superfluous) {
  const size_t most = (size_t) class->count;
  char *kept = wlmi_alloc_zero(most, 1); /* of all cases' candidates */
  if (!kept) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "measurements to keep");
  for (int64_t i = 0; i < class->choices.count; i++) {
    const wlmi_case *c = &class->choices.list[i];
    mark_kept(c, keep, kept + (c->candidates - class->choices.candidates));
  }
  for (int64_t i = 0; i < class->count; i++) superfluous[i] |= !is_kept(class, &class->records[i], kept);
  wlmi_free(kept);
  return WLM_OK;
}

wlm_status wlmi_class_superfluous(const wlmi_class *class, int64_t keep, char *superfluous) {
  const wlm_status status = wlmi_cases_superseded(class->records, class->count, superfluous);
  return status == WLM_OK && keep ? mark_beaten(class, keep, superfluous) : status;
}
