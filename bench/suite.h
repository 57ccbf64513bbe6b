/* The interface of a suite of `warploom bench`, and of a case: one matrix at one N. */
#pragma once

#include "cli/options.h"
#include "tuner/upload.h"

typedef struct wlmi_bench_suite wlmi_bench_suite;

typedef struct wlmi_bench_case {
  const wlmi_bench_suite *suite;
  wlm_context *context;
  const wlmi_cli_options *options; /* with which the context was opened */
  const wlmi_csr_host *csr;        /* on the host, with values */
  const wlmi_upload *upload;       /* the same on the device; empty for a suite that keeps it on the host */
  const char *matrix;              /* name */
  int64_t n;
  int samples; /* of every reported time */
  uint64_t seed;
  void *state; /* the state that the suite's open created */
} wlmi_bench_case;

/* Matrices and widths of a suite are bench/suites/NAME.txt. */
struct wlmi_bench_suite {
  const char *name;
  const char *help;  /* a few words for --help */
  const char *shown; /* members of a line that are printed besides matrix and n, as in "us gflops.crc" */
  /* Appends to `line` the case's JSON lines for the results file, each begun with wlmi_results_begin, holding a member
   * "n" and ended by wlmi_results_end. A case is done, and skipped the next time, once the file has a line of it. */
  wlm_status (*run)(const wlmi_bench_case *bench, wlmi_text *line);
  const char *list;   /* the suite whose file lists the matrices; NULL = its own */
  int samples;        /* samples of every reported time, unless the command line gives them; 0 = 21 */
  int keeps_patterns; /* matrices without values stay without */
  int stays_on_host;  /* the matrix is not uploaded */
  int only_database;  /* the context leaves the shipped database out: choices follow from --db alone */
  int is_synthetic;   /* its file lists synthetic matrices only, so it runs without --data */
  wlm_type type;      /* of suite core's rows */
  wlm_order order;    /* of B and C there */
  /* open is called before the first case, close after the last (also with NULL); both NULL if the suite has no state.
   */
  wlm_status (*open)(const wlmi_cli_options *options, wlm_context *context, void **state);
  void (*close)(void *state);
};

extern const wlmi_bench_suite wlmi_suite_core;         /* every kernel of an f32 sum, the choice, GE-SpMM, cuSPARSE */
extern const wlmi_bench_suite wlmi_suite_half;         /* the same in f16 */
extern const wlmi_bench_suite wlmi_suite_bf16;         /* the same in bf16 */
extern const wlmi_bench_suite wlmi_suite_column_major; /* suite core with column-major B and C */
extern const wlmi_bench_suite wlmi_suite_batch;        /* 64 products of one pattern at once */
extern const wlmi_bench_suite wlmi_suite_papers;       /* the steps of GE-SpMM, in GFLOP/s */
extern const wlmi_bench_suite wlmi_suite_sampled;      /* edge sampling against exact kernels */
extern const wlmi_bench_suite wlmi_suite_selection;    /* the choice against the best kernel */
extern const wlmi_bench_suite wlmi_suite_operators;    /* other operators and types */
extern const wlmi_bench_suite wlmi_suite_minibatch;    /* blocks of a neighbour sampler, each used once */
extern const wlmi_bench_suite wlmi_suite_dispatch;     /* host time of the library's calls */

/* ---- suite_file.c ---- */

/* Reads the matrices and widths of a suite, bench/suites/NAME.txt. The build embeds these files into the command, so no
 * checkout is needed. "n" and numbers are the widths; "#" begins a comment; any other line is a matrix: the name of a
 * synthetic one, or of a file in the folder of data. */
enum { WLMI_INPUT_PATH = 1024, WLMI_GROUP_NAME = 128 };

typedef struct wlmi_suite_file {
  char *text; /* what the names point into */
  const char **names;
  int count;
  int64_t widths[WLMI_CLI_MAX_WIDTHS];
  int width_count;
} wlmi_suite_file;

/* WLM_ERR_NOT_FOUND where the suite has no file, WLM_ERR_PARSE with the line of a file that is wrong. */
wlm_status wlmi_suite_file_read(const char *suite, wlmi_suite_file *file);
void wlmi_suite_file_release(wlmi_suite_file *file); /* also of a zeroed one */

/* The input to read: a synthetic name (with a colon), "-" or a file as it is; any other name is DATA/NAME.mtx.gz or
 * DATA/NAME/NAME.mtx.gz. WLM_ERR_NOT_FOUND says what to do; `data` may be NULL. */
wlm_status wlmi_suite_input(const char *data, const char *input, char path[WLMI_INPUT_PATH]);

/* The group of a matrix by bench/suites/groups.tsv, or its own name if it has none. */
void wlmi_group_of(const char *matrix, char group[WLMI_GROUP_NAME]);
