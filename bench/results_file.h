/* A results file: one JSON object per line, appended when a case ends, so an interrupted run continues where it
 * stopped. Appending leaves alone what is there, so several runs may share a file. A line that cannot be written whole
 * is taken back. */
#pragma once

#include "bench/suite.h"
#include "core/base/json.h"
#include "tuner/method.h"

typedef struct wlmi_results {
  const char *path;
  int fd;          /* -1 = nothing is written */
  int is_regular;  /* 0 = a pipe or a device, which is written and not read */
  wlmi_text known; /* the file's content when it was opened */
} wlmi_results;

/* Reads the file, or creates it, and cuts off an unfinished last line of a run that was killed. WLM_ERR_PARSE if the
 * file has something else than results; it is not touched then. path = NULL: write nothing. */
wlm_status wlmi_results_open(const char *path, wlmi_results *results);
void wlmi_results_close(wlmi_results *results); /* also of a zeroed one */

/* The first members of a case's line, and its end. */
void wlmi_results_begin(wlmi_text *line, const wlmi_bench_case *bench);
void wlmi_results_put_matrix(wlmi_text *line, const wlmi_csr_host *a, int64_t n); /* rows, cols, nnz, n */
void wlmi_results_end(wlmi_text *line);
/* Whether the file has a line of the case. */
int wlmi_results_has(const wlmi_results *results, const char *suite, const char *device, const char *matrix, int64_t n);

/* Appends a line, which ends with a newline, and syncs it to the disk. */
wlm_status wlmi_results_append(wlmi_results *results, const wlmi_text *line);

double wlmi_method_us(const wlmi_method *method); /* NaN for NULL and for a failed one */
/* "times":{name:us or null},"errors":{name:reason}, with these keys */
void wlmi_results_put_methods(wlmi_text *line, const char *times, const char *errors, const wlmi_method *methods,
                              int count);
