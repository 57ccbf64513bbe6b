#include "cli/memory_need.h"

#include "cli/machine.h"
#include "cli/problem.h"
#include "core/problem/operation.h"
#include "core/synth/input.h"

static double larger(double a, double b) { return a > b ? a : b; }

static double rows_of_b(const wlmi_memory_need *need, int64_t rows, int64_t cols) {
  return (double)(need->problem->transpose ? rows : cols);
}

/* The bytes of B and C on this machine. B: on the host and on the device. C: on the device alone. */
static void add_product(const wlmi_memory_need *need, int64_t rows, int64_t cols, double *b, double *c) {
  const double size = (double)wlmi_type_size(need->problem->dense_type);
  const double ldb = larger((double)need->n, (double)need->args->ldb);
  const double ldc = larger((double)need->n, (double)need->args->ldc);
  *b = rows_of_b(need, rows, cols) * ldb * size * (need->on_host ? 2 : 1);
  *c = rows_of_b(need, cols, rows) * ldc * size * (need->on_host + (need->args->beta != 0));
}

/* Operands: on the host and on the device. Results: on the device alone. */
static wlm_status add_message(const wlmi_memory_need *need, int64_t rows, int64_t cols, int64_t nnz, double *bytes) {
  wlm_problem problem = *need->problem;
  wlm_stats stats = WLM_STATS_INIT;
  double operands, results;
  wlmi_spec spec;
  problem.n = need->n;
  stats.rows = rows, stats.cols = cols, stats.nnz = nnz;
  WLM_CHECK(wlmi_cli_spec(&problem, WLM_I32, WLM_I32, problem.dense_type, 1, &spec));
  WLM_CHECK(wlmi_message_bytes(&spec, &stats, &operands, &results));
  *bytes = need->on_host ? 2 * operands + results : operands;
  return WLM_OK;
}

static wlm_status check_memory(void *user, int64_t rows, int64_t cols, int64_t nnz) {
  enum { PARTS = 4 };
  const wlmi_memory_need *need = user;
  const int on_host = need->on_host, is_message = need->n && need->problem->operation == WLM_MESSAGE;
  double b = 0, c = 0, message = 0;
  WLM_CHECK(is_message ? add_message(need, rows, cols, nnz, &message) : WLM_OK);
  if (need->n && !is_message) add_product(need, rows, cols, &b, &c);
  const double free = (double)wlmi_machine_free_memory();
  /* A: rowptr as int64 twice, and once as int32 on the device; colind alike. */
  const struct {
    const char *name, *mend;
    double bytes;
  } parts[] = {{"A", "use a smaller matrix",
                (double)rows * 16 + (double)nnz * 8 + (on_host ? (double)rows * 4 + (double)nnz * 4 : 0)},
               {"B", "use a smaller -n", b},
               {"C", "use a smaller -n", c},
               {"--message", "use a smaller -n", message}};
  double all = 0;
  for (int i = 0; i < PARTS; i++) {
    all += parts[i].bytes;
    if (parts[i].bytes > free)
      return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "%s: %s needs %.1f GB and this machine has %.1f GB free; %s, or --force",
                       need->input, parts[i].name, parts[i].bytes / 1e9, free / 1e9, parts[i].mend);
  }
  if (all <= free) return WLM_OK;
  return wlmi_fail(WLM_ERR_OUT_OF_MEMORY,
                   "%s: A%s need %.1f GB and this machine has %.1f GB free; use a smaller -n, or --force", need->input,
                   is_message ? " and --message" : ", B and C", all / 1e9, free / 1e9);
}

wlm_status wlmi_input_read_fitting(const wlmi_memory_need *need, wlmi_csr_host *csr) {
  const wlmi_size_check check = {check_memory, (void *)need};
  return wlmi_input_read_checked(need->input, need->options->force ? NULL : &check, csr);
}

wlm_status wlmi_input_check_fitting(const wlmi_memory_need *need) {
  const wlmi_size_check check = {check_memory, (void *)need};
  return wlmi_input_check(need->input, need->options->force ? NULL : &check);
}

int64_t wlmi_widest(const wlmi_cli_options *options) {
  int64_t widest = 0;
  for (int i = 0; i < options->n_count; i++)
    if (options->n[i] > widest) widest = options->n[i];
  return widest;
}
