#include "bench/run.h"

#include <stdio.h>
#include <string.h>

#include "bench/results_file.h"
#include "common/memory.h"
#include "common/sampling.h"
#include "synth/input.h"
#include "tuner/timing.h"

enum { NAME = 256, SAMPLES = 21 };

typedef struct run {
  const wlmi_bench_suite *suite;
  const wlmi_run_options *options;
  wlm_context *context;
  void *state; /* the suite's */
  wlmi_results results;
  const char *const *inputs;
  const int64_t *widths;
  int input_count, width_count, ran, left; /* ran: cases begun; left: those that the budget did not reach */
  double started;
} run;

/* "../data/cora.mtx.gz" is cora; the name of a synthetic matrix is its own. */
static void matrix_name(const char *input, char name[NAME]) {
  static const char *const endings[] = {".mtx", ".mtx.gz"};
  snprintf(name, NAME, "%s", input);
  for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
    if (!wlmi_has_ending(input, endings[i])) continue;
    const char *slash = strrchr(input, '/'), *base = slash ? slash + 1 : input;
    snprintf(name, NAME, "%.*s", (int)(strlen(base) - strlen(endings[i])), base);
  }
}

/* A pattern gets values, so that all that is compared reads the same bytes: multiples of 1/128 in [0.5, 1.5). */
static wlm_status give_values(wlmi_csr_host *csr) {
  if (csr->values) return WLM_OK;
  wlm_status status = wlmi_alloc_array(csr->nnz, sizeof *csr->values, "values", (void **)&csr->values);
  if (status != WLM_OK) return status;
#pragma omp parallel for
  for (int64_t p = 0; p < csr->nnz; p++) csr->values[p] = 0.5f + (float)(wlmi_sample_hash(1, p) >> 57) / 128.0f;
  return WLM_OK;
}

static wlm_status run_case(run *r, const wlmi_bench_case *bench) {
  wlmi_text line = {0}, row = {0};
  wlm_status status;
  WLM_TRY(r->suite->run(bench, &line, &row));
  WLM_TRY(wlmi_results_append(&r->results, &line));
  if (row.failed) WLM_TRY(wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "a row of the table"));
  fputs(row.data ? row.data : "", stdout);
  fflush(stdout);
done:
  wlmi_text_release(&line);
  wlmi_text_release(&row);
  return status;
}

static wlm_status read_input(const run *r, const char *input, wlmi_csr_host *csr, wlmi_upload *upload) {
  char path[WLM_INPUT_PATH];
  wlm_status status;
  WLM_TRY(wlmi_suite_input(r->options->data, input, path));
  WLM_TRY(wlmi_input_read(path, csr));
  if (!r->suite->keeps_patterns) WLM_TRY(give_values(csr));
  if (!r->suite->stays_on_host) WLM_TRY(wlmi_upload_create(r->context, csr, wlmi_upload_rowptr_type(csr), upload));
done:
  return status;
}

/* The first case is run in any case, or a budget that is too small would never come to an end. */
static int used_up(const run *r) {
  return r->ran && r->options->budget_seconds > 0 && wlmi_seconds() - r->started >= r->options->budget_seconds;
}

static int samples_of(const run *r) {
  if (r->options->samples) return r->options->samples;
  return r->suite->samples ? r->suite->samples : SAMPLES;
}

/* All widths that the results do not have yet; the matrix is read once, and only if there is one. 0 after a message. */
static int run_input(run *r, const char *input) {
  wlmi_csr_host csr = {0};
  wlmi_upload upload = {0};
  wlm_status status = WLM_OK;
  int good = 1;
  char name[NAME];
  matrix_name(input, name);
  for (int i = 0; i < r->width_count && status == WLM_OK; i++) {
    wlmi_bench_case bench = {.context = r->context,
                             .csr = &csr,
                             .upload = &upload,
                             .matrix = name,
                             .n = r->widths[i],
                             .samples = samples_of(r),
                             .seed = r->options->seed,
                             .state = r->state};
    if (wlmi_results_has(&r->results, r->suite->name, wlm_context_device_name(r->context), name, bench.n)) continue;
    if (used_up(r)) {
      r->left++;
      continue;
    }
    if (!csr.rowptr) WLM_TRY(read_input(r, input, &csr, &upload));
    r->ran++;
    if (run_case(r, &bench) == WLM_OK) continue;
    fprintf(stderr, "warploom bench: %s, n = %lld: %s\n", input, (long long)bench.n, wlm_error_detail());
    good = 0;
  }
done:
  if (status != WLM_OK) fprintf(stderr, "warploom bench: %s: %s\n", input, wlm_error_detail());
  wlmi_upload_release(&upload);
  wlmi_csr_host_release(&csr);
  return good && status == WLM_OK;
}

/* What the command line names comes before what the suite's file lists; `file` is read where it is needed. */
static wlm_status find_cases(run *r, wlmi_suite_file *file) {
  const wlmi_run_options *options = r->options;
  if (!options->input_count || !options->width_count) {
    wlm_status status = wlmi_suite_file_read(r->suite->list ? r->suite->list : r->suite->name, file);
    if (status != WLM_OK) return status;
  }
  r->inputs = options->input_count ? (const char *const *)options->inputs : file->names;
  r->input_count = options->input_count ? options->input_count : file->count;
  r->widths = options->width_count ? options->widths : file->widths;
  r->width_count = options->width_count ? options->width_count : file->width_count;
  return WLM_OK;
}

int wlmi_run_suite(const wlmi_bench_suite *suite, const wlmi_run_options *options) {
  run r = {.suite = suite, .options = options, .started = wlmi_seconds()};
  wlm_context_options open = WLM_CONTEXT_OPTIONS_INIT;
  wlmi_suite_file file = {0};
  wlm_status status;
  int good = 1;
  open.device = options->device;
  open.database = options->database;
  open.system_database = suite->uses_shipped ? NULL : "";
  WLM_TRY(find_cases(&r, &file));
  WLM_TRY(wlmi_results_open(options->out, &r.results));
  WLM_TRY(wlm_context_create(&open, &r.context));
  if (suite->open) WLM_TRY(suite->open(options, r.context, &r.state));
  printf("device: %s\n%s", wlm_context_device_name(r.context), suite->heading);
  for (int i = 0; i < r.input_count; i++) good &= run_input(&r, r.inputs[i]);
  if (r.left)
    printf("the budget of %.0f s is used up: %d of %d cases are left%s\n", options->budget_seconds, r.left,
           r.input_count * r.width_count, options->out ? "; the same command goes on" : "");
done:
  if (status != WLM_OK) fprintf(stderr, "warploom bench: %s: %s\n", wlm_status_message(status), wlm_error_detail());
  if (suite->close) suite->close(r.state);
  wlm_context_destroy(r.context);
  wlmi_results_close(&r.results);
  wlmi_suite_file_release(&file);
  return good && status == WLM_OK;
}
