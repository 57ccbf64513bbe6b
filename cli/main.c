/* warploom, the command: finds the command in a table, reads its options, checks how many arguments it was
 * given and calls it. */
#include <string.h>

#include "bench/bench.h"
#include "cli/commands.h"
#include "cli/db_actions.h"

typedef struct command {
  const char *name, *arguments;
  wlm_command_fn *run;
  int own; /* options besides the common ones */
  int least, most;
  const char *needs; /* what is missing where there are too few arguments */
  const char *help;
} command;

static const char input_needed[] = "name a matrix: a .mtx or .mtx.gz file, or a synthetic one (twin:arxiv)";

static const command commands[] = {
    {"info", "", wlm_cmd_info, 0, 0, 0, "", "version, devices, compilers, databases"},
    {"stats", "INPUT", wlm_cmd_stats, 0, 1, 1, input_needed, "what is known of a matrix"},
    {"show", "VARIANT | --list", wlm_cmd_show, WLM_OPTION_LIST | WLM_OPTION_TARGET, 0, 1, "",
     "the source that would be compiled, or all families"},
    {"tune", "[INPUT...]", wlm_cmd_tune, WLM_OPTION_AGAIN | WLM_OPTION_RECORDED, 0, 1 << 20, "",
     "measure what is not known yet; without an INPUT the device, on a design of synthetic matrices"},
    {"train", "", wlm_cmd_train, 0, 0, 0, "", "learn from all measurements what to choose for matrices not tuned"},
    {"run", "INPUT", wlm_cmd_run, WLM_OPTION_CHECK | WLM_OPTION_VARIANT | WLM_OPTION_RECORD, 1, 1, input_needed,
     "one product with the chosen kernel, timed; --check compares it with float64"},
    {"explain", "INPUT", wlm_cmd_explain, WLM_OPTION_VARIANT, 1, 1, input_needed, "which kernel, and why"},
    {"export", "-o FILE", wlm_cmd_export, WLM_OPTION_OUTPUT | WLM_OPTION_FORMAT, 0, 0, "",
     "the measurements as JSON lines"},
    {"import", "FILE", wlm_cmd_import, 0, 1, 1, "name the file that export wrote", "add measurements, all or none"},
    {"db", "ACTION ...", wlm_cmd_db, WLM_OPTION_OUTPUT | WLM_OPTION_REPAIR | WLM_OPTION_KEEP, 1, 1 + WLM_DB_ARGUMENTS,
     "say list, check, merge, diff, prune, pin or unpin",
     "what was learned: list | check [--repair] | merge A B -o C | diff A B | prune [--keep COUNT] | pin "
     "INPUT-or-BUCKET VARIANT | "
     "unpin INPUT-or-BUCKET"},
    {"report", "-o FILE", wlm_cmd_report, WLM_OPTION_OUTPUT, 0, 0, "",
     "a database as one HTML page to look at; --device takes any part of a device class's name"},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static void print_help(FILE *to) {
  fputs("warploom tunes and dispatches sparse-dense matrix multiplication, C = A B.\n\nusage:\n", to);
  for (int i = 0; i < COMMANDS; i++) {
    char left[64];
    snprintf(left, sizeof left, "%s %s", commands[i].name, commands[i].arguments);
    fprintf(to, "  warploom %-24s %s\n", left, commands[i].help);
  }
  fprintf(to, "  warploom %-24s %s\n\noptions of every command:\n", "bench ...", "suites of matrices, rivals beside");
  wlm_cli_print_options(to, 0);
  fputs(
      "\nINPUT is a Matrix Market file (.mtx, .mtx.gz), a seeded twin of a published graph (twin:reddit, proteins,\n"
      "products, arxiv, youtube, roadnet-ca, web-google; twin:arxiv,scale=0.1), uniform:rows=R,d=D or\n"
      "synth:rows=R,d=D,cv=X.\n"
      "Exit codes: 0 done; 2 the command line cannot be understood or a package is missing; 1 everything else.\n",
      to);
}

static void print_command_help(const command *c) {
  printf("usage: warploom %s [options] %s\n%s\n\noptions:\n", c->name, c->arguments, c->help);
  wlm_cli_print_options(stdout, c->own);
}

static const command *find(const char *name) {
  for (int i = 0; i < COMMANDS; i++)
    if (!strcmp(commands[i].name, name)) return &commands[i];
  return NULL;
}

static void print_log(void *user, wlm_log_level level, const char *message) {
  (void)user;
  fprintf(stderr, "warploom: %s: %s\n", level == WLM_LOG_ERROR ? "error" : "warning", message);
}

static int run(int argc, char **argv) {
  wlm_cli_options options;
  const char *name = argc > 1 ? argv[1] : "";
  if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) return print_help(stdout), WLM_EXIT_OK;
  if (!strcmp(name, "--version")) return printf("warploom %s\n", wlm_version_string()), WLM_EXIT_OK;
  if (argc < 2) return print_help(stderr), WLM_EXIT_USAGE;
  wlm_set_log(print_log, NULL, WLM_LOG_WARNING);
  if (!strcmp(name, "bench")) return wlm_bench_main(argc - 1, argv + 1);

  const command *c = find(name);
  if (!c) {
    fprintf(stderr, "warploom: unknown command '%s'; warploom --help lists the commands\n", name);
    return WLM_EXIT_USAGE;
  }
  if (!wlm_cli_parse(argc - 1, argv + 1, c->own, &options)) return WLM_EXIT_USAGE;
  if (options.help) return print_command_help(c), WLM_EXIT_OK;
  if (options.argument_count < c->least) {
    fprintf(stderr, "warploom %s: an argument is missing; %s\n", name, c->needs);
    return WLM_EXIT_USAGE;
  }
  if (options.argument_count > c->most) {
    fprintf(stderr, "warploom %s: '%s' is one argument too many; see warploom %s --help\n", name,
            options.arguments[c->most], name);
    return WLM_EXIT_USAGE;
  }
  return c->run(&options);
}

/* What was told but not written is not done. */
int main(int argc, char **argv) {
  int code = run(argc, argv);
  if (!fflush(stdout) && !ferror(stdout)) return code;
  fputs("warploom: standard output is closed or full\n", stderr);
  return code == WLM_EXIT_OK ? WLM_EXIT_FAILED : code;
}
