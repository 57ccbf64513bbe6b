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

#include "bench/contest.h"
#include "bench/results_file.h"
#include "bench/rival_cusparse.h"
#include "bench/tell.h"
#include "matrix/presample.h"
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
  const wlm_bench_case *bench;
  const struct strategy *strategy;
  wlm_problem problem;
  wlm_csr_host kept;       /* the matrix sampled beforehand */
  wlm_upload upload;       /* and on the device */
  wlm_contest contests[2]; /* SAMPLED, PRESAMPLED */
  wlm_entrant entrants[ENTRANTS];
  int64_t calls;
};

/* ---- cuSPARSE ------------------------------------------------------------------------------------ */

/* The quickest of its ways on the full matrix. An entrant with a failure where there is none. */
static wlm_status best_cusparse(wlm_contest *exact, wlm_entrant *best) {
  wlm_device *device = exact->operands.device;
  wlm_entrant ways[WLM_CUSPARSE_WAYS] = {0};
  int quickest = -1;
  int64_t calls;
  wlm_status status;
  for (int way = 0; way < WLM_CUSPARSE_WAYS; way++) wlm_entrant_cusparse(&exact->operands, way, &ways[way], NULL);
  wlm_contest_check(exact, ways, WLM_CUSPARSE_WAYS);
  WLM_TRY(wlm_contest_time(device, ways, WLM_CUSPARSE_WAYS, exact->samples, &calls));
  for (int way = 0; way < WLM_CUSPARSE_WAYS; way++)
    if (!ways[way].failure && (quickest < 0 || ways[way].seconds < ways[quickest].seconds)) quickest = way;
  if (quickest < 0) quickest = 0; /* its failure tells why */
  *best = ways[quickest];
  ways[quickest] = (wlm_entrant){0};
done:
  for (int way = 0; way < WLM_CUSPARSE_WAYS; way++) wlm_entrant_release(&ways[way]);
  return status;
}

/* ---- one round ----------------------------------------------------------------------------------- */

static wlm_status prepare(struct round *round) {
  const wlm_bench_case *bench = round->bench;
  wlm_problem exact = WLM_PROBLEM_INIT;
  exact.n = bench->n;
  wlm_status status;
  WLM_TRY(wlm_contest_create(bench, bench->upload->matrix, &round->problem, &round->contests[SAMPLED]));
  WLM_TRY(wlm_presample(bench->csr, &round->problem, &round->kept));
  WLM_TRY(wlm_upload_create(bench->context, &round->kept, wlm_upload_rowptr_type(&round->kept), &round->upload));
  WLM_TRY(wlm_contest_create(bench, round->upload.matrix, &exact, &round->contests[PRESAMPLED]));
done:
  return status;
}

/* The others take part in the last round and are the caller's again afterwards, with their new times. */
static wlm_status play(struct round *round, wlm_entrant others[OTHERS]) {
  wlm_device *device = round->contests[SAMPLED].operands.device;
  wlm_status status;
  for (int i = SAMPLED; i <= PRESAMPLED; i++) WLM_TRY(wlm_contest_winner(&round->contests[i], &round->entrants[i]));
  memcpy(&round->entrants[CUSPARSE], others, OTHERS * sizeof *others);
  status = wlm_contest_time(device, round->entrants, ENTRANTS, round->bench->samples, &round->calls);
  memcpy(others, &round->entrants[CUSPARSE], OTHERS * sizeof *others);
  if (status == WLM_OK && round->entrants[SAMPLED].failure)
    status = wlm_fail(WLM_ERR_DEVICE, "%s", round->entrants[SAMPLED].failure);
done:
  return status;
}

static void release(struct round *round) {
  for (int i = SAMPLED; i <= PRESAMPLED; i++) {
    wlm_entrant_release(&round->entrants[i]);
    wlm_contest_release(&round->contests[i]);
  }
  wlm_upload_release(&round->upload);
  wlm_csr_host_release(&round->kept);
}

/* ---- telling ------------------------------------------------------------------------------------- */

static double kept_share(const struct round *round) {
  const int64_t nnz = round->bench->csr->nnz;
  return nnz ? (double)round->kept.nnz / (double)nnz : 1;
}

static void write_line(const struct round *round, wlm_text *line) {
  const wlm_csr_host *a = round->bench->csr;
  const wlm_contest *sampled = &round->contests[SAMPLED];
  const wlm_entrant *entrants = round->entrants, *rival = &entrants[CUSPARSE];
  wlm_results_begin(line, suite_name, sampled->operands.device->info.name, round->bench->matrix);
  wlm_text_printf(line, "\"rows\":%lld,\"cols\":%lld,\"nnz\":%lld,\"n\":%lld,", (long long)a->rows, (long long)a->cols,
                  (long long)a->nnz, (long long)round->bench->n);
  wlm_tell_string(line, "strategy", round->strategy->name);
  wlm_text_printf(line, ",\"s\":%lld,", (long long)round->problem.sample_width);
  wlm_tell_number(line, "us", 3, wlm_tell_us(&entrants[SAMPLED]));
  wlm_text_printf(line, ",\"spread\":%.4f,\"kept_share\":%.6f,", entrants[SAMPLED].spread, kept_share(round));
  wlm_tell_number(line, "best_cusparse_us", 3, wlm_tell_us(rival));
  wlm_text_puts(line, ",");
  wlm_tell_string(line, "best_cusparse", rival->failure ? NULL : rival->name);
  wlm_text_puts(line, ",");
  wlm_tell_string(line, "cusparse_error", rival->failure);
  wlm_text_puts(line, ",");
  wlm_tell_number(line, "exact_us", 3, wlm_tell_us(&entrants[EXACT]));
  wlm_text_puts(line, ",");
  wlm_tell_string(line, "exact_variant", entrants[EXACT].name);
  wlm_text_puts(line, ",");
  wlm_tell_string(line, "variant", entrants[SAMPLED].name);
  wlm_text_puts(line, ",");
  wlm_tell_number(line, "presampled_us", 3, wlm_tell_us(&entrants[PRESAMPLED]));
  wlm_text_puts(line, ",");
  wlm_tell_string(line, "presampled_variant", entrants[PRESAMPLED].name);
  wlm_text_printf(line, ",\"gather_gbs\":%.1f,\"max_rel_err\":%.3g,\"presampled_max_rel_err\":%.3g,",
                  wlm_gather_gbs(&sampled->operands.spec, a->rows, round->kept.nnz, entrants[SAMPLED].seconds),
                  entrants[SAMPLED].max_rel_err, entrants[PRESAMPLED].max_rel_err);
  wlm_text_printf(line, "\"checked_rows\":%lld,\"candidates\":%lld,\"calls\":%lld,\"failed\":{",
                  (long long)wlm_verifier_rows(sampled->verifier), (long long)sampled->candidates,
                  (long long)round->calls);
  if (sampled->failures.size) wlm_text_append(line, sampled->failures.data, sampled->failures.size);
  wlm_text_puts(line, "},\"presampled_failed\":{");
  const wlm_text *others = &round->contests[PRESAMPLED].failures;
  if (others->size) wlm_text_append(line, others->data, others->size);
  wlm_text_puts(line, "}}\n");
}

static void write_row(const struct round *round, wlm_text *row) {
  const double us = wlm_tell_us(&round->entrants[SAMPLED]), presampled = wlm_tell_us(&round->entrants[PRESAMPLED]);
  const double rival = wlm_tell_us(&round->entrants[CUSPARSE]), exact = wlm_tell_us(&round->entrants[EXACT]);
  wlm_text_printf(row, "%-22.22s %4lld  %-8s %4lld %6.1f%%", round->bench->matrix, (long long)round->bench->n,
                  round->strategy->name, (long long)round->problem.sample_width, 100 * kept_share(round));
  wlm_tell_cell(row, 10, us);
  wlm_text_printf(row, "  %-44.44s", round->entrants[SAMPLED].name);
  wlm_tell_cell(row, 10, rival);
  wlm_tell_cell(row, 9, rival / us);
  wlm_tell_cell(row, 8, exact / us);
  wlm_tell_cell(row, 11, presampled);
  wlm_tell_cell(row, 9, presampled / us);
  wlm_text_printf(row, "  %11.1e\n", round->entrants[SAMPLED].max_rel_err);
}

/* ---- the case ------------------------------------------------------------------------------------ */

static wlm_status one_round(const wlm_bench_case *bench, const struct strategy *strategy, int64_t sample_width,
                            wlm_entrant others[OTHERS], wlm_text *line, wlm_text *row) {
  struct round round = {.bench = bench, .strategy = strategy, .problem = WLM_PROBLEM_INIT};
  wlm_status status;
  round.problem.n = bench->n;
  round.problem.sample = strategy->sample;
  round.problem.sample_width = sample_width;
  WLM_TRY(prepare(&round));
  WLM_TRY(play(&round, others));
  write_line(&round, line);
  write_row(&round, row);
done:
  release(&round);
  return status;
}

static wlm_status run(const wlm_bench_case *bench, wlm_text *line, wlm_text *row) {
  wlm_contest exact;
  wlm_entrant others[OTHERS] = {0};
  wlm_problem problem = WLM_PROBLEM_INIT;
  problem.n = bench->n;
  wlm_status status = wlm_contest_create(bench, bench->upload->matrix, &problem, &exact);
  if (status != WLM_OK) return status;
  if (exact.operands.device->info.limits.target == WLM_TARGET_CUDA)
    WLM_TRY(best_cusparse(&exact, &others[0]));
  else
    wlm_entrant_fail(&others[0], "cuSPARSE is for GPUs");
  wlm_contest_enter(&exact, NULL, &others[1]);
  for (int i = 0; i < STRATEGIES; i++)
    for (int j = 0; j < WIDTHS; j++) {
      status = one_round(bench, &strategies[i], sample_widths[j], others, line, row);
      if (status != WLM_OK) {
        wlm_fail_in(status, "%s, S = %lld", strategies[i].name, (long long)sample_widths[j]);
        goto done;
      }
    }
done:
  for (int i = 0; i < OTHERS; i++) wlm_entrant_release(&others[i]);
  wlm_contest_release(&exact);
  return status;
}

const wlm_bench_suite wlm_suite_sampled = {
    .name = suite_name,
    .help = "ES-SpMM: both strategies, S = 16 to 512, cuSPARSE and our choice on all edges",
    .heading =
        "matrix                    n  strategy    S    kept         us  best variant                                   "
        "cusparse  speed-up  exact/us  presampled    ratio  max_rel_err\n",
    .run = run,
};
