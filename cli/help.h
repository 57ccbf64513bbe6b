/* Writes --help, the man page and shell completions; the build calls `warploom help man|bash|zsh` for the latter. All
 * of it comes from wlmi_commands, wlmi_options and the lists below. */
#pragma once

#include <stdio.h>

#include "cli/commands.h"

/* A name and its explanation; the name is NULL behind the last one. */
typedef struct wlmi_help_entry {
  const char *name, *help;
} wlmi_help_entry;

extern const char wlmi_help_summary[]; /* one sentence */
extern const wlmi_help_entry wlmi_help_inputs[], wlmi_help_exits[], wlmi_help_environment[];

void wlmi_help_print(FILE *to);
/* Prints the help of one command, or of one action if `options` has one. */
void wlmi_help_print_command(const char *name, const wlmi_cli_options *options);

/* "db merge A B [...] -o C" */
void wlmi_help_usage(const wlmi_command *command, wlmi_text *out);

void wlmi_help_man(FILE *to);
void wlmi_help_bash(FILE *to);
void wlmi_help_zsh(FILE *to);
