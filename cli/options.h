/* The options of every command as one table: parsing, range checks, messages, --help, the man page and the completion
 * of shells come from it. */
#pragma once

#include "core/base/text.h"
#include "core/problem/spec.h"

enum { WLMI_EXIT_OK = 0, WLMI_EXIT_FAILED = 1, WLMI_EXIT_USAGE = 2 };

enum { WLMI_CLI_MAX_WIDTHS = 16, WLMI_CLI_MAX_LAYERS = 64, WLMI_CLI_MESSAGE = 2 * WLMI_CUSTOM_TEXT };

/* The values of the command line. */
typedef struct wlmi_cli_options {
  const char *device, *database;           /* NULL = not given */
  const char *layers[WLMI_CLI_MAX_LAYERS]; /* in the order in which they were given */
  int64_t layer_count;
  int64_t n[WLMI_CLI_MAX_WIDTHS];
  int n_count;
  wlm_problem problem;                 /* without n, which the command sets */
  const char *message;                 /* as typed; NULL = not given */
  char message_text[WLMI_CLI_MESSAGE]; /* problem.custom points here where --message is given */
  wlm_execute_args args;               /* alpha, beta, ldb, ldc and the seed of sampling */
  wlm_index rowptr_type, colind_type;  /* of the matrix, rowptr i64 also where i32 is too small */
  double budget_seconds;               /* 0 = none */
  uint64_t seed;
  int json, help, system;
  int check, list, repair, again, recorded, record, force;
  int64_t keep, samples;        /* 0 = not given */
  int format, target;           /* target: a wlmi_target, -1 = not given */
  const char *variant, *output; /* NULL = not given */
  const char *archs, *parts;    /* of a kernel archive and of export --format c; NULL = not given */
  int single;                   /* without f16 and bf16 */
  const char *data;             /* the folder of the matrices; NULL = not given */
  char **arguments;             /* the arguments that are no options */
  int argument_count;
  uint64_t given, given_short; /* bits by index in the table; given_short: typed as a letter */
} wlmi_cli_options;

/* Groups of options by the commands that take them; options of one group always go together. Every command takes
 * --help. */
enum {
  WLMI_OPTION_DEVICE = 1 << 0,
  WLMI_OPTION_DATABASE = 1 << 1,
  WLMI_OPTION_JSON = 1 << 2,
  WLMI_OPTION_WIDTH = 1 << 3,
  WLMI_OPTION_OPERATOR = 1 << 4, /* options that are part of problem keys: --op, --sample ... */
  WLMI_OPTION_EPILOGUE = 1 << 5, /* --bias, --alpha, --ldb ...: options that are not part of problem keys */
  WLMI_OPTION_CALLS = 1 << 6,
  WLMI_OPTION_BUDGET = 1 << 7,
  WLMI_OPTION_SEED = 1 << 8,
  WLMI_OPTION_CHECK = 1 << 9,
  WLMI_OPTION_LIST = 1 << 10,
  WLMI_OPTION_TARGET = 1 << 11,
  WLMI_OPTION_VARIANT = 1 << 12,
  WLMI_OPTION_OUTPUT = 1 << 13,
  WLMI_OPTION_FORMAT = 1 << 14,
  WLMI_OPTION_REPAIR = 1 << 15,
  WLMI_OPTION_AGAIN = 1 << 16,
  WLMI_OPTION_RECORDED = 1 << 17,
  WLMI_OPTION_RECORD = 1 << 18,
  WLMI_OPTION_KEEP = 1 << 19,
  WLMI_OPTION_HELP = 1 << 20,
  WLMI_OPTION_DATA = 1 << 21,
  WLMI_OPTION_TYPE = 1 << 22,
  WLMI_OPTION_SAMPLES = 1 << 23,
  WLMI_OPTION_SYSTEM = 1 << 24,
  WLMI_OPTION_FORCE = 1 << 25,
  WLMI_OPTION_MESSAGE = 1 << 26,
  WLMI_OPTION_ARCHS = 1 << 27, /* options of a kernel archive */
  WLMI_OPTION_LAYERS = 1 << 28
};

typedef struct wlmi_option {
  const char *name;     /* without the dashes */
  char letter;          /* 0 = it has none */
  const char *argument; /* its argument in --help; NULL = it takes none */
  int group;            /* WLM_OPTION_..., by which cli/command_table.c gives it to commands */
  int (*parse)(const struct wlmi_option *option, const char *value, wlmi_cli_options *options);
  size_t offset;        /* of the member that `parse` sets */
  int64_t least, most;  /* of a number */
  const char *values;   /* "f32|f16": one of these; without a bar a description of valid values; NULL = a number or a
                         * path */
  const char *standard; /* the default, or a description of it; NULL = none */
  const char *help;
} wlmi_option;

extern const wlmi_option wlmi_options[];
extern const int wlmi_options_count;

/* Reads all options; argv[0] is the command. Returns 0 after a message on stderr, otherwise 1. */
int wlmi_cli_parse(int argc, char **argv, wlmi_cli_options *options);
/* Whether an option of the group was given. */
int wlmi_cli_has(const wlmi_cli_options *options, int group);
/* 1 if only options were given that `command` takes, and all that it needs; 0 after a message on stderr. */
int wlmi_cli_check(const wlmi_cli_options *options, const char *command, int takes, int needs);
/* What the option does, with its allowed values and its default. */
void wlmi_option_describe(const wlmi_option *option, wlmi_text *out);
