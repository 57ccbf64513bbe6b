/* The table of commands: name, arguments, options and function. Help, man page and completion (cli/help.h) are made
 * from it. A command with several forms (db by its action, tune with and without an INPUT) has a row for each. */
#pragma once

#include "cli/commands.h"

typedef struct wlmi_command {
  const char *name, *action;    /* action: the required first argument; NULL = none */
  const char *arguments, *help; /* for people */
  /* NULL: wlmi_cmd_help, which reads this table. */
  wlmi_command_fn *run;
  int takes, needs;    /* WLM_OPTION_... */
  int when;            /* the option that selects this row; 0 = none */
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
