#include "cli/memory_need.h"

#include "cli/machine.h"
#include "core/base/status.h"
#include "core/problem/spec.h"
#include "core/synth/input.h"

static double larger(double a, double b) { return a > b ? a : b; }

wlm_status wlmi_check_memory(const wlmi_cli_options *options, const char *input, const wlm_problem *problem,
                             const wlm_execute_args *args, int64_t n, int on_host) {
  int64_t rows, cols, nnz;
  if (options->force) return WLM_OK;
  if (wlmi_input_size(input, &rows, &cols, &nnz) != WLM_OK) { /* reading the input will report the error */
    wlmi_clear_error();
    return WLM_OK;
  }
  const double size = (double)wlmi_type_size(problem->dense_type), copies = on_host ? 2 : 1;
  const double ldb = larger((double)n, (double)args->ldb), ldc = larger((double)n, (double)args->ldc);
  const double b_rows = (double)(problem->transpose ? rows : cols), c_rows = (double)(problem->transpose ? cols : rows);
  const double free = (double)wlmi_machine_free_memory();
  /* A: rowptr as int64 twice, and once as int32 on the device; colind alike. B: on the host and on the device. C: on
   * the device alone. */
  const struct {
    const char *name, *mend;
    double bytes;
  } parts[] = {{"A", "use a smaller matrix",
                (double)rows * 16 + (double)nnz * 8 + (on_host ? (double)rows * 4 + (double)nnz * 4 : 0)},
               {"B", "use a smaller -n", n ? b_rows * ldb * size * copies : 0},
               {"C", "use a smaller -n", n ? c_rows * ldc * size * (on_host + (args->beta != 0)) : 0}};
  double all = 0;
  for (int i = 0; i < 3; i++) {
    all += parts[i].bytes;
    if (parts[i].bytes > free)
      return wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "%s: %s needs %.1f GB and this machine has %.1f GB free; %s, or --force",
                       input, parts[i].name, parts[i].bytes / 1e9, free / 1e9, parts[i].mend);
  }
  if (all <= free) return WLM_OK;
  return wlmi_fail(WLM_ERR_OUT_OF_MEMORY,
                   "%s: A, B and C need %.1f GB and this machine has %.1f GB free; use a smaller -n, or --force", input,
                   all / 1e9, free / 1e9);
}

int64_t wlmi_widest(const wlmi_cli_options *options) {
  int64_t widest = 0;
  for (int i = 0; i < options->n_count; i++)
    if (options->n[i] > widest) widest = options->n[i];
  return widest;
}
