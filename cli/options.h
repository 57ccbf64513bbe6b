/* The command line as data: one table of options, read by getopt_long, by --help and by the checks. */
#ifndef WLM_CLI_OPTIONS_H
#define WLM_CLI_OPTIONS_H

#include <stdio.h>

#include "warploom/warploom.h"

enum { WLM_EXIT_OK = 0, WLM_EXIT_FAILED = 1, WLM_EXIT_USAGE = 2 };

enum { WLM_CLI_MAX_WIDTHS = 16 };

typedef struct wlmi_cli_options {
  const char *device, *database;
  int64_t n[WLM_CLI_MAX_WIDTHS];
  int n_count, n_given;               /* given: not the default */
  wlm_problem problem;                /* all that options say of it; n is left to the command */
  wlm_execute_args args;              /* the same of a call: alpha, beta, ldb, ldc and the seed of sampling */
  wlm_index rowptr_type, colind_type; /* of the matrix, rowptr i64 also where i32 is too small */
  double budget_seconds;
  uint64_t seed;
  int json, help;
  int check, list;      /* run; show */
  int repair, again;    /* db; tune */
  int64_t keep;         /* db; 0 = all */
  int recorded, record; /* tune; run */
  const char *target;   /* show */
  const char *variant;  /* run, explain */
  const char *output;   /* export, db, report */
  char **arguments;     /* what is no option */
  int argument_count;
  uint64_t given; /* places in the table */
} wlmi_cli_options;

/* Options by who takes them: those that always go together are one. --help is everybody's. */
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
  WLM_OPTION_HELP = 1 << 20
};

/* argv[0] is the command. Reads whatever options there are; 0 after a message on stderr, else 1. */
int wlmi_cli_parse(int argc, char **argv, wlmi_cli_options *options);
/* Whether one of them was given. */
int wlmi_cli_has(const wlmi_cli_options *options, int which);
/* Whether only what `command` takes was given, and all that it needs; 0 after a message on stderr. */
int wlmi_cli_check(const wlmi_cli_options *options, const char *command, int takes, int needs);
void wlmi_cli_print_options(FILE *to, int takes);

#endif
