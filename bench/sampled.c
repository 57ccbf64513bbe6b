/* ES-SpMM's comparison (sections V-D and V-F of the paper), for both of its strategies and S from 16 to 512: the best
 * candidate that samples while it multiplies, against the best cuSPARSE algorithm on the full matrix, against what the
 * dispatcher chooses for the full matrix (below which sampling is for nothing), and against the best exact candidate
 * that is fed a matrix sampled beforehand (whose making is not in the time).
 *
 * cuSPARSE does not depend on strategy and S: its algorithms are timed once for a matrix and width, and the quickest
 * (with or without its preprocess) is timed again beside every winner. It is that second time which is reported. */
#include "bench/sampled.h"

#include <math.h>
#include <string.h>

#include "bench/baseline_cusparse.h"
#include "bench/contest.h"
#include "bench/results_file.h"
#include "bench/tell.h"
#include "csr/presample.h"
#include "tuner/timing.h"

enum { SAMPLED, PRESAMPLED, CUSPARSE, EXACT, ENTRANTS, OTHERS = ENTRANTS - CUSPARSE, STRATEGIES = 2, WIDTHS = 6 };

static const struct strategy {
  const char *name;
  wlm_sample sample;
} strategies[STRATEGIES] = {{"bucket", WLM_SAMPLE_BUCKET}, {"fastrand", WLM_SAMPLE_FASTRAND}};
static const int64_t sample_widths[WIDTHS] = {16, 32, 64, 128, 256, 512};

static const char suite_name[] = "sampled";

/* One strategy and one S. */
struct round {
  const wlmi_bench_case *bench;
  const struct strategy *strategy;
  wlm_problem problem;
  wlmi_csr_host kept;       /* the matrix sampled beforehand */
  wlmi_upload upload;       /* and on the device */
  wlmi_contest contests[2]; /* SAMPLED, PRESAMPLED */
  wlmi_entrant entrants[ENTRANTS];
  int64_t calls;
};

/* ---- cuSPARSE ------------------------------------------------------------------------------------ */

/* The quickest of its ways on the full matrix. An entrant with a failure where there is none. */
static wlm_status best_cusparse(wlmi_contest *exact, wlmi_entrant *best) {
  wlmi_device *device = exact->operands.device;
  wlmi_entrant ways[WLM_CUSPARSE_WAYS] = {0};
  int quickest = -1;
  int64_t calls;
  wlm_status status;
  for (int way = 0; way < WLM_CUSPARSE_WAYS; way++) wlmi_entrant_cusparse(&exact->operands, way, &ways[way], NULL);
  wlmi_contest_check(exact, ways, WLM_CUSPARSE_WAYS);
  WLM_TRY(wlmi_contest_time(device, ways, WLM_CUSPARSE_WAYS, exact->samples, &calls));
  for (int way = 0; way < WLM_CUSPARSE_WAYS; way++)
    if (!ways[way].failure && (quickest < 0 || ways[way].seconds < ways[quickest].seconds)) quickest = way;
  if (quickest < 0) quickest = 0; /* its failure tells why */
  *best = ways[quickest];
  ways[quickest] = (wlmi_entrant){0};
done:
  for (int way = 0; way < WLM_CUSPARSE_WAYS; way++) wlmi_entrant_release(&ways[way]);
  return status;
}

/* ---- one round ----------------------------------------------------------------------------------- */

static wlm_status prepare(struct round *round) {
  const wlmi_bench_case *bench = round->bench;
  wlm_problem exact = WLM_PROBLEM_INIT;
  exact.n = bench->n;
  wlm_status status;
  WLM_TRY(wlmi_contest_create(bench, bench->upload->matrix, &round->problem, &round->contests[SAMPLED]));
  WLM_TRY(wlmi_presample(bench->csr, &round->problem, 0, &round->kept));
  WLM_TRY(wlmi_upload_create(bench->context, &round->kept, wlmi_upload_rowptr_type(&round->kept), &round->upload));
  WLM_TRY(wlmi_contest_create(bench, round->upload.matrix, &exact, &round->contests[PRESAMPLED]));
done:
  return status;
}

/* The others take part in the last round and are the caller's again afterwards, with their new times. */
static wlm_status play(struct round *round, wlmi_entrant others[OTHERS]) {
  wlmi_device *device = round->contests[SAMPLED].operands.device;
  wlm_status status;
  for (int i = SAMPLED; i <= PRESAMPLED; i++) WLM_TRY(wlmi_contest_winner(&round->contests[i], &round->entrants[i]));
  memcpy(&round->entrants[CUSPARSE], others, OTHERS * sizeof *others);
  status = wlmi_contest_time(device, round->entrants, ENTRANTS, round->bench->samples, &round->calls);
  memcpy(others, &round->entrants[CUSPARSE], OTHERS * sizeof *others);
  if (status == WLM_OK && round->entrants[SAMPLED].failure)
    status = wlmi_fail(WLM_ERR_DEVICE, "%s", round->entrants[SAMPLED].failure);
done:
  return status;
}

static void release(struct round *round) {
  for (int i = SAMPLED; i <= PRESAMPLED; i++) {
    wlmi_entrant_release(&round->entrants[i]);
    wlmi_contest_release(&round->contests[i]);
  }
  wlmi_upload_release(&round->upload);
  wlmi_csr_host_release(&round->kept);
}

/* ---- telling ------------------------------------------------------------------------------------- */

static double kept_share(const struct round *round) {
  const int64_t nnz = round->bench->csr->nnz;
  return nnz ? (double)round->kept.nnz / (double)nnz : 1;
}

static void write_line(const struct round *round, wlmi_text *line) {
  const wlmi_csr_host *a = round->bench->csr;
  const wlmi_contest *sampled = &round->contests[SAMPLED];
  const wlmi_entrant *entrants = round->entrants, *baseline = &entrants[CUSPARSE];
  wlmi_results_begin(line, suite_name, sampled->operands.device->info.name, round->bench->matrix);
  wlmi_text_printf(line, "\"rows\":%lld,\"cols\":%lld,\"nnz\":%lld,\"n\":%lld,", (long long)a->rows, (long long)a->cols,
                   (long long)a->nnz, (long long)round->bench->n);
  wlmi_tell_string(line, "strategy", round->strategy->name);
  wlmi_text_printf(line, ",\"s\":%lld,", (long long)round->problem.sampling.width);
  wlmi_tell_number(line, "us", 3, wlmi_tell_us(&entrants[SAMPLED]));
  wlmi_text_printf(line, ",\"spread\":%.4f,\"kept_share\":%.6f,", entrants[SAMPLED].spread, kept_share(round));
  wlmi_tell_number(line, "best_cusparse_us", 3, wlmi_tell_us(baseline));
  wlmi_text_puts(line, ",");
  wlmi_tell_string(line, "best_cusparse", baseline->failure ? NULL : baseline->name);
  wlmi_text_puts(line, ",");
  wlmi_tell_string(line, "cusparse_error", baseline->failure);
  wlmi_text_puts(line, ",");
  wlmi_tell_number(line, "exact_us", 3, wlmi_tell_us(&entrants[EXACT]));
  wlmi_text_puts(line, ",");
  wlmi_tell_string(line, "exact_variant", entrants[EXACT].name);
  wlmi_text_puts(line, ",");
  wlmi_tell_string(line, "variant", entrants[SAMPLED].name);
  wlmi_text_puts(line, ",");
  wlmi_tell_number(line, "presampled_us", 3, wlmi_tell_us(&entrants[PRESAMPLED]));
  wlmi_text_puts(line, ",");
  wlmi_tell_string(line, "presampled_variant", entrants[PRESAMPLED].name);
  wlmi_text_printf(line, ",\"gather_gbs\":%.1f,\"max_rel_err\":%.3g,\"presampled_max_rel_err\":%.3g,",
                   wlmi_gather_gbs(&sampled->operands.spec, a->rows, round->kept.nnz, entrants[SAMPLED].seconds),
                   entrants[SAMPLED].max_rel_err, entrants[PRESAMPLED].max_rel_err);
  wlmi_text_printf(line, "\"checked_rows\":%lld,\"candidates\":%lld,\"calls\":%lld,\"failed\":{",
                   (long long)wlmi_verifier_rows(sampled->verifier), (long long)sampled->candidates,
                   (long long)round->calls);
  if (sampled->failures.size) wlmi_text_append(line, sampled->failures.data, sampled->failures.size);
  wlmi_text_puts(line, "},\"presampled_failed\":{");
  const wlmi_text *others = &round->contests[PRESAMPLED].failures;
  if (others->size) wlmi_text_append(line, others->data, others->size);
  wlmi_text_puts(line, "}}\n");
}

static void write_row(const struct round *round, wlmi_text *row) {
  const double us = wlmi_tell_us(&round->entrants[SAMPLED]), presampled = wlmi_tell_us(&round->entrants[PRESAMPLED]);
  const double baseline = wlmi_tell_us(&round->entrants[CUSPARSE]), exact = wlmi_tell_us(&round->entrants[EXACT]);
  wlmi_text_printf(row, "%-22.22s %4lld  %-8s %4lld %6.1f%%", round->bench->matrix, (long long)round->bench->n,
                   round->strategy->name, (long long)round->problem.sampling.width, 100 * kept_share(round));
  wlmi_tell_cell(row, 10, us);
  wlmi_text_printf(row, "  %-44.44s", round->entrants[SAMPLED].name);
  wlmi_tell_cell(row, 10, baseline);
  wlmi_tell_cell(row, 9, baseline / us);
  wlmi_tell_cell(row, 8, exact / us);
  wlmi_tell_cell(row, 11, presampled);
  wlmi_tell_cell(row, 9, presampled / us);
  wlmi_text_printf(row, "  %11.1e\n", round->entrants[SAMPLED].max_rel_err);
}

/* ---- the case ------------------------------------------------------------------------------------ */

static wlm_status one_round(const wlmi_bench_case *bench, const struct strategy *strategy, int64_t sample_width,
                            wlmi_entrant others[OTHERS], wlmi_text *line, wlmi_text *row) {
  struct round round = {.bench = bench, .strategy = strategy, .problem = WLM_PROBLEM_INIT};
  wlm_status status;
  round.problem.n = bench->n;
  round.problem.sampling.sample = strategy->sample;
  round.problem.sampling.width = sample_width;
  WLM_TRY(prepare(&round));
  WLM_TRY(play(&round, others));
  write_line(&round, line);
  write_row(&round, row);
done:
  release(&round);
  return status;
}

static wlm_status run(const wlmi_bench_case *bench, wlmi_text *line, wlmi_text *row) {
  wlmi_contest exact;
  wlmi_entrant others[OTHERS] = {0};
  wlm_problem problem = WLM_PROBLEM_INIT;
  problem.n = bench->n;
  wlm_status status = wlmi_contest_create(bench, bench->upload->matrix, &problem, &exact);
  if (status != WLM_OK) return status;
  if (exact.operands.device->info.limits.target == WLM_TARGET_CUDA)
    WLM_TRY(best_cusparse(&exact, &others[0]));
  else
    wlmi_entrant_fail(&others[0], "cuSPARSE is for GPUs");
  wlmi_contest_enter(&exact, NULL, &others[1]);
  for (int i = 0; i < STRATEGIES; i++)
    for (int j = 0; j < WIDTHS; j++) {
      status = one_round(bench, &strategies[i], sample_widths[j], others, line, row);
      if (status != WLM_OK) {
        wlmi_fail_in(status, "%s, S = %lld", strategies[i].name, (long long)sample_widths[j]);
        goto done;
      }
    }
done:
  for (int i = 0; i < OTHERS; i++) wlmi_entrant_release(&others[i]);
  wlmi_contest_release(&exact);
  return status;
}

const wlmi_bench_suite wlmi_suite_sampled = {
    .name = suite_name,
    .help = "ES-SpMM: both strategies, S = 16 to 512, cuSPARSE and our choice on all edges",
    .heading =
        "matrix                    n  strategy    S    kept         us  best variant                                   "
        "cusparse  speed-up  exact/us  presampled    ratio  max_rel_err\n",
    .run = run,
};
