/* The commands. Each takes the options that main.c read and puts its result into the report. */
#pragma once

#include "cli/options.h"
#include "cli/report.h"

typedef wlm_status wlmi_command_fn(const wlmi_cli_options *options, wlmi_report *report);

wlmi_command_fn wlmi_cmd_info;
wlmi_command_fn wlmi_cmd_stats;
wlmi_command_fn wlmi_cmd_convert;
wlmi_command_fn wlmi_cmd_show;
wlmi_command_fn wlmi_cmd_tune;
wlmi_command_fn wlmi_cmd_tune_design;   /* without an INPUT */
wlmi_command_fn wlmi_cmd_tune_recorded; /* --recorded */
wlmi_command_fn wlmi_cmd_train;
wlmi_command_fn wlmi_cmd_run;
wlmi_command_fn wlmi_cmd_explain;
wlmi_command_fn wlmi_cmd_export;
wlmi_command_fn wlmi_cmd_import;
wlmi_command_fn wlmi_cmd_db_list;
wlmi_command_fn wlmi_cmd_db_candidates;
wlmi_command_fn wlmi_cmd_db_check;
wlmi_command_fn wlmi_cmd_db_merge;
wlmi_command_fn wlmi_cmd_db_diff;
wlmi_command_fn wlmi_cmd_db_prune;
wlmi_command_fn wlmi_cmd_db_pin;
wlmi_command_fn wlmi_cmd_db_unpin;
wlmi_command_fn wlmi_cmd_kernels_build;
wlmi_command_fn wlmi_cmd_kernels_list;
wlmi_command_fn wlmi_cmd_compare;                          /* bench/compare.c */
wlmi_command_fn wlmi_cmd_bench;                            /* bench/bench.c */
const char *wlmi_bench_suite_at(int i, const char **help); /* as in wlmi_command */
wlmi_command_fn wlmi_cmd_help;
