/* Gathers the kernels that online tuning tries: the runners-up of the decision or, where it ranked none, candidates
 * spread over the whole list. Each one is compiled, prepared, checked against float64 on the real matrix and run a few
 * times before the first real call. So no real call runs a wrong kernel or a very slow one.
 *
 * With policy.deterministic a challenger must give the same bits as the first kernel in every element of a product of
 * the real matrix with random numbers. A kernel's order of additions depends on the pattern only, so the bits also
 * agree for other numbers. */
#include <math.h>
#include <string.h>

#include "tuner/compile_ahead.h"
#include "tuner/online_state.h"

enum { LOOKS = 3, SEED = 1 };

/* ---- names ------------------------------------------------------------------------------------------- */

typedef struct shortlist {
  const wlmi_candidate_list *list; /* all there are */
  int may_prepare;
  const char *names[WLMI_ONLINE_CONTENDERS]; /* the chosen ones; the first contender comes first */
  int count, most;
} shortlist;

/* Adds the variant, unless it is in the list, is no candidate, or must be prepared although that is not allowed. */
static void consider(shortlist *s, const char *variant) {
  for (int i = 0; i < s->count; i++)
    if (!strcmp(s->names[i], variant)) return;
  const wlmi_candidate *candidate = wlmi_candidate_named(s->list, variant);
  if (candidate && s->count < s->most && (!candidate->prepares || s->may_prepare))
    s->names[s->count++] = candidate->variant;
}

static void fill(shortlist *s, const wlmi_decision *decision) {
  consider(s, decision->variant); /* the first one may have been named by the caller */
  for (int i = 0; i < decision->ranked_count; i++) consider(s, decision->ranked[i].variant);
  consider(s, decision->other.variant);
  const int64_t open = s->most - s->count, all = s->list->count;
  for (int64_t i = 0; i < open && all; i++) consider(s, s->list->candidates[(2 * i + 1) * all / (2 * open)].variant);
}

/* ---- setting up -------------------------------------------------------------------------------------- */

static wlm_status add_first(wlmi_online_mode *m) {
  wlmi_method *method = &m->contenders[0].method;
  wlmi_method_variant(m->context, &m->operands, m->options.first, method);
  if (method->failure) return wlmi_fail(method->status, "%s", method->failure);
  m->count = 1;
  return WLM_OK;
}

/* Compiles all names but the first one and adds contenders for those that compile. */
static wlm_status add_challengers(wlmi_online_mode *m, const shortlist *s) {
  wlmi_compile_job jobs[WLMI_ONLINE_CONTENDERS] = {{0}};
  for (int i = 1; i < s->count; i++) jobs[i] = (wlmi_compile_job){.variant = s->names[i], .spec = &m->operands.spec};
  wlm_status status = wlmi_compile_all(m->context, jobs + 1, s->count - 1);
  for (int i = 1; i < s->count && status == WLM_OK; i++) {
    wlmi_contender *contender = &m->contenders[m->count];
    if (jobs[i].status != WLM_OK) continue;
    wlmi_method_variant(m->context, &m->operands, s->names[i], &contender->method);
    if (contender->method.failure)
      wlmi_method_release(&contender->method);
    else
      m->count++;
  }
  return status;
}

/* ---- checking and looking ---------------------------------------------------------------------------- */

static wlm_status hash_result(wlmi_online_mode *m, wlmi_hash *hash) {
  const wlmi_operands *operands = &m->operands;
  wlm_status status = WLM_OK;
  wlmi_hasher *hasher = wlmi_hasher_create();
  if (!hasher) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "the hash of a result");
  for (int i = 0; i < operands->outputs; i++) {
    const wlmi_call_array *o = &operands->output[i];
    for (wlmi_pieces p = {.operands = operands, .array = o}; wlmi_pieces_next(&p, &status);)
      wlmi_hasher_add(hasher, p.data, (size_t)(p.lines * o->ld) * o->size);
  }
  if (status == WLM_OK) *hash = wlmi_hasher_result(hasher);
  wlmi_hasher_destroy(hasher);
  return status;
}

static wlm_status watched_call(wlmi_online_mode *m, const wlmi_method *method, double *seconds) {
  const wlmi_device_ops *ops = m->device->ops;
  wlmi_watch *watch = m->watches[0];
  int done = 0;
  WLM_CHECK(ops->watch_start(watch, NULL));
  WLM_CHECK(method->enqueue(method->user, NULL));
  WLM_CHECK(ops->watch_stop(watch, NULL));
  WLM_CHECK(ops->synchronize(m->device, NULL));
  WLM_CHECK(ops->watch_poll(watch, &done, seconds));
  return done ? WLM_OK : wlmi_fail(WLM_ERR_DEVICE, "a call that has ended was not timed");
}

/* The least time of a few calls, because the first one may include lazy loading. */
static wlm_status estimate_time(wlmi_online_mode *m, wlmi_contender *contender) {
  wlm_status status = WLM_OK;
  contender->estimate = INFINITY;
  for (int i = 0; i < LOOKS && status == WLM_OK; i++) {
    double seconds = 0;
    status = watched_call(m, &contender->method, &seconds);
    contender->estimate = fmin(contender->estimate, seconds);
  }
  return status;
}

/* *bits stays 0 where nobody asks for the same ones. */
static wlm_status inspect(wlmi_online_mode *m, wlmi_contender *contender, wlmi_verifier *verifier, wlmi_hash *bits) {
  *bits = (wlmi_hash){0, 0};
  wlmi_method_verify(&contender->method, &m->operands, verifier);
  if (contender->method.failure)
    return wlmi_fail(contender->method.status, "%s: %s", contender->method.name, contender->method.failure);
  if (m->operands.spec.problem.policy.deterministic) WLM_CHECK(hash_result(m, bits));
  WLM_CHECK(estimate_time(m, contender));
  return wlmi_method_time_prepare(&contender->method, 1, &contender->prepare_seconds);
}

/* Verifies all. The first one must be right; others that are wrong are removed. */
static wlm_status inspect_all(wlmi_online_mode *m, wlmi_verifier *verifier) {
  wlmi_hash first, bits;
  int kept = 1;
  wlm_status status = inspect(m, &m->contenders[0], verifier, &first);
  for (int i = 1; i < m->count && status == WLM_OK; i++) {
    wlmi_contender *contender = &m->contenders[i];
    const wlm_status its = inspect(m, contender, verifier, &bits);
    if (its != WLM_OK) wlmi_log(WLM_LOG_WARNING, "not tried: %s", wlm_error_detail());
    if (its == WLM_OK && wlmi_hash_equal(bits, first)) {
      const wlmi_contender stays = *contender;
      *contender = (wlmi_contender){.estimate = 0};
      m->contenders[kept++] = stays;
    } else {
      wlmi_method_release(&contender->method);
    }
  }
  if (status == WLM_OK) m->count = kept;
  return status;
}

/* ---- all of it --------------------------------------------------------------------------------------- */

/* An error here removes the challengers but not the plan, unless it is the first kernel's. */
static wlm_status challenge(wlmi_online_mode *m, const wlm_matrix *matrix, const wlm_problem *problem,
                            const shortlist *s) {
  wlmi_verifier *verifier = NULL;
  wlm_status status;
  WLM_TRY(wlmi_operands_create(m->context, matrix, problem, NULL, SEED, &m->operands));
  WLM_TRY(add_challengers(m, s));
  if (m->count == 1) goto done;
  WLM_TRY(wlmi_verifier_create(&m->operands, SEED, &verifier));
  status = inspect_all(m, verifier);
done:
  wlmi_verifier_destroy(verifier);
  wlmi_operands_release(&m->operands);
  if (status == WLM_OK || status == WLM_ERR_MISMATCH) return status;
  wlmi_log(WLM_LOG_WARNING, "the plan tries no other kernel: %s", wlm_error_detail());
  while (m->count > 1) wlmi_method_release(&m->contenders[--m->count].method);
  return WLM_OK;
}

wlm_status wlmi_online_gather(wlmi_online_mode *m, const wlm_matrix *matrix, const wlm_problem *problem) {
  const wlmi_limits *limits = &m->device->info.limits;
  wlmi_decision named, *decision;
  shortlist s = {.most = 1 + m->options.challengers};
  wlm_status status;
  m->operands = (wlmi_operands){.device = m->device, .matrix = matrix};
  WLM_TRY(wlmi_context_spec(m->context, matrix, problem, &m->operands.spec));
  wlmi_spec_key(&m->operands.spec, m->problem);
  m->n = problem->n;
  s.may_prepare = problem->policy.expected_calls > 1;
  WLM_TRY(add_first(m));
  const wlm_plan *plan = m->contenders[0].method.plan;
  if (plan->bound.empty || plan->reason.decision.step == WLMI_STEP_BUILTIN || !m->options.challengers) goto done;
  decision = &m->contenders[0].method.plan->reason.decision;
  if (m->options.first && wlmi_context_choose(m->context, matrix, problem, &named) == WLM_OK) decision = &named;
  s.names[s.count++] = m->contenders[0].method.name;
  WLM_TRY(wlmi_generator_describe(wlmi_context_generator(m->context), &m->operands.spec, limits, &s.list));
  fill(&s, decision);
  status = challenge(m, matrix, problem, &s);
done:
  wlmi_candidates_drop(s.list);
  return status;
}
