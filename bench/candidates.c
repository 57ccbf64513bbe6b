/* db candidates: every candidate of a device class as a table, with the ways of choosing that would take it. Reports
 * are made of it (bench/reports/). It uses no device, so measurements of other machines can be shown. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/progress.h"
#include "cli/session.h"
#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/problem/bucket.h"
#include "core/problem/spec_key.h"
#include "db/store.h"
#include "select/classes.h"
#include "select/model.h"
#include "select/select.h"
#include "tuner/train.h"

/* ---- what each way of choosing would take ---- */

enum {
  WAY_RULES,     /* the built-in rules */
  WAY_PREDICTED, /* the model, trained on other matrices */
  WAY_OTHERS,    /* the steps without the measurements of this problem on any matrix, and without models */
  WAYS
};

typedef struct choices {
  const wlmi_measured *chosen[WAYS]; /* NULL = the way's choice was not measured */
  char problems[WLMI_PROBLEM_CLASS]; /* of the case: wlmi_model_class */
} choices;

/* Computes what would have been chosen for a number of calls, of kernels whose times were measured, by running the
 * selection (select/select.h) on a snapshot with some of the measurements. For one call no kernel is prepared.
 *
 * Rules: it has none.
 *
 * Other problems: it has no measurements of the problem, on any matrix. So it shows what a message or a type gets that
 * was never measured.
 *
 * Predicted: training is slow, so the matrices are divided into a few parts, and each part is predicted by a model that
 * was trained on the others. */
enum { PARTS = 4 };

static const char *const way_names[WAYS] = {"rules", "predicted", "other problems"};

/* Picoseconds of a call of so many, with its share of the preparation. */
static double cost_of_call(const wlmi_measured *m, int64_t calls) {
  if (m->prepare > 0 && calls == 1) return INFINITY;
  return m->cost + m->prepare / (double)calls;
}

static const wlmi_measured *find_measured(const wlmi_case *choice, const char *variant, int64_t calls) {
  for (int64_t i = 0; i < choice->count; i++)
    if (isfinite(cost_of_call(&choice->candidates[i], calls)) && !strcmp(choice->candidates[i].variant, variant))
      return &choice->candidates[i];
  return NULL;
}

/* ---- one case ------------------------------------------------------------------------------------------- */

typedef struct choice_request {
  const wlmi_snapshot *snapshot;
  wlmi_limits limits;
  wlmi_generator *generator;
  int has_model; /* the snapshot */
  int64_t calls;
  const wlmi_case *of;
} choice_request;

/* Only candidates that were measured on the matrix have a time, so only they may be chosen. */
static int was_measured(void *user, const wlmi_variant *variant, int may_prepare) {
  const choice_request *r = user;
  char name[WLMI_VARIANT_NAME];
  (void)may_prepare;
  wlmi_variant_print(wlmi_generator_families(r->generator), variant, name);
  return find_measured(r->of, name, r->calls) != NULL;
}

/* The candidates that were measured; wlmi_free them. */
static wlm_status list_measured(choice_request *r, const wlmi_spec *spec, wlmi_candidate **kept,
                                wlmi_candidate_list *out) {
  const wlmi_candidate_list *all;
  wlm_status status = wlmi_generator_describe(r->generator, spec, &r->limits, &all);
  if (status == WLM_OK) status = wlmi_alloc_array(all->count, sizeof **kept, "candidates", (void **)kept);
  for (int64_t i = 0; status == WLM_OK && i < all->count; i++)
    if (was_measured(r, &all->candidates[i].value, 0)) (*kept)[out->count++] = all->candidates[i];
  out->candidates = *kept;
  wlmi_candidates_drop(all);
  return status;
}

/* Measured variants were valid, so the limits besides kind and architecture are unlimited. */
static wlmi_limits limits_of(const wlmi_device_record *device) {
  const int host = device->kind && !strcmp(device->kind, "host");
  wlmi_limits limits = {.target = host ? WLMI_TARGET_HOST : WLMI_TARGET_CUDA, .processors = device->processors};
  if (host) return limits;
  limits.arch = device->arch && !strncmp(device->arch, "sm_", 3) ? atoi(device->arch + 3) : 0;
  limits.threads_per_block = 1024;
  limits.shared_bytes = INT32_MAX;
  return limits;
}

/* NULL if nothing is decided, as for problems of another version. step: only this step counts; -1 = any. */
static const wlmi_measured *choose(choice_request *r, const wlmi_case *c, int step) {
  const wlmi_families *families = wlmi_generator_families(r->generator);
  wlmi_candidate_list list = {.families = families};
  const wlmi_variant_set variants = {families, r->has_model ? &list : NULL, was_measured, NULL, r};
  const wlmi_measured *chosen = NULL;
  wlmi_candidate *kept = NULL;
  wlmi_decision decision;
  wlmi_spec spec;
  r->of = c;
  const wlmi_request request = {
      .stats = c->stats, .problem = c->problem, .spec = &spec, .limits = &r->limits, .variants = &variants};
  wlm_status status = wlmi_spec_from_key(c->problem, c->n, &spec);
  spec.problem.policy.expected_calls = r->calls;
  if (status == WLM_OK && r->has_model) status = list_measured(r, &spec, &kept, &list);
  if (status == WLM_OK && wlmi_select(r->snapshot, &request, &decision) == WLM_OK &&
      (step < 0 || (int)decision.step == step))
    chosen = find_measured(c, decision.variant, r->calls);
  wlmi_free(kept);
  return chosen;
}

/* ---- rules ---------------------------------------------------------------------------------------------- */

static void ask_rules(const wlmi_class *of, choice_request r, choices *choices) {
  const wlmi_snapshot nothing = {.families = wlmi_generator_families(r.generator)};
  r.snapshot = &nothing;
  for (int64_t i = 0; i < of->choices.count; i++) choices[i].chosen[WAY_RULES] = choose(&r, &of->choices.list[i], -1);
}

/* ---- other problems -------------------------------------------------------------------------------------- */

static int is_of_another_problem(void *user, const wlmi_measurement_record *record) {
  return strcmp(record->problem, user) != 0;
}

/* Cases are ordered by problem. */
static wlm_status leave_problems_out(const wlmi_class *of, choice_request r, choices *choices) {
  const wlmi_case *cases = of->choices.list;
  wlm_status status = WLM_OK;
  for (int64_t begin = 0, end; begin < of->choices.count && status == WLM_OK; begin = end) {
    wlmi_snapshot others = {.families = wlmi_generator_families(r.generator)};
    r.snapshot = &others;
    status = wlmi_snapshot_add_measurements(&others, of->records, of->count, NULL, is_of_another_problem,
                                            (void *)cases[begin].problem);
    for (end = begin; end < of->choices.count && !strcmp(cases[end].problem, cases[begin].problem); end++)
      if (status == WLM_OK) choices[end].chosen[WAY_OTHERS] = choose(&r, &cases[end], -1);
    wlmi_snapshot_clear(&others);
  }
  return status;
}

/* ---- predicted ------------------------------------------------------------------------------------------ */

static int part_of(const wlm_stats *stats) { return (int)((stats->fingerprint[0] ^ stats->fingerprint[1]) % PARTS); }

static wlm_status train_without(const wlmi_class *of, int part, wlmi_measurement_record *others,
                                const choice_request *r, wlmi_snapshot *snapshot) {
  wlmi_models models = {0};
  int64_t count = 0;
  wlm_status status;
  for (int64_t i = 0; i < of->count; i++)
    if (part_of(&of->records[i].stats) != part) others[count++] = of->records[i];
  WLM_TRY(wlmi_models_train(r->generator, &r->limits, others, count, &models));
  for (int64_t i = 0; i < models.count; i++) WLM_TRY(wlmi_snapshot_add_model(snapshot, &models.models[i], NULL, NULL));
done:
  wlmi_models_release(&models);
  return status;
}

static wlm_status predict(const wlmi_class *of, choice_request r, int64_t l2_bytes, choices *choices) {
  const wlmi_cases *cases = &of->choices;
  wlmi_measurement_record *others = NULL;
  wlmi_progress progress;
  wlm_status status;
  r.has_model = 1;
  r.limits.l2_bytes = l2_bytes;
  WLM_TRY(wlmi_alloc_array(of->count, sizeof *others, "measurements", (void **)&others));
  wlmi_progress_begin(&progress, 1, 0);
  wlmi_progress_next(&progress, "training");
  for (int part = 0; part < PARTS && status == WLM_OK; part++) {
    wlmi_snapshot trained = {.families = wlmi_generator_families(r.generator)};
    r.snapshot = &trained;
    wlmi_progress_show(&progress, part, PARTS, "each time without a part of the matrices");
    status = train_without(of, part, others, &r, &trained);
    for (int64_t i = 0; i < cases->count && status == WLM_OK; i++)
      if (part_of(cases->list[i].stats) == part)
        choices[i].chosen[WAY_PREDICTED] = choose(&r, &cases->list[i], WLMI_STEP_MODEL);
    wlmi_snapshot_clear(&trained);
  }
  wlmi_progress_clear();
done:
  wlmi_free(others);
  return status;
}

/* Makes the choices of each case of of->choices.list; wlmi_free them. They point into the class. l2_bytes: the
 * device's, for training models; 0 = no model is trained. */
static wlm_status make_choices(const wlmi_class *of, int64_t calls, int64_t l2_bytes, choices **choices) {
  wlmi_generator *generator = NULL;
  wlm_status status;
  *choices = wlmi_alloc_zero(of->choices.count + 1, sizeof **choices);
  if (!*choices) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "choices");
  if (!of->choices.count) return WLM_OK;
  for (int64_t i = 0; i < of->choices.count; i++)
    WLM_CHECK(wlmi_model_class_of_key(of->choices.list[i].problem, of->choices.list[i].n, (*choices)[i].problems));
  WLM_TRY(wlmi_cli_generator(&generator));
  const choice_request r = {.limits = limits_of(&of->records->device), .generator = generator, .calls = calls};
  ask_rules(of, r, *choices);
  WLM_TRY(leave_problems_out(of, r, *choices));
  if (l2_bytes) status = predict(of, r, l2_bytes, *choices);
done:
  wlmi_generator_destroy(generator);
  return status;
}

/* ---- the tables ---- */

/* "cuda:0" means any GPU, because the store does not number GPUs. */
static wlm_status choose_class(const wlmi_cli_options *options, const wlmi_class *classes, int64_t count,
                               const wlmi_class **chosen) {
  char part[256];
  snprintf(part, sizeof part, "%s", options->device ? options->device : "");
  part[strcspn(part, ":")] = 0;
  *chosen = NULL;
  for (int64_t i = 0; i < count; i++)
    if (strstr(classes[i].name, part) && (!*chosen || classes[i].count > (*chosen)->count)) *chosen = &classes[i];
  if (*chosen || !count) return WLM_OK;
  wlmi_text names = {0};
  for (int64_t i = 0; i < count; i++) wlmi_text_printf(&names, "%s%s", i ? ", " : "", classes[i].name);
  wlm_status status = wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "--device %s is part of no device class in the database: %s",
                                options->device, names.data ? names.data : "");
  wlmi_text_release(&names);
  return status;
}

/* Reads the newest model; it has the L2 size for which models of this class are trained. An unreadable one counts as
 * none. */
static wlm_status look_at_models(wlm_store *store, const char *device_class, int64_t *made_at, int64_t *l2_bytes) {
  wlmi_model_record *records = NULL;
  int64_t count = 0;
  wlm_status status = wlmi_store_load_models(store, device_class, &records, &count);
  for (int64_t i = 0; i < count; i++) {
    wlmi_model model;
    if (records[i].made_at <= *made_at || wlmi_model_read(records[i].data, records[i].size, &model) != WLM_OK) continue;
    *made_at = records[i].made_at;
    *l2_bytes = model.limits.l2_bytes > 0 ? model.limits.l2_bytes : 1;
    wlmi_model_release(&model);
  }
  wlmi_model_records_free(records, count);
  return status;
}

static void put_ways(wlmi_table *table, const choices *choices, const wlmi_measured *candidate) {
  char ways[96] = "";
  for (int way = 0; way < WAYS; way++)
    if (choices->chosen[way] == candidate) {
      if (*ways) strcat(ways, ", ");
      strcat(ways, way_names[way]);
    }
  wlmi_table_text(table, ways);
}

static void put_candidate(wlmi_table *table, const wlmi_case *c, const choices *choices, int64_t i) {
  const wlmi_measured *m = &c->candidates[i];
  const double us = m->failed ? NAN : 1e-6; /* of a picosecond */
  char printed[WLMI_BUCKET_TEXT], id[WLMI_HASH_HEX];
  wlmi_bucket bucket;
  wlmi_bucket_of(c->stats, &bucket);
  wlmi_bucket_print(&bucket, printed);
  wlmi_hash_to_hex((wlmi_hash){c->stats->fingerprint[0], c->stats->fingerprint[1]}, id);
  wlmi_table_add(table, "%s %s %s %s %jd %s %.2f %.2f %.2f %jd %s", c->matrix, id, printed, c->problem, c->n,
                 m->variant, us * m->cost, us * m->spread, us * m->prepare, m->count,
                 m->failed    ? "failed"
                 : m->precise ? "measured"
                              : "screened");
  put_ways(table, choices, m);
}

static void put_table(wlmi_report *report, const wlmi_class *of, const choices *choices) {
  wlmi_table table;
  wlmi_table_begin(&table,
                   "matrix,fingerprint,bucket,problem,n,variant,us,spread_us=spread,prepare_us=prepare,"
                   "measurements,timed,chosen_by=chosen by");
  for (int64_t i = 0; of && i < of->choices.count; i++) {
    const wlmi_case *c = &of->choices.list[i];
    for (int64_t k = 0; k < c->count + c->failed; k++) put_candidate(&table, c, &choices[i], k);
  }
  wlmi_report_table(report, "candidates", &table, 0);
}

/* The times of a way's choices over those of the best candidates for so many calls, for problems of one class. */
static void put_way(wlmi_table *table, const wlmi_class *of, const choices *choices, int64_t calls,
                    const char *problems, int way) {
  double logs = 0, worst = 1;
  int64_t cases = 0;
  for (int64_t i = 0; i < of->choices.count; i++) {
    const wlmi_case *c = &of->choices.list[i];
    const wlmi_measured *chosen = choices[i].chosen[way];
    double best = INFINITY;
    if (!chosen || strcmp(choices[i].problems, problems)) continue;
    for (int64_t k = 0; k < c->count; k++) best = fmin(best, cost_of_call(&c->candidates[k], calls));
    logs += log(cost_of_call(chosen, calls) / best);
    worst = fmax(worst, cost_of_call(chosen, calls) / best);
    cases++;
  }
  if (cases)
    wlmi_table_add(table, "%s %s %jd %.3f %.3f", problems, way_names[way], cases, exp(logs / (double)cases), worst);
}

/* How well each way chooses, for each class of problems that one model is for. */
static void put_ways_table(wlmi_report *report, const wlmi_class *of, const choices *choices, int64_t calls) {
  wlmi_table table;
  wlmi_table_begin(&table, "problems,way,cases,mean_over_best=mean,worst_over_best=worst");
  for (int64_t i = 0; of && i < of->choices.count; i++) {
    const char *problems = choices[i].problems;
    int is_new = 1;
    for (int64_t k = 0; k < i && is_new; k++) is_new = strcmp(choices[k].problems, problems) != 0;
    for (int way = 0; way < WAYS && is_new; way++) put_way(&table, of, choices, calls, problems, way);
  }
  wlmi_report_table(report, "ways", &table, 0);
}

wlm_status wlmi_cmd_db_candidates(const wlmi_cli_options *options, wlmi_report *report) {
  wlmi_text path = {0};
  wlm_store *store = NULL;
  wlmi_content content = {0};
  wlmi_class *classes = NULL;
  const wlmi_class *chosen = NULL;
  choices *choices = NULL;
  const int64_t calls = options->problem.policy.expected_calls;
  int64_t class_count = 0, l2_bytes = 0, trained_at = 0;
  wlm_status status;
  WLM_TRY(wlmi_cli_open_to_show(options, &path, &store));
  WLM_TRY(wlmi_content_load(store, &content));
  WLM_TRY(wlmi_classes_make(content.records, content.count, &classes, &class_count));
  WLM_TRY(choose_class(options, classes, class_count, &chosen));
  if (chosen) WLM_TRY(look_at_models(store, chosen->name, &trained_at, &l2_bytes));
  if (chosen) WLM_TRY(make_choices(chosen, calls, l2_bytes, &choices));
  wlmi_report_object(report, NULL);
  wlmi_report_string(report, "database", path.data);
  wlmi_report_string(report, "device_class", chosen ? chosen->name : NULL);
  wlmi_report_integer(report, "trained_at", trained_at);
  put_table(report, chosen, choices);
  put_ways_table(report, chosen, choices, calls);
done:
  wlmi_free(choices);
  wlmi_classes_free(classes, class_count);
  wlmi_content_release(&content);
  wlmi_store_close(store);
  wlmi_text_release(&path);
  return status;
}
