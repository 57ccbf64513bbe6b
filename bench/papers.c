/* What each idea of GE-SpMM brings (section V-B of the paper): Algorithm 1, where every element of C has a thread;
 * coalesced row caching (CRC, Algorithm 2); and coarse-grained warp merging on top of it (CWM, Algorithm 3) with 2, 4
 * and 8 columns a lane. Figures are in the paper's unit, 2 nnz N operations over the time.
 *
 * The five share what is not the idea: a thread has one column of one row (CF columns with CWM), neighbours in a warp
 * have neighbouring columns, and blocks first go down the rows. bench/paper_steps.h has the sizes of the blocks. Warps
 * are merged only where a row of C is wider than one: N > 32. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/contest.h"
#include "bench/paper_steps.h"
#include "bench/results_file.h"
#include "bench/suite.h"

enum { STEPS = WLM_PAPER_STEPS };

static const char suite_name[] = "papers";

struct run {
  const wlmi_bench_case *bench;
  wlmi_contest contest;
  wlmi_entrant entrants[STEPS]; /* CWM refuses a C no wider than a warp, and is then a failure with that reason */
  double max_rel_err;           /* of all that ran */
  int64_t calls;
  int best;
};

static wlm_status measure(struct run *run) {
  for (int i = 0; i < STEPS; i++) {
    char variant[WLM_VARIANT_NAME];
    wlmi_paper_variant(&wlmi_paper_steps[i], run->bench->n, variant);
    wlmi_contest_enter(&run->contest, variant, &run->entrants[i]);
    if (!run->entrants[i].failure) run->max_rel_err = fmax(run->max_rel_err, run->entrants[i].max_rel_err);
  }
  wlm_status status =
      wlmi_contest_time(run->contest.operands.device, run->entrants, STEPS, run->bench->samples, &run->calls);
  if (status != WLM_OK) return status;
  run->best = -1;
  for (int i = 0; i < STEPS; i++)
    if (!run->entrants[i].failure && (run->best < 0 || run->entrants[i].seconds < run->entrants[run->best].seconds))
      run->best = i;
  if (run->best >= 0) return WLM_OK;
  return wlmi_fail(WLM_ERR_DEVICE, "no kernel of the paper runs: %s", run->entrants[0].failure);
}

/* ---- telling ------------------------------------------------------------------------------------ */

/* NaN of a step that did not run. */
static double gflops(const struct run *run, int step) {
  return 2e-3 * (double)run->contest.operands.a.nnz * (double)run->bench->n / wlmi_entrant_us(&run->entrants[step]);
}
static double microseconds(const struct run *run, int step) { return wlmi_entrant_us(&run->entrants[step]); }
static double spread(const struct run *run, int step) {
  return run->entrants[step].failure ? NAN : run->entrants[step].spread;
}

/* "name":{"algorithm1":1.5,"crc":null,...} */
static void put_steps(const struct run *run, wlmi_text *line, const char *name,
                      double (*figure)(const struct run *run, int step)) {
  wlmi_json_open(line, name, '{');
  for (int i = 0; i < STEPS; i++) wlmi_json_real(line, wlmi_paper_steps[i].name, "%.4f", figure(run, i));
  wlmi_json_close(line, '}');
}

static void put_strings(const struct run *run, wlmi_text *line, const char *name, int failures) {
  wlmi_json_open(line, name, '{');
  for (int i = 0; i < STEPS; i++) {
    const wlmi_entrant *entrant = &run->entrants[i];
    if ((entrant->failure != NULL) == failures)
      wlmi_json_string(line, wlmi_paper_steps[i].name, failures ? entrant->failure : entrant->name);
  }
  wlmi_json_close(line, '}');
}

static void write_line(const struct run *run, wlmi_text *line) {
  const wlmi_csr_host *a = &run->contest.operands.a;
  wlmi_results_begin(line, suite_name, run->contest.operands.device->info.name, run->bench->matrix);
  wlmi_results_put_matrix(line, a, run->bench->n);
  put_steps(run, line, "gflops", gflops);
  put_steps(run, line, "us", microseconds);
  put_steps(run, line, "spread", spread);
  wlmi_json_string(line, "best", wlmi_paper_steps[run->best].name);
  put_strings(run, line, "variants", 0);
  wlmi_json_real(line, "max_rel_err", "%.3g", run->max_rel_err);
  wlmi_json_integer(line, "checked_rows", wlmi_verifier_rows(run->contest.verifier));
  wlmi_json_integer(line, "calls", run->calls);
  put_strings(run, line, "failed", 1);
  wlmi_results_end(line);
}

static void write_row(const struct run *run, wlmi_text *row) {
  const double first = gflops(run, 0);
  wlmi_text_printf(row, "%-22.22s %4lld", run->bench->matrix, (long long)run->bench->n);
  for (int i = 0; i < STEPS; i++) wlmi_row_cell(row, i ? 9 : 11, gflops(run, i));
  wlmi_text_printf(row, "  %-10s", wlmi_paper_steps[run->best].name);
  wlmi_row_cell(row, 14, gflops(run, 1) / first);
  wlmi_row_cell(row, 16, gflops(run, run->best) / first);
  wlmi_text_printf(row, "  %11.1e\n", run->max_rel_err);
}

static wlm_status run_case(const wlmi_bench_case *bench, wlmi_text *line, wlmi_text *row) {
  struct run run = {.bench = bench};
  wlm_problem problem = WLM_PROBLEM_INIT;
  problem.n = bench->n;
  wlm_status status;
  if (wlmi_context_device(bench->context)->info.limits.target != WLM_TARGET_CUDA)
    return wlmi_fail(WLM_ERR_UNSUPPORTED, "the paper's kernels (row_naive, row_crc) are for GPUs: use --device cuda");
  WLM_TRY(wlmi_contest_create(bench, bench->upload->matrix, &problem, &run.contest));
  WLM_TRY(measure(&run));
  write_line(&run, line);
  write_row(&run, row);
done:
  for (int i = 0; i < STEPS; i++) wlmi_entrant_release(&run.entrants[i]);
  wlmi_contest_release(&run.contest);
  return status;
}

const wlmi_bench_suite wlmi_suite_papers = {
    .name = suite_name,
    .help = "GE-SpMM: Algorithm 1, CRC, CRC + CWM, in GFLOP/s",
    .heading =
        "GFLOP/s                   n  algorithm1       crc      cwm2      cwm4      cwm8  best       crc/algorithm1  "
        "best/algorithm1  max_rel_err\n",
    .run = run_case,
};
