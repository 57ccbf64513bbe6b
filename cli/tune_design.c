/* Tunes the device on the matrices of the design (tuner/design.c) at each N, in the order of worth per second
 * (tuner/task.c), until the budget is used up. Measurements that the database has are skipped, so the same
 * command continues where the last one ended. At the end the models are trained. */
#include <math.h>
#include <stdio.h>

#include "cli/commands.h"
#include "cli/problem.h"
#include "cli/tune_run.h"
#include "core/base/memory.h"
#include "core/problem/operation.h"
#include "tuner/timing.h"

enum { MATRICES = 64 };
static const double default_budget_seconds = 600;
static const int64_t default_widths[] = {4, 16, 32, 64, 128, 256};
enum { DEFAULT_WIDTHS = sizeof default_widths / sizeof *default_widths };

typedef struct campaign {
  wlmi_tune_run run;
  wlmi_design_matrix *matrices;
  int64_t count;
  wlmi_task *cells; /* each matrix at each N that fits */
  int64_t cell_count;
  double expected, spent; /* seconds of all cells tuned so far: predicted and real */
  int64_t untuned;        /* cells in which no kernel gave a correct result */
  int64_t known, tuned;   /* cells with half of the candidates or more measured: at the start, and now */
  int64_t loaded;         /* the matrix in the session; -1 = none */
  int reread;             /* the tuner has read the measurements of this command */
  wlmi_table table;
} campaign;

/* The spec before the matrix is made, with the types that wlmi_session_load will use. */
static wlm_status spec_of(const campaign *c, int64_t n, wlmi_spec *spec) {
  const wlmi_cli_options *o = c->run.options;
  wlm_problem problem = c->run.session.problem;
  problem.n = n;
  return wlmi_cli_spec(&problem, o->rowptr_type, o->colind_type, problem.dense_type, 1, spec);
}

/* Adds the cell of a matrix and an N, with how much of it the database has, unless its operands do not fit. */
static wlm_status add_cell(campaign *c, int64_t matrix, int64_t n, const wlmi_design_limits *limits,
                           const wlmi_spec *spec) {
  const wlmi_limits *device = &wlmi_context_device(c->run.session.context)->info.limits;
  const wlmi_design_matrix *m = &c->matrices[matrix];
  wlmi_task *cell = &c->cells[c->cell_count];
  wlm_stats stats;
  double operands, results; /* of a message */
  int64_t candidates, left;
  wlmi_design_stats(m, &stats);
  WLM_CHECK(wlmi_message_bytes(spec, &stats, &operands, &results));
  if (!wlmi_design_fits(m, n, limits) || operands + results > (double)limits->bytes) return WLM_OK;
  WLM_CHECK(wlmi_tuner_left(c->run.tuner, m->name, spec, &left, &candidates));
  wlmi_task_make(device, &stats, matrix, n, candidates, left, cell);
  c->known += cell->state >= WLMI_TASK_LEAST;
  c->cell_count++;
  return WLM_OK;
}

static wlm_status make_cells(campaign *c) {
  const wlmi_cli_options *o = c->run.options;
  const int given = wlmi_cli_has(o, WLMI_OPTION_WIDTH), width_count = given ? o->n_count : DEFAULT_WIDTHS;
  const int64_t *widths = given ? o->n : default_widths;
  const wlmi_design_limits limits = wlmi_tune_limits(&c->run);
  wlmi_spec spec;
  WLM_CHECK(wlmi_design_make(o->seed, &limits, MATRICES, &c->matrices, &c->count));
  WLM_CHECK(wlmi_alloc_array(c->count * width_count, sizeof *c->cells, "cells of the design", (void **)&c->cells));
  for (int64_t i = 0; i < c->count * width_count; i++) {
    WLM_CHECK(spec_of(c, widths[i % width_count], &spec));
    WLM_CHECK(add_cell(c, i / width_count, widths[i % width_count], &limits, &spec));
  }
  return c->cell_count ? wlmi_tune_learn_points(&c->run, &spec, c->cells, c->cell_count) : WLM_OK;
}

static void count(campaign *c) {
  int64_t complete = 0;
  for (int64_t i = 0; i < c->cell_count; i++) complete += c->cells[i].state == WLMI_TASK_DONE;
  c->run.done = c->reread ? complete : c->tuned; /* reread: only once all cells were tuned */
  c->run.total = c->reread ? c->cell_count : c->cell_count - c->known;
}

static void tell_cell(campaign *c, const wlmi_task *cell, const wlmi_tune_summary *summary) {
  const char *name = c->matrices[cell->matrix].name;
  wlmi_tune_show(&c->run, "%s n=%lld: %s %.2f us", name, (long long)cell->n, c->run.best, 1e6 * c->run.best_seconds);
  wlmi_table_add(&c->table, "%s %jd %s %.2f %jd %jd %.2f %.2f %.2f %.2f %.2f", name, cell->n, c->run.best,
                 c->run.best_seconds ? 1e6 * c->run.best_seconds : NAN, summary->measured, summary->finalists,
                 summary->total, summary->making, summary->compiling, summary->entering, summary->checking);
}

/* Candidates that the model predicts to be slow are measured if the cell's share of the time suffices, and once all
 * cells were tuned. */
static double share_of(const campaign *c, const wlmi_task *cell) {
  if (cell->state == WLMI_TASK_LEAST) return INFINITY;
  return wlmi_tasks_share(c->cells, c->cell_count, cell - c->cells, c->run.deadline - wlmi_seconds());
}

static wlm_status tune_cell(campaign *c, wlmi_task *cell) {
  wlmi_tune_summary summary = {0};
  const char *name = c->matrices[cell->matrix].name;
  wlm_status status;
  wlmi_progress_next(&c->run.progress, cell->state == WLMI_TASK_LEAST ? "tune: the rest" : "tune");
  if (c->loaded != cell->matrix) {
    c->loaded = -1;
    WLM_TRY(wlmi_session_load(&c->run.session, name));
    c->loaded = cell->matrix;
  }
  if (cell->state == WLMI_TASK_LEAST && !c->reread) WLM_TRY(wlmi_tuner_reread(c->run.tuner));
  c->reread |= cell->state == WLMI_TASK_LEAST;
  c->run.session.problem.n = cell->n;
  count(c);
  const wlm_tune_options options = wlmi_tune_options(&c->run, name, wlmi_tune_seconds_left(&c->run));
  status = wlmi_tune_one(&c->run, c->run.session.matrix, &c->run.session.problem, &c->run.session.args, &options,
                         share_of(c, cell), &summary);
  if (status != WLM_OK) goto done;
  const int had = cell->state >= WLMI_TASK_LEAST;
  wlmi_task_update(cell, summary.candidates, summary.candidates - summary.known - summary.measured);
  c->tuned += !had && cell->state >= WLMI_TASK_LEAST; /* the budget may have ended it early */
  count(c);
  tell_cell(c, cell, &summary);
done:
  return status == WLM_OK || status == WLM_ERR_CANCELLED
             ? status
             : wlmi_fail_in(status, "%s, n = %lld", name, (long long)cell->n);
}

/* The predicted seconds for the remaining cells, scaled by the error of predictions so far. */
static double seconds_left(const campaign *c) {
  const double left = c->run.deadline - wlmi_seconds();
  return c->spent > 0 ? left * c->expected / c->spent : left;
}

/* The first cell is always tuned, whatever the budget is. A cell that does not fit into memory, or without a correct
 * kernel, is skipped. */
static wlm_status tune_cells(campaign *c) {
  wlm_status status = WLM_OK;
  for (int64_t begun = 0; status == WLM_OK; begun = 1) {
    if (begun && wlmi_seconds() > c->run.deadline) break;
    const int64_t i = wlmi_tasks_next(c->cells, c->cell_count, c->loaded, begun ? seconds_left(c) : INFINITY);
    if (i < 0) break;
    const double left = c->cells[i].left, start = wlmi_seconds();
    const double expected = wlmi_task_seconds(&c->cells[i], c->loaded);
    status = tune_cell(c, &c->cells[i]);
    if (status == WLM_OK) {
      c->expected += expected - wlmi_task_seconds(&c->cells[i], c->loaded);
      c->spent += wlmi_seconds() - start;
      wlmi_tasks_learn(c->cells, c->cell_count, &c->cells[i].point);
      /* A cell in which nothing was measured, or that is measured again on request, is done. */
      if (left == c->cells[i].left || c->run.options->again) c->cells[i].state = WLMI_TASK_DONE;
    } else if (status == WLM_ERR_OUT_OF_MEMORY || status == WLM_ERR_MISMATCH) {
      c->untuned += status == WLM_ERR_MISMATCH;
      c->cells[i].state = WLMI_TASK_DONE;
      count(c);
      wlmi_tune_show(&c->run, "%s", wlm_error_detail());
      wlmi_clear_error();
      status = WLM_OK;
    }
  }
  return status;
}

static void put_result(wlmi_report *report, campaign *c) {
  const int64_t left = c->cell_count - c->known - c->tuned;
  wlmi_report_members(report, "matrices=%jd cells=%jd known=%jd tuned=%jd left=%jd measurements=%jd", c->count,
                      c->cell_count, c->known, c->tuned, left, c->run.measurements);
  wlmi_report_table(report, "results", &c->table, 0);
  if (left && !report->json)
    wlmi_report_line(report, "\n%lld of %lld cells are left; the same command goes on", (long long)left,
                     (long long)c->cell_count);
}

static void release(campaign *c) {
  wlmi_tune_close(&c->run);
  wlmi_table_release(&c->table);
  wlmi_free(c->matrices);
  wlmi_free(c->cells);
}

wlm_status wlmi_cmd_tune_design(const wlmi_cli_options *options, wlmi_report *report) {
  const double budget = options->budget_seconds > 0 ? options->budget_seconds : default_budget_seconds;
  campaign c = {.loaded = -1};
  wlm_status status;
  wlmi_table_begin(&c.table, "matrix,n,variant,us,measured,finalists,seconds=s,making=,compiling=,entering=,checking=");
  WLM_TRY(wlmi_tune_open(options, budget, &c.run, report));
  WLM_TRY(make_cells(&c));
  wlmi_report_flush(report);
  wlmi_progress_begin(&c.run.progress, 1, budget);
  status = tune_cells(&c);
  wlmi_progress_clear();
  if (status == WLM_OK) status = wlmi_tune_learn(&c.run);
  put_result(report, &c);
  if (status == WLM_OK && c.untuned)
    status = wlmi_fail(WLM_ERR_MISMATCH, "no kernel gave a right result for %lld of %lld cells, which stay untuned",
                       (long long)c.untuned, (long long)c.cell_count);
done:
  release(&c);
  return status;
}
