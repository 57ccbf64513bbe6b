/* The commands. Each takes the options that main.c read and gives the exit code. */
#ifndef WLM_CLI_COMMANDS_H
#define WLM_CLI_COMMANDS_H

#include "cli/options.h"

typedef int wlm_command_fn(const wlm_cli_options *options);

wlm_command_fn wlm_cmd_info;
wlm_command_fn wlm_cmd_stats;
wlm_command_fn wlm_cmd_show;
wlm_command_fn wlm_cmd_tune;
wlm_command_fn wlm_cmd_train;
wlm_command_fn wlm_cmd_run;
wlm_command_fn wlm_cmd_explain;
wlm_command_fn wlm_cmd_export;
wlm_command_fn wlm_cmd_import;
wlm_command_fn wlm_cmd_report;

#endif
