/* --help, the man page and the completions agree with each other and with the commands that run. */
#include "support/command.h"
#include "support/test.h"

enum { MOST = 64, NAME = 64 };

static char names[MOST][NAME]; /* "info", "db list", ... */
static int name_count;
static char *man, *bash, *zsh; /* what `help man`, `help bash` and `help zsh` print */

static char *run(const char *line) {
  char whole[2048];
  command c;
  snprintf(whole, sizeof whole, "cd '%s' && %s", folder.path, line);
  command_start(&c, &folder, (const char *const[]){"/bin/bash", "-c", whole, NULL});
  command_wait(&c);
  if (c.code) fail_msg("%s: exit code %d, %s", line, c.code, c.err);
  char *out = strdup(c.out);
  return out;
}

static char *warploom(const char *arguments) {
  char line[1024];
  snprintf(line, sizeof line, "'" WLM_COMMAND "' %s", arguments);
  return run(line);
}

/* Reads the commands and their actions from --help: the lower-case words before the arguments. */
static int begin(void **state) {
  if (home_begin(state)) return 1;
  char *help = warploom("--help");
  char *at = strstr(help, "commands:\n") + strlen("commands:\n");
  *strstr(at, "\n\n") = 0;
  for (char *line = strtok(at, "\n"); line; line = strtok(NULL, "\n")) {
    if (line[2] == ' ') continue; /* a continuation line */
    size_t size = strspn(line + 2, "abcdefghijklmnopqrstuvwxyz ");
    char *wide = strstr(line + 2, "  ");
    if (wide && (size_t)(wide - line - 2) < size) size = (size_t)(wide - line - 2);
    while (line[2 + size - 1] == ' ') size--;
    if (name_count && !strncmp(names[name_count - 1], line + 2, size) && !names[name_count - 1][size]) continue;
    snprintf(names[name_count++], NAME, "%.*s", (int)size, line + 2);
  }
  free(help);
  assert_true(name_count > 15);
  man = warploom("help man");
  bash = warploom("help bash");
  zsh = warploom("help zsh");
  return 0;
}

static int end(void **state) {
  free(man);
  free(bash);
  free(zsh);
  return folder_end(state);
}

/* The part of a completion script for one command. */
static char *case_of(const char *text, const char *name) {
  char key[NAME + 8];
  snprintf(key, sizeof key, strchr(name, ' ') ? "\"%s\"*)" : "\"%s \"*)", name);
  const char *at = strstr(text, key);
  if (!at) fail_msg("no completion of %s", name);
  return strndup(at, strcspn(at, "\n"));
}

TEST(man_page_and_completions_have_every_option) {
  for (int i = 0; i < name_count; i++) {
    char line[NAME + 16], option[NAME], escaped[NAME + 8];
    int size;
    snprintf(line, sizeof line, "%.*s --help", NAME, names[i]);
    FREED char *help = warploom(line), *in_bash = case_of(bash, names[i]), *in_zsh = case_of(zsh, names[i]);
    char *at = strstr(help, "\noptions:\n");
    *strstr(at, "\n\n") = 0;
    for (; at; at = strchr(at + 1, '\n')) {
      if (strncmp(at + 7, "--", 2)) continue;
      size = (int)strcspn(at + 9, " \n");
      size = (int)strcspn(at + 9, " \n");
      snprintf(option, sizeof option, "--%.*s", size, at + 9);
      snprintf(escaped, sizeof escaped, "\\-\\-%.*s", size, at + 9);
      if (!strstr(man, escaped)) fail_msg("the man page lacks %s", option);
      if (!strstr(in_bash, option)) fail_msg("bash completes no %s of %s", option, names[i]);
      if (!strstr(in_zsh, option)) fail_msg("zsh completes no %s of %s", option, names[i]);
    }
  }
}

/* Each example of the help parses, with the arguments of its command only. */
TEST(examples_parse) {
  int count = 0;
  for (int i = 0; i < name_count; i++) {
    char line[512];
    snprintf(line, sizeof line, "%.*s --help", NAME, names[i]);
    FREED char *help = warploom(line);
    for (char *at = strstr(strstr(help, "\nexamples:"), "\n  warploom "); at; at = strstr(at + 1, "\n  warploom ")) {
      snprintf(line, sizeof line, "%.*s --help", (int)strcspn(at + 12, "\n"), at + 12);
      free(warploom(line));
      count++;
    }
  }
  assert_true(count >= name_count);
}

/* Calls the function as bash does: with the words so far, the last one incomplete. */
TEST(bash_completes) {
  static const struct {
    const char *words, *expected;
  } cases[] = {
      {"comp", "compare"},
      {"run x --type ''", "f32 f16 bf16 f64"},
      {"run x --ty", "--type"},
      {"db ''", "list candidates check merge diff prune pin unpin"},
      {"db list --j", "--json"},
      {"bench min", "minibatch"},
      {"show row_crc --target h", "host"},
  };
  write_whole(folder_file(&folder, "completion"), bash, strlen(bash));
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char line[512];
    snprintf(line, sizeof line,
             ". ./completion; COMP_WORDS=(warploom %s); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _warploom 2> /dev/null; "
             "echo ${COMPREPLY[*]}",
             cases[i].words);
    FREED char *out = run(line);
    out[strcspn(out, "\n")] = 0;
    assert_string_equal(out, cases[i].expected);
  }
}

TEST(zsh_and_mandoc_accept_the_texts) {
  write_whole(folder_file(&folder, "page.1"), man, strlen(man));
  write_whole(folder_file(&folder, "_warploom"), zsh, strlen(zsh));
  free(run("! command -v zsh > /dev/null || zsh -n _warploom"));
  FREED char *said = run("! command -v mandoc > /dev/null || mandoc -T lint -W error page.1 || true");
  if (*said) fail_msg("%s", said);
}

TEST(help_of_a_command) {
  FREED char *two = warploom("help db list"), *one = warploom("db list --help");
  assert_string_equal(two, one);
  command c = RUN(2, "help", "bake");
  assert_contains(c.err, "unknown command 'bake'");
}

GROUP(begin, end)
