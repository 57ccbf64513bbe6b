/* Choosing by the learned model: what it predicts for every candidate, on a matrix that was never measured. */
#include <string.h>

#include "runtime/dispatch/predict.h"
#include "runtime/dispatch/question.h"

/* A model of another class of devices counts as WLM_FAR farther away: it knows why kernels are quick, but not this
 * device's numbers. */
static double remoteness(const wlm_model_case *asked) {
  return asked->distance + (asked->model->borrowed ? WLM_FAR : 0);
}

static int knows_more(const wlm_model_case *a, const wlm_model_case *b) {
  const int within = a->distance <= WLM_MODEL_FAR;
  if (within != (b->distance <= WLM_MODEL_FAR)) return within;
  if (remoteness(a) != remoteness(b)) return remoteness(a) < remoteness(b);
  return a->model->measurements > b->model->measurements;
}

/* Every model of such problems is asked; the one that learned from the nearest case keeps the word, of equals the one
 * that learned from more. So a few matrices tuned here stand beside a shipped model of hundreds, not in front of it. */
wlm_topic wlm_topic_make(const wlm_question *q, const char *key) {
  wlm_topic topic = {.key = key};
  char problems[WLM_PROBLEM_CLASS];
  wlm_problem_class(key, problems);
  for (int64_t i = 0; i < q->snapshot->model_count && q->judge->describe; i++) {
    const wlm_model *model = &q->snapshot->models[i];
    wlm_model_case asked;
    if (strcmp(model->problems, problems)) continue;
    wlm_model_ask(model, q->stats, key, q->n, &asked);
    if (topic.model && !knows_more(&asked, &topic.asked)) continue;
    topic.model = model;
    topic.asked = asked;
  }
  return topic;
}

static int is_near(const wlm_topic *topic) { return topic->model && topic->asked.distance <= WLM_MODEL_FAR; }

static double predict(wlm_question *q, const char *variant) {
  if (!is_near(&q->topic)) return 0;
  for (int64_t i = 0; i < q->candidate_count; i++)
    if (!strcmp(q->candidates[i].variant, variant)) return wlm_model_seconds(&q->topic.asked, &q->candidates[i]);
  return 0;
}

/* The least predicted price wins. Candidates of families that nobody measured yet are left out and counted. */
int wlm_choose_by_model(wlm_question *q, wlm_decision *choice) {
  wlm_prediction best[WLM_RUNNERS_UP];
  if (!is_near(&q->topic)) return 0;
  wlm_question_describe(q);
  const int count = wlm_predict(&q->topic.asked, q->candidates, q->candidate_count, q->calls, best, WLM_RUNNERS_UP,
                                &choice->untrained);
  if (!count) return 0;
  choice->step = WLM_STEP_MODEL;
  choice->distance = q->topic.asked.distance;
  choice->matrices = q->topic.model->place_count;
  wlm_copy_name(choice->borrowed, sizeof choice->borrowed, q->topic.model->borrowed ? q->topic.model->borrowed : "");
  wlm_copy_name(choice->variant, sizeof choice->variant, best[0].candidate->variant);
  for (int i = 0; i < count; i++) {
    wlm_runner_up *runner = &choice->runners[choice->runner_count++];
    wlm_copy_name(runner->variant, sizeof runner->variant, best[i].candidate->variant);
    runner->relative = best[i].price / best[0].price;
    runner->prepare = best[i].prepare / best[0].seconds;
  }
  return 1;
}

void wlm_add_predictions(wlm_question *q, wlm_decision *choice) {
  if (!q->topic.model) return;
  choice->trained_at = q->topic.model->made_at;
  choice->trained_on = q->topic.model->measurements;
  if (!q->described) return;
  for (int i = 0; i < choice->runner_count; i++) choice->runners[i].predicted = predict(q, choice->runners[i].variant);
  choice->predicted = predict(q, choice->variant);
  choice->spread = choice->predicted > 0 ? wlm_model_spread(&q->topic.asked) : 0;
}
