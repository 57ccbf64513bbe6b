/* Suite papers: the gain of each idea of GE-SpMM (section V-B of the paper): Algorithm 1, with a thread for every
 * element of C; coalesced row caching (CRC, Algorithm 2); and additionally coarse-grained warp merging (CWM, Algorithm
 * 3) with 2, 4 and 8 columns per lane. Figures are in the paper's unit: 2 nnz N operations divided by the time.
 *
 * All five are equal otherwise: a thread has one column of one row (CF columns with CWM), neighbouring lanes have
 * neighbouring columns, and blocks go down the rows first. Warps are merged only if a row of C is wider than a warp:
 * N > 32. */
#include <math.h>
#include <stdio.h>

#include "bench/comparison.h"
#include "bench/results_file.h"
#include "bench/suite.h"

enum { STEPS = 5, WARP = 32 };

static const struct step {
  const char *name;
  int cf; /* 0 = Algorithm 1 */
} steps[STEPS] = {{"algorithm1", 0}, {"crc", 1}, {"cwm2", 2}, {"cwm4", 4}, {"cwm8", 8}};

struct run {
  const wlmi_bench_case *bench;
  wlmi_comparison comparison;
  wlmi_method methods[STEPS]; /* CWM has a failure if C is no wider than a warp */
  double max_rel_err;         /* of all that ran */
  int64_t calls;
  const wlmi_method *best;
};

/* A block has as many threads as in the published code: 256 for N >= 64, 128 below. For row_crc, with one row per warp,
 * that is 8 or 4 rows per block; for row_naive as many rows of min(N, 32) columns as fill the block. */
static void name_variant(const struct step *step, int64_t n, char name[WLMI_VARIANT_NAME]) {
  const int threads = n >= 2 * WARP ? 256 : 128, columns = n >= WARP ? WARP : 16;
  if (!step->cf)
    snprintf(name, WLMI_VARIANT_NAME, "row_naive/columns=%d,rows=%d,axis=units", columns, threads / columns);
  else
    snprintf(name, WLMI_VARIANT_NAME, "row_crc/cf=%d,rows=%d", step->cf, threads / WARP);
}

static wlm_status measure(struct run *run) {
  for (int i = 0; i < STEPS; i++) {
    char variant[WLMI_VARIANT_NAME];
    name_variant(&steps[i], run->bench->n, variant);
    wlmi_comparison_enter(&run->comparison, variant, &run->methods[i]);
    if (!run->methods[i].failure) run->max_rel_err = fmax(run->max_rel_err, run->methods[i].max_rel_err);
  }
  wlm_status status =
      wlmi_comparison_time(run->comparison.operands.device, run->methods, STEPS, run->bench->samples, &run->calls);
  if (status != WLM_OK) return status;
  run->best = wlmi_methods_quickest(run->methods, STEPS);
  if (run->best) return WLM_OK;
  return wlmi_fail(WLM_ERR_DEVICE, "no kernel of the paper runs: %s", run->methods[0].failure);
}

/* ---- output ------------------------------------------------------------------------------------- */

/* "name":{"algorithm1":1.5,"crc":null,...}; NaN for a step that did not run. */
static void put_steps(wlmi_text *line, const char *name, const double figures[STEPS]) {
  wlmi_json_open(line, name, '{');
  for (int i = 0; i < STEPS; i++) wlmi_json_real(line, steps[i].name, "%.4f", figures[i]);
  wlmi_json_close(line, '}');
}

static void put_strings(const struct run *run, wlmi_text *line, const char *name, int failures) {
  wlmi_json_open(line, name, '{');
  for (int i = 0; i < STEPS; i++) {
    const wlmi_method *method = &run->methods[i];
    if ((method->failure != NULL) == failures)
      wlmi_json_string(line, steps[i].name, failures ? method->failure : method->name);
  }
  wlmi_json_close(line, '}');
}

static void write_line(const struct run *run, wlmi_text *line) {
  const wlmi_csr_host *a = &run->comparison.operands.a;
  double gflops[STEPS], us[STEPS], spread[STEPS];
  for (int i = 0; i < STEPS; i++) {
    us[i] = wlmi_method_us(&run->methods[i]);
    gflops[i] = 2e-3 * (double)a->nnz * (double)run->bench->n / us[i];
    spread[i] = run->methods[i].failure ? NAN : run->methods[i].spread;
  }
  wlmi_results_begin(line, run->bench);
  wlmi_results_put_matrix(line, a, run->bench->n);
  put_steps(line, "gflops", gflops);
  put_steps(line, "us", us);
  put_steps(line, "spread", spread);
  wlmi_json_string(line, "best", steps[run->best - run->methods].name);
  put_strings(run, line, "variants", 0);
  wlmi_json_put(line, "max_rel_err=%.3g checked_rows=%jd calls=%jd", run->max_rel_err,
                wlmi_verifier_rows(run->comparison.verifier), run->calls);
  put_strings(run, line, "failed", 1);
  wlmi_results_end(line);
}

static wlm_status run_case(const wlmi_bench_case *bench, wlmi_text *line) {
  struct run run = {.bench = bench};
  wlm_problem problem = WLM_PROBLEM_INIT;
  problem.n = bench->n;
  wlm_status status;
  if (wlmi_context_device(bench->context)->info.limits.target != WLMI_TARGET_CUDA)
    return wlmi_fail(WLM_ERR_UNSUPPORTED, "the paper's kernels (row_naive, row_crc) are for GPUs: use --device cuda");
  WLM_TRY(wlmi_comparison_create(bench, NULL, NULL, &problem, &run.comparison));
  WLM_TRY(measure(&run));
  write_line(&run, line);
done:
  for (int i = 0; i < STEPS; i++) wlmi_method_release(&run.methods[i]);
  wlmi_comparison_release(&run.comparison);
  return status;
}

const wlmi_bench_suite wlmi_suite_papers = {
    .name = "papers",
    .help = "GE-SpMM: Algorithm 1, CRC, CRC + CWM, in GFLOP/s",
    .shown = "gflops.algorithm1 gflops.crc gflops.cwm2 gflops.cwm4 gflops.cwm8 max_rel_err best",
    .run = run_case,
};
