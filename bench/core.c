/* How a figure is made. First every valid candidate is timed once ("screening"), with as many calls in a sample as
 * its own quickness asks for; what takes twice the best is dropped there. The ten best must then be right against
 * float64, and are timed again, interleaved; the quickest of them is the winner. The times that are reported are
 * neither of these: winner, dispatcher's choice, GE-SpMM as published and all of cuSPARSE (on the host: its own rivals)
 * are timed once more, side by side, with the same number of calls in every sample, so many that the quickest fills a
 * millisecond. A winner's time is thus never the least of many looks. */
#include "bench/core.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/entrant.h"
#include "bench/host_rivals.h"
#include "bench/results_file.h"
#include "bench/rival_cusparse.h"
#include "common/memory.h"
#include "tuner/compile_ahead.h"
#include "tuner/timing.h"
#include "tuner/verify.h"

enum { FINALISTS = 10, OURS = 3, MAX_CALLS = 4096 };
static const double screening_seconds = 0.3e-3, sample_seconds = 1e-3;
static const double slow = 2, launch_seconds = 10e-6; /* what one call alone may cost besides its work */

static const char suite_name[] = "core";
static const char heading[] =
    "matrix                    n         us  spread  best variant                       ge-spmm    chosen     rival  "
    "(algorithm)    speed-up  max_rel_err\n";

struct screened {
  const char *variant;
  double seconds;
};

struct arena {
  const wlm_bench_case *bench;
  wlm_device *device;
  wlm_operands operands;
  wlm_verifier *verifier;
  wlm_names candidates;
  struct screened *screened; /* as many as candidates; after screening the quickest first, failures at infinity */
  wlm_text failures;         /* members of a JSON object */
  /* The last round: ours first (winner, then those not yet there), then the rivals of this kind of device. */
  wlm_entrant entrants[OURS + WLM_CUSPARSE_WAYS];
  int ours, count, chosen, ge; /* chosen, ge: index among ours, -1 = none */
  double preprocess[WLM_CUSPARSE_WAYS];
  double max_rel_err; /* of the winner */
  int64_t calls;
};

static int64_t calls_for(double target, double seconds) {
  double calls = seconds > 0 ? ceil(target / seconds) : MAX_CALLS;
  return calls < 1 ? 1 : calls > MAX_CALLS ? MAX_CALLS : (int64_t)calls;
}

static void note_failure(struct arena *arena, const wlm_entrant *entrant) {
  if (arena->failures.size) wlm_text_puts(&arena->failures, ",");
  wlm_text_json_string(&arena->failures, entrant->name);
  wlm_text_puts(&arena->failures, ":");
  wlm_text_json_string(&arena->failures, entrant->failure);
}

/* ---- screening ---------------------------------------------------------------------------------- */

static int go_on(void *user) {
  (void)user;
  return 0;
}

static wlm_status compile_all(struct arena *arena) {
  int64_t count = arena->candidates.count;
  wlm_compile_job *jobs = wlm_alloc_zero((size_t)count, sizeof *jobs);
  if (!jobs) return wlm_fail(WLM_ERR_OUT_OF_MEMORY, "compilations");
  for (int64_t i = 0; i < count; i++) jobs[i].variant = arena->candidates.names[i];
  wlm_compile_ahead(arena->bench->context, &arena->operands.spec, jobs, count, go_on, NULL);
  for (int64_t i = 0; i < count; i++) wlm_free(jobs[i].detail); /* making the plan tells it again */
  wlm_free(jobs);
  return WLM_OK;
}

static wlm_status screen(wlm_device *device, const wlm_entrant *entrant, double best, double *seconds) {
  wlm_status status = wlm_entrant_sample(device, entrant, 1, seconds);
  if (status != WLM_OK || *seconds > slow * best + launch_seconds) return status;
  int64_t calls = calls_for(screening_seconds, *seconds);
  return calls > 1 ? wlm_entrant_sample(device, entrant, calls, seconds) : WLM_OK;
}

static int quicker(const void *left, const void *right) {
  const struct screened *a = left, *b = right;
  return (a->seconds > b->seconds) - (a->seconds < b->seconds);
}

static wlm_status screen_all(struct arena *arena) {
  double best = INFINITY;
  int64_t count = arena->candidates.count;
  wlm_status status = wlm_alloc_array(count, sizeof *arena->screened, "candidates", (void **)&arena->screened);
  if (status != WLM_OK) return status;
  for (int64_t i = 0; i < count; i++) {
    wlm_entrant entrant;
    double seconds = INFINITY;
    wlm_entrant_variant(arena->bench->context, &arena->operands, arena->candidates.names[i], &entrant);
    if (!entrant.failure && screen(arena->device, &entrant, best, &seconds) != WLM_OK)
      wlm_entrant_fail(&entrant, wlm_error_detail());
    if (entrant.failure) {
      note_failure(arena, &entrant);
      seconds = INFINITY;
    }
    best = fmin(best, seconds);
    arena->screened[i] = (struct screened){arena->candidates.names[i], seconds};
    wlm_entrant_release(&entrant);
  }
  qsort(arena->screened, (size_t)count, sizeof *arena->screened, quicker);
  if (isfinite(best)) return WLM_OK;
  return wlm_fail(WLM_ERR_DEVICE, "no candidate runs: %s", count ? arena->failures.data : "there is none");
}

/* ---- the winner ---------------------------------------------------------------------------------- */

static void verify(struct arena *arena, wlm_entrant *entrant, double *max_rel_err) {
  if (entrant->failure) return;
  if (wlm_operands_bind(&arena->operands, entrant->plan) != WLM_OK ||
      wlm_verify(arena->verifier, entrant->plan, max_rel_err) != WLM_OK)
    wlm_entrant_fail(entrant, wlm_error_detail());
}

/* Takes the winner's place among the entrants. */
static wlm_status find_winner(struct arena *arena) {
  wlm_entrant finalists[FINALISTS] = {0};
  double errors[FINALISTS] = {0};
  int count = 0, winner = -1;
  wlm_status status = WLM_OK;
  for (int64_t i = 0; i < arena->candidates.count && count < FINALISTS; i++) {
    if (!(arena->screened[i].seconds <= slow * arena->screened[0].seconds)) break;
    wlm_entrant_variant(arena->bench->context, &arena->operands, arena->screened[i].variant, &finalists[count]);
    verify(arena, &finalists[count], &errors[count]);
    count++;
  }
  arena->calls = calls_for(sample_seconds, arena->screened[0].seconds);
  WLM_TRY(wlm_entrants_time(arena->device, finalists, count, arena->calls, arena->bench->samples));
  for (int i = 0; i < count; i++) {
    if (finalists[i].failure)
      note_failure(arena, &finalists[i]);
    else if (winner < 0 || finalists[i].seconds < finalists[winner].seconds)
      winner = i;
  }
  if (winner < 0) WLM_TRY(wlm_fail(WLM_ERR_MISMATCH, "none of the quickest is right: %s", arena->failures.data));
  arena->max_rel_err = errors[winner];
  arena->entrants[arena->ours++] = finalists[winner];
  finalists[winner] = (wlm_entrant){0};
done:
  for (int i = 0; i < count; i++) wlm_entrant_release(&finalists[i]);
  return status;
}

/* ---- the last round ------------------------------------------------------------------------------ */

/* A variant as one of ours, by name or (NULL) as the dispatcher chooses; its index. */
static int add_ours(struct arena *arena, const char *variant) {
  wlm_entrant *entrant = &arena->entrants[arena->ours];
  double error;
  wlm_entrant_variant(arena->bench->context, &arena->operands, variant, entrant);
  for (int i = 0; i < arena->ours; i++) {
    if (strcmp(arena->entrants[i].name, entrant->name)) continue;
    wlm_entrant_release(entrant);
    return i;
  }
  verify(arena, entrant, &error);
  return arena->ours++;
}

/* The published rule: warps are merged where a row of C is wider than one. */
static const char *ge_spmm(int64_t n) { return n >= 64 ? "row_crc/cf=2,rows=8" : "row_crc/cf=1,rows=4"; }

/* One plain run of an entrant into a C full of large numbers; C is then on the host. */
static wlm_status run_once(struct arena *arena, const wlm_entrant *entrant, float *c, size_t size) {
  wlm_device *device = arena->device;
  void *memory = arena->operands.c.memory;
  wlm_status status;
  WLM_TRY(device->ops->fill(device, memory, 0x7e, size));
  WLM_TRY(entrant->enqueue(entrant->user, NULL));
  WLM_TRY(device->ops->synchronize(device, NULL));
  WLM_TRY(device->ops->copy_out(device, c, memory, size));
done:
  return status;
}

/* A rival computes the same product, or the comparison would mean nothing: its C against the winner's. */
static wlm_status check_rivals(struct arena *arena) {
  int64_t elements = arena->operands.a.rows * arena->operands.spec.problem.n;
  size_t size = (size_t)elements * sizeof(float);
  float *ours = NULL, *theirs = NULL;
  wlm_status status;
  WLM_TRY(wlm_alloc_array(elements, sizeof *ours, "C", (void **)&ours));
  WLM_TRY(wlm_alloc_array(elements, sizeof *theirs, "C", (void **)&theirs));
  WLM_TRY(run_once(arena, &arena->entrants[0], ours, size));
  for (int i = arena->ours; i < arena->count; i++) {
    wlm_entrant *rival = &arena->entrants[i];
    double difference = 0, norm = 0;
    if (rival->failure) continue;
    if (run_once(arena, rival, theirs, size) != WLM_OK) {
      wlm_entrant_fail(rival, wlm_error_detail());
      continue;
    }
    for (int64_t j = 0; j < elements; j++) {
      difference += ((double)theirs[j] - ours[j]) * ((double)theirs[j] - ours[j]);
      norm += (double)ours[j] * ours[j];
    }
    if (!(difference <= 1e-10 * norm)) wlm_entrant_fail(rival, "its result differs from the verified one");
  }
done:
  wlm_free(ours);
  wlm_free(theirs);
  return status;
}

static wlm_status last_round(struct arena *arena) {
  const int on_gpu = arena->device->info.limits.target == WLM_TARGET_CUDA;
  double quickest = INFINITY;
  wlm_status status;
  arena->chosen = add_ours(arena, NULL);
  arena->ge = on_gpu ? add_ours(arena, ge_spmm(arena->bench->n)) : -1;
  arena->count = arena->ours;
  for (int way = 0; way < WLM_CUSPARSE_WAYS && on_gpu; way++)
    wlm_entrant_cusparse(&arena->operands, way, &arena->entrants[arena->count++], &arena->preprocess[way]);
  if (!on_gpu) {
    wlm_host_rivals_enter(&arena->operands, &arena->entrants[arena->count]);
    arena->count += WLM_HOST_RIVALS;
  }
  WLM_TRY(check_rivals(arena));
  WLM_TRY(wlm_entrants_time(arena->device, arena->entrants, arena->count, arena->calls, 1));
  for (int i = 0; i < arena->count; i++)
    if (!arena->entrants[i].failure) quickest = fmin(quickest, arena->entrants[i].seconds);
  arena->calls = calls_for(sample_seconds, quickest);
  WLM_TRY(wlm_entrants_time(arena->device, arena->entrants, arena->count, arena->calls, arena->bench->samples));
  for (int i = 1; i < arena->ours; i++)
    if (arena->entrants[i].failure) note_failure(arena, &arena->entrants[i]);
  if (arena->entrants[0].failure) status = wlm_fail(WLM_ERR_DEVICE, "%s", arena->entrants[0].failure);
done:
  return status;
}

/* ---- telling ------------------------------------------------------------------------------------ */

static void put_us(wlm_text *line, const char *name, const wlm_entrant *entrant) {
  if (entrant && !entrant->failure)
    wlm_text_printf(line, "\"%s\":%.3f", name, 1e6 * entrant->seconds);
  else
    wlm_text_printf(line, "\"%s\":null", name);
}

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
    put_us(line, wlm_cusparse_name(way), &rivals[way]);
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
  const wlm_csr_host *a = &arena->operands.a;
  const wlm_entrant *winner = &arena->entrants[0], *chosen = &arena->entrants[arena->chosen];
  wlm_results_begin(line, suite_name, arena->device->info.name, arena->bench->matrix);
  wlm_text_printf(line, "\"rows\":%lld,\"cols\":%lld,\"nnz\":%lld,\"n\":%lld,\"op\":\"sum\",\"type\":\"f32\",",
                  (long long)a->rows, (long long)a->cols, (long long)a->nnz, (long long)arena->bench->n);
  put_us(line, "us", winner);
  wlm_text_printf(line, ",\"spread\":%.4f,\"variant\":", winner->spread);
  wlm_text_json_string(line, winner->name);
  wlm_text_puts(line, ",");
  put_us(line, "chosen_us", chosen);
  wlm_text_puts(line, ",\"chosen_variant\":");
  wlm_text_json_string(line, chosen->name);
  wlm_text_puts(line, ",");
  put_us(line, "ge_spmm_us", arena->ge < 0 ? NULL : &arena->entrants[arena->ge]);
  wlm_text_puts(line, ",");
  put_rivals(arena, line);
  wlm_text_printf(line, "\"compulsory_gbs\":%.1f,\"gather_gbs\":%.1f,\"max_rel_err\":%.3g,",
                  compulsory_gbs(a, arena->bench->n, winner->seconds),
                  wlm_gather_gbs(&arena->operands.spec, arena->operands.a.rows, arena->operands.edges, winner->seconds),
                  arena->max_rel_err);
  wlm_text_printf(line, "\"checked_rows\":%lld,\"candidates\":%lld,\"calls\":%lld,\"failed\":{",
                  (long long)wlm_verifier_rows(arena->verifier), (long long)arena->candidates.count,
                  (long long)arena->calls);
  if (arena->failures.size) wlm_text_append(line, arena->failures.data, arena->failures.size);
  wlm_text_puts(line, "}}\n");
}

static void put_cell(wlm_text *row, int width, double value) {
  if (isfinite(value))
    wlm_text_printf(row, " %*.2f", width, value);
  else
    wlm_text_printf(row, " %*s", width, "-");
}

static double microseconds(const wlm_entrant *entrant) {
  return entrant && !entrant->failure ? 1e6 * entrant->seconds : NAN;
}

static void write_row(const struct arena *arena, wlm_text *row) {
  const wlm_entrant *winner = &arena->entrants[0], *rival = NULL;
  for (int i = arena->ours; i < arena->count; i++)
    if (!arena->entrants[i].failure && (!rival || arena->entrants[i].seconds < rival->seconds))
      rival = &arena->entrants[i];
  wlm_text_printf(row, "%-22.22s %4lld", arena->bench->matrix, (long long)arena->bench->n);
  put_cell(row, 10, microseconds(winner));
  wlm_text_printf(row, " %6.1f%%  %-32.32s", 100 * winner->spread, winner->name);
  put_cell(row, 9, microseconds(arena->ge < 0 ? NULL : &arena->entrants[arena->ge]));
  put_cell(row, 9, microseconds(&arena->entrants[arena->chosen]));
  put_cell(row, 9, microseconds(rival));
  wlm_text_printf(row, "  %-14s", rival ? rival->name : "-");
  put_cell(row, 8, microseconds(rival) / microseconds(winner));
  wlm_text_printf(row, "  %11.1e\n", arena->max_rel_err);
}

static wlm_status run(const wlm_bench_case *bench, wlm_text *line, wlm_text *row) {
  struct arena arena = {.bench = bench, .device = wlm_context_device(bench->context)};
  wlm_problem problem = WLM_PROBLEM_INIT;
  problem.n = bench->n;
  wlm_status status;
  WLM_TRY(wlm_operands_create(bench->context, bench->upload->matrix, &problem, bench->seed, &arena.operands));
  WLM_TRY(wlm_verifier_create(&arena.operands, bench->seed, &arena.verifier));
  WLM_TRY(wlm_generator_candidates(wlm_context_generator(bench->context), &arena.operands.spec,
                                   &arena.device->info.limits, &arena.candidates));
  WLM_TRY(compile_all(&arena));
  WLM_TRY(screen_all(&arena));
  WLM_TRY(find_winner(&arena));
  WLM_TRY(last_round(&arena));
  write_line(&arena, line);
  write_row(&arena, row);
done:
  for (int i = 0; i < OURS + WLM_CUSPARSE_WAYS; i++) wlm_entrant_release(&arena.entrants[i]);
  wlm_free(arena.screened);
  wlm_names_release(&arena.candidates);
  wlm_verifier_destroy(arena.verifier);
  wlm_operands_release(&arena.operands);
  wlm_text_release(&arena.failures);
  return status;
}

const wlm_bench_suite wlm_suite_core = {suite_name, "fp32 sum: all candidates, GE-SpMM, cuSPARSE", heading, run};
