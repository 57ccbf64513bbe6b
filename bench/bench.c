/* The command `warploom bench`: runs a suite. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/results_file.h"
#include "bench/suite.h"
#include "cli/commands.h"
#include "cli/memory_need.h"
#include "cli/progress.h"
#include "cli/session.h"
#include "cli/suggest.h"
#include "core/base/json_value.h"
#include "core/base/memory.h"
#include "core/problem/sampling.h"
#include "tuner/timing.h"

enum { NAME = 256, SAMPLES = 21 };

typedef struct run {
  const wlmi_bench_suite *suite;
  const wlmi_cli_options *options;
  wlm_context *context;
  void *state; /* the suite's */
  wlmi_results results;
  const char *const *inputs;
  const int64_t *widths;
  int input_count, width_count;
  int ran, failed, left; /* cases that were run, cases and inputs that failed, cases left out by the budget */
  double started;
  wlmi_progress progress;
} run;

/* Gives a pattern values, multiples of 1/128 in [0.5, 1.5), so that all implementations read the same bytes. */
static wlm_status give_values(wlmi_csr_host *csr) {
  if (csr->values) return WLM_OK;
  WLM_CHECK(wlmi_alloc_array(csr->nnz, sizeof *csr->values, "values", (void **)&csr->values));
#pragma omp parallel for
  for (int64_t p = 0; p < csr->nnz; p++) csr->values[p] = 0.5f + (float)(wlmi_sample_hash(1, p) >> 57) / 128.0f;
  return WLM_OK;
}

/* Shows the running case on a terminal; elsewhere the rows show the progress. */
static void show_progress(run *r, const wlmi_bench_case *bench) {
  char title[96];
  snprintf(title, sizeof title, "bench %s: %.48s n=%lld", r->suite->name, bench->matrix, (long long)bench->n);
  wlmi_progress_next(&r->progress, title);
  if (r->progress.on_terminal) wlmi_progress_show(&r->progress, 0, 1, "");
}

/* ---- what people read ---- */

/* A member of a line, or OBJECT.MEMBER; NULL = there is none. */
static const json_t *find_member(const json_t *line, char *name) {
  char *dot = strchr(name, '.');
  if (!dot) return json_object_get(line, name);
  *dot = 0;
  const json_t *found = json_object_get(json_object_get(line, name), dot + 1);
  *dot = '.';
  return found;
}

static void put_member(const char *name, const json_t *member, wlmi_text *row) {
  const double number = json_number_value(member);
  if (json_is_string(member))
    wlmi_text_printf(row, ", %s %s", name, json_string_value(member));
  else if (json_is_integer(member))
    wlmi_text_printf(row, ", %s %lld", name, (long long)json_integer_value(member));
  else if (json_is_real(member))
    wlmi_text_printf(row, fabs(number) < 0.01 ? ", %s %.1e" : ", %s %.2f", name, number);
}

/* "cora, n = 32, us 4.52, spread 0.01, variant row_vec/..." for each line */
static void put_rows(const wlmi_bench_suite *suite, const char *lines, wlmi_text *rows) {
  char names[NAME], *rest;
  for (const char *line = lines; line && *line; line += strcspn(line, "\n") + 1) {
    json_t *value = json_loads(line, JSON_DISABLE_EOF_CHECK, NULL);
    const char *matrix = json_string_value(json_object_get(value, "matrix"));
    wlmi_text_printf(rows, "%s, n = %lld", matrix ? matrix : "",
                     (long long)json_integer_value(json_object_get(value, "n")));
    snprintf(names, sizeof names, "%s", suite->shown);
    for (char *name = strtok_r(names, " ", &rest); name; name = strtok_r(NULL, " ", &rest))
      put_member(name, find_member(value, name), rows);
    wlmi_text_puts(rows, "\n");
    json_decref(value);
  }
}

/* ---- cases ---- */

static wlm_status run_case(run *r, const wlmi_bench_case *bench) {
  wlmi_text line = {0}, rows = {0}, shown = {0};
  r->ran++;
  show_progress(r, bench);
  wlm_status status = r->suite->run(bench, &line);
  wlmi_progress_clear();
  WLM_TRY(status);
  WLM_TRY(wlmi_results_append(&r->results, &line));
  if (!r->options->json) put_rows(r->suite, line.data, &rows);
  if (rows.failed) WLM_TRY(wlmi_fail(WLM_ERR_OUT_OF_MEMORY, "rows"));
  if (rows.data) wlmi_text_printable(&shown, rows.data, 1);
  const wlmi_text *text = r->options->json ? &line : &shown;
  fputs(text->data ? text->data : "", stdout);
  fflush(stdout);
done:
  wlmi_text_release(&shown);
  wlmi_text_release(&line);
  wlmi_text_release(&rows);
  return status;
}

static wlm_status read_input(const run *r, const char *input, wlmi_csr_host *csr, wlmi_upload *upload) {
  const wlm_problem problem = WLM_PROBLEM_INIT;
  const wlm_execute_args args = WLM_EXECUTE_ARGS_INIT;
  char path[WLMI_INPUT_PATH];
  wlmi_memory_need need = {.options = r->options,
                           .input = path,
                           .problem = &problem,
                           .args = &args,
                           .on_host = !strcmp(wlm_context_device_kind(r->context), "host")};
  for (int i = 0; i < r->width_count && !r->suite->stays_on_host; i++)
    if (r->widths[i] > need.n) need.n = r->widths[i];
  WLM_CHECK(wlmi_suite_input(r->options->data, input, path));
  WLM_CHECK(wlmi_input_read_fitting(&need, csr));
  if (!r->suite->keeps_patterns) WLM_CHECK(give_values(csr));
  if (!r->suite->stays_on_host) WLM_CHECK(wlmi_upload_create(r->context, csr, wlmi_upload_rowptr_type(csr), upload));
  return WLM_OK;
}

/* The first case always runs; otherwise repeating a run with a small budget would never finish. */
static int used_up(const run *r) {
  return r->ran && r->options->budget_seconds > 0 && wlmi_seconds() - r->started >= r->options->budget_seconds;
}

static int samples_of(const run *r) {
  if (r->options->samples) return (int)r->options->samples;
  return r->suite->samples ? r->suite->samples : SAMPLES;
}

/* Runs all widths that the results do not have yet; reads the matrix once, and only if a width is missing. */
static void run_input(run *r, const char *input) {
  wlmi_csr_host csr = {0};
  wlmi_upload upload = {0};
  wlm_status status = WLM_OK;
  char name[NAME];
  wlmi_input_label(input, name, sizeof name);
  for (int i = 0; i < r->width_count; i++) {
    wlmi_bench_case bench = {.suite = r->suite,
                             .context = r->context,
                             .options = r->options,
                             .csr = &csr,
                             .upload = &upload,
                             .matrix = name,
                             .n = r->widths[i],
                             .samples = samples_of(r),
                             .seed = r->options->seed,
                             .state = r->state};
    if (wlmi_results_has(&r->results, r->suite->name, wlm_context_device_name(r->context), name, bench.n)) {
      wlmi_progress_next(&r->progress, "");
      continue;
    }
    if (used_up(r)) {
      r->left++;
      continue;
    }
    if (!csr.rowptr) WLM_TRY(read_input(r, input, &csr, &upload));
    const wlm_status ran = run_case(r, &bench);
    if (ran == WLM_OK) continue;
    wlmi_fail_in(ran, "%s, n = %lld", input, (long long)bench.n);
    wlmi_print_message("warploom bench: %s", wlm_error_detail());
    r->failed++;
  }
done:
  if (status != WLM_OK) {
    wlmi_fail_in(status, "%s", input);
    wlmi_print_message("warploom bench: %s", wlm_error_detail());
  }
  r->failed += status != WLM_OK;
  wlmi_upload_release(&upload);
  wlmi_csr_host_release(&csr);
}

/* Matrices and widths of the command line override the suite's file, which is read only if needed. */
static wlm_status find_cases(run *r, wlmi_suite_file *file) {
  const wlmi_cli_options *o = r->options;
  const int names_inputs = o->argument_count > 1, names_widths = wlmi_cli_has(o, WLMI_OPTION_WIDTH);
  if (!names_inputs || !names_widths) {
    WLM_CHECK(wlmi_suite_file_read(r->suite->list ? r->suite->list : r->suite->name, file));
  }
  r->inputs = names_inputs ? (const char *const *)o->arguments + 1 : file->names;
  r->input_count = names_inputs ? o->argument_count - 1 : file->count;
  r->widths = names_widths ? o->n : file->widths;
  r->width_count = names_widths ? o->n_count : file->width_count;
  return WLM_OK;
}

static wlm_status check_folder(const char *path) {
  struct stat info;
  if (stat(path, &info)) return wlmi_fail(WLM_ERR_IO, "--data %s: %s", path, strerror(errno));
  return S_ISDIR(info.st_mode) ? WLM_OK : wlmi_fail(WLM_ERR_IO, "--data %s: is no folder", path);
}

/* Runs every matrix at every N and writes each case when it ends. A case that fails is reported on stderr and does not
 * stop the others; the status is then an error. Cases that the budget leaves out are reported. */
static wlm_status run_suite(const wlmi_bench_suite *suite, const wlmi_cli_options *given) {
  wlmi_cli_options options = *given;
  run r = {.suite = suite, .options = &options, .started = wlmi_seconds()};
  wlm_context_options open = WLM_CONTEXT_OPTIONS_INIT;
  wlmi_suite_file file = {0};
  wlm_status status;
  if (!options.database) options.database = "";         /* what this user tuned must not change the results */
  if (options.output && !strcmp(options.output, "-")) { /* the lines of a results file, which is not kept */
    options.output = NULL;
    options.json = 1;
  }
  open.device = options.device;
  open.database = options.database;
  open.system_database = suite->only_database ? "" : NULL;
  open.layers = options.layers;
  open.layer_count = options.layer_count;
  if (options.data) WLM_TRY(check_folder(options.data));
  WLM_TRY(find_cases(&r, &file));
  WLM_TRY(wlmi_results_open(options.output, &r.results));
  WLM_TRY(wlm_context_create(&open, &r.context));
  if (suite->open) WLM_TRY(suite->open(&options, r.context, &r.state));
  if (!options.json) printf("device: %s\n", wlm_context_device_name(r.context));
  wlmi_progress_begin(&r.progress, (int64_t)r.input_count * r.width_count, options.budget_seconds);
  for (int i = 0; i < r.input_count; i++) run_input(&r, r.inputs[i]);
  if (r.left)
    fprintf(options.json ? stderr : stdout, "the budget of %.0f s is used up: %d of %d cases are left%s\n",
            options.budget_seconds, r.left, r.input_count * r.width_count,
            options.output ? "; the same command goes on" : "");
  if (r.failed)
    status = wlmi_fail(WLM_ERR_DEVICE, "bench %s: %d cases or inputs failed; see above", suite->name, r.failed);
done:
  if (suite->close) suite->close(r.state);
  wlm_context_destroy(r.context);
  wlmi_results_close(&r.results);
  wlmi_suite_file_release(&file);
  return status;
}

/* ---- the command ---- */

static const wlmi_bench_suite *const suites[] = {&wlmi_suite_core,         &wlmi_suite_half,      &wlmi_suite_bf16,
                                                 &wlmi_suite_column_major, &wlmi_suite_batch,     &wlmi_suite_papers,
                                                 &wlmi_suite_sampled,      &wlmi_suite_selection, &wlmi_suite_operators,
                                                 &wlmi_suite_minibatch,    &wlmi_suite_dispatch};
enum { SUITES = sizeof suites / sizeof *suites };

const char *wlmi_bench_suite_at(int i, const char **help) {
  if (i >= SUITES) return NULL;
  *help = suites[i]->help;
  return suites[i]->name;
}

static const char *suite_name(int i) { return i < SUITES ? suites[i]->name : NULL; }

static wlm_status find_suite(const wlmi_cli_options *options, const wlmi_bench_suite **suite) {
  const char *name = options->arguments[0];
  char suggestion[WLMI_SUGGESTION];
  *suite = NULL;
  for (int i = 0; i < SUITES; i++)
    if (!strcmp(suites[i]->name, name)) *suite = suites[i];
  if (!*suite) {
    wlmi_suggest(name, "", suite_name, suggestion);
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT,
                     "bench: unknown suite %s; %swarploom bench --help lists them, python -m bench --help the reports",
                     name, suggestion);
  }
  if (options->argument_count > 1 || options->data || (*suite)->is_synthetic) return WLM_OK;
  return wlmi_fail(WLM_ERR_INVALID_ARGUMENT,
                   "bench %s: name matrices (a .mtx or .mtx.gz file, twin:reddit), or the folder of the suite's: "
                   "--data DIR",
                   name);
}

wlm_status wlmi_cmd_bench(const wlmi_cli_options *options, wlmi_report *report) {
  const wlmi_bench_suite *suite;
  wlm_status status = find_suite(options, &suite);
  if (status != WLM_OK) report->exit_code = WLMI_EXIT_USAGE;
  return status == WLM_OK ? run_suite(suite, options) : status;
}
