/* Choosing by the learned model: what it predicts for every candidate, on a matrix that was never measured. */
#include <string.h>

#include "runtime/dispatch/predict.h"
#include "runtime/dispatch/question.h"

/* A model of another class of devices counts as WLM_FAR farther away: it knows why kernels are quick, but not this
 * device's numbers. */
static double remoteness(const wlmi_model_case *asked) {
  return asked->distance + (asked->model->borrowed ? WLM_FAR : 0);
}

static int knows_more(const wlmi_model_case *a, const wlmi_model_case *b) {
  const int within = a->distance <= WLM_MODEL_FAR;
  if (within != (b->distance <= WLM_MODEL_FAR)) return within;
  if (remoteness(a) != remoteness(b)) return remoteness(a) < remoteness(b);
  return a->model->measurements > b->model->measurements;
}

/* Every model of such problems is asked; the one that learned from the nearest case keeps the word, of equals the one
 * that learned from more. So a few matrices tuned here stand beside a shipped model of hundreds, not in front of it. */
wlmi_topic wlmi_topic_make(const wlmi_question *q, const char *key) {
  wlmi_topic topic = {.key = key};
  char problems[WLM_PROBLEM_CLASS];
  wlmi_problem_class(key, problems);
  for (int64_t i = 0; i < q->snapshot->model_count && q->judge->describe; i++) {
    const wlmi_model *model = &q->snapshot->models[i];
    wlmi_model_case asked;
    if (strcmp(model->problems, problems)) continue;
    wlmi_model_ask(model, q->stats, key, q->n, &asked);
    if (topic.model && !knows_more(&asked, &topic.asked)) continue;
    topic.model = model;
    topic.asked = asked;
  }
  return topic;
}

static int is_near(const wlmi_topic *topic) { return topic->model && topic->asked.distance <= WLM_MODEL_FAR; }

static double predict(wlmi_question *q, const char *variant) {
  if (!is_near(&q->topic)) return 0;
  for (int64_t i = 0; i < q->candidate_count; i++)
    if (!strcmp(q->candidates[i].variant, variant)) return wlmi_model_seconds(&q->topic.asked, &q->candidates[i]);
  return 0;
}

static void tell(const wlmi_prediction *p, const wlmi_prediction *best, double plain, wlmi_runner_up *out) {
  wlmi_copy_name(out->variant, sizeof out->variant, p->candidate->variant);
  out->predicted = p->seconds;
  out->relative = p->price / best->price;
  out->prepare = p->prepare / best->seconds;
  out->break_even = wlmi_break_even(p->seconds, p->prepare, plain);
}

/* The quickest that needs no preparing; 0 where there is none. */
static int predict_plain(wlmi_question *q, const wlmi_prediction *best, int count, wlmi_prediction *plain) {
  int untrained;
  for (int i = 0; i < count; i++)
    if (!(best[i].prepare > 0)) {
      *plain = best[i];
      return 1;
    }
  return wlmi_predict(&q->topic.asked, q->candidates, q->candidate_count, 1, plain, 1, &untrained);
}

/* The least predicted price wins. Candidates of families that nobody measured yet are left out and counted. What
 * preparing would be worth is told of either kind, whichever wins. */
int wlmi_choose_by_model(wlmi_question *q, wlmi_decision *choice) {
  wlmi_prediction best[WLM_RUNNERS_UP], plain = {.seconds = 0}, soonest;
  wlmi_model_case *asked = &q->topic.asked;
  if (!is_near(&q->topic)) return 0;
  wlmi_question_describe(q);
  const int count =
      wlmi_predict(asked, q->candidates, q->candidate_count, q->calls, best, WLM_RUNNERS_UP, &choice->untrained);
  if (!count) return 0;
  choice->step = WLM_STEP_MODEL;
  choice->distance = asked->distance;
  choice->matrices = asked->model->place_count;
  wlmi_copy_name(choice->borrowed, sizeof choice->borrowed, asked->model->borrowed ? asked->model->borrowed : "");
  wlmi_copy_name(choice->stale, sizeof choice->stale, asked->model->stale ? asked->model->stale : "");
  wlmi_copy_name(choice->variant, sizeof choice->variant, best[0].candidate->variant);
  for (int64_t i = 0; i < q->candidate_count && !wlmi_question_may_prepare(q); i++)
    choice->unprepared += q->candidates[i].prepares;
  const int has_plain = predict_plain(q, best, count, &plain);
  for (int i = 0; i < count; i++) tell(&best[i], &best[0], plain.seconds, &choice->runners[choice->runner_count++]);
  if (best[0].prepare > 0 && has_plain)
    tell(&plain, &best[0], plain.seconds, &choice->other);
  else if (has_plain &&
           wlmi_predict_soonest(asked, q->candidates, q->candidate_count, q->calls, plain.seconds, &soonest))
    tell(&soonest, &best[0], plain.seconds, &choice->other);
  return 1;
}

void wlmi_add_predictions(wlmi_question *q, wlmi_decision *choice) {
  if (!q->topic.model) return;
  choice->trained_at = q->topic.model->made_at;
  choice->trained_on = q->topic.model->measurements;
  if (!q->described) return;
  for (int i = 0; i < choice->runner_count; i++) choice->runners[i].predicted = predict(q, choice->runners[i].variant);
  choice->predicted = predict(q, choice->variant);
  choice->spread = choice->predicted > 0 ? wlmi_model_spread(&q->topic.asked) : 0;
}
