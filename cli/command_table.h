/* The commands as data: the name of each, the arguments and options it takes, and its function. Help, man page and
 * completion (cli/help.h) are made from it. A command that does different things (db by its action, tune with and
 * without an INPUT) has a row for each. */
#ifndef WLM_CLI_COMMAND_TABLE_H
#define WLM_CLI_COMMAND_TABLE_H

#include "cli/commands.h"

typedef struct wlmi_command {
  const char *name, *action;    /* action: the first argument must be this; NULL = there is none */
  const char *arguments, *help; /* for people */
  wlmi_command_fn *run;
  int takes, needs;    /* WLM_OPTION_... */
  int when;            /* the option that makes this row the one; 0 = none does */
  int least, most;     /* arguments, without the action */
  const char *missing; /* what to do where there are too few */
  const char *example; /* what may follow "warploom"; NULL = none */
  /* The name of a suite that the first argument may be, by number, and what it does; NULL behind the last. */
  const char *(*suite)(int i, const char **help);
} wlmi_command;

extern const wlmi_command wlmi_commands[];
extern const int wlmi_commands_count;

/* The row that the command line means; NULL after a message on stderr where there is none or where it does not take
 * these arguments and options. */
const wlmi_command *wlmi_command_find(const char *name, const wlmi_cli_options *options);
/* The row that comes closest; NULL where an action is missing or not known. */
const wlmi_command *wlmi_command_closest(const char *name, const wlmi_cli_options *options);
int wlmi_command_exists(const char *name);

#endif
