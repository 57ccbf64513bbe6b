/* Selection runs its steps from the most to the least specific knowledge: measurements of this very matrix; the
 * prediction of a model trained on similar matrices; without a model, measurements of a matrix with nearly the same
 * statistics; the built-in rules. Each step offers a ranked list. The first candidate that is valid for the problem
 * wins, because a variant that was measured for a simpler problem may not exist for this one. No step chooses a
 * candidate that failed on this very matrix. */
#include "select/select.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "select/state.h"

const char *wlmi_step_name(wlmi_step step) {
  static const char *const names[] = {"fingerprint", "similar", "rule", "named", "builtin", "pin", "model", "only"};
  return names[step];
}

/* ---- tuned cases ------------------------------------------------------------------------------------- */

static int is_this_matrix(const wlmi_selection *s, const wlmi_case *c, const char *problem) {
  return c->n == s->n && wlmi_same_fingerprint(c->stats, s->stats) && !strcmp(c->problem, problem);
}

static int may_decide(const wlmi_selection *s, const wlmi_case *c) {
  for (int i = 0; i < s->passed_over_count; i++)
    if (s->passed_over[i] == c) return 0;
  return wlmi_case_serves(s, c);
}

static const wlmi_case *find_exact(const wlmi_selection *s) {
  for (int64_t i = 0; i < s->snapshot->case_count; i++) {
    const wlmi_case *c = &s->snapshot->cases[i];
    if (is_this_matrix(s, c, s->lookup.problem) && may_decide(s, c)) return c;
  }
  return NULL;
}

/* Only of this device class: a candidate that fails on another class may work here. */
static const wlmi_case *same_matrix(const wlmi_selection *s, const char *problem) {
  for (int64_t i = 0; i < s->snapshot->case_count; i++)
    if (is_this_matrix(s, &s->snapshot->cases[i], problem) && !s->snapshot->cases[i].borrowed)
      return &s->snapshot->cases[i];
  return NULL;
}

/* ---- simpler problems ---------------------------------------------------------------------------------- */

/* Kernels of one kind are so alike that measurements of this very matrix, though of a simpler problem, are better than
 * what a model predicts. */
static int kind_of(const wlmi_spec *spec) {
  const int operation = wlmi_ranks_as_product(spec) ? WLM_SPMM : (int)spec->problem.operation;
  return 16 * (2 * operation + (spec->problem.want_argmax != 0)) + (int)wlmi_type_size(spec->problem.dense_type);
}

static void add_simpler(wlmi_selection *s, const wlmi_spec *simpler, const char *like) {
  wlmi_simpler *next = &s->simpler[s->simpler_count];
  const char *last = s->simpler_count ? s->simpler[s->simpler_count - 1].problem : s->request->problem;
  wlmi_spec_key(simpler, next->problem);
  if (!strcmp(next->problem, last)) return;
  next->kind = kind_of(simpler);
  wlmi_copy_name(next->like, sizeof next->like, like);
  s->simpler_count++;
}

static void add_nearest_message(wlmi_selection *s, const wlmi_spec *spec) {
  char problem[WLMI_SPEC_KEY];
  wlmi_spec_key(spec, problem);
  const char *nearest = wlmi_nearest_message(s, problem);
  const char *text = nearest ? strchr(nearest, '{') : NULL, *end = text ? strstr(text, "},") : NULL;
  if (!end) return;
  wlmi_simpler *next = &s->simpler[s->simpler_count++];
  next->kind = kind_of(spec);
  wlmi_copy_name(next->problem, sizeof next->problem, nearest);
  snprintf(next->like, sizeof next->like, ", for the message %.*s", (int)(end - text - 1 < 40 ? end - text - 1 : 40),
           text + 1);
}

static void add_in_type(wlmi_selection *s, wlmi_spec *simplest, const char *last, wlm_type type) {
  const wlm_type own = simplest->problem.dense_type;
  char like[WLMI_LIKE];
  simplest->problem.dense_type = type;
  if (simplest->value_type == own) simplest->value_type = type;
  snprintf(like, sizeof like, "%.*s, in %s", WLMI_LIKE - 16, last, wlmi_type_name(type)); /* with room for the type */
  add_simpler(s, simplest, like);
}

/* f16 and bf16 differ in how numbers are converted, which hardly ever decides which kernel is the fastest. Other types
 * are of another kind, so they follow f32 only where there is no model of their own. */
static void add_other_types(wlmi_selection *s, wlmi_spec *simplest) {
  const wlm_type own = simplest->problem.dense_type;
  char like[WLMI_LIKE];
  wlmi_copy_name(like, sizeof like, s->simpler_count ? s->simpler[s->simpler_count - 1].like : "");
  if (wlmi_type_size(own) == 2) add_in_type(s, simplest, like, own == WLM_F16 ? WLM_BF16 : WLM_F16);
  add_in_type(s, simplest, like, WLM_F32);
}

/* Kernels for A^T, heads and dropout are those without plus a few lines; kernels of any operator differ from those for
 * the sum of products in one line. Positions are a second register for each element, so smaller batches win than for a
 * sum; their type only changes how they are stored. Attention differs even more from the sum, and so does a message
 * with a line for each edge. Of all these, the own model is better than the sum's measurements. The gradient of
 * attention is unlike the forward pass, whose best kernel may be a very slow one there; so it follows the sum. So does
 * a message, with or without transpose and positions, after the tuned message that is most alike. */
static void add_simpler_problems(wlmi_selection *s, const wlmi_spec *spec) {
  const wlm_problem *p = &spec->problem;
  const char *one_head = p->heads > 1 ? ", with one head" : "";
  wlmi_spec simpler = *spec;
  char like[WLMI_LIKE];
  simpler.problem.heads = 1;
  add_simpler(s, &simpler, one_head);
  if (p->operation == WLM_MESSAGE) {
    add_nearest_message(s, spec);
    simpler.problem.operation = WLM_SPMM;
    simpler.problem.transpose = simpler.problem.want_argmax = 0;
    simpler.problem.argmax_type = WLM_I32;
  } else if (wlmi_is_attention(p)) {
    simpler.problem.dropout = 0;
    snprintf(like, sizeof like, ", without dropout%s", one_head);
    add_simpler(s, &simpler, like);
    simpler.problem.operation = WLM_SPMM;
    simpler.problem.score = WLM_SCORE_GAT;
    simpler.problem.transpose = 0;
  } else {
    simpler.problem.argmax_type = WLM_I32; /* as of all without positions */
    if (p->want_argmax) {
      snprintf(like, sizeof like, ", with 32-bit positions%s", one_head);
      add_simpler(s, &simpler, like);
    }
    simpler.problem.transpose = simpler.problem.want_argmax = 0;
    snprintf(like, sizeof like, "%s%s%s", p->transpose ? ", untransposed" : "",
             p->want_argmax ? ", without positions" : "", one_head);
    add_simpler(s, &simpler, like);
  }
  simpler.problem.message = WLM_MUL;
  simpler.problem.reduce = WLM_SUM;
  simpler.problem.custom = NULL;
  *simpler.custom = 0;
  simpler.problem.empty = WLM_EMPTY_ZERO;
  add_simpler(s, &simpler, ", for a sum of products");
  add_other_types(s, &simpler);
}

/* All problems with the request's own types, then all with 32-bit indices: 64-bit ones only move more bytes for an
 * edge, which hardly ever decides which kernel is the fastest. */
static void find_simpler(wlmi_selection *s) {
  wlmi_spec narrow = *s->spec;
  add_simpler_problems(s, s->spec);
  const int first = s->simpler_count;
  narrow.rowptr_type = narrow.colind_type = WLM_I32;
  if (s->spec->rowptr_type == WLM_I32 && s->spec->colind_type == WLM_I32) return;
  add_simpler(s, &narrow, "");
  add_simpler_problems(s, &narrow);
  for (int i = first; i < s->simpler_count; i++) {
    char *like = s->simpler[i].like;
    const size_t length = strlen(like);
    snprintf(like + length, WLMI_LIKE - length, ", with 32-bit indices");
  }
}

/* The position of the lookup in the list of simpler problems, from 1; 0 = it is the request's problem. */
static int simplified(const wlmi_selection *s) {
  for (int i = 0; i < s->simpler_count; i++)
    if (s->lookup.problem == s->simpler[i].problem) return i + 1;
  return 0;
}

static void simplify(wlmi_selection *s, int to, wlmi_decision *decision) {
  s->lookup = wlmi_lookup_make(s, s->simpler[to].problem);
  wlmi_copy_name(decision->like, sizeof decision->like, s->simpler[to].like);
}

static int settle(wlmi_selection *s, wlmi_decision *decision);

/* Measurements for a simpler problem are better than a rule. Rules do not depend on the problem key, so a decision by
 * rule is not reported as one of a simpler problem. */
static int by_simpler_problem(wlmi_selection *s, wlmi_decision *decision) {
  const wlmi_lookup before = s->lookup;
  const int next = simplified(s);
  if (next == s->simpler_count) return 0;
  simplify(s, next, decision);
  if (settle(s, decision) && decision->step != WLMI_STEP_RULE) return 1;
  s->lookup = before;
  *decision = (wlmi_decision){.calls = s->calls};
  return 0;
}

static const wlmi_case *find_exact_of_simpler(wlmi_selection *s, wlmi_decision *decision) {
  const wlmi_lookup before = s->lookup;
  const int from = simplified(s), kind = from ? s->simpler[from - 1].kind : kind_of(s->spec);
  for (int next = from; next < s->simpler_count && s->simpler[next].kind == kind; next++) {
    simplify(s, next, decision);
    const wlmi_case *c = find_exact(s);
    if (c) return c;
  }
  s->lookup = before;
  wlmi_copy_name(decision->like, sizeof decision->like, from ? s->simpler[from - 1].like : "");
  return NULL;
}

/* ---- the steps in order ------------------------------------------------------------------------------------ */

/* A thin case measured too few candidates to know the best: fewer than WLMI_THIN and less than a third of all. */
static int is_thin(wlmi_selection *s, const wlmi_case *c) {
  const int64_t known = c->count + c->failed;
  if (known >= WLMI_THIN) return 0;
  wlmi_list_candidates(s);
  return 3 * known < s->candidate_count + wlmi_failure_count(s);
}

/* Whether the model predicts another kernel to be clearly faster than the measured winner of the case. */
static int is_outdone(wlmi_selection *s, const wlmi_case *c, const wlmi_decision *instead) {
  static const double clearly = 0.5; /* in multiples of the model's spread, as in the rules */
  wlmi_decision measured = {.calls = s->calls};
  if (instead->step != WLMI_STEP_MODEL) return 1;
  wlmi_select_by_case(s, c, &measured);
  const double predicted = wlmi_predict_variant(s, &measured.entries[0].variant);
  return instead->entries[0].seconds * exp(clearly * wlmi_model_spread(&s->lookup.model_case)) < predicted;
}

/* Thin cases come from an interrupted tuning, an import of a few lines, or a pruned database. Such a case decides if it
 * measured the candidate that would be chosen without it, or if the model does not predict that candidate to be clearly
 * faster: then its winner is better. */
static int pass_over(wlmi_selection *s, const wlmi_case *c, wlmi_decision *decision) {
  const wlmi_lookup lookup = s->lookup;
  wlmi_decision instead = {.calls = s->calls};
  s->passed_over[s->passed_over_count++] = c;
  if (!settle(s, &instead) || wlmi_case_has(c, &instead.entries[0].variant) || !is_outdone(s, c, &instead)) {
    s->lookup = lookup;
    return 0;
  }
  *decision = instead;
  decision->thin_known = c->count + c->failed;
  decision->thin_of = s->candidate_count + wlmi_failure_count(s);
  wlmi_copy_name(decision->thin_variant, sizeof decision->thin_variant, c->candidates[0].variant);
  return 1;
}

/* Cases of the same problem count alike. A thin case decides only for its own matrix. */
static double same_problem(wlmi_selection *s, const wlmi_case *c, void *user) {
  (void)user;
  return strcmp(c->problem, s->lookup.problem) || !may_decide(s, c) || is_thin(s, c) ? INFINITY : 0;
}

static int settle(wlmi_selection *s, wlmi_decision *decision) {
  const int asks_cases = s->passed_over_count < WLMI_PASSED_OVER;
  const int is_estimated = wlmi_is_estimated(s->request);
  const wlmi_case *c = asks_cases ? find_exact(s) : NULL;
  if (!c && asks_cases) c = find_exact_of_simpler(s, decision);
  if (c) {
    if (!is_thin(s, c) || !pass_over(s, c, decision)) wlmi_select_by_case(s, c, decision);
    return 1;
  }
  if (is_estimated ? wlmi_select_estimated(s, decision) : wlmi_select_by_model(s, decision)) return 1;
  if (!is_estimated) c = wlmi_nearest_case(s, same_problem, NULL);
  if (!c) return by_simpler_problem(s, decision) || wlmi_select_by_rule(s, decision);
  wlmi_select_by_case(s, c, decision);
  return 1;
}

/* Keeps the decision without the pin as well, so that explain can show what the pin costs. */
static void apply_pin(wlmi_selection *s, wlmi_decision *decision) {
  const char *problem = s->request->problem;
  const wlmi_pin *pin = wlmi_pin_find(s->snapshot, s->stats, problem, s->n);
  if (!pin && s->lookup.problem != problem) pin = wlmi_pin_find(s->snapshot, s->stats, s->lookup.problem, s->n);
  if (!pin) return;
  wlmi_copy_name(decision->pin, sizeof decision->pin, pin->variant);
  decision->pin_exact = pin->exact;
  if (!wlmi_is_allowed(s, &pin->value, wlmi_may_prepare(s))) {
    wlmi_explain_refusal(s, &pin->value, pin->variant, decision->pin_reason);
    return;
  }
  const wlmi_decision before = *decision;
  decision->entry_count = 0;
  wlmi_add_entry(decision, &pin->value, wlmi_predict_variant(s, &pin->value), WLMI_STEP_PIN, "pinned by hand");
  for (int i = 0; i < before.entry_count; i++)
    wlmi_add_entry(decision, &before.entries[i].variant, before.entries[i].seconds, before.entries[i].step,
                   before.entries[i].reason);
  if (before.entry_count)
    wlmi_variant_print(s->request->variants->families, &before.entries[0].variant, decision->unpinned);
  decision->step = WLMI_STEP_PIN;
}

wlm_status wlmi_select(const wlmi_snapshot *snapshot, const wlmi_request *request, wlmi_decision *decision) {
  wlmi_selection s = {.snapshot = snapshot,
                      .request = request,
                      .stats = request->stats,
                      .spec = request->spec,
                      .n = request->spec->problem.n,
                      .calls = request->spec->problem.policy.expected_calls};
  const int is_estimated = wlmi_is_estimated(request);
  wlm_stats moderate;
  if (request->use == WLMI_USE_SCATTER) {
    wlmi_select_scatter(request, decision);
    if (!decision->entry_count) return wlmi_fail(WLM_ERR_NOT_FOUND, "no family scatters this product");
    wlmi_entry_print(decision, 0, decision->variant);
    return WLM_OK;
  }
  if (is_estimated) {
    moderate = wlmi_moderate_stats(request->stats);
    s.stats = &moderate;
  }
  *decision = (wlmi_decision){.calls = s.calls};
  find_simpler(&s);
  s.same_matrix[0] = same_matrix(&s, request->problem);
  for (int i = 0; i < s.simpler_count; i++) s.same_matrix[1 + i] = same_matrix(&s, s.simpler[i].problem);
  s.lookup = wlmi_lookup_make(&s, request->problem);
  settle(&s, decision);
  wlmi_describe_failures(&s, decision);
  wlmi_describe_similar(&s, decision);
  if (!is_estimated) apply_pin(&s, decision); /* a bucket needs the rows' cv */
  const int is_found = decision->entry_count > 0;
  decision->families = request->variants->families;
  if (is_found) {
    wlmi_entry_print(decision, 0, decision->variant);
    if (decision->entry_count < WLMI_STEP_ENTRIES) wlmi_add_rule_entries(&s, decision);
    wlmi_add_predictions(&s, decision);
  }
  wlmi_selection_release(&s);
  if (s.out_of_memory) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "choosing a kernel");
  wlmi_add_entry(decision, &(wlmi_variant){0}, 0, WLMI_STEP_BUILTIN, "the kernel that the library carries");
  if (is_found) return WLM_OK;
  decision->step = WLMI_STEP_BUILTIN;
  wlmi_copy_name(decision->variant, sizeof decision->variant, "builtin");
  return wlmi_fail(WLM_ERR_NOT_FOUND,
                   "nothing tuned and no built-in rule serves %s with n = %lld on this device%s; tune it, or name a "
                   "variant",
                   request->problem, (long long)s.n,
                   decision->failed ? ", and some kernels failed on this very matrix" : "");
}

wlm_status wlmi_select_only(const wlmi_spec *spec, wlmi_decision *decision) {
  *decision = (wlmi_decision){.step = WLMI_STEP_ONLY,
                              .distance = (double)NAN,
                              .calls = spec->problem.policy.expected_calls,
                              .entry_count = 2,
                              .entries = {{.step = WLMI_STEP_ONLY, .reason = "for these columns"},
                                          {.step = WLMI_STEP_ONLY, .reason = "for any number of columns"}}};
  wlmi_entry_print(decision, 0, decision->variant);
  return WLM_OK;
}

void wlmi_entry_print(const wlmi_decision *decision, int entry, char name[WLMI_VARIANT_NAME]) {
  const wlmi_entry *e = &decision->entries[entry];
  if (e->step == WLMI_STEP_BUILTIN)
    wlmi_copy_name(name, WLMI_VARIANT_NAME, "builtin");
  else if (e->step == WLMI_STEP_ONLY)
    wlmi_copy_name(name, WLMI_VARIANT_NAME, wlmi_operation_name(WLM_ARGMAX_GRADIENT));
  else
    wlmi_variant_print(decision->families, &e->variant, name);
}

double wlmi_decision_seconds(const wlmi_decision *decision) {
  double predicted = decision->predicted;
  for (int i = 0; i < decision->ranked_count; i++) {
    const wlmi_ranked *r = &decision->ranked[i];
    if (strcmp(r->variant, decision->variant)) continue;
    if (r->seconds > 0) return r->seconds;
    if (r->predicted > 0) predicted = r->predicted;
  }
  return predicted;
}

/* The entries before it count as refused, with the reason of the first. */
void wlmi_decision_advance(wlmi_decision *decision, int entry, const char *reason) {
  const wlmi_entry *to = &decision->entries[entry];
  if (to->step == WLMI_STEP_BUILTIN) { /* no measurement decided it */
    *decision = (wlmi_decision){
        .step = WLMI_STEP_BUILTIN, .variant = "builtin", .distance = (double)NAN, .calls = decision->calls};
    return;
  }
  for (int i = 0; i < entry; i++) {
    const int index = decision->refused++;
    if (index >= WLMI_REFUSALS) continue;
    wlmi_entry_print(decision, i, decision->refusals[index].variant);
    wlmi_copy_name(decision->refusals[index].reason, WLMI_REASON, i ? "could not be loaded" : reason);
  }
  decision->step = to->step;
  if (to->step == WLMI_STEP_RULE) decision->rule = to->reason;
  wlmi_entry_print(decision, entry, decision->variant);
}
