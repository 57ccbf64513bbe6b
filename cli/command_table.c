#include "cli/commands.h"

#include <string.h>

#include "cli/progress.h"

#define OPERATION (WLMI_OPTION_WIDTH | WLMI_OPTION_OPERATOR | WLMI_OPTION_MESSAGE | WLMI_OPTION_TYPE)
#define PROBLEM   (OPERATION | WLMI_OPTION_EPILOGUE)
#define STORE     (WLMI_OPTION_DATABASE | WLMI_OPTION_JSON)
#define CONTEXT   (STORE | WLMI_OPTION_DEVICE)
#define CHOOSING  (CONTEXT | WLMI_OPTION_LAYERS)
#define TUNING    (CONTEXT | WLMI_OPTION_BUDGET | WLMI_OPTION_SEED | WLMI_OPTION_AGAIN)
#define PINNING   (CONTEXT | OPERATION | WLMI_OPTION_FORCE)
#define BENCH                                                                                                      \
  (CHOOSING | WLMI_OPTION_WIDTH | WLMI_OPTION_BUDGET | WLMI_OPTION_SEED | WLMI_OPTION_DATA | WLMI_OPTION_SAMPLES | \
   WLMI_OPTION_OUTPUT | WLMI_OPTION_JSON | WLMI_OPTION_FORCE)
#define NO_LIMIT (1 << 20)

static const char input_needed[] =
    "name a matrix: a file (Matrix Market, an edge list or SciPy's .npz), - for standard input, or twin:arxiv";

const wlmi_command wlmi_commands[] = {
    {"info", NULL, "", "print version, devices, compilers and databases", wlmi_cmd_info, .takes = CONTEXT,
     .example = "info --json"},
    {"stats", NULL, "INPUT...", "print row statistics, bucket and fingerprint of a matrix", wlmi_cmd_stats,
     .takes = WLMI_OPTION_JSON | WLMI_OPTION_FORCE, .least = 1, .most = NO_LIMIT, .missing = input_needed,
     .example = "stats graph.mtx.gz"},
    {"convert", NULL, "INPUT -o FILE", "write a matrix as a Matrix Market file, for example a synthetic one",
     wlmi_cmd_convert, .takes = WLMI_OPTION_JSON | WLMI_OPTION_OUTPUT | WLMI_OPTION_FORCE, .needs = WLMI_OPTION_OUTPUT,
     .least = 1, .most = 1, .missing = input_needed, .example = "convert twin:arxiv,scale=0.1 -o arxiv.mtx"},
    {"show", NULL, "VARIANT", "print the source of a kernel", wlmi_cmd_show,
     .takes = PROBLEM | WLMI_OPTION_TARGET | WLMI_OPTION_JSON, .least = 1, .most = 1,
     .missing = "name one variant, row_crc/cf=2,rows=8, or say --list",
     .example = "show row_crc/cf=2,rows=8 --target cuda --op max"},
    {"show", NULL, "--list", "list all families with their parameters", wlmi_cmd_show,
     .takes = WLMI_OPTION_LIST | WLMI_OPTION_JSON, .when = WLMI_OPTION_LIST},
    {"tune", NULL, "INPUT...", "measure the kernels that were not measured yet", wlmi_cmd_tune,
     .takes = TUNING | PROBLEM | WLMI_OPTION_CALLS | WLMI_OPTION_FORCE, .least = 1, .most = NO_LIMIT,
     .missing = input_needed, .example = "tune graph.mtx -n 64,256 --budget 2m"},
    {"tune", NULL, "", "tune the device on synthetic matrices; the same command continues where it ended",
     wlmi_cmd_tune_design, .takes = TUNING | PROBLEM, .example = "tune --budget 30m"},
    {"tune", NULL, "--recorded", "tune what programs with record = 1 recorded, on matrices made from their statistics",
     wlmi_cmd_tune_recorded, .takes = TUNING | WLMI_OPTION_RECORDED, .when = WLMI_OPTION_RECORDED},
    {"train", NULL, "", "train the cost model on all measurements; tune does this at its end", wlmi_cmd_train,
     .takes = CONTEXT, .example = "train --device cuda"},
    {"compare", NULL, "INPUT...", "time the chosen kernel beside cuSPARSE, on a host beside a plain OpenMP loop",
     wlmi_cmd_compare,
     .takes = CHOOSING | WLMI_OPTION_WIDTH | WLMI_OPTION_MESSAGE | WLMI_OPTION_TYPE | WLMI_OPTION_SAMPLES |
              WLMI_OPTION_SEED | WLMI_OPTION_FORCE,
     .least = 1, .most = NO_LIMIT, .missing = input_needed, .example = "compare graph.mtx -n 64"},
    {"run", NULL, "INPUT...", "time one product with the chosen kernel", wlmi_cmd_run,
     .takes = CHOOSING | PROBLEM | WLMI_OPTION_CALLS | WLMI_OPTION_SEED | WLMI_OPTION_CHECK | WLMI_OPTION_VARIANT |
              WLMI_OPTION_RECORD | WLMI_OPTION_FORCE,
     .least = 1, .most = NO_LIMIT, .missing = input_needed, .example = "run graph.mtx -n 64 --op copy_b.mean --check"},
    {"explain", NULL, "INPUT...", "print which kernel is chosen, and why", wlmi_cmd_explain,
     .takes = CHOOSING | PROBLEM | WLMI_OPTION_CALLS | WLMI_OPTION_VARIANT | WLMI_OPTION_FORCE, .least = 1,
     .most = NO_LIMIT, .missing = input_needed, .example = "explain graph.mtx -n 64 --calls 1000"},
    {"explain", NULL, "SAMPLING.json...",
     "show the settings that warploom.torch.calibrate measured: their times, and what they lose of the budget",
     wlmi_cmd_explain_sampling, .takes = WLMI_OPTION_JSON, .is_for = wlmi_explains_samplings, .least = 1,
     .most = NO_LIMIT, .missing = input_needed, .example = "explain sampling.json"},
    {"export", NULL, "-o FILE", "write the measurements as JSON lines, or a library that contains what was tuned",
     wlmi_cmd_export, .takes = STORE | WLMI_OPTION_SYSTEM | WLMI_OPTION_OUTPUT | WLMI_OPTION_FORMAT,
     .needs = WLMI_OPTION_OUTPUT, .example = "export -o tuned.jsonl"},
    {"import", NULL, "FILE", "add exported measurements, all or none", wlmi_cmd_import, .takes = STORE, .least = 1,
     .most = 1, .missing = "name the file that export wrote", .example = "import tuned.jsonl"},
    {"db", "list", "", "list decisions, pins and recorded problems", wlmi_cmd_db_list,
     .takes = STORE | WLMI_OPTION_SYSTEM, .example = "db list --json"},
    {"db", "candidates", "",
     "list the candidates of a device class, which of them the rules, other problems and the model choose for so many "
     "calls, and how much longer these take; --device takes any part of the class's name",
     wlmi_cmd_db_candidates, .takes = CONTEXT | WLMI_OPTION_SYSTEM | WLMI_OPTION_CALLS,
     .example = "db candidates --device cuda --json"},
    {"db", "check", "[--repair]", "check the database file", wlmi_cmd_db_check, .takes = STORE | WLMI_OPTION_REPAIR,
     .example = "db check --repair"},
    {"db", "merge", "A B [...] -o C", "write the union of databases to a new one", wlmi_cmd_db_merge,
     .takes = WLMI_OPTION_JSON | WLMI_OPTION_OUTPUT, .needs = WLMI_OPTION_OUTPUT, .least = 2, .most = 32,
     .missing = "name two databases or more", .example = "db merge a.db b.db -o both.db"},
    {"db", "diff", "A B", "list the differences of two databases", wlmi_cmd_db_diff, .takes = WLMI_OPTION_JSON,
     .least = 2, .most = 2, .missing = "name two databases", .example = "db diff old.db new.db"},
    {"db", "prune", "[--keep COUNT]", "delete measurements that no choice uses any more", wlmi_cmd_db_prune,
     .takes = STORE | WLMI_OPTION_KEEP, .example = "db prune --keep 8"},
    {"db", "pin", "INPUT-or-BUCKET VARIANT", "always use this kernel for a matrix or a bucket", wlmi_cmd_db_pin,
     .takes = PINNING, .least = 2, .most = 2, .missing = "name a matrix or bucket, then a variant",
     .example = "db pin graph.mtx row_crc/cf=2,rows=8 -n 64"},
    {"db", "unpin", "INPUT-or-BUCKET", "remove a pin", wlmi_cmd_db_unpin, .takes = PINNING, .least = 1, .most = 1,
     .missing = "name a matrix or bucket", .example = "db unpin graph.mtx -n 64"},
    {"kernels", "build", "-o FILE",
     "compile kernels for common problems ahead, for machines without a compiler and for quick first steps; needs "
     "NVRTC "
     "and no GPU",
     wlmi_cmd_kernels_build, .takes = WLMI_OPTION_JSON | WLMI_OPTION_OUTPUT | WLMI_OPTION_ARCHS,
     .needs = WLMI_OPTION_OUTPUT, .example = "kernels build -o kernels.archive --arch 80,90 --for sum,mean"},
    {"bench", NULL, "SUITE [INPUT...]", "run a suite on its matrices (--data DIR) or on these inputs", wlmi_cmd_bench,
     .takes = BENCH, .least = 1, .most = NO_LIMIT, .missing = "name a suite; warploom bench --help lists them",
     .suite = wlmi_bench_suite_at, .example = "bench core --data DIR -o core.jsonl --budget 10m"},
    {"help", NULL, "[COMMAND]",
     "print the help of all commands or of one; help man, help bash and help zsh print the "
     "man page and the completion of a shell",
     .most = 2, .example = "help tune"},
};
enum { COMMANDS = sizeof wlmi_commands / sizeof *wlmi_commands };
const int wlmi_commands_count = COMMANDS;

static int is_called(const wlmi_command *c, const char *name, const char *action) {
  return !strcmp(c->name, name) && (!c->action || (action && !strcmp(c->action, action)));
}

const char *wlmi_command_name(int i) { return i < COMMANDS ? wlmi_commands[i].name : NULL; }

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

/* Prefers a row that the arguments select, whose option was given or whose action was given, then one that takes this
 * many arguments. */
const wlmi_command *wlmi_command_closest(const char *name, const wlmi_cli_options *o) {
  const wlmi_command *found = NULL;
  for (int i = 0; i < COMMANDS; i++) {
    const wlmi_command *c = &wlmi_commands[i];
    if (!is_called(c, name, action_of(o)) || (c->when && !wlmi_cli_has(o, c->when)) || (c->is_for && !c->is_for(o)))
      continue;
    if (c->when || c->action || c->is_for) return c;
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
  wlmi_text actions = {0};
  int left = 0;
  for (int i = 0; i < COMMANDS; i++) left += !strcmp(wlmi_commands[i].name, name);
  for (int i = 0; i < COMMANDS; i++)
    if (!strcmp(wlmi_commands[i].name, name))
      wlmi_text_printf(&actions, "%s%s", wlmi_commands[i].action, --left > 1 ? ", " : left ? " or " : "");
  const char *list = actions.data ? actions.data : "";
  if (action)
    wlmi_print_message("warploom %s: unknown action '%s'; say %s", name, action, list);
  else
    wlmi_print_message("warploom %s: an argument is missing; say %s", name, list);
  wlmi_text_release(&actions);
}

static int reads_stdin_once(const char *label, const wlmi_cli_options *o) {
  int count = 0;
  for (int i = 0; i < o->argument_count; i++) count += !strcmp(o->arguments[i], "-");
  if (count > 1) wlmi_print_message("warploom %s: '-' is standard input, which can be read once", label);
  return count <= 1;
}

/* A command without arguments may have been given a database. */
static void complain_of_extra(const wlmi_command *c, const char *label, const char *argument) {
  if (c->takes & WLMI_OPTION_DATABASE && !c->most && !c->when)
    wlmi_print_message("warploom %s: '%s' is one argument too many; name a database by --db %s", label, argument,
                       argument);
  else
    wlmi_print_message("warploom %s: '%s' is one argument too many; see warploom %s --help", label, argument, c->name);
}

const wlmi_command *wlmi_command_find(const char *name, const wlmi_cli_options *o) {
  const wlmi_command *c = wlmi_command_closest(name, o);
  char label[32];
  if (!c) return print_actions(name, action_of(o)), NULL;
  label_of(c, label);
  if (!wlmi_cli_check(o, label, c->takes, c->needs)) return NULL;
  if (counts_fit(c, o)) return reads_stdin_once(label, o) ? c : NULL;
  if (argument_count(c, o) < c->least)
    wlmi_print_message("warploom %s: an argument is missing; %s; usage: warploom %s%s%s %s", label, c->missing, c->name,
                       c->action ? " " : "", c->action ? c->action : "", c->arguments);
  else
    complain_of_extra(c, label, o->arguments[c->most + !!c->action]);
  return NULL;
}
