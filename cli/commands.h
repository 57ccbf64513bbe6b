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
wlmi_command_fn wlmi_cmd_explain_sampling;                    /* of files of warploom.torch.calibrate */
int wlmi_explains_samplings(const wlmi_cli_options *options); /* as in wlmi_command */
wlmi_command_fn wlmi_cmd_export;
wlmi_command_fn wlmi_cmd_import;
wlmi_command_fn wlmi_cmd_db_list;
wlmi_command_fn wlmi_cmd_db_check;
wlmi_command_fn wlmi_cmd_db_merge;
wlmi_command_fn wlmi_cmd_db_diff;
wlmi_command_fn wlmi_cmd_db_prune;
wlmi_command_fn wlmi_cmd_db_pin;
wlmi_command_fn wlmi_cmd_db_unpin;
wlmi_command_fn wlmi_cmd_kernels_build;
wlmi_command_fn wlmi_cmd_db_candidates;                    /* bench/candidates.c */
wlmi_command_fn wlmi_cmd_compare;                          /* bench/compare.c */
wlmi_command_fn wlmi_cmd_bench;                            /* bench/bench.c */
const char *wlmi_bench_suite_at(int i, const char **help); /* as in wlmi_command */

/* The table of commands: name, arguments, options and function. Help, man page and completion (cli/help.h) are made
 * from it. A command with several forms (db by its action, tune with and without an INPUT) has a row for each. */
typedef struct wlmi_command {
  const char *name, *action;    /* action: the required first argument; NULL = none */
  const char *arguments, *help; /* for people */
  wlmi_command_fn *run;         /* NULL: of help, which reads this table */
  int takes, needs;             /* WLM_OPTION_... */
  int when;                     /* the option that selects this row; 0 = none */
  /* Whether the arguments select this row; NULL = they do not. */
  int (*is_for)(const wlmi_cli_options *options);
  int least, most;     /* numbers of arguments, without the action */
  const char *missing; /* the advice if there are too few */
  const char *example; /* an example of the words after "warploom"; NULL = none */
  /* The i-th suite that the first argument may name, and its help text; NULL behind the last. */
  const char *(*suite)(int i, const char **help);
} wlmi_command;

extern const wlmi_command wlmi_commands[];
extern const int wlmi_commands_count;

/* The row for the command line. NULL, after a message on stderr, if there is none or it does not take these arguments
 * and options. */
const wlmi_command *wlmi_command_find(const char *name, const wlmi_cli_options *options);
/* The most similar row; NULL if an action is missing or unknown. */
const wlmi_command *wlmi_command_closest(const char *name, const wlmi_cli_options *options);
int wlmi_command_exists(const char *name);
const char *wlmi_command_name(int i); /* of the i-th row; NULL behind the last */
