/* warploom bench SUITE: runs a suite over inputs and widths, one case after the other, and keeps each as it ends. */
#include "bench/bench.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core.h"
#include "bench/dispatch.h"
#include "bench/minibatch.h"
#include "bench/operators.h"
#include "bench/papers.h"
#include "bench/plot.h"
#include "bench/run.h"
#include "bench/sampled.h"
#include "bench/selection.h"
#include "bench/summary.h"

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

struct options {
  wlmi_run_options run;
  const char *prefix; /* of the pictures */
  int help;
};

static const wlmi_bench_suite *const suites[] = {&wlmi_suite_core,      &wlmi_suite_papers,    &wlmi_suite_sampled,
                                                 &wlmi_suite_selection, &wlmi_suite_operators, &wlmi_suite_minibatch,
                                                 &wlmi_suite_dispatch};
enum { SUITES = sizeof suites / sizeof *suites };

static void print_help(FILE *to) {
  fputs(
      "usage: warploom bench SUITE --data DIR [options]      all matrices of the suite\n"
      "       warploom bench SUITE [options] INPUT...        these instead\n"
      "       warploom bench summary FILE                    means and worst cases of a results file\n"
      "       warploom bench plot FILE -o PREFIX             its speed-ups, drawn by gnuplot to PREFIX.svg and .png\n"
      "\nsuites:\n",
      to);
  for (int i = 0; i < SUITES; i++) fprintf(to, "  %-18s %s\n", suites[i]->name, suites[i]->help);
  fputs(
      "\noptions:\n"
      "  --data DIR         where NAME.mtx.gz or NAME/NAME.mtx.gz is\n"
      "  --device D         host, cuda, cuda:1 (default: the first GPU, or the host where there is none)\n"
      "  --db PATH          user database to choose from (default: none, so that the built-in rules choose)\n"
      "  --out FILE         append one JSON line a case; cases that FILE already has are skipped\n"
      "  --budget SECONDS   begin no case after so long and say how many are left\n"
      "  -n N,...           columns of B (default: those of the suite)\n"
      "  --samples COUNT    of every reported time (default 21; of operators 7, minibatch 11, dispatch 51)\n"
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

static int parse_widths(char *text, wlmi_run_options *run) {
  run->width_count = 0;
  for (char *piece = strtok(text, ","); piece; piece = strtok(NULL, ",")) {
    long long n;
    if (run->width_count == WLM_MAX_WIDTHS || !whole_number(piece, 1, 1 << 20, &n)) return 0;
    run->widths[run->width_count++] = n;
  }
  return run->width_count > 0;
}

enum { DATA = 256, DEVICE, DATABASE, OUT, BUDGET, SAMPLES, SEED };

/* 0 after a message on stderr. */
static int parse(int argc, char **argv, struct options *options) {
  static const struct option names[] = {
      {"data", 1, NULL, DATA}, {"device", 1, NULL, DEVICE}, {"db", 1, NULL, DATABASE},
      {"out", 1, NULL, OUT},   {"budget", 1, NULL, BUDGET}, {"samples", 1, NULL, SAMPLES},
      {"seed", 1, NULL, SEED}, {"help", 0, NULL, 'h'},      {NULL, 0, NULL, 0}};
  long long number;
  wlmi_run_options *run = &options->run;
  *options = (struct options){.run = {.database = "", .seed = 1}};
  optind = 0;
  opterr = 0;
  for (int c; (c = getopt_long(argc, argv, "n:o:h", names, NULL)) != -1;) switch (c) {
      case DATA: run->data = optarg; break;
      case DEVICE: run->device = optarg; break;
      case DATABASE: run->database = optarg; break;
      case OUT: run->out = optarg; break;
      case 'o': options->prefix = optarg; break;
      case 'h': options->help = 1; break;
      case 'n':
        if (!parse_widths(optarg, run)) return usage("-n needs widths of 1 or more, as in -n 32,128", "");
        break;
      case BUDGET:
        if (!whole_number(optarg, 1, 1 << 30, &number)) return usage("--budget needs seconds, 1 or more, not ", optarg);
        run->budget_seconds = (double)number;
        break;
      case SAMPLES:
        if (!whole_number(optarg, 1, 10000, &number)) return usage("--samples needs 1 to 10000, not ", optarg);
        run->samples = (int)number;
        break;
      case SEED:
        if (!whole_number(optarg, 0, INT64_MAX, &number)) return usage("--seed needs a whole number, not ", optarg);
        run->seed = (uint64_t)number;
        break;
      default: return usage("cannot understand ", argv[optind - 1]);
    }
  run->inputs = argv + optind;
  run->input_count = argc - optind;
  return 1;
}

/* After what has told its failure in the error detail. */
static int exit_code(wlm_status status) {
  if (status == WLM_OK) return EXIT_OK;
  fprintf(stderr, "warploom bench: %s\n", wlm_error_detail());
  return status == WLM_ERR_NOT_FOUND ? EXIT_USAGE : EXIT_FAILED;
}

static int report(const char *what, const struct options *options) {
  const int plot = !strcmp(what, "plot");
  if (options->run.input_count != 1 || plot != !!options->prefix) {
    usage(plot ? "plot needs one results file and -o PREFIX" : "summary needs one results file", "");
    return EXIT_USAGE;
  }
  const char *file = options->run.inputs[0];
  return exit_code(plot ? wlmi_bench_plot(file, options->prefix) : wlmi_bench_summary(file, stdout));
}

int wlmi_bench_main(int argc, char **argv) {
  struct options options;
  if (!parse(argc, argv, &options)) return EXIT_USAGE;
  if (options.help) return print_help(stdout), EXIT_OK;
  if (options.run.input_count < 1) return print_help(stderr), EXIT_USAGE;
  const char *name = *options.run.inputs++;
  options.run.input_count--;
  if (!strcmp(name, "summary") || !strcmp(name, "plot")) return report(name, &options);
  for (int i = 0; i < SUITES; i++) {
    if (strcmp(suites[i]->name, name)) continue;
    if (options.run.input_count || options.run.data || suites[i]->is_synthetic)
      return wlmi_run_suite(suites[i], &options.run) ? EXIT_OK : EXIT_FAILED;
    usage("name matrices (a .mtx or .mtx.gz file, twin:reddit), or say where the suite's are: --data DIR", "");
    return EXIT_USAGE;
  }
  usage("unknown suite ", name);
  return EXIT_USAGE;
}
