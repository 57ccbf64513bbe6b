/* The options of every command as one table: parsing, range checks, messages and --help come from it. */
#ifndef WLM_CLI_OPTIONS_H
#define WLM_CLI_OPTIONS_H

#include <stdio.h>

#include "warploom/warploom.h"

enum { WLM_EXIT_OK = 0, WLM_EXIT_FAILED = 1, WLM_EXIT_USAGE = 2 };

enum { WLM_CLI_MAX_WIDTHS = 16 };

/* What the command line says. */
typedef struct wlmi_cli_options {
  const char *device, *database; /* NULL = not given */
  int64_t n[WLM_CLI_MAX_WIDTHS];
  int n_count;
  wlm_problem problem;                /* without n, which the command sets */
  wlm_execute_args args;              /* alpha, beta, ldb, ldc and the seed of sampling */
  wlm_index rowptr_type, colind_type; /* of the matrix, rowptr i64 also where i32 is too small */
  double budget_seconds;              /* 0 = none */
  uint64_t seed;
  int json, help;
  int check, list, repair, again, recorded, record, force;
  int64_t keep, samples;        /* 0 = not given */
  int format, target;           /* target: a wlmi_target, -1 = not given */
  const char *variant, *output; /* NULL = not given */
  const char *data;             /* the folder of the matrices; NULL = not given */
  char **arguments;             /* what is no option */
  int argument_count;
  uint64_t given, given_short; /* by place in the table; short: as its letter */
} wlmi_cli_options;

/* Options by the commands that take them: those that always go together have one bit. Every command takes --help. */
enum {
  WLM_OPTION_DEVICE = 1 << 0,
  WLM_OPTION_DATABASE = 1 << 1,
  WLM_OPTION_JSON = 1 << 2,
  WLM_OPTION_WIDTH = 1 << 3,
  WLM_OPTION_OPERATOR = 1 << 4, /* what tells problems apart in the store: --op, --type, --sample ... */
  WLM_OPTION_EPILOGUE = 1 << 5, /* --bias, --alpha, --ldb ...: what its keys leave out */
  WLM_OPTION_CALLS = 1 << 6,
  WLM_OPTION_BUDGET = 1 << 7,
  WLM_OPTION_SEED = 1 << 8,
  WLM_OPTION_CHECK = 1 << 9,
  WLM_OPTION_LIST = 1 << 10,
  WLM_OPTION_TARGET = 1 << 11,
  WLM_OPTION_VARIANT = 1 << 12,
  WLM_OPTION_OUTPUT = 1 << 13,
  WLM_OPTION_FORMAT = 1 << 14,
  WLM_OPTION_REPAIR = 1 << 15,
  WLM_OPTION_AGAIN = 1 << 16,
  WLM_OPTION_RECORDED = 1 << 17,
  WLM_OPTION_RECORD = 1 << 18,
  WLM_OPTION_KEEP = 1 << 19,
  WLM_OPTION_HELP = 1 << 20,
  WLM_OPTION_BENCH = 1 << 21, /* --data, --samples */
  WLM_OPTION_FORCE = 1 << 22
};

typedef struct wlmi_option {
  const char *name;     /* without the dashes */
  char letter;          /* 0 = it has none */
  const char *argument; /* its name in --help; NULL = the option takes none */
  int group;            /* WLM_OPTION_..., by which cli/command_table.c gives it to commands */
  int (*parse)(const struct wlmi_option *option, const char *value, wlmi_cli_options *options);
  size_t offset;        /* of the member that `parse` sets */
  int64_t least, most;  /* of a number */
  const char *values;   /* "f32|f16": one of these, whose number is stored; otherwise what it must be, in words */
  const char *standard; /* the value where it is not given, or a description of that; NULL = none */
  const char *help;
} wlmi_option;

extern const wlmi_option wlmi_options[];
extern const int wlmi_options_count;

/* argv[0] is the command. Reads whatever options there are; 0 after a message on stderr, else 1. */
int wlmi_cli_parse(int argc, char **argv, wlmi_cli_options *options);
/* Whether one of the group was given. */
int wlmi_cli_has(const wlmi_cli_options *options, int group);
/* Whether only what `command` takes was given, and all that it needs; 0 after a message on stderr. */
int wlmi_cli_check(const wlmi_cli_options *options, const char *command, int takes, int needs);
void wlmi_cli_print_options(FILE *to, int takes);

#endif
