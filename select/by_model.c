/* Decides by the cost model, which predicts every candidate on a matrix that was never measured.
 *
 * Of hundreds of predictions the least is likely to be one that errs, while rules were set on what won in measurements.
 * So the kernel that a rule names stays unless another is predicted to be clearly faster (wlmi_rule.stays). It also
 * stays if it is of a family that the model does not know. */
#include <math.h>
#include <string.h>

#include "select/model.h"
#include "select/state.h"

static double predict(wlmi_selection *s, const char *name) {
  wlmi_variant variant;
  wlmi_variant_recognise(s->request->variants->families, name, &variant);
  return wlmi_predict_variant(s, &variant);
}

static void describe(const wlmi_prediction *p, const wlmi_prediction *least, double plain, wlmi_ranked *out) {
  wlmi_copy_name(out->variant, sizeof out->variant, p->candidate->variant);
  out->predicted = p->seconds;
  out->relative = p->price / least->price;
  out->prepare = p->prepare / least->seconds;
  out->break_even = wlmi_break_even(p->seconds, p->prepare, plain);
}

/* The fastest unprepared candidate; 0 if there is none. */
static int predict_plain(wlmi_selection *s, const wlmi_prediction *best, int count, wlmi_prediction *plain) {
  int untrained;
  for (int i = 0; i < count; i++)
    if (!(best[i].prepare > 0)) {
      *plain = best[i];
      return 1;
    }
  return wlmi_predict(&s->lookup.model_case, s->candidates, s->candidate_count, 1, plain, 1, &untrained);
}

/* Moves the kernel that rules name to the front, if it stays. Returns why they name it, otherwise NULL. */
static const char *keep_rules_kernel(wlmi_selection *s, wlmi_prediction best[WLMI_STEP_ENTRIES], int *count) {
  wlmi_model_case *c = &s->lookup.model_case;
  const wlmi_candidate_list allowed = {s->request->variants->families, s->candidates, s->candidate_count};
  wlmi_variant variant = {0};
  const wlmi_rule *rule = wlmi_rule_for(s, &variant);
  wlmi_prediction p = {.candidate = wlmi_candidate_find(&allowed, &variant)};
  if (!rule || !p.candidate) return NULL;
  if (!wlmi_predict_one(c, p.candidate, s->calls, &p)) p.price = best[0].price;
  if (p.price > best[0].price * exp(rule->stays * wlmi_model_spread(c))) return NULL;
  int at = 0;
  while (at < *count && best[at].candidate != p.candidate) at++;
  if (at == WLMI_STEP_ENTRIES) at--; /* the last of the others makes room */
  if (at == *count) ++*count;
  memmove(best + 1, best, (size_t)at * sizeof *best);
  best[0] = p;
  return rule->why;
}

static const wlmi_prediction *least_price(const wlmi_prediction *best, int count) {
  const wlmi_prediction *least = best;
  for (int i = 1; i < count; i++)
    if (best[i].price <= least->price) least = &best[i];
  return least;
}

void wlmi_describe_predictions(const wlmi_selection *s, const wlmi_prediction *best, int count, double plain,
                               const char *reason, wlmi_decision *decision) {
  const wlmi_model_case *c = &s->lookup.model_case;
  const wlmi_prediction *least = least_price(best, count);
  decision->step = WLMI_STEP_MODEL;
  decision->distance = c->distance;
  decision->cases = c->model->point_count;
  wlmi_copy_name(decision->borrowed, sizeof decision->borrowed, c->model->borrowed);
  wlmi_copy_name(decision->stale, sizeof decision->stale, c->model->stale);
  for (int64_t i = 0; i < s->candidate_count && !wlmi_may_prepare(s); i++)
    decision->unprepared += s->candidates[i].prepares;
  for (int i = 0; i < count; i++) {
    wlmi_add_entry(decision, &best[i].candidate->value, best[i].seconds, WLMI_STEP_MODEL, reason);
    if (i < WLMI_RANKED) describe(&best[i], least, plain, &decision->ranked[decision->ranked_count++]);
  }
}

/* The least predicted price wins, or the kernel that rules name. Candidates of families that were never measured are
 * left out and counted. For explain, the decision also gets the best candidate of the other kind (prepared or
 * unprepared). */
int wlmi_select_by_model(wlmi_selection *s, wlmi_decision *decision) {
  wlmi_prediction best[WLMI_STEP_ENTRIES], plain = {.seconds = 0}, soonest;
  wlmi_model_case *c = &s->lookup.model_case;
  if (!wlmi_model_is_near(&s->lookup)) return 0;
  wlmi_list_candidates(s);
  int count =
      wlmi_predict(c, s->candidates, s->candidate_count, s->calls, best, WLMI_STEP_ENTRIES, &decision->untrained);
  if (!count) return 0;
  const int has_plain = predict_plain(s, best, count < WLMI_RANKED ? count : WLMI_RANKED, &plain);
  decision->rule = keep_rules_kernel(s, best, &count);
  if (decision->rule)
    wlmi_add_entry(decision, &best[0].candidate->value, best[0].seconds > 0 ? best[0].seconds : best[1].seconds,
                   WLMI_STEP_MODEL, "named by the rules, and nothing is predicted to be clearly faster");
  wlmi_describe_predictions(s, best, count, plain.seconds, "predicted by the model", decision);
  const wlmi_prediction *unit = best[0].seconds > 0 ? best : &plain; /* the model may not know the rules' kernel */
  if (best[0].candidate->prepares && has_plain)
    describe(&plain, unit, plain.seconds, &decision->other);
  else if (has_plain && wlmi_predict_soonest(c, s->candidates, s->candidate_count, s->calls, plain.seconds, &soonest))
    describe(&soonest, unit, plain.seconds, &decision->other);
  return 1;
}

void wlmi_add_predictions(wlmi_selection *s, wlmi_decision *decision) {
  if (!s->lookup.model) return;
  decision->trained_at = s->lookup.model->made_at;
  decision->trained_on = s->lookup.model->measurements;
  if (!s->listed) return;
  for (int i = 0; i < decision->ranked_count; i++)
    if (!(decision->ranked[i].predicted > 0)) decision->ranked[i].predicted = predict(s, decision->ranked[i].variant);
  decision->predicted =
      decision->step == WLMI_STEP_MODEL ? decision->ranked[0].predicted : predict(s, decision->variant);
  decision->spread = decision->predicted > 0 ? wlmi_model_spread(&s->lookup.model_case) : 0;
}
