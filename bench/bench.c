/* The command `warploom bench`: runs a suite. */
#include <string.h>

#include "bench/suite.h"
#include "cli/commands.h"

static const wlmi_bench_suite *const suites[] = {&wlmi_suite_core,      &wlmi_suite_half,      &wlmi_suite_papers,
                                                 &wlmi_suite_sampled,   &wlmi_suite_selection, &wlmi_suite_operators,
                                                 &wlmi_suite_minibatch, &wlmi_suite_dispatch};
enum { SUITES = sizeof suites / sizeof *suites };

const char *wlmi_bench_suite_at(int i, const char **help) {
  if (i >= SUITES) return NULL;
  *help = suites[i]->help;
  return suites[i]->name;
}

static wlm_status find_suite(const wlmi_cli_options *options, const wlmi_bench_suite **suite) {
  const char *name = options->arguments[0];
  *suite = NULL;
  for (int i = 0; i < SUITES; i++)
    if (!strcmp(suites[i]->name, name)) *suite = suites[i];
  if (!*suite)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT,
                     "bench: unknown suite %s; warploom bench --help lists them, python -m bench --help the reports",
                     name);
  if (options->argument_count > 1 || options->data || (*suite)->is_synthetic) return WLM_OK;
  return wlmi_fail(WLM_ERR_INVALID_ARGUMENT,
                   "bench %s: name matrices (a .mtx or .mtx.gz file, twin:reddit), or the folder of the suite's: "
                   "--data DIR",
                   name);
}

wlm_status wlmi_cmd_bench(const wlmi_cli_options *options, wlmi_report *report) {
  const wlmi_bench_suite *suite;
  wlm_status status = find_suite(options, &suite);
  if (status != WLM_OK) report->exit_code = WLM_EXIT_USAGE;
  return status == WLM_OK ? wlmi_run_suite(suite, options) : status;
}
