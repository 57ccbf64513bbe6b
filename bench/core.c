/* The winner of the contest, the dispatcher's choice, GE-SpMM as published and all of cuSPARSE (on the host: its own
 * rivals), timed side by side (bench/contest.c). */
#include "bench/core.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/contest.h"
#include "bench/host_rivals.h"
#include "bench/results_file.h"
#include "bench/rival_cusparse.h"
#include "bench/tell.h"
#include "tuner/timing.h"

enum { OURS = 3 };

static const char suite_name[] = "core";
static const char heading[] =
    "matrix                    n         us  spread  best variant                       ge-spmm    chosen     rival  "
    "(algorithm)    speed-up  max_rel_err\n";

struct arena {
  const wlm_bench_case *bench;
  wlm_contest contest;
  wlm_device *device;
  /* The last round: ours first (winner, then those not yet there), then the rivals of this kind of device. */
  wlm_entrant entrants[OURS + WLM_CUSPARSE_WAYS];
  int ours, count, chosen, ge; /* chosen, ge: index among ours, -1 = none */
  double preprocess[WLM_CUSPARSE_WAYS];
  double max_rel_err; /* of the winner */
  int64_t calls;
};

/* A variant as one of ours, by name or (NULL) as the dispatcher chooses; its index. */
static int add_ours(struct arena *arena, const char *variant) {
  wlm_entrant *entrant = &arena->entrants[arena->ours];
  double error;
  wlm_contest_enter(&arena->contest, variant, entrant, &error);
  for (int i = 0; i < arena->ours; i++) {
    if (strcmp(arena->entrants[i].name, entrant->name)) continue;
    wlm_entrant_release(entrant);
    return i;
  }
  return arena->ours++;
}

/* The published rule: warps are merged where a row of C is wider than one. */
static const char *ge_spmm(int64_t n) { return n >= 64 ? "row_crc/cf=2,rows=8" : "row_crc/cf=1,rows=4"; }

static wlm_status last_round(struct arena *arena) {
  const int on_gpu = arena->device->info.limits.target == WLM_TARGET_CUDA;
  const wlm_operands *operands = &arena->contest.operands;
  wlm_entrant *rivals;
  wlm_status status;
  arena->chosen = add_ours(arena, NULL);
  arena->ge = on_gpu ? add_ours(arena, ge_spmm(arena->bench->n)) : -1;
  rivals = &arena->entrants[arena->ours];
  for (int way = 0; way < WLM_CUSPARSE_WAYS && on_gpu; way++)
    wlm_entrant_cusparse(operands, way, &rivals[way], &arena->preprocess[way]);
  if (!on_gpu) wlm_host_rivals_enter(operands, rivals);
  arena->count = arena->ours + (on_gpu ? WLM_CUSPARSE_WAYS : WLM_HOST_RIVALS);
  WLM_TRY(wlm_contest_check(&arena->contest, &arena->entrants[0], rivals, arena->count - arena->ours));
  WLM_TRY(wlm_contest_time(arena->device, arena->entrants, arena->count, arena->bench->samples, &arena->calls));
  for (int i = 1; i < arena->ours; i++)
    if (arena->entrants[i].failure) wlm_contest_note(&arena->contest, &arena->entrants[i]);
  if (arena->entrants[0].failure) status = wlm_fail(WLM_ERR_DEVICE, "%s", arena->entrants[0].failure);
done:
  return status;
}

/* ---- telling ------------------------------------------------------------------------------------ */

static void put_rivals(const struct arena *arena, wlm_text *line) {
  const char *before = "";
  const wlm_entrant *rivals = arena->entrants + arena->ours;
  if (arena->device->info.limits.target != WLM_TARGET_CUDA) {
    wlm_text_puts(line, "\"cusparse\":null,\"cusparse_errors\":{},");
    wlm_host_rivals_write(rivals, line);
    wlm_text_puts(line, ",");
    return;
  }
  wlm_text_puts(line, "\"cusparse\":{");
  for (int way = 0; way < WLM_CUSPARSE_WAYS; way++) {
    if (way) wlm_text_puts(line, ",");
    wlm_tell_number(line, wlm_cusparse_name(way), 3, wlm_tell_us(&rivals[way]));
  }
  wlm_text_puts(line, "},\"cusparse_preprocess_us\":{");
  for (int way = 0; way < WLM_CUSPARSE_WAYS; way++) {
    if (rivals[way].failure || arena->preprocess[way] <= 0) continue;
    wlm_text_printf(line, "%s\"%s\":%.1f", before, wlm_cusparse_name(way), 1e6 * arena->preprocess[way]);
    before = ",";
  }
  before = "";
  wlm_text_puts(line, "},\"cusparse_errors\":{");
  for (int way = 0; way < WLM_CUSPARSE_WAYS; way++) {
    if (!rivals[way].failure) continue;
    wlm_text_printf(line, "%s\"%s\":", before, wlm_cusparse_name(way));
    wlm_text_json_string(line, rivals[way].failure);
    before = ",";
  }
  wlm_text_puts(line, "},");
}

/* Each byte that must move at least once: B, C, columns and values, rowptr at four bytes. */
static double compulsory_gbs(const wlm_csr_host *a, int64_t n, double seconds) {
  double dense = (double)n * ((double)a->cols + (double)a->rows);
  return 4 * (dense + 2 * (double)a->nnz + (double)a->rows) / seconds / 1e9;
}

static void write_line(const struct arena *arena, wlm_text *line) {
  const wlm_csr_host *a = &arena->contest.operands.a;
  const wlm_entrant *winner = &arena->entrants[0], *chosen = &arena->entrants[arena->chosen];
  wlm_results_begin(line, suite_name, arena->device->info.name, arena->bench->matrix);
  wlm_text_printf(line, "\"rows\":%lld,\"cols\":%lld,\"nnz\":%lld,\"n\":%lld,\"op\":\"sum\",\"type\":\"f32\",",
                  (long long)a->rows, (long long)a->cols, (long long)a->nnz, (long long)arena->bench->n);
  wlm_tell_number(line, "us", 3, wlm_tell_us(winner));
  wlm_text_printf(line, ",\"spread\":%.4f,", winner->spread);
  wlm_tell_string(line, "variant", winner->name);
  wlm_text_puts(line, ",");
  wlm_tell_number(line, "chosen_us", 3, wlm_tell_us(chosen));
  wlm_text_puts(line, ",");
  wlm_tell_string(line, "chosen_variant", chosen->name);
  wlm_text_puts(line, ",");
  wlm_tell_number(line, "ge_spmm_us", 3, wlm_tell_us(arena->ge < 0 ? NULL : &arena->entrants[arena->ge]));
  wlm_text_puts(line, ",");
  put_rivals(arena, line);
  wlm_text_printf(line, "\"compulsory_gbs\":%.1f,\"gather_gbs\":%.1f,\"max_rel_err\":%.3g,",
                  compulsory_gbs(a, arena->bench->n, winner->seconds),
                  wlm_gather_gbs(&arena->contest.operands.spec, arena->contest.operands.a.rows,
                                 arena->contest.operands.edges, winner->seconds),
                  arena->max_rel_err);
  wlm_text_printf(line, "\"checked_rows\":%lld,\"candidates\":%lld,\"calls\":%lld,\"failed\":{",
                  (long long)wlm_verifier_rows(arena->contest.verifier), (long long)arena->contest.candidates,
                  (long long)arena->calls);
  if (arena->contest.failures.size) wlm_text_append(line, arena->contest.failures.data, arena->contest.failures.size);
  wlm_text_puts(line, "}}\n");
}

static void write_row(const struct arena *arena, wlm_text *row) {
  const wlm_entrant *winner = &arena->entrants[0], *rival = NULL;
  for (int i = arena->ours; i < arena->count; i++)
    if (!arena->entrants[i].failure && (!rival || arena->entrants[i].seconds < rival->seconds))
      rival = &arena->entrants[i];
  wlm_text_printf(row, "%-22.22s %4lld", arena->bench->matrix, (long long)arena->bench->n);
  wlm_tell_cell(row, 10, wlm_tell_us(winner));
  wlm_text_printf(row, " %6.1f%%  %-32.32s", 100 * winner->spread, winner->name);
  wlm_tell_cell(row, 9, wlm_tell_us(arena->ge < 0 ? NULL : &arena->entrants[arena->ge]));
  wlm_tell_cell(row, 9, wlm_tell_us(&arena->entrants[arena->chosen]));
  wlm_tell_cell(row, 9, wlm_tell_us(rival));
  wlm_text_printf(row, "  %-14s", rival ? rival->name : "-");
  wlm_tell_cell(row, 8, wlm_tell_us(rival) / wlm_tell_us(winner));
  wlm_text_printf(row, "  %11.1e\n", arena->max_rel_err);
}

static wlm_status run(const wlm_bench_case *bench, wlm_text *line, wlm_text *row) {
  struct arena arena = {.bench = bench, .device = wlm_context_device(bench->context), .ours = 1};
  wlm_problem problem = WLM_PROBLEM_INIT;
  problem.n = bench->n;
  wlm_status status;
  WLM_TRY(wlm_contest_create(bench, bench->upload->matrix, &problem, &arena.contest));
  WLM_TRY(wlm_contest_winner(&arena.contest, &arena.entrants[0], &arena.max_rel_err));
  WLM_TRY(last_round(&arena));
  write_line(&arena, line);
  write_row(&arena, row);
done:
  for (int i = 0; i < OURS + WLM_CUSPARSE_WAYS; i++) wlm_entrant_release(&arena.entrants[i]);
  wlm_contest_release(&arena.contest);
  return status;
}

const wlm_bench_suite wlm_suite_core = {suite_name, "fp32 sum: all candidates, GE-SpMM, cuSPARSE", heading, run};
