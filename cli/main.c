/* The command `warploom`: reads the options, finds the row in the table of commands and calls its function. */
#include <string.h>

#include "cli/commands.h"
#include "cli/help.h"
#include "cli/problem.h"
#include "cli/progress.h"
#include "cli/session.h"
#include "cli/suggest.h"
#include "core/base/threads.h"

static void print_log(void *user, wlm_log_level level, const char *message) {
  (void)user;
  wlmi_print_message("warploom: %s: %s", level == WLM_LOG_ERROR ? "error" : "warning", message);
}

/* warploom help: the help of all commands or of one, the man page, or the completion of a shell. */
static wlm_status help(const wlmi_cli_options *options, wlmi_report *report) {
  static const struct {
    const char *name;
    void (*print)(FILE *to);
  } forms[] = {{"man", wlmi_help_man}, {"bash", wlmi_help_bash}, {"zsh", wlmi_help_zsh}};
  const char *name = options->argument_count ? options->arguments[0] : NULL;
  char suggestion[WLMI_SUGGESTION];
  if (!name) return wlmi_help_print(stdout), WLM_OK;
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
    if (!strcmp(forms[i].name, name)) return forms[i].print(stdout), WLM_OK;
  if (wlmi_command_exists(name)) {
    wlmi_cli_options of = *options;
    of.arguments++;
    of.argument_count--;
    return wlmi_help_print_command(name, &of), WLM_OK;
  }
  report->exit_code = WLMI_EXIT_USAGE;
  wlmi_suggest(name, "", wlmi_command_name, suggestion);
  return wlmi_fail(WLM_ERR_NOT_FOUND, "unknown command '%s'; %swarploom --help lists the commands", name, suggestion);
}

static int run(int argc, char **argv) {
  wlmi_cli_options options;
  const char *name = argc > 1 ? argv[1] : "";
  if (!strcmp(name, "--help") || !strcmp(name, "-h")) return wlmi_help_print(stdout), WLMI_EXIT_OK;
  if (!strcmp(name, "--version")) return printf("warploom %s\n", wlm_version_string()), WLMI_EXIT_OK;
  if (argc < 2) return wlmi_help_print(stderr), WLMI_EXIT_USAGE;
  wlm_set_log(print_log, NULL, WLM_LOG_WARNING);
  if (!wlmi_command_exists(name)) {
    char suggestion[WLMI_SUGGESTION];
    wlmi_suggest(name, "", wlmi_command_name, suggestion);
    wlmi_print_message(
        "warploom: unknown command '%s'; %swarploom --help lists the commands, python -m bench --help the "
        "reports",
        name, suggestion);
    return WLMI_EXIT_USAGE;
  }
  if (!wlmi_cli_parse(argc - 1, argv + 1, &options)) return WLMI_EXIT_USAGE;
  if (options.help) return wlmi_help_print_command(name, &options), WLMI_EXIT_OK;
  const wlmi_command *c = wlmi_command_find(name, &options);
  if (!c) return WLMI_EXIT_USAGE;
  if (c->takes & (WLMI_OPTION_OPERATOR | WLMI_OPTION_MESSAGE) &&
      !wlmi_cli_make_problem(&options, name, c->least || wlmi_cli_has(&options, WLMI_OPTION_WIDTH)))
    return WLMI_EXIT_USAGE;
  wlmi_report report = {.json = options.json};
  wlmi_threads_begin(); /* as long as the command runs */
  const wlm_status status = c->run ? c->run(&options, &report) : help(&options, &report);
  return wlmi_cli_finish(&report, status);
}

/* Output that could not be written makes the command fail. */
int main(int argc, char **argv) {
  wlmi_end_with_compilers();
  int code = run(argc, argv);
  const int is_written = !fflush(stdout) && !ferror(stdout);
  if (!is_written) fputs("warploom: standard output is closed or full\n", stderr);
  wlmi_end_by_interrupt();
  if (is_written) return code;
  return code == WLMI_EXIT_OK ? WLMI_EXIT_FAILED : code;
}
