/* warploom bench SUITE: runs a suite over inputs and widths, one case after the other, and keeps each as it ends. */
#include "bench/bench.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core.h"
#include "bench/results_file.h"
#include "bench/summary.h"
#include "common/memory.h"
#include "common/sampling.h"
#include "matrix/input.h"

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, MAX_WIDTHS = 16, NAME = 256 };

struct options {
  const char *device, *database, *out;
  int64_t widths[MAX_WIDTHS];
  int width_count, samples, help;
  uint64_t seed;
  char **inputs;
  int input_count;
};

static const wlm_bench_suite *const suites[] = {&wlm_suite_core};
enum { SUITES = sizeof suites / sizeof *suites };

static void print_help(FILE *to) {
  fputs("usage: warploom bench SUITE [options] INPUT...\n       warploom bench summary FILE\n\nsuites:\n", to);
  for (int i = 0; i < SUITES; i++) fprintf(to, "  %-18s %s\n", suites[i]->name, suites[i]->help);
  fputs(
      "\noptions:\n"
      "  --device D         host, cuda, cuda:1 (default: the first GPU, or the host where there is none)\n"
      "  --db PATH          user database to choose from (default: none, so that the built-in rules choose)\n"
      "  --out FILE         append one JSON line a case; cases that FILE already has are skipped\n"
      "  -n N,...           columns of B (default 32,128)\n"
      "  --samples COUNT    of every reported time (default 21)\n"
      "  --seed SEED        of B and of the rows that are checked (default 1)\n",
      to);
}

static int usage(const char *what, const char *value) {
  fprintf(stderr, "warploom bench: %s%s; see warploom bench --help\n", what, value);
  return 0;
}

static int whole_number(const char *text, long long least, long long most, long long *value) {
  char *end;
  *value = strtoll(text, &end, 10);
  return end != text && !*end && *value >= least && *value <= most;
}

static int parse_widths(char *text, struct options *options) {
  options->width_count = 0;
  for (char *piece = strtok(text, ","); piece; piece = strtok(NULL, ",")) {
    long long n;
    if (options->width_count == MAX_WIDTHS || !whole_number(piece, 1, 1 << 20, &n)) return 0;
    options->widths[options->width_count++] = n;
  }
  return options->width_count > 0;
}

/* 0 after a message on stderr. */
static int parse(int argc, char **argv, struct options *options) {
  static const struct option names[] = {{"device", 1, NULL, 'd'},  {"db", 1, NULL, 'b'},   {"out", 1, NULL, 'o'},
                                        {"samples", 1, NULL, 's'}, {"seed", 1, NULL, 'r'}, {"help", 0, NULL, 'h'},
                                        {NULL, 0, NULL, 0}};
  long long number;
  *options = (struct options){.widths = {32, 128}, .width_count = 2, .database = "", .samples = 21, .seed = 1};
  optind = 0;
  opterr = 0;
  for (int c; (c = getopt_long(argc, argv, "n:h", names, NULL)) != -1;) switch (c) {
      case 'd': options->device = optarg; break;
      case 'b': options->database = optarg; break;
      case 'o': options->out = optarg; break;
      case 'h': options->help = 1; break;
      case 'n':
        if (!parse_widths(optarg, options)) return usage("-n needs widths of 1 or more, as in -n 32,128", "");
        break;
      case 's':
        if (!whole_number(optarg, 1, 10000, &number)) return usage("--samples needs 1 to 10000, not ", optarg);
        options->samples = (int)number;
        break;
      case 'r':
        if (!whole_number(optarg, 0, INT64_MAX, &number)) return usage("--seed needs a whole number, not ", optarg);
        options->seed = (uint64_t)number;
        break;
      default: return usage("cannot understand ", argv[optind - 1]);
    }
  options->inputs = argv + optind;
  options->input_count = argc - optind;
  return 1;
}

/* "../data/cora.mtx.gz" is cora; the name of a synthetic matrix is its own. */
static void matrix_name(const char *input, char name[NAME]) {
  static const char *const endings[] = {".mtx", ".mtx.gz"};
  snprintf(name, NAME, "%s", input);
  for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
    size_t size = strlen(input), ending = strlen(endings[i]);
    if (size <= ending || strcmp(input + size - ending, endings[i])) continue;
    const char *slash = strrchr(input, '/'), *base = slash ? slash + 1 : input;
    snprintf(name, NAME, "%.*s", (int)(input + size - ending - base), base);
  }
}

/* A pattern gets values, so that all that is compared reads the same bytes: multiples of 1/128 in [0.5, 1.5). */
static wlm_status give_values(wlm_csr_host *csr) {
  if (csr->values) return WLM_OK;
  wlm_status status = wlm_alloc_array(csr->nnz, sizeof *csr->values, "values", (void **)&csr->values);
  if (status != WLM_OK) return status;
#pragma omp parallel for
  for (int64_t p = 0; p < csr->nnz; p++) csr->values[p] = 0.5f + (float)(wlm_sample_hash(1, p) >> 57) / 128.0f;
  return WLM_OK;
}

static wlm_status run_case(const wlm_bench_suite *suite, const wlm_bench_case *bench, wlm_results *results) {
  wlm_text line = {0}, row = {0};
  wlm_status status;
  WLM_TRY(suite->run(bench, &line, &row));
  WLM_TRY(wlm_results_append(results, &line));
  if (row.failed) WLM_TRY(wlm_fail(WLM_ERR_OUT_OF_MEMORY, "a row of the table"));
  fputs(row.data, stdout);
  fflush(stdout);
done:
  wlm_text_release(&line);
  wlm_text_release(&row);
  return status;
}

/* All widths that the results do not have yet; the matrix is read only if there is one. Failures are told. */
static int run_input(const wlm_bench_suite *suite, const struct options *options, wlm_context *context,
                     const char *input, wlm_results *results) {
  wlm_csr_host csr = {0};
  wlm_upload upload = {0};
  wlm_status status = WLM_OK;
  int failed = 0;
  char name[NAME];
  matrix_name(input, name);
  for (int i = 0; i < options->width_count && status == WLM_OK; i++) {
    wlm_bench_case bench = {.context = context,
                            .csr = &csr,
                            .upload = &upload,
                            .matrix = name,
                            .n = options->widths[i],
                            .samples = options->samples,
                            .seed = options->seed};
    if (wlm_results_has(results, suite->name, wlm_context_device_name(context), name, bench.n)) continue;
    if (!upload.matrix) {
      WLM_TRY(wlm_input_read(input, &csr));
      WLM_TRY(give_values(&csr));
      WLM_TRY(wlm_upload_create(context, &csr, wlm_upload_rowptr_type(&csr), &upload));
    }
    if (run_case(suite, &bench, results) == WLM_OK) continue;
    fprintf(stderr, "warploom bench: %s, n = %lld: %s\n", input, (long long)bench.n, wlm_error_detail());
    failed = 1;
  }
done:
  if (status != WLM_OK) fprintf(stderr, "warploom bench: %s: %s\n", input, wlm_error_detail());
  wlm_upload_release(&upload);
  wlm_csr_host_release(&csr);
  return failed || status != WLM_OK;
}

static int run_suite(const wlm_bench_suite *suite, const struct options *options) {
  wlm_context_options open = WLM_CONTEXT_OPTIONS_INIT;
  wlm_context *context = NULL;
  wlm_results results = {0};
  wlm_status status;
  int failed = 0;
  open.device = options->device;
  open.database = options->database;
  open.system_database = "";
  WLM_TRY(wlm_results_open(options->out, &results));
  WLM_TRY(wlm_context_create(&open, &context));
  printf("device: %s\n%s", wlm_context_device_name(context), suite->heading);
  for (int i = 0; i < options->input_count; i++)
    failed |= run_input(suite, options, context, options->inputs[i], &results);
done:
  if (status != WLM_OK) fprintf(stderr, "warploom bench: %s: %s\n", wlm_status_message(status), wlm_error_detail());
  wlm_context_destroy(context);
  wlm_results_close(&results);
  return failed || status != WLM_OK ? EXIT_FAILED : EXIT_OK;
}

static int summarise(const struct options *options) {
  if (options->input_count != 1) {
    usage("summary needs one results file", "");
    return EXIT_USAGE;
  }
  if (wlm_bench_summary(options->inputs[0], stdout) == WLM_OK) return EXIT_OK;
  fprintf(stderr, "warploom bench: %s\n", wlm_error_detail());
  return EXIT_FAILED;
}

int wlm_bench_main(int argc, char **argv) {
  struct options options;
  if (!parse(argc, argv, &options)) return EXIT_USAGE;
  if (options.help) return print_help(stdout), EXIT_OK;
  if (options.input_count < 1) return print_help(stderr), EXIT_USAGE;
  const char *name = *options.inputs++;
  options.input_count--;
  if (!strcmp(name, "summary")) return summarise(&options);
  for (int i = 0; i < SUITES; i++) {
    if (strcmp(suites[i]->name, name)) continue;
    if (options.input_count) return run_suite(suites[i], &options);
    usage("name a matrix: a .mtx or .mtx.gz file, or a synthetic one (twin:reddit)", "");
    return EXIT_USAGE;
  }
  usage("unknown suite ", name);
  return EXIT_USAGE;
}
