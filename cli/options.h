/* The command line as data: one table of options, read by getopt_long, by --help and by the checks. */
#ifndef WLM_CLI_OPTIONS_H
#define WLM_CLI_OPTIONS_H

#include "warploom/warploom.h"

enum { WLM_EXIT_OK = 0, WLM_EXIT_FAILED = 1, WLM_EXIT_USAGE = 2 };

enum { WLM_CLI_MAX_WIDTHS = 16 };

typedef struct wlm_cli_options {
  const char *device, *database;
  int64_t n[WLM_CLI_MAX_WIDTHS];
  int n_count, n_given; /* given: not the default */
  wlm_problem
      problem; /* op, operation, transpose, epilogue, type, sampling and expected calls; n is left to the command */
  double budget_seconds;
  uint64_t seed;
  int json, help;
  int bias;             /* there is one; the command makes it */
  int check, list;      /* run; show */
  int repair, again;    /* db; tune */
  int64_t keep;         /* db; 0 = all */
  int recorded, record; /* tune; run */
  const char *target;   /* show */
  const char *variant;  /* run, explain */
  const char *output;   /* export, db, report */
  char **arguments;     /* what is no option */
  int argument_count;
} wlm_cli_options;

/* Options that not every command has. */
enum {
  WLM_OPTION_CHECK = 1 << 0,
  WLM_OPTION_LIST = 1 << 1,
  WLM_OPTION_TARGET = 1 << 2,
  WLM_OPTION_VARIANT = 1 << 3,
  WLM_OPTION_OUTPUT = 1 << 4,
  WLM_OPTION_FORMAT = 1 << 5,
  WLM_OPTION_REPAIR = 1 << 6,
  WLM_OPTION_AGAIN = 1 << 7,
  WLM_OPTION_RECORDED = 1 << 8,
  WLM_OPTION_RECORD = 1 << 9,
  WLM_OPTION_KEEP = 1 << 10
};

/* argv[0] is the command. Allows the common options and `own`, a union of the bits above; 0 after a message on
 * stderr, else 1. */
int wlm_cli_parse(int argc, char **argv, int own, wlm_cli_options *options);
void wlm_cli_print_options(FILE *to, int own);

#endif
