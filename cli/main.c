/* warploom, the command: reads the options, finds what is meant in the table of commands and calls it. */
#include <string.h>

#include "cli/command_table.h"
#include "cli/progress.h"
#include "cli/session.h"

static void print_help(FILE *to) {
  fputs("warploom tunes and dispatches sparse-dense matrix multiplication, C = A B.\n\nusage:\n", to);
  wlmi_command_print_all(to);
  fputs(
      "\nINPUT is a Matrix Market file (.mtx, .mtx.gz), a seeded twin of a published graph (twin:reddit, proteins,\n"
      "products, arxiv, youtube, roadnet-ca, web-google; twin:arxiv,scale=0.1), uniform:rows=R,d=D or\n"
      "synth:rows=R,d=D,cv=X.\n"
      "Exit codes: 0 done; 2 the command line cannot be understood or a package is missing; 1 everything else.\n",
      to);
}

static void print_log(void *user, wlm_log_level level, const char *message) {
  (void)user;
  fprintf(stderr, "warploom: %s: %s\n", level == WLM_LOG_ERROR ? "error" : "warning", message);
}

static int run(int argc, char **argv) {
  wlmi_cli_options options;
  const char *name = argc > 1 ? argv[1] : "";
  if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) return print_help(stdout), WLM_EXIT_OK;
  if (!strcmp(name, "--version")) return printf("warploom %s\n", wlm_version_string()), WLM_EXIT_OK;
  if (argc < 2) return print_help(stderr), WLM_EXIT_USAGE;
  wlm_set_log(print_log, NULL, WLM_LOG_WARNING);
  if (!wlmi_command_exists(name)) {
    fprintf(stderr, "warploom: unknown command '%s'; warploom --help lists the commands\n", name);
    return WLM_EXIT_USAGE;
  }
  if (!wlmi_cli_parse(argc - 1, argv + 1, &options)) return WLM_EXIT_USAGE;
  if (options.help) return wlmi_command_print(name, &options), WLM_EXIT_OK;
  const wlmi_command *c = wlmi_command_find(name, &options);
  if (!c) return WLM_EXIT_USAGE;
  wlmi_report report = {.json = options.json};
  const wlm_status status = c->run(&options, &report);
  return wlmi_cli_finish(&report, status);
}

/* What was told but not written is not done. */
int main(int argc, char **argv) {
  int code = run(argc, argv);
  const int is_written = !fflush(stdout) && !ferror(stdout);
  if (!is_written) fputs("warploom: standard output is closed or full\n", stderr);
  wlmi_end_by_interrupt();
  if (is_written) return code;
  return code == WLM_EXIT_OK ? WLM_EXIT_FAILED : code;
}
