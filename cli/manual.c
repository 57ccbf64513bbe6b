/* Writes the man page with the macros of man(7). */
#include <string.h>

#include "cli/help.h"

/* Writes text so that nothing in it is a request or an escape. */
static void put_text(FILE *to, const char *text) {
  if (*text == '.' || *text == '\'') fputs("\\&", to);
  for (; *text; text++)
    if (*text == '\\')
      fputs("\\e", to);
    else if (*text == '-')
      fputs("\\-", to);
    else
      putc(*text, to);
  putc('\n', to);
}

static void put_entry(FILE *to, const char *name, const char *help) {
  fputs(".TP\n.B ", to);
  put_text(to, name);
  put_text(to, help);
}

static void put_entries(FILE *to, const char *title, const wlmi_help_entry *list) {
  fprintf(to, ".SH %s\n", title);
  for (; list->name; list++) put_entry(to, list->name, list->help);
}

static void put_commands(FILE *to) {
  fputs(".SH COMMANDS\n", to);
  for (int i = 0; i < wlmi_commands_count; i++) {
    wlmi_text usage = {0};
    const char *help;
    wlmi_help_usage(&wlmi_commands[i], &usage);
    put_entry(to, usage.data ? usage.data : "", wlmi_commands[i].help);
    for (int k = 0; wlmi_commands[i].suite && wlmi_commands[i].suite(k, &help); k++)
      fprintf(to, ".br\n%s: %s\n", wlmi_commands[i].suite(k, &help), help);
    wlmi_text_release(&usage);
  }
}

/* "Commands: tune, db pin." */
static void put_takers(FILE *to, const wlmi_option *option) {
  wlmi_text takers = {0};
  for (int i = 0; i < wlmi_commands_count; i++) {
    const wlmi_command *c = &wlmi_commands[i], *before = i ? c - 1 : NULL;
    const int again = before && !strcmp(before->name, c->name) && !c->action && before->takes & option->group;
    if (!(c->takes & option->group) || again) continue;
    wlmi_text_printf(&takers, "%s%s%s%s", takers.size ? ", " : "Commands: ", c->name, c->action ? " " : "",
                     c->action ? c->action : "");
  }
  if (!takers.size) wlmi_text_puts(&takers, "All commands");
  wlmi_text_puts(&takers, ".");
  put_text(to, takers.data ? takers.data : "");
  wlmi_text_release(&takers);
}

static void put_options(FILE *to) {
  fputs(".SH OPTIONS\n", to);
  for (int i = 0; i < wlmi_options_count; i++) {
    const wlmi_option *option = &wlmi_options[i];
    wlmi_text name = {0}, help = {0};
    if (option->letter) wlmi_text_printf(&name, "-%c, ", option->letter);
    wlmi_text_printf(&name, "--%s%s%s", option->name, option->argument ? " " : "",
                     option->argument ? option->argument : "");
    wlmi_option_describe(option, &help);
    wlmi_text_puts(&help, ".");
    put_entry(to, name.data ? name.data : "", help.data ? help.data : "");
    put_takers(to, option);
    wlmi_text_release(&name);
    wlmi_text_release(&help);
  }
}

static void put_examples(FILE *to) {
  fputs(".SH EXAMPLES\n.nf\n", to);
  for (int i = 0; i < wlmi_commands_count; i++)
    if (wlmi_commands[i].example) {
      fputs("warploom ", to);
      put_text(to, wlmi_commands[i].example);
    }
  fputs(".fi\n", to);
}

void wlmi_help_man(FILE *to) {
  fprintf(to, ".TH WARPLOOM 1 \"\" \"warploom %s\" \"User Commands\"\n", wlm_version_string());
  fputs(".SH NAME\nwarploom \\- autotuned sparse\\-dense matrix products\n", to);
  fputs(".SH SYNOPSIS\n.B warploom\n.I COMMAND\n[\\fIARGUMENT\\fR...] [\\fIOPTION\\fR...]\n.SH DESCRIPTION\n", to);
  put_text(to, wlmi_help_summary);
  fputs("Each option below lists the commands that take it; other commands refuse it.\n", to);
  put_commands(to);
  put_entries(to, "INPUT", wlmi_help_inputs);
  put_options(to);
  put_examples(to);
  put_entries(to, "EXIT STATUS", wlmi_help_exits);
  put_entries(to, "ENVIRONMENT", wlmi_help_environment);
}
