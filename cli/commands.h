/* The commands. Each takes the options that main.c read and gives the exit code. */
#ifndef WLM_CLI_COMMANDS_H
#define WLM_CLI_COMMANDS_H

#include "cli/options.h"

typedef int wlmi_command_fn(const wlmi_cli_options *options);

wlmi_command_fn wlmi_cmd_info;
wlmi_command_fn wlmi_cmd_stats;
wlmi_command_fn wlmi_cmd_convert;
wlmi_command_fn wlmi_cmd_show;
wlmi_command_fn wlmi_cmd_tune;
wlmi_command_fn wlmi_cmd_train;
wlmi_command_fn wlmi_cmd_run;
wlmi_command_fn wlmi_cmd_explain;
wlmi_command_fn wlmi_cmd_export;
wlmi_command_fn wlmi_cmd_import;
wlmi_command_fn wlmi_cmd_report;

#endif
