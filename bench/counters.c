/* Hardware counters of GE-SpMM's kernels (Tables V and VI of the paper) and of cuSPARSE, read by Nsight Compute's ncu.
 * For each kernel ncu starts this program again, with `run --variant` or `compare`, and profiles the kernel's first
 * launch. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/paper_steps.h"
#include "bench/results_file.h"
#include "bench/suite.h"
#include "core/base/file.h"
#include "core/base/memory.h"
#include "core/base/process.h"
#include "core/base/temporary.h"

enum { KERNELS = WLM_PAPER_STEPS + 1, CUSPARSE = WLM_PAPER_STEPS, REASON = 160, WORD = 512 };

static const char suite_name[] = "counters";

/* Fields of a line, and the metric of ncu that each is. A sector has 32 bytes. */
static const struct counter {
  const char *field, *metric;
  double unit;
} counters[] = {
    {"load_sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", 1},
    {"load_efficiency", "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct", 1},
    {"load_gbs", "l1tex__t_bytes_pipe_lsu_mem_global_op_ld.sum.per_second", 1e9},
    {"l2_gbs", "lts__t_bytes.sum.per_second", 1e9},
    {"dram_gbs", "dram__bytes.sum.per_second", 1e9},
    {"occupancy", "sm__warps_active.avg.pct_of_peak_sustained_active", 1},
    {"registers", "launch__registers_per_thread", 1},
    {"us", "gpu__time_duration.sum", 1e3},
};
enum { COUNTERS = sizeof counters / sizeof *counters };

struct kernel {
  double values[COUNTERS]; /* NaN = not reported */
  char failure[REASON];    /* "" = none */
};

/* ---- what ncu prints ---------------------------------------------------------------------------- */

/* Copies the next cell of a line of quoted CSV and returns what follows it, NULL after the last cell. */
static const char *next_cell(const char *at, char cell[WORD]) {
  size_t size = 0;
  int quoted = 0;
  for (; *at && *at != '\n' && (quoted || *at != ','); at++)
    if (*at == '"')
      quoted = !quoted;
    else if (size < WORD - 1)
      cell[size++] = *at;
  cell[size] = 0;
  return *at == ',' ? at + 1 : NULL;
}

static const char *next_line(const char *at) {
  const char *end = at ? strchr(at, '\n') : NULL;
  return end ? end + 1 : NULL;
}

/* 1,234.5 */
static double number_of(const char *cell) {
  char digits[WORD], *end;
  size_t size = 0;
  for (; *cell; cell++)
    if (*cell != ',') digits[size++] = *cell;
  digits[size] = 0;
  const double value = strtod(digits, &end);
  return size && !*end ? value : NAN;
}

/* A line of names, one of units and one of values. */
static int parse(const char *output, struct kernel *kernel) {
  const char *names = strstr(output, "\"ID\",");
  const char *values = next_line(next_line(names));
  int found = 0;
  while (names && values) {
    char name[WORD], value[WORD];
    names = next_cell(names, name);
    values = next_cell(values, value);
    for (int i = 0; i < COUNTERS; i++)
      if (!strcmp(name, counters[i].metric)) kernel->values[i] = number_of(value) / counters[i].unit, found++;
  }
  return found > 0;
}

static void explain(const char *output, int code, struct kernel *kernel) {
  static const char mark[] = "==ERROR== ";
  const char *error = strstr(output, mark);
  if (code == WLM_PROCESS_MISSING)
    snprintf(kernel->failure, REASON, "ncu was not found in PATH");
  else if (strstr(output, "ERR_NVGPUCTRPERM"))
    snprintf(kernel->failure, REASON, "the driver does not permit this user to read counters (ERR_NVGPUCTRPERM)");
  else if (error) {
    error += sizeof mark - 1;
    snprintf(kernel->failure, REASON, "ncu: %.*s", (int)strcspn(error, "\n"), error);
  } else
    snprintf(kernel->failure, REASON, "ncu profiled no kernel (exit code %d)", code);
}

/* ---- a kernel ----------------------------------------------------------------------------------- */

static void metrics_of(char list[WORD]) {
  size_t size = 0;
  for (int i = 0; i < COUNTERS; i++)
    size += (size_t)snprintf(list + size, WORD - size, "%s%s", i ? "," : "", counters[i].metric);
}

static wlm_status profile(const wlmi_bench_case *bench, const char *folder, int index, struct kernel *kernel) {
  char program[PATH_MAX], path[WLM_TEMPORARY_NAME + 16], variant[WLM_VARIANT_NAME], metrics[WORD], n[24];
  const char *device = wlm_context_device_kind(bench->context);
  const char *pattern = index == CUSPARSE ? "regex:csrmm|spmm" : "regex:wlm_row";
  const ssize_t size = readlink("/proc/self/exe", program, sizeof program - 1);
  char *output = NULL;
  size_t length;
  if (size <= 0) return wlmi_fail(WLM_ERR_IO, "/proc/self/exe cannot be read");
  program[size] = 0;
  snprintf(path, sizeof path, "%s/ncu", folder);
  snprintf(n, sizeof n, "%lld", (long long)bench->n);
  metrics_of(metrics);
  const char *argv[32] = {"ncu",
                          "--csv",
                          "--page",
                          "raw",
                          "--print-units",
                          "base",
                          "--metrics",
                          metrics,
                          "--kernel-name",
                          pattern,
                          "--launch-count",
                          "1",
                          program,
                          index == CUSPARSE ? "compare" : "run",
                          bench->matrix,
                          "-n",
                          n,
                          "--device",
                          device,
                          "--db",
                          ""};
  int count = 21;
  if (index != CUSPARSE) {
    wlmi_paper_variant(&wlmi_paper_steps[index], bench->n, variant);
    argv[count++] = "--variant";
    argv[count++] = variant;
  }
  for (int i = 0; i < COUNTERS; i++) kernel->values[i] = NAN;
  const int code = wlmi_process_run(&(wlmi_process){.argv = (char *const *)argv, .output = path});
  wlm_status status = code == WLM_PROCESS_MISSING ? WLM_OK : wlmi_file_read(path, &output, &length);
  if (status == WLM_OK && (code == WLM_PROCESS_MISSING || !parse(output, kernel)))
    explain(output ? output : "", code, kernel);
  wlmi_free(output);
  return status;
}

/* ---- the case ----------------------------------------------------------------------------------- */

static const char *name_of(int index) { return index == CUSPARSE ? "cusparse" : wlmi_paper_steps[index].name; }

static void write_line(const wlmi_bench_case *bench, const struct kernel kernels[KERNELS], wlmi_text *line) {
  wlmi_results_begin(line, suite_name, wlm_context_device_name(bench->context), bench->matrix);
  wlmi_results_put_matrix(line, bench->csr, bench->n);
  for (int i = 0; i < COUNTERS; i++) {
    wlmi_json_open(line, counters[i].field, '{');
    for (int k = 0; k < KERNELS; k++) wlmi_json_real(line, name_of(k), "%.6g", kernels[k].values[i]);
    wlmi_json_close(line, '}');
  }
  wlmi_json_open(line, "failed", '{');
  for (int k = 0; k < KERNELS; k++)
    if (*kernels[k].failure) wlmi_json_string(line, name_of(k), kernels[k].failure);
  wlmi_json_close(line, '}');
  wlmi_results_end(line);
}

static void write_rows(const wlmi_bench_case *bench, const struct kernel kernels[KERNELS], wlmi_text *row) {
  for (int k = 0; k < KERNELS; k++) {
    wlmi_text_printf(row, "%-26.26s %4lld  %-10s", bench->matrix, (long long)bench->n, name_of(k));
    for (int i = 0; i < COUNTERS; i++) wlmi_row_cell(row, i ? 10 : 14, kernels[k].values[i]);
    wlmi_text_printf(row, "  %s\n", kernels[k].failure);
  }
}

static wlm_status run_case(const wlmi_bench_case *bench, wlmi_text *line, wlmi_text *row) {
  struct kernel kernels[KERNELS] = {0};
  wlmi_temporary temporary;
  int failures = 0;
  if (!strchr(bench->matrix, ':'))
    return wlmi_fail(WLM_ERR_UNSUPPORTED, "counters are read on synthetic matrices only; name uniform:rows=R,d=D");
  wlm_status status = wlmi_temporary_open(&temporary);
  if (status != WLM_OK) return status;
  for (int k = 0; k < KERNELS && status == WLM_OK; k++) {
    status = profile(bench, temporary.folder, k, &kernels[k]);
    failures += *kernels[k].failure != 0;
  }
  wlmi_temporary_close(&temporary);
  if (status != WLM_OK) return status;
  if (failures == KERNELS) return wlmi_fail(WLM_ERR_UNSUPPORTED, "no counters: %s", kernels[0].failure);
  write_line(bench, kernels, line);
  write_rows(bench, kernels, row);
  return WLM_OK;
}

const wlmi_bench_suite wlmi_suite_counters = {
    .name = suite_name,
    .help = "GE-SpMM: load transactions and other counters, read by ncu",
    .heading =
        "counters                      n  kernel       load sectors   effic. %  load GB/s    L2 GB/s  DRAM GB/s  "
        "occup. %  registers         us\n",
    .run = run_case,
    .keeps_patterns = 1,
    .stays_on_host = 1,
    .is_synthetic = 1,
};
