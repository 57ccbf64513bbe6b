/* Suite sampled: ES-SpMM's comparison (sections V-D and V-F of the paper), for both of its strategies and S from 16 to
 * 512. The best candidate that samples while it multiplies is compared with the best cuSPARSE algorithm on the full
 * matrix, with the library's choice for the full matrix (sampling must be faster than that to be useful), and with the
 * best exact candidate on a matrix that was sampled in advance (whose making is not timed).
 *
 * cuSPARSE does not depend on strategy and S: its algorithms are timed once per matrix and N, and the fastest (with or
 * without preprocess) is timed again together with every winner. The second time is reported. */
#include <math.h>
#include <string.h>

#include "bench/baseline_cusparse.h"
#include "bench/comparison.h"
#include "bench/presample.h"
#include "bench/results_file.h"
#include "bench/suite.h"
#include "tuner/timing.h"

enum { SAMPLED, PRESAMPLED, CUSPARSE, EXACT, METHODS, OTHERS = METHODS - CUSPARSE, STRATEGIES = 2, WIDTHS = 6 };

static const struct strategy {
  const char *name;
  wlm_sample sample;
} strategies[STRATEGIES] = {{"bucket", WLM_SAMPLE_BUCKET}, {"fastrand", WLM_SAMPLE_FASTRAND}};
static const int64_t sample_widths[WIDTHS] = {16, 32, 64, 128, 256, 512};

/* One strategy and one S. */
struct round {
  const wlmi_bench_case *bench;
  const struct strategy *strategy;
  wlm_problem problem;
  wlmi_csr_host kept;             /* the matrix sampled in advance */
  wlmi_upload upload;             /* and on the device */
  wlmi_comparison comparisons[2]; /* SAMPLED, PRESAMPLED */
  wlmi_method methods[METHODS];
  int64_t calls;
};

/* ---- cuSPARSE ------------------------------------------------------------------------------------ */

/* The fastest way of cuSPARSE on the full matrix; has a failure if there is none. */
static wlm_status best_cusparse(wlmi_comparison *exact, wlmi_method *best) {
  wlmi_device *device = exact->operands.device;
  wlmi_method ways[WLMI_CUSPARSE_WAYS] = {0};
  const int count = wlmi_cusparse_ways(exact->operands.spec.problem.n);
  int64_t calls;
  wlm_status status;
  for (int way = 0; way < count; way++) wlmi_method_cusparse(&exact->operands, way, &ways[way], NULL);
  wlmi_comparison_check(exact, ways, count);
  WLM_TRY(wlmi_comparison_time(device, ways, count, exact->samples, &calls));
  const wlmi_method *quickest = wlmi_methods_quickest(ways, count);
  const int64_t place = quickest ? quickest - ways : 0; /* the failure of the first one gives the reason */
  *best = ways[place];
  ways[place] = (wlmi_method){0};
done:
  for (int way = 0; way < count; way++) wlmi_method_release(&ways[way]);
  return status;
}

/* ---- one round ----------------------------------------------------------------------------------- */

static wlm_status prepare(struct round *round) {
  const wlmi_bench_case *bench = round->bench;
  wlm_problem exact = WLM_PROBLEM_INIT;
  exact.n = bench->n;
  WLM_CHECK(wlmi_comparison_create(bench, NULL, NULL, &round->problem, &round->comparisons[SAMPLED]));
  WLM_CHECK(wlmi_presample(bench->csr, &round->problem, 0, &round->kept));
  WLM_CHECK(wlmi_upload_create(bench->context, &round->kept, wlmi_upload_rowptr_type(&round->kept), &round->upload));
  return wlmi_comparison_create(bench, NULL, round->upload.matrix, &exact, &round->comparisons[PRESAMPLED]);
}

/* `others` take part in the last round; afterwards they have their new times. */
static wlm_status play(struct round *round, wlmi_method others[OTHERS]) {
  wlmi_device *device = round->comparisons[SAMPLED].operands.device;
  wlm_status status;
  for (int i = SAMPLED; i <= PRESAMPLED; i++)
    WLM_CHECK(wlmi_comparison_winner(&round->comparisons[i], &round->methods[i]));
  memcpy(&round->methods[CUSPARSE], others, OTHERS * sizeof *others);
  status = wlmi_comparison_time(device, round->methods, METHODS, round->bench->samples, &round->calls);
  memcpy(others, &round->methods[CUSPARSE], OTHERS * sizeof *others);
  if (status == WLM_OK && round->methods[SAMPLED].failure)
    status = wlmi_fail(WLM_ERR_DEVICE, "%s", round->methods[SAMPLED].failure);
  return status;
}

static void release(struct round *round) {
  for (int i = SAMPLED; i <= PRESAMPLED; i++) {
    wlmi_method_release(&round->methods[i]);
    wlmi_comparison_release(&round->comparisons[i]);
  }
  wlmi_upload_release(&round->upload);
  wlmi_csr_host_release(&round->kept);
}

/* ---- output -------------------------------------------------------------------------------------- */

static double kept_share(const struct round *round) {
  const int64_t nnz = round->bench->csr->nnz;
  return nnz ? (double)round->kept.nnz / (double)nnz : 1;
}

static void write_line(const struct round *round, wlmi_text *line) {
  const wlmi_csr_host *a = round->bench->csr;
  const wlmi_comparison *sampled = &round->comparisons[SAMPLED];
  const wlmi_method *methods = round->methods, *baseline = &methods[CUSPARSE];
  wlmi_results_begin(line, round->bench);
  wlmi_results_put_matrix(line, a, round->bench->n);
  wlmi_json_put(line, "strategy=%s s=%jd us=%.3f spread=%.4f kept_share=%.6f best_cusparse_us=%.3f best_cusparse=%s",
                round->strategy->name, round->problem.sampling.width, wlmi_method_us(&methods[SAMPLED]),
                methods[SAMPLED].spread, kept_share(round), wlmi_method_us(baseline),
                baseline->failure ? "" : baseline->name);
  wlmi_json_put(
      line,
      "cusparse_error=%s exact_us=%.3f exact_variant=%s variant=%s presampled_us=%.3f presampled_variant=%s "
      "gather_gbs=%.1f max_rel_err=%.3g presampled_max_rel_err=%.3g checked_rows=%jd candidates=%jd calls=%jd",
      baseline->failure, wlmi_method_us(&methods[EXACT]), methods[EXACT].name, methods[SAMPLED].name,
      wlmi_method_us(&methods[PRESAMPLED]), methods[PRESAMPLED].name,
      wlmi_gather_gbs(&sampled->operands.spec, a->rows, round->kept.nnz, methods[SAMPLED].seconds),
      methods[SAMPLED].max_rel_err, methods[PRESAMPLED].max_rel_err, wlmi_verifier_rows(sampled->verifier),
      sampled->candidates, round->calls);
  wlmi_comparison_put_failures(sampled, "failed", line);
  wlmi_comparison_put_failures(&round->comparisons[PRESAMPLED], "presampled_failed", line);
  wlmi_results_end(line);
}

/* ---- the case ------------------------------------------------------------------------------------ */

static wlm_status one_round(const wlmi_bench_case *bench, const struct strategy *strategy, int64_t sample_width,
                            wlmi_method others[OTHERS], wlmi_text *line) {
  struct round round = {.bench = bench, .strategy = strategy, .problem = WLM_PROBLEM_INIT};
  wlm_status status;
  round.problem.n = bench->n;
  round.problem.sampling.sample = strategy->sample;
  round.problem.sampling.width = sample_width;
  WLM_TRY(prepare(&round));
  WLM_TRY(play(&round, others));
  write_line(&round, line);
done:
  release(&round);
  return status;
}

static wlm_status run(const wlmi_bench_case *bench, wlmi_text *line) {
  wlmi_comparison exact;
  wlmi_method others[OTHERS] = {0};
  wlm_problem problem = WLM_PROBLEM_INIT;
  problem.n = bench->n;
  wlm_status status = wlmi_comparison_create(bench, NULL, NULL, &problem, &exact);
  if (status != WLM_OK) return status;
  if (exact.operands.device->info.limits.target == WLMI_TARGET_CUDA)
    WLM_TRY(best_cusparse(&exact, &others[0]));
  else
    wlmi_method_fail(&others[0], "cuSPARSE is for GPUs");
  wlmi_comparison_enter(&exact, NULL, &others[1]);
  for (int i = 0; i < STRATEGIES; i++)
    for (int j = 0; j < WIDTHS; j++) {
      status = one_round(bench, &strategies[i], sample_widths[j], others, line);
      if (status != WLM_OK) {
        wlmi_fail_in(status, "%s, S = %lld", strategies[i].name, (long long)sample_widths[j]);
        goto done;
      }
    }
done:
  for (int i = 0; i < OTHERS; i++) wlmi_method_release(&others[i]);
  wlmi_comparison_release(&exact);
  return status;
}

const wlmi_bench_suite wlmi_suite_sampled = {
    .name = "sampled",
    .help = "ES-SpMM: both strategies, S = 16 to 512, cuSPARSE and our choice on all edges",
    .shown = "strategy s kept_share us best_cusparse_us exact_us presampled_us max_rel_err variant",
    .run = run,
};
