#include "cli/command_table.h"

#include <string.h>

#define PROBLEM  (WLM_OPTION_WIDTH | WLM_OPTION_OPERATOR | WLM_OPTION_EPILOGUE)
#define STORE    (WLM_OPTION_DATABASE | WLM_OPTION_JSON)
#define CONTEXT  (STORE | WLM_OPTION_DEVICE)
#define TUNING   (CONTEXT | WLM_OPTION_BUDGET | WLM_OPTION_SEED | WLM_OPTION_AGAIN)
#define COMMON   (CONTEXT | PROBLEM | WLM_OPTION_CALLS | WLM_OPTION_BUDGET | WLM_OPTION_SEED)
#define NO_LIMIT (1 << 20)

static const char input_needed[] = "name a matrix: a .mtx or .mtx.gz file, or a synthetic one (twin:arxiv)";

static const wlmi_command commands[] = {
    {"info", NULL, "", "version, devices, compilers, databases", wlmi_cmd_info, .takes = CONTEXT},
    {"stats", NULL, "INPUT", "what is known of a matrix", wlmi_cmd_stats, .takes = WLM_OPTION_JSON, .least = 1,
     .most = 1, .missing = input_needed},
    {"convert", NULL, "INPUT -o FILE", "a matrix as a Matrix Market file", wlmi_cmd_convert,
     .takes = WLM_OPTION_JSON | WLM_OPTION_OUTPUT, .needs = WLM_OPTION_OUTPUT, .least = 1, .most = 1,
     .missing = input_needed},
    {"show", NULL, "VARIANT", "the source that would be compiled", wlmi_cmd_show, .takes = PROBLEM | WLM_OPTION_TARGET,
     .least = 1, .most = 1, .missing = "name one variant, row_crc/cf=2,rows=8, or say --list"},
    {"show", NULL, "--list", "all families with their parameters", wlmi_cmd_show, .takes = WLM_OPTION_LIST,
     .when = WLM_OPTION_LIST},
    {"tune", NULL, "INPUT...", "measure what is not known yet", wlmi_cmd_tune,
     .takes = TUNING | PROBLEM | WLM_OPTION_CALLS, .least = 1, .most = NO_LIMIT, .missing = input_needed},
    {"tune", NULL, "", "the device, on a design of synthetic matrices", wlmi_cmd_tune, .takes = TUNING | PROBLEM},
    {"tune", NULL, "--recorded", "what programs recorded, on matrices made after the statistics", wlmi_cmd_tune,
     .takes = TUNING | WLM_OPTION_RECORDED, .when = WLM_OPTION_RECORDED},
    {"train", NULL, "", "learn from all measurements what to choose for matrices not tuned", wlmi_cmd_train,
     .takes = CONTEXT},
    {"run", NULL, "INPUT", "one product with the chosen kernel, timed; --check compares it with float64", wlmi_cmd_run,
     .takes = CONTEXT | PROBLEM | WLM_OPTION_CALLS | WLM_OPTION_SEED | WLM_OPTION_CHECK | WLM_OPTION_VARIANT |
              WLM_OPTION_RECORD,
     .least = 1, .most = 1, .missing = input_needed},
    {"explain", NULL, "INPUT", "which kernel, and why", wlmi_cmd_explain,
     .takes = CONTEXT | PROBLEM | WLM_OPTION_CALLS | WLM_OPTION_VARIANT, .least = 1, .most = 1,
     .missing = input_needed},
    {"export", NULL, "-o FILE", "the measurements as JSON lines", wlmi_cmd_export,
     .takes = STORE | WLM_OPTION_OUTPUT | WLM_OPTION_FORMAT, .needs = WLM_OPTION_OUTPUT},
    {"import", NULL, "FILE", "add measurements, all or none", wlmi_cmd_import, .takes = STORE, .least = 1, .most = 1,
     .missing = "name the file that export wrote"},
    {"db", "list", "", "choices, pins and recorded problems", .act = wlmi_db_list, .takes = STORE},
    {"db", "check", "[--repair]", "everything that can be wrong with the file", .act = wlmi_db_check,
     .takes = STORE | WLM_OPTION_REPAIR},
    {"db", "merge", "A B [...] -o C", "the union of databases, as a new one", .act = wlmi_db_merge,
     .takes = WLM_OPTION_JSON | WLM_OPTION_OUTPUT, .needs = WLM_OPTION_OUTPUT, .least = 2, .most = WLM_DB_ARGUMENTS,
     .missing = "name two databases or more"},
    {"db", "diff", "A B", "where two databases differ", .act = wlmi_db_diff, .takes = WLM_OPTION_JSON, .least = 2,
     .most = 2, .missing = "name two databases"},
    {"db", "prune", "[--keep COUNT]", "delete what no choice looks at any more", .act = wlmi_db_prune,
     .takes = STORE | WLM_OPTION_KEEP},
    {"db", "pin", "INPUT-or-BUCKET VARIANT", "this kernel, whatever was measured", .act = wlmi_db_pin,
     .takes = CONTEXT | WLM_OPTION_WIDTH | WLM_OPTION_OPERATOR, .least = 2, .most = 2,
     .missing = "name a matrix or bucket, then a variant"},
    {"db", "unpin", "INPUT-or-BUCKET", "no longer", .act = wlmi_db_unpin,
     .takes = CONTEXT | WLM_OPTION_WIDTH | WLM_OPTION_OPERATOR, .least = 1, .most = 1,
     .missing = "name a matrix or bucket"},
    {"report", NULL, "-o FILE",
     "a database as one HTML page to look at; --device takes any part of a device class's name", wlmi_cmd_report,
     .takes = CONTEXT | WLM_OPTION_OUTPUT, .needs = WLM_OPTION_OUTPUT},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static int is_called(const wlmi_command *c, const char *name, const char *action) {
  return !strcmp(c->name, name) && (!c->action || (action && !strcmp(c->action, action)));
}

int wlmi_command_exists(const char *name) {
  for (int i = 0; i < COMMANDS; i++)
    if (!strcmp(commands[i].name, name)) return 1;
  return 0;
}

static const char *action_of(const wlmi_cli_options *o) { return o->argument_count ? o->arguments[0] : NULL; }

static int argument_count(const wlmi_command *c, const wlmi_cli_options *o) { return o->argument_count - !!c->action; }

static int counts_fit(const wlmi_command *c, const wlmi_cli_options *o) {
  return argument_count(c, o) >= c->least && argument_count(c, o) <= c->most;
}

/* A row that asks for an option goes before all others, then one that takes as many arguments as there are. */
static const wlmi_command *closest(const char *name, const wlmi_cli_options *o) {
  const wlmi_command *found = NULL;
  for (int i = 0; i < COMMANDS; i++) {
    const wlmi_command *c = &commands[i];
    if (!is_called(c, name, action_of(o))) continue;
    if (c->when && wlmi_cli_has(o, c->when)) return c;
    if (!c->when && (!found || (!counts_fit(found, o) && counts_fit(c, o)))) found = c;
  }
  return found;
}

/* "db merge", "tune --recorded", "tune" */
static void label_of(const wlmi_command *c, char label[32]) {
  const char *second = c->action ? c->action : c->when ? c->arguments : "";
  snprintf(label, 32, "%s%s%s", c->name, *second ? " " : "", second);
}

static void tell_actions(const char *name, const char *action) {
  int left = 0;
  if (action)
    fprintf(stderr, "warploom %s: unknown action '%s'; say ", name, action);
  else
    fprintf(stderr, "warploom %s: an argument is missing; say ", name);
  for (int i = 0; i < COMMANDS; i++) left += !strcmp(commands[i].name, name);
  for (int i = 0; i < COMMANDS; i++)
    if (!strcmp(commands[i].name, name))
      fprintf(stderr, "%s%s", commands[i].action, --left > 1 ? ", " : left ? " or " : "\n");
}

const wlmi_command *wlmi_command_find(const char *name, const wlmi_cli_options *o) {
  const wlmi_command *c = closest(name, o);
  char label[32];
  if (!c) return tell_actions(name, action_of(o)), NULL;
  label_of(c, label);
  if (!wlmi_cli_check(o, label, c->takes, c->needs)) return NULL;
  if (counts_fit(c, o)) return c;
  if (argument_count(c, o) < c->least)
    fprintf(stderr, "warploom %s: an argument is missing; %s; usage: warploom %s%s%s %s\n", label, c->missing, c->name,
            c->action ? " " : "", c->action ? c->action : "", c->arguments);
  else
    fprintf(stderr, "warploom %s: '%s' is one argument too many; see warploom %s --help\n", label,
            o->arguments[c->most + !!c->action], c->name);
  return NULL;
}

/* ---- help ---------------------------------------------------------------------------------------------- */

static void print_usage(FILE *to, const wlmi_command *c) {
  char left[64];
  snprintf(left, sizeof left, "%s%s%s %s", c->name, c->action ? " " : "", c->action ? c->action : "", c->arguments);
  fprintf(to, "  warploom %-31s %s\n", left, c->help);
}

void wlmi_command_print_all(FILE *to) {
  for (int i = 0; i < COMMANDS; i++) print_usage(to, &commands[i]);
  fprintf(to, "  warploom %-31s %s\n\n", "bench ...", "suites of matrices, with baselines");
  fputs("options of many commands (warploom COMMAND --help lists those of one):\n", to);
  wlmi_cli_print_options(to, COMMON);
}

void wlmi_command_print(const char *name, const wlmi_cli_options *o) {
  int takes = 0, one = 0;
  for (int i = 0; i < COMMANDS; i++) one |= commands[i].action && is_called(&commands[i], name, action_of(o));
  puts("usage:");
  for (int i = 0; i < COMMANDS; i++) {
    if (strcmp(commands[i].name, name) || (one && !is_called(&commands[i], name, action_of(o)))) continue;
    print_usage(stdout, &commands[i]);
    takes |= commands[i].takes;
  }
  puts("\noptions:");
  wlmi_cli_print_options(stdout, takes);
}
