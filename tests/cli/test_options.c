/* Each command accepts the options that its --help lists; any other is an error instead of being ignored. */
#include "support/command.h"
#include "support/test.h"

#define TWIN "uniform:rows=20,d=2"

static const struct {
  const char *name, *value; /* NULL = the option has no value */
} options[] = {{"device", "host"},    {"db", "x.db"},    {"width", "8"},      {"op", "max"},
               {"operation", "spmm"}, {"arg", "i32"},    {"heads", "2"},      {"transpose", NULL},
               {"epilogue", "relu"},  {"bias", NULL},    {"type", "f32"},     {"sample", "bucket:8"},
               {"calls", "2"},        {"budget", "1s"},  {"seed", "2"},       {"json", NULL},
               {"check", NULL},       {"list", NULL},    {"target", "host"},  {"variant", "v"},
               {"output", "x"},       {"repair", NULL},  {"keep", "2"},       {"again", NULL},
               {"recorded", NULL},    {"record", NULL},  {"format", "jsonl"}, {"alpha", "2"},
               {"beta", "1"},         {"ldb", "9"},      {"ldc", "9"},        {"deterministic", NULL},
               {"empty", "zero"},     {"rowptr", "i32"}, {"colind", "i32"},   {"samples", "3"},
               {"data", "x"},         {"system", NULL},  {"force", NULL},     {"message", "b"},
               {"arch", "host"},      {"for", "x"},      {"use", "x"}};
enum { OPTIONS = sizeof options / sizeof *options, WORDS = 5 };

static const struct {
  const char *words[WORDS];
  int takes; /* the number of options that its --help lists, without --help itself */
} commands[] = {
    {{"info"}, 3},
    {{"stats", TWIN}, 2},
    {{"convert", TWIN}, 3},
    {{"show", "row_naive"}, 22},
    {{"tune", TWIN}, 28},
    {{"train"}, 3},
    {{"compare", TWIN}, 10},
    {{"run", TWIN}, 29},
    {{"explain", TWIN}, 26},
    {{"export"}, 7},
    {{"import", "x"}, 2},
    {{"db", "list"}, 3},
    {{"db", "candidates"}, 5},
    {{"db", "check"}, 3},
    {{"db", "merge", "a", "b"}, 2},
    {{"db", "diff", "a", "b"}, 1},
    {{"db", "prune"}, 3},
    {{"db", "pin", TWIN, "v"}, 16},
    {{"db", "unpin", TWIN}, 16},
    {{"bench", "core"}, 11},
    {{"help"}, 0},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

/* Runs a command with one more option. */
static void run_with(command *c, const char *const words[WORDS], const char *option, const char *value) {
  const char *argv[WORDS + 4] = {WLM_COMMAND};
  int count = 1;
  for (int i = 0; i < WORDS && words[i]; i++) argv[count++] = words[i];
  argv[count++] = option;
  if (value) argv[count++] = value;
  command_start(c, &folder, argv);
  command_wait(c);
}

static int is_listed(const char *help, const char *option) {
  char line[32];
  snprintf(line, sizeof line, "--%s ", option);
  return strstr(strstr(help, "options:"), line) != NULL;
}

TEST(unlisted_options_are_refused) {
  for (int k = 0; k < COMMANDS; k++) {
    command help;
    int listed = 0;
    run_with(&help, commands[k].words, "--help", NULL);
    assert_int_equal(help.code, 0);
    for (int i = 0; i < OPTIONS; i++) {
      command c;
      char option[32], said[64];
      if (is_listed(help.out, options[i].name)) {
        listed++;
        continue;
      }
      snprintf(option, sizeof option, "--%s", options[i].name);
      snprintf(said, sizeof said, "option '%s'", option);
      run_with(&c, commands[k].words, option, options[i].value);
      const int refused = strstr(c.err, said) || strstr(c.err, "too many"); /* --list makes `bench` another command */
      if (c.code != 2 || !refused || *c.out)
        fail_msg("%s %s: exit code %d, %s", *commands[k].words, option, c.code, c.err);
    }
    if (listed != commands[k].takes) fail_msg("%s takes %d options", help.out, listed);
  }
}

/* The table above has every option that a command lists. */
TEST(the_table_has_every_option) {
  for (int k = 0; k < COMMANDS; k++) {
    command help;
    run_with(&help, commands[k].words, "--help", NULL);
    char *at = strstr(help.out, "\noptions:\n");
    *strstr(at, "\n\n") = 0;                /* examples follow */
    for (; at; at = strchr(at + 1, '\n')) { /* "  -n, --width N[,N...]   columns of B and C", and lines that go on */
      int known = strncmp(at + 7, "--", 2) || !strncmp(at + 9, "help ", 5);
      for (int i = 0; i < OPTIONS; i++) {
        const size_t length = strlen(options[i].name);
        known |= !strncmp(at + 9, options[i].name, length) && at[9 + length] == ' ';
      }
      if (!known) fail_msg("what is %.24s?", at);
    }
  }
}

GROUP(home_begin, folder_end)
