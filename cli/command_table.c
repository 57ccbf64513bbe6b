#include "cli/command_table.h"

#include <string.h>

#define PROBLEM (WLM_OPTION_WIDTH | WLM_OPTION_OPERATOR | WLM_OPTION_EPILOGUE)
#define STORE   (WLM_OPTION_DATABASE | WLM_OPTION_JSON)
#define CONTEXT (STORE | WLM_OPTION_DEVICE)
#define TUNING  (CONTEXT | WLM_OPTION_BUDGET | WLM_OPTION_SEED | WLM_OPTION_AGAIN)
#define PINNING (CONTEXT | WLM_OPTION_WIDTH | WLM_OPTION_OPERATOR)
#define BENCH                                                                                         \
  (WLM_OPTION_DATABASE | WLM_OPTION_DEVICE | WLM_OPTION_WIDTH | WLM_OPTION_BUDGET | WLM_OPTION_SEED | \
   WLM_OPTION_BENCH | WLM_OPTION_OUTPUT | WLM_OPTION_FORCE)
#define COMMON   (CONTEXT | PROBLEM | WLM_OPTION_CALLS | WLM_OPTION_BUDGET | WLM_OPTION_SEED)
#define NO_LIMIT (1 << 20)

static const char input_needed[] = "name a matrix: a .mtx or .mtx.gz file, or a synthetic one (twin:arxiv)";

const wlmi_command wlmi_commands[] = {
    {"info", NULL, "", "version, devices, compilers, databases", wlmi_cmd_info, .takes = CONTEXT},
    {"stats", NULL, "INPUT", "row statistics of a matrix", wlmi_cmd_stats, .takes = WLM_OPTION_JSON, .least = 1,
     .most = 1, .missing = input_needed},
    {"convert", NULL, "INPUT -o FILE", "write a matrix as a Matrix Market file", wlmi_cmd_convert,
     .takes = WLM_OPTION_JSON | WLM_OPTION_OUTPUT, .needs = WLM_OPTION_OUTPUT, .least = 1, .most = 1,
     .missing = input_needed},
    {"show", NULL, "VARIANT", "the source of a kernel", wlmi_cmd_show, .takes = PROBLEM | WLM_OPTION_TARGET, .least = 1,
     .most = 1, .missing = "name one variant, row_crc/cf=2,rows=8, or say --list"},
    {"show", NULL, "--list", "all families with their parameters", wlmi_cmd_show, .takes = WLM_OPTION_LIST,
     .when = WLM_OPTION_LIST},
    {"tune", NULL, "INPUT...", "measure the kernels that were not measured yet", wlmi_cmd_tune,
     .takes = TUNING | PROBLEM | WLM_OPTION_CALLS | WLM_OPTION_FORCE, .least = 1, .most = NO_LIMIT,
     .missing = input_needed},
    {"tune", NULL, "", "tune the device on a design of synthetic matrices", wlmi_cmd_tune_design,
     .takes = TUNING | PROBLEM},
    {"tune", NULL, "--recorded", "tune what programs recorded, on matrices made from their statistics",
     wlmi_cmd_tune_recorded, .takes = TUNING | WLM_OPTION_RECORDED, .when = WLM_OPTION_RECORDED},
    {"train", NULL, "", "train the models that choose kernels for matrices that were not tuned", wlmi_cmd_train,
     .takes = CONTEXT},
    {"run", NULL, "INPUT", "time one product with the chosen kernel; --check compares it with float64", wlmi_cmd_run,
     .takes = CONTEXT | PROBLEM | WLM_OPTION_CALLS | WLM_OPTION_SEED | WLM_OPTION_CHECK | WLM_OPTION_VARIANT |
              WLM_OPTION_RECORD | WLM_OPTION_FORCE,
     .least = 1, .most = 1, .missing = input_needed},
    {"explain", NULL, "INPUT", "which kernel is chosen, and why", wlmi_cmd_explain,
     .takes = CONTEXT | PROBLEM | WLM_OPTION_CALLS | WLM_OPTION_VARIANT, .least = 1, .most = 1,
     .missing = input_needed},
    {"export", NULL, "-o FILE", "write the measurements as JSON lines", wlmi_cmd_export,
     .takes = STORE | WLM_OPTION_OUTPUT | WLM_OPTION_FORMAT, .needs = WLM_OPTION_OUTPUT},
    {"import", NULL, "FILE", "add exported measurements, all or none", wlmi_cmd_import, .takes = STORE, .least = 1,
     .most = 1, .missing = "name the file that export wrote"},
    {"db", "list", "", "list choices, pins and recorded problems", wlmi_cmd_db_list, .takes = STORE},
    {"db", "check", "[--repair]", "check the database file", wlmi_cmd_db_check, .takes = STORE | WLM_OPTION_REPAIR},
    {"db", "merge", "A B [...] -o C", "write the union of databases to a new one", wlmi_cmd_db_merge,
     .takes = WLM_OPTION_JSON | WLM_OPTION_OUTPUT, .needs = WLM_OPTION_OUTPUT, .least = 2, .most = 32,
     .missing = "name two databases or more"},
    {"db", "diff", "A B", "list the differences of two databases", wlmi_cmd_db_diff, .takes = WLM_OPTION_JSON,
     .least = 2, .most = 2, .missing = "name two databases"},
    {"db", "prune", "[--keep COUNT]", "delete measurements that no choice uses any more", wlmi_cmd_db_prune,
     .takes = STORE | WLM_OPTION_KEEP},
    {"db", "pin", "INPUT-or-BUCKET VARIANT", "always use this kernel", wlmi_cmd_db_pin, .takes = PINNING, .least = 2,
     .most = 2, .missing = "name a matrix or bucket, then a variant"},
    {"db", "unpin", "INPUT-or-BUCKET", "remove a pin", wlmi_cmd_db_unpin, .takes = PINNING, .least = 1, .most = 1,
     .missing = "name a matrix or bucket"},
    {"report", NULL, "-o FILE", "an HTML report; --device takes any part of a device class's name", wlmi_cmd_report,
     .takes = CONTEXT | WLM_OPTION_OUTPUT, .needs = WLM_OPTION_OUTPUT},
    {"bench", NULL, "SUITE [INPUT...]", "run a suite on its matrices (--data DIR) or on these", wlmi_cmd_bench,
     .takes = BENCH, .least = 1, .most = NO_LIMIT, .missing = "name a suite; warploom bench --help lists them",
     .more_help = wlmi_bench_print_suites},
    {"bench", "summary", "FILE", "means and worst cases of a results file", wlmi_cmd_bench_summary, .least = 1,
     .most = 1, .missing = "name a results file"},
    {"bench", "plot", "FILE -o PREFIX", "draw its speed-ups to PREFIX.svg and PREFIX.png, by gnuplot",
     wlmi_cmd_bench_plot, .takes = WLM_OPTION_OUTPUT, .needs = WLM_OPTION_OUTPUT, .least = 1, .most = 1,
     .missing = "name a results file"},
};
enum { COMMANDS = sizeof wlmi_commands / sizeof *wlmi_commands };
const int wlmi_commands_count = COMMANDS;

static int is_called(const wlmi_command *c, const char *name, const char *action) {
  return !strcmp(c->name, name) && (!c->action || (action && !strcmp(c->action, action)));
}

int wlmi_command_exists(const char *name) {
  for (int i = 0; i < COMMANDS; i++)
    if (!strcmp(wlmi_commands[i].name, name)) return 1;
  return 0;
}

static const char *action_of(const wlmi_cli_options *o) { return o->argument_count ? o->arguments[0] : NULL; }

static int argument_count(const wlmi_command *c, const wlmi_cli_options *o) { return o->argument_count - !!c->action; }

static int counts_fit(const wlmi_command *c, const wlmi_cli_options *o) {
  return argument_count(c, o) >= c->least && argument_count(c, o) <= c->most;
}

/* A row whose option was given goes first, then one whose action was, then one that takes this many arguments. */
static const wlmi_command *closest(const char *name, const wlmi_cli_options *o) {
  const wlmi_command *found = NULL;
  for (int i = 0; i < COMMANDS; i++) {
    const wlmi_command *c = &wlmi_commands[i];
    if (!is_called(c, name, action_of(o)) || (c->when && !wlmi_cli_has(o, c->when))) continue;
    if (c->when || c->action) return c;
    if (!found || (!counts_fit(found, o) && counts_fit(c, o))) found = c;
  }
  return found;
}

/* "db merge", "tune --recorded", "tune" */
static void label_of(const wlmi_command *c, char label[32]) {
  const char *second = c->action ? c->action : c->when ? c->arguments : "";
  snprintf(label, 32, "%s%s%s", c->name, *second ? " " : "", second);
}

static void print_actions(const char *name, const char *action) {
  int left = 0;
  if (action)
    fprintf(stderr, "warploom %s: unknown action '%s'; say ", name, action);
  else
    fprintf(stderr, "warploom %s: an argument is missing; say ", name);
  for (int i = 0; i < COMMANDS; i++) left += !strcmp(wlmi_commands[i].name, name);
  for (int i = 0; i < COMMANDS; i++)
    if (!strcmp(wlmi_commands[i].name, name))
      fprintf(stderr, "%s%s", wlmi_commands[i].action, --left > 1 ? ", " : left ? " or " : "\n");
}

const wlmi_command *wlmi_command_find(const char *name, const wlmi_cli_options *o) {
  const wlmi_command *c = closest(name, o);
  char label[32];
  if (!c) return print_actions(name, action_of(o)), NULL;
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
  for (int i = 0; i < COMMANDS; i++) print_usage(to, &wlmi_commands[i]);
  fputs("\noptions of many commands (warploom COMMAND --help lists those of one):\n", to);
  wlmi_cli_print_options(to, COMMON);
}

void wlmi_command_print(const char *name, const wlmi_cli_options *o) {
  const wlmi_command *one = closest(name, o);
  void (*more)(FILE *) = NULL;
  int takes = 0;
  puts("usage:");
  for (int i = 0; i < COMMANDS; i++) {
    const wlmi_command *c = &wlmi_commands[i];
    if (strcmp(c->name, name) || (one && one->action && c != one)) continue;
    print_usage(stdout, c);
    takes |= c->takes;
    if (c->more_help) more = c->more_help;
  }
  if (more) more(stdout);
  puts("\noptions:");
  wlmi_cli_print_options(stdout, takes);
}
