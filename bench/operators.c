/* Suite operators: what other operators and types cost relative to the f32 sum, all on the same matrix and timed
 * together.
 *
 * For the f32 sum all unprepared candidates are searched. For the others, only the ten that were fastest in the sum's
 * screening (adapted to the type, core/problem/variant.h), the library's choice, and families that do not serve the
 * sum. The winners, the choices and the baselines of all lines are then timed in one last round (bench/comparison.c),
 * so ratios of two lines compare times taken together.
 *
 * To save memory and time lines share A, B and C where they are equal, and only a few rows of baselines are checked. */
#include <math.h>
#include <string.h>

#include "bench/comparison.h"
#include "bench/core_line.h"
#include "bench/results_file.h"
#include "bench/similar.h"
#include "bench/suite.h"
#include "core/base/memory.h"
#include "tuner/compile_ahead.h"

typedef enum baseline { NO_BASELINE, SPMM, SDDMM } baseline;

/* The lines; the others are compared with the first one. */
static const struct op {
  const char *name;
  wlm_type type;
  wlm_message message;
  wlm_reduce reduce;
  const char *custom;
  wlm_operation operation;
  int want_argmax;
  baseline baseline;
} ops[] = {
    {.name = "sum", .baseline = SPMM},
    {.name = "mean", .reduce = WLM_MEAN},
    {.name = "max", .reduce = WLM_MAX},
    {.name = "min", .reduce = WLM_MIN},
    {.name = "max_arg", .reduce = WLM_MAX, .want_argmax = 1},
    {.name = "custom", .reduce = WLM_CUSTOM, .custom = "message=a*b;init=0;reduce=acc+x;combine=reduce"},
    {.name = "copy_b", .message = WLM_COPY_B, .baseline = SPMM},
    {.name = "sddmm", .operation = WLM_SDDMM, .baseline = SDDMM},
    {.name = "sum", .type = WLM_F16, .baseline = SPMM},
    {.name = "sum", .type = WLM_BF16, .baseline = SPMM},
    {.name = "sum", .type = WLM_F64},
    {.name = "max", .type = WLM_F16, .reduce = WLM_MAX},
};
enum { LINES = sizeof ops / sizeof *ops, TOP = 10, FINALISTS = 3, OURS = 2, SAMPLES = 7 };

struct line {
  const struct op *op;
  wlmi_comparison comparison;
  wlm_problem problem;
  wlmi_candidate *candidates;                  /* candidates to search */
  wlmi_candidate_list list;                    /* of them */
  char choice[WLMI_VARIANT_NAME];              /* the library's choice; "" = none */
  int best, chosen, baselines, baseline_count; /* among the methods; -1 = none */
  double preprocess[WLMI_CUSPARSE_WAYS + 1];
};

struct round {
  const wlmi_bench_case *bench;
  struct line lines[LINES];
  char top[TOP][WLMI_VARIANT_NAME];
  int top_count;
  wlmi_method methods[LINES * (OURS + WLMI_CUSPARSE_WAYS)]; /* of the last round */
  int count;
  int64_t calls;
};

/* ---- the candidates of a line ---------------------------------------------------------------------------- */

static int is_of_top(const struct round *r, const char *variant) {
  for (int i = 0; i < r->top_count; i++)
    if (wlmi_variants_are_similar(r->top[i], variant)) return 1;
  return 0;
}

static int sums_too(const struct round *r, const char *variant) {
  const wlmi_candidate_list *sums = &r->lines[0].list;
  for (int64_t i = 0; i < sums->count; i++)
    if (wlmi_same_family(sums->candidates[i].variant, variant)) return 1;
  return 0;
}

/* Lists the unprepared candidates; for the first line all of them. */
static wlm_status list_candidates(const struct round *r, struct line *l) {
  const wlmi_comparison *comparison = &l->comparison;
  const int all = l == r->lines;
  const wlmi_candidate_list *list = NULL;
  wlm_status status;
  WLM_TRY(wlmi_generator_describe(wlmi_context_generator(comparison->context), &comparison->operands.spec,
                                  &comparison->operands.device->info.limits, &list));
  WLM_TRY(wlmi_alloc_array(list->count, sizeof *l->candidates, "candidates", (void **)&l->candidates));
  l->list = (wlmi_candidate_list){list->families, l->candidates, 0};
  for (int64_t i = 0; i < list->count; i++) {
    const char *variant = list->candidates[i].variant;
    if (list->candidates[i].prepares) continue;
    if (!all && !is_of_top(r, variant) && sums_too(r, variant) && strcmp(variant, l->choice)) continue;
    l->candidates[l->list.count++] = list->candidates[i];
  }
done:
  wlmi_candidates_drop(list);
  return status;
}

/* Keeps the fastest ones of the screening for the other lines. */
static void keep_top(struct round *r, const wlmi_timed *screened) {
  const wlmi_candidate_list *list = &r->lines[0].list;
  double last = 0;
  while (r->top_count < TOP) {
    int64_t next = -1;
    for (int64_t i = 0; i < list->count; i++)
      if (isfinite(screened[i].seconds) && screened[i].seconds > last &&
          (next < 0 || screened[i].seconds < screened[next].seconds))
        next = i;
    if (next < 0) return;
    last = screened[next].seconds;
    snprintf(r->top[r->top_count++], WLMI_VARIANT_NAME, "%s", list->candidates[next].variant);
  }
}

/* ---- a line -------------------------------------------------------------------------------------------- */

static wlm_status open_line(struct round *r, struct line *l) {
  const wlmi_bench_case *bench = r->bench;
  const struct op *op = l->op;
  wlmi_decision decision;
  wlm_status status;
  l->problem.n = bench->n;
  l->problem.message = op->message;
  l->problem.reduce = op->reduce;
  l->problem.dense_type = op->type;
  l->problem.custom = op->custom;
  l->problem.operation = op->operation;
  l->problem.want_argmax = op->want_argmax;
  if (op->want_argmax && wlm_matrix_stats(bench->upload->matrix)->longest <= WLMI_LONGEST_OF_I16)
    l->problem.argmax_type = WLM_I16;
  const wlmi_comparison *first = l == r->lines ? NULL : &r->lines[0].comparison;
  WLM_TRY(wlmi_comparison_create(bench, first, NULL, &l->problem, &l->comparison));
  if (wlmi_context_choose(bench->context, l->comparison.matrix, &l->problem, &decision) == WLM_OK)
    snprintf(l->choice, sizeof l->choice, "%s", decision.variant);
  status = list_candidates(r, l);
done:
  return status == WLM_OK ? status : wlmi_fail_in(status, "%s %s", op->name, wlmi_type_name(op->type));
}

/* Compiles the candidates of all lines but the first together, because one line alone does not keep all cores busy. A
 * candidate that does not compile fails when it is set up. */
static wlm_status compile(const struct round *r) {
  int64_t count = 0, at = 0;
  for (int i = 1; i < LINES; i++) count += r->lines[i].list.count;
  wlmi_compile_job *jobs = wlmi_alloc_zero((size_t)count, sizeof *jobs);
  if (!jobs) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "compilations");
  for (int i = 1; i < LINES; i++)
    for (int64_t k = 0; k < r->lines[i].list.count; k++)
      jobs[at++] = (wlmi_compile_job){.variant = r->lines[i].list.candidates[k].variant,
                                      .spec = &r->lines[i].comparison.operands.spec};
  wlm_status status = wlmi_compile_all(r->bench->context, jobs, count);
  wlmi_free(jobs);
  return status;
}

static wlm_status search(struct round *r, struct line *l) {
  wlmi_finals finals = {.count = 0};
  wlm_status status;
  wlmi_timed *screened = wlmi_alloc_zero((size_t)l->list.count, sizeof *screened);
  if (!screened) return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "candidates");
  WLM_TRY(wlmi_comparison_search(&l->comparison, &l->list, FINALISTS, screened, &finals));
  if (l == r->lines) keep_top(r, screened);
  wlmi_method *best = wlmi_finals_best(&finals, WLMI_PLAIN);
  if (!best) goto done;
  l->best = r->count;
  r->methods[r->count++] = *best;
  *best = (wlmi_method){0};
done:
  wlmi_finals_release(&finals);
  wlmi_free(screened);
  return status;
}

static void enter_choice(struct round *r, struct line *l) {
  if (!l->choice[0]) return;
  l->chosen = l->best;
  if (l->best >= 0 && !strcmp(r->methods[l->best].name, l->choice)) return;
  l->chosen = r->count++;
  wlmi_comparison_enter(&l->comparison, l->choice, &r->methods[l->chosen]);
}

static void enter_baselines(struct round *r, struct line *l) {
  const wlmi_operands *operands = &l->comparison.operands;
  double seconds;
  if (operands->device->info.limits.target != WLMI_TARGET_CUDA || l->op->baseline == NO_BASELINE) return;
  const int first = l->op->baseline == SDDMM ? WLMI_CUSPARSE_SDDMM : 0;
  l->baselines = r->count;
  l->baseline_count = l->op->baseline == SDDMM ? 1 : wlmi_cusparse_ways(r->bench->n);
  for (int i = 0; i < l->baseline_count; i++) {
    wlmi_method *method = &r->methods[r->count++];
    wlmi_method_cusparse(operands, first + i, method, &l->preprocess[i]);
    wlmi_method_glance(method, &l->comparison.operands, l->comparison.verifier, &seconds);
  }
}

static wlm_status play_line(struct round *r, struct line *l) {
  wlm_status status = search(r, l);
  if (status != WLM_OK) return wlmi_fail_in(status, "%s %s", l->op->name, wlmi_type_name(l->op->type));
  enter_choice(r, l);
  enter_baselines(r, l);
  return status;
}

/* ---- output -------------------------------------------------------------------------------------------- */

static const wlmi_method *method_of(const struct round *r, int index) {
  return index < 0 || r->methods[index].failure ? NULL : &r->methods[index];
}

static void write_line(const struct round *r, struct line *l, wlmi_text *line) {
  const int is_sddmm = l->op->baseline == SDDMM;
  wlmi_text more = {0};
  for (int i = 0; i < OURS; i++) {
    const int index = i ? l->chosen : l->best;
    if (index >= 0 && r->methods[index].failure && !(i && l->chosen == l->best))
      wlmi_comparison_note(&l->comparison, &r->methods[index]);
  }
  wlmi_json_put(&more, "arg_type=%s sum_us=%.3f", l->op->want_argmax ? wlmi_index_name(l->problem.argmax_type) : "",
                wlmi_method_us(method_of(r, r->lines[0].best)));
  if (is_sddmm) {
    const wlmi_method *sddmm = l->baseline_count ? &r->methods[l->baselines] : NULL;
    wlmi_json_put(&more, "cusparse_sddmm_us=%.3f cusparse_sddmm_error=%s cusparse_sddmm_preprocess_us=%.1f",
                  wlmi_method_us(sddmm), sddmm && sddmm->failure ? sddmm->failure : "",
                  sddmm && !sddmm->failure ? 1e6 * l->preprocess[0] : (double)NAN);
  }
  wlmi_core_result result = {.op = l->op->name,
                             .bench = r->bench,
                             .comparison = &l->comparison,
                             .best = method_of(r, l->best),
                             .chosen = method_of(r, l->chosen),
                             .baselines = is_sddmm ? NULL : &r->methods[l->baselines],
                             .baseline_count = is_sddmm ? 0 : l->baseline_count,
                             .calls = r->calls,
                             .more = more.data};
  memcpy(result.preprocess, l->preprocess, sizeof result.preprocess);
  if (more.failed)
    line->failed = 1;
  else
    wlmi_core_write_line(&result, line);
  wlmi_text_release(&more);
}

/* ---- the case ------------------------------------------------------------------------------------------ */

static void release(struct round *r) {
  for (int i = 0; i < r->count; i++) wlmi_method_release(&r->methods[i]);
  for (int i = LINES - 1; i >= 0; i--) { /* the others use the first one's memory */
    wlmi_comparison_release(&r->lines[i].comparison);
    wlmi_free(r->lines[i].candidates);
  }
}

static wlm_status run(const wlmi_bench_case *bench, wlmi_text *line) {
  struct round r = {.bench = bench};
  wlm_status status;
  for (int i = 0; i < LINES; i++)
    r.lines[i] = (struct line){.op = &ops[i], .problem = WLM_PROBLEM_INIT, .best = -1, .chosen = -1, .baselines = 0};
  WLM_TRY(open_line(&r, &r.lines[0]));
  WLM_TRY(play_line(&r, &r.lines[0]));
  for (int i = 1; i < LINES; i++) WLM_TRY(open_line(&r, &r.lines[i]));
  WLM_TRY(compile(&r));
  for (int i = 1; i < LINES; i++) WLM_TRY(play_line(&r, &r.lines[i]));
  if (r.lines[0].best < 0)
    WLM_TRY(wlmi_fail(WLM_ERR_MISMATCH, "no candidate for the sum is right: %s",
                      r.lines[0].comparison.failures.size ? r.lines[0].comparison.failures.data : "there is none"));
  WLM_TRY(wlmi_comparison_time(wlmi_context_device(bench->context), r.methods, r.count, bench->samples, &r.calls));
  for (int i = 0; i < LINES; i++) write_line(&r, &r.lines[i], line);
done:
  release(&r);
  return status;
}

const wlmi_bench_suite wlmi_suite_operators = {
    .name = "operators",
    .help = "suite core: other operators and types beside the f32 sum",
    .shown = "op type us sum_us chosen_us cusparse.default_nopre cusparse_sddmm_us max_rel_err variant",
    .run = run,
    .samples = SAMPLES,
};
