/* Writes completion scripts for bash and zsh: commands, actions, options and their values; other arguments are files.
 */
#include <string.h>

#include "cli/help.h"

/* Whether this is the first row of its name; it handles the others too. */
static int is_first(int i) { return !i || strcmp(wlmi_commands[i].name, wlmi_commands[i - 1].name); }

/* The options that the rows of this name and action (NULL = none) take. */
static int takes_of(const char *name, const char *action) {
  int takes = WLMI_OPTION_HELP;
  for (int i = 0; i < wlmi_commands_count; i++) {
    const wlmi_command *c = &wlmi_commands[i];
    if (!strcmp(c->name, name) && (action ? c->action && !strcmp(c->action, action) : !c->action)) takes |= c->takes;
  }
  return takes;
}

/* The words that may follow a command's name: actions, suites, commands; separated by blanks. */
static void put_words(const char *name, wlmi_text *out) {
  const char *help;
  if (!strcmp(name, "help")) {
    wlmi_text_puts(out, " man bash zsh");
    for (int i = 0; i < wlmi_commands_count; i++)
      if (is_first(i)) wlmi_text_printf(out, " %s", wlmi_commands[i].name);
  }
  for (int i = 0; i < wlmi_commands_count; i++) {
    const wlmi_command *c = &wlmi_commands[i];
    if (strcmp(c->name, name)) continue;
    for (int k = 0; c->suite && c->suite(k, &help); k++) wlmi_text_printf(out, " %s", c->suite(k, &help));
    if (c->action) wlmi_text_printf(out, " %s", c->action);
  }
}

/* The values of an option, separated by blanks; nothing if it has no list of values. */
static void put_values(const wlmi_option *option, wlmi_text *out) {
  const int is_list = option->values && !strchr(option->values, ' ');
  for (const char *at = is_list ? option->values : ""; *at; at++) wlmi_text_append(out, *at == '|' ? " " : at, 1);
}

static int is_file(const wlmi_option *option) {
  static const char *const names[] = {"FILE", "PATH", "DIR"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (option->argument && !strcmp(option->argument, names[i])) return 1;
  return 0;
}

/* Calls `each` for every action of a command and then for the command. */
static void each_command(FILE *to, void (*each)(FILE *to, const char *name, const char *action)) {
  for (int i = 0; i < wlmi_commands_count; i++) {
    const char *name = wlmi_commands[i].name;
    if (!is_first(i)) continue;
    for (int k = i; k < wlmi_commands_count && !strcmp(wlmi_commands[k].name, name); k++)
      if (wlmi_commands[k].action) each(to, name, wlmi_commands[k].action);
    each(to, name, NULL);
  }
}

/* ---- bash ---- */

static void put_bash_options(FILE *to, const char *name, const char *action) {
  const int takes = takes_of(name, action);
  fprintf(to, "    \"%s %s\"*) words=\"", name, action ? action : "");
  for (int i = 0; i < wlmi_options_count; i++)
    if (wlmi_options[i].group & takes) fprintf(to, " --%s", wlmi_options[i].name);
  fputs("\" ;;\n", to);
}

static void put_bash_value(FILE *to, const wlmi_option *option) {
  wlmi_text values = {0};
  if (!option->argument || is_file(option)) return;
  put_values(option, &values);
  if (option->letter) fprintf(to, "-%c|", option->letter);
  fprintf(to, "--%s) COMPREPLY=($(compgen -W \"%s\" -- \"$cur\")); compopt +o default; return ;;\n    ", option->name,
          values.data ? values.data : "");
  wlmi_text_release(&values);
}

void wlmi_help_bash(FILE *to) {
  fputs(
      "# bash completion of warploom; made by warploom help bash\n_warploom() {\n"
      "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words=\n  COMPREPLY=()\n"
      "  case $prev in\n    ",
      to);
  for (int i = 0; i < wlmi_options_count; i++) put_bash_value(to, &wlmi_options[i]);
  fputs("\n  esac\n  if [ \"$COMP_CWORD\" = 1 ]; then\n    words=\"--help --version", to);
  for (int i = 0; i < wlmi_commands_count; i++)
    if (is_first(i)) fprintf(to, " %s", wlmi_commands[i].name);
  fputs("\"\n  elif [ \"${cur#-}\" != \"$cur\" ]; then\n    case \"${COMP_WORDS[1]} ${COMP_WORDS[2]}\" in\n", to);
  each_command(to, put_bash_options);
  fputs("    esac\n  elif [ \"$COMP_CWORD\" = 2 ]; then\n    case ${COMP_WORDS[1]} in\n", to);
  for (int i = 0; i < wlmi_commands_count; i++) {
    wlmi_text words = {0};
    if (is_first(i)) put_words(wlmi_commands[i].name, &words);
    if (words.size) fprintf(to, "    %s) words=\"%s\" ;;\n", wlmi_commands[i].name, words.data);
    wlmi_text_release(&words);
  }
  fputs(
      "    esac\n  fi\n  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\n"
      "complete -o default -F _warploom warploom\n",
      to);
}

/* ---- zsh ---- */

/* Escapes text inside '...[', where brackets, colons, backslashes and quotes are special. */
static void put_zsh_text(FILE *to, const char *text) {
  for (; *text; text++)
    if (*text == '\'')
      fputs("'\\''", to);
    else if (strchr("[]:\\", *text))
      fprintf(to, "\\%c", *text);
    else
      putc(*text, to);
}

static void put_zsh_option(FILE *to, const wlmi_option *option) {
  wlmi_text values = {0};
  if (option->letter)
    fprintf(to, " '(-%c --%s)'{-%c,--%s}'[", option->letter, option->name, option->letter, option->name);
  else
    fprintf(to, " '--%s[", option->name);
  put_zsh_text(to, option->help);
  putc(']', to);
  put_values(option, &values);
  if (option->argument) {
    putc(':', to);
    put_zsh_text(to, option->argument);
    if (values.size)
      fprintf(to, ":(%s)", values.data);
    else
      fputs(is_file(option) ? ":_files" : ":", to);
  }
  putc('\'', to);
  wlmi_text_release(&values);
}

static void put_zsh_options(FILE *to, const char *name, const char *action) {
  const int takes = takes_of(name, action);
  wlmi_text words = {0};
  fprintf(to, "    \"%s %s\"*) _arguments", name, action ? action : "");
  for (int i = 0; i < wlmi_options_count; i++)
    if (wlmi_options[i].group & takes) put_zsh_option(to, &wlmi_options[i]);
  put_words(name, &words);
  if (words.size) fprintf(to, " '1:what:(%s)'", words.data);
  fputs(" '*:file:_files' ;;\n", to);
  wlmi_text_release(&words);
}

void wlmi_help_zsh(FILE *to) {
  fputs("#compdef warploom\n# made by warploom help zsh\n_warploom() {\n  local -a commands\n  commands=(\n", to);
  for (int i = 0; i < wlmi_commands_count; i++) {
    if (!is_first(i)) continue;
    fprintf(to, "    '%s:", wlmi_commands[i].name);
    put_zsh_text(to, wlmi_commands[i].help);
    fputs("'\n", to);
  }
  fputs(
      "  )\n  if ((CURRENT == 2)); then\n    _describe command commands\n    return\n  fi\n"
      "  local key=\"$words[2] $words[3]\"\n  shift words\n  ((CURRENT--))\n  case $key in\n",
      to);
  each_command(to, put_zsh_options);
  fputs("  esac\n}\n_warploom \"$@\"\n", to);
}
