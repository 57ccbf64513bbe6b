/* warploom help: the help of all commands or of one, the man page, or the completion of a shell. */
#include <string.h>

#include "cli/help.h"

wlm_status wlmi_cmd_help(const wlmi_cli_options *options, wlmi_report *report) {
  static const struct {
    const char *name;
    void (*print)(FILE *to);
  } forms[] = {{"man", wlmi_help_man}, {"bash", wlmi_help_bash}, {"zsh", wlmi_help_zsh}};
  const char *name = options->argument_count ? options->arguments[0] : NULL;
  if (!name) return wlmi_help_print(stdout), WLM_OK;
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
    if (!strcmp(forms[i].name, name)) return forms[i].print(stdout), WLM_OK;
  if (wlmi_command_exists(name)) {
    wlmi_cli_options of = *options;
    of.arguments++;
    of.argument_count--;
    return wlmi_help_print_command(name, &of), WLM_OK;
  }
  report->exit_code = WLM_EXIT_USAGE;
  return wlmi_fail(WLM_ERR_NOT_FOUND, "unknown command '%s'; warploom --help lists the commands", name);
}
