#include "cli/options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/operator.h"
#include "common/spec.h"

/* Reads the value of an option; 0 where it cannot be understood. */
typedef int parse_fn(wlmi_cli_options *o, const char *value);

/* ---- values ---------------------------------------------------------------------------------- */

static int parse_integer(const char *text, char end, int64_t least, int64_t most, const char **rest, int64_t *value) {
  char *stop;
  if (*text < '0' || *text > '9') return 0;
  errno = 0;
  long long number = strtoll(text, &stop, 10);
  if (errno || number < least || number > most || (*stop && *stop != end)) return 0;
  *rest = *stop ? stop + 1 : stop;
  *value = number;
  return !*stop || **rest; /* a separator at the end separates nothing */
}

static int parse_device(wlmi_cli_options *o, const char *value) {
  o->device = value;
  return *value != 0;
}

static int parse_database(wlmi_cli_options *o, const char *value) {
  o->database = value;
  return 1; /* "" = none */
}

static int parse_real(const char *text, double *value) {
  char *stop;
  *value = strtod(text, &stop);
  return stop != text && !*stop && isfinite(*value);
}

static int parse_widths(wlmi_cli_options *o, const char *value) {
  o->n_count = 0;
  o->n_given = 1;
  do {
    if (o->n_count == WLM_CLI_MAX_WIDTHS) return 0;
    if (!parse_integer(value, ',', 0, INT32_MAX, &value, &o->n[o->n_count++])) return 0;
  } while (*value);
  return 1;
}

/* What is wrong with an expression is told by the detail text. */
static int parse_custom(wlmi_cli_options *o, const char *value) {
  wlmi_operator op;
  if (wlmi_operator_parse(value, &op) != WLM_OK) return 0;
  wlmi_operator_release(&op);
  o->problem.message = WLM_MUL;
  o->problem.reduce = WLM_CUSTOM;
  o->problem.custom = value;
  return 1;
}

static int parse_op(wlmi_cli_options *o, const char *value) {
  if (strchr(value, '=')) return parse_custom(o, value);
  char message[32] = "mul";
  const char *dot = strchr(value, '.');
  if (dot) {
    if ((size_t)(dot - value) >= sizeof message) return 0;
    memcpy(message, value, (size_t)(dot - value));
    message[dot - value] = 0;
    value = dot + 1;
  }
  int known_message = wlmi_message_from_name(message), known_reduce = wlmi_reduce_from_name(value);
  if (known_message < 0 || known_reduce < 0 || known_reduce == WLM_CUSTOM) return 0;
  o->problem.message = (wlm_message)known_message;
  o->problem.reduce = (wlm_reduce)known_reduce;
  o->problem.custom = NULL;
  return 1;
}

static int parse_epilogue(wlmi_cli_options *o, const char *value) {
  wlmi_expression activation;
  if (wlmi_activation_parse(value, &activation) != WLM_OK) return 0;
  wlmi_expression_release(&activation);
  o->problem.epilogue.activation = value;
  return 1;
}

static int parse_type(wlmi_cli_options *o, const char *value) {
  int type = wlmi_type_from_name(value);
  if (type < 0) return 0;
  o->problem.dense_type = (wlm_type)type;
  return 1;
}

static int parse_uint64(const char *text, uint64_t *value) {
  char *stop;
  if (*text < '0' || *text > '9') return 0;
  errno = 0;
  *value = strtoull(text, &stop, 10);
  return !errno && !*stop;
}

/* STRATEGY:WIDTH[:NORM[:SEED]] */
static int parse_sample(wlmi_cli_options *o, const char *value) {
  char text[64], *save = NULL;
  if (strlen(value) >= sizeof text) return 0;
  strcpy(text, value);
  const char *strategy = strtok_r(text, ":", &save), *width = strtok_r(NULL, ":", &save);
  const char *norm = strtok_r(NULL, ":", &save), *seed = strtok_r(NULL, ":", &save), *rest;
  int sample = strategy ? wlmi_sample_from_name(strategy) : -1;
  int sample_norm = norm ? wlmi_sample_norm_from_name(norm) : WLM_NORM_NONE;
  if (sample <= WLM_SAMPLE_NONE || sample_norm < 0 || !width || strtok_r(NULL, ":", &save)) return 0;
  o->problem.sampling.sample = (wlm_sample)sample;
  o->problem.sampling.norm = (wlm_sample_norm)sample_norm;
  if (seed && !parse_uint64(seed, &o->args.seed)) return 0;
  return parse_integer(width, 0, 8, 2304, &rest, &o->problem.sampling.width);
}

static int parse_count(const char *value, int64_t most, int64_t *count) {
  const char *rest;
  return parse_integer(value, 0, 1, most, &rest, count);
}

static int parse_calls(wlmi_cli_options *o, const char *value) {
  return parse_count(value, INT64_MAX, &o->problem.policy.expected_calls);
}

static int parse_heads(wlmi_cli_options *o, const char *value) {
  return parse_count(value, INT32_MAX, &o->problem.heads);
}

static int parse_seconds(wlmi_cli_options *o, const char *value) {
  static const struct {
    const char *unit;
    double seconds;
  } units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"m", 60}, {"min", 60}, {"h", 3600}};
  char *stop;
  if ((*value < '0' || *value > '9') && *value != '.') return 0;
  double number = strtod(value, &stop);
  for (size_t i = 0; i < sizeof units / sizeof *units; i++)
    if (!strcmp(stop, units[i].unit)) {
      o->budget_seconds = number * units[i].seconds;
      return isfinite(o->budget_seconds) && o->budget_seconds > 0;
    }
  return 0;
}

static int parse_seed(wlmi_cli_options *o, const char *value) { return parse_uint64(value, &o->seed); }

static int parse_target(wlmi_cli_options *o, const char *value) {
  o->target = value;
  return !strcmp(value, "cuda") || !strcmp(value, "host");
}

static int parse_variant(wlmi_cli_options *o, const char *value) {
  o->variant = value;
  return *value != 0;
}

static int parse_output(wlmi_cli_options *o, const char *value) {
  o->output = value;
  return *value != 0;
}

static int parse_format(wlmi_cli_options *o, const char *value) { return (void)o, !strcmp(value, "jsonl"); }

static int parse_operation(wlmi_cli_options *o, const char *value) {
  int operation = wlmi_operation_from_name(value);
  if (operation < 0) return 0;
  o->problem.operation = (wlm_operation)operation;
  return 1;
}

static int parse_empty(wlmi_cli_options *o, const char *value) {
  const int empty = wlmi_empty_from_name(value);
  o->problem.empty = (wlm_empty)empty;
  return empty >= 0;
}

static int parse_index(const char *value, wlm_index *index) {
  const int type = wlmi_index_from_name(value);
  *index = (wlm_index)type;
  return type >= 0;
}

static int parse_rowptr(wlmi_cli_options *o, const char *value) { return parse_index(value, &o->rowptr_type); }
static int parse_colind(wlmi_cli_options *o, const char *value) { return parse_index(value, &o->colind_type); }
static int parse_alpha(wlmi_cli_options *o, const char *value) { return parse_real(value, &o->args.alpha); }
static int parse_beta(wlmi_cli_options *o, const char *value) { return parse_real(value, &o->args.beta); }

static int parse_ldb(wlmi_cli_options *o, const char *value) { return parse_count(value, INT32_MAX, &o->args.ldb); }

static int parse_ldc(wlmi_cli_options *o, const char *value) { return parse_count(value, INT32_MAX, &o->args.ldc); }

static int parse_arg(wlmi_cli_options *o, const char *value) {
  return o->problem.want_argmax = parse_index(value, &o->problem.argmax_type);
}

static int set_json(wlmi_cli_options *o, const char *value) { return (void)value, o->json = 1; }
static int set_transpose(wlmi_cli_options *o, const char *value) { return (void)value, o->problem.transpose = 1; }
static int set_deterministic(wlmi_cli_options *o, const char *value) {
  return (void)value, o->problem.policy.deterministic = 1;
}
static int set_bias(wlmi_cli_options *o, const char *value) { return (void)value, o->problem.epilogue.bias = 1; }
static int set_help(wlmi_cli_options *o, const char *value) { return (void)value, o->help = 1; }
static int set_check(wlmi_cli_options *o, const char *value) { return (void)value, o->check = 1; }
static int parse_keep(wlmi_cli_options *o, const char *value) { return parse_count(value, INT64_MAX, &o->keep); }
static int set_repair(wlmi_cli_options *o, const char *value) { return (void)value, o->repair = 1; }
static int set_again(wlmi_cli_options *o, const char *value) { return (void)value, o->again = 1; }
static int set_recorded(wlmi_cli_options *o, const char *value) { return (void)value, o->recorded = 1; }
static int set_record(wlmi_cli_options *o, const char *value) { return (void)value, o->record = 1; }
static int set_list(wlmi_cli_options *o, const char *value) { return (void)value, o->list = 1; }

/* ---- the table --------------------------------------------------------------------------------- */

static const struct {
  const char *name;
  char letter; /* 0 = long form only */
  const char *argument;
  int group; /* WLM_OPTION_... */
  parse_fn *parse;
  const char *must_be; /* of the argument, in words */
  const char *help;
} table[] = {
    {"device", 'd', "NAME", WLM_OPTION_DEVICE, parse_device, "host, cuda or cuda:NUMBER",
     "host, cuda:0 ... (default: the first GPU, or the host)"},
    {"db", 0, "PATH", WLM_OPTION_DATABASE, parse_database, "a path",
     "user database (default: warploom/tuned.db in $XDG_DATA_HOME)"},
    {"width", 'n', "N[,N...]", WLM_OPTION_WIDTH, parse_widths, "up to 16 numbers, 32,128",
     "columns of B and C (default: 32,128)"},
    {"op", 0, "OP", WLM_OPTION_OPERATOR, parse_op,
     "[MESSAGE.]REDUCE with MESSAGE mul, copy_b, copy_a, add, sub, rsub, div, rdiv and REDUCE sum, mean, max, min, "
     "prod, or a user's own, 'init=0;reduce=acc+x'",
     "[MESSAGE.]REDUCE: sum, copy_b.max ... (default: mul.sum), or 'message=fmaxf(a*b,0);init=0;reduce=acc+x'"},
    {"operation", 0, "NAME", WLM_OPTION_OPERATOR, parse_operation, "spmm or sddmm",
     "spmm, or sddmm: the gradient of the values of A, for each edge (default: spmm)"},
    {"arg", 0, "TYPE", WLM_OPTION_OPERATOR, parse_arg, "i32 or i64", "also the positions that win, of max and min"},
    {"heads", 0, "H", WLM_OPTION_OPERATOR, parse_heads, "a number of 1 or more that divides n",
     "values of an edge, each for n / H columns: v (h + 1) / H for head h and an edge of v (default: 1)"},
    {"transpose", 0, NULL, WLM_OPTION_OPERATOR, set_transpose, NULL, "multiply by the transpose of A"},
    {"epilogue", 0, "EXPRESSION", WLM_OPTION_EPILOGUE, parse_epilogue, "an expression over x, 'leaky_relu(x,0.2)'",
     "what is done to each element of C at last: relu, tanh, 'leaky_relu(x,0.2)', 'x/(1+exp(-x))'"},
    {"bias", 0, NULL, WLM_OPTION_EPILOGUE, set_bias, NULL, "add n values to every row of C before that"},
    {"alpha", 0, "X", WLM_OPTION_EPILOGUE, parse_alpha, "a number", "C = alpha A B + beta C (default: 1)"},
    {"beta", 0, "X", WLM_OPTION_EPILOGUE, parse_beta, "a number", "the same (default: 0, C is not read)"},
    {"ldb", 0, "LD", WLM_OPTION_EPILOGUE, parse_ldb, "a number of 1 or more", "from row to row of B (default: n)"},
    {"ldc", 0, "LD", WLM_OPTION_EPILOGUE, parse_ldc, "a number of 1 or more", "from row to row of C (default: n)"},
    {"deterministic", 0, NULL, WLM_OPTION_EPILOGUE, set_deterministic, NULL,
     "only kernels that give the same bits every time"},
    {"empty", 0, "WHAT", WLM_OPTION_OPERATOR, parse_empty, "zero or identity",
     "what a row without edges gives: zero, or the identity of the reduction (default: zero)"},
    {"type", 0, "TYPE", WLM_OPTION_OPERATOR, parse_type, "f32, f16, bf16 or f64", "of B and C (default: f32)"},
    {"rowptr", 0, "TYPE", WLM_OPTION_OPERATOR, parse_rowptr, "i32 or i64",
     "of A's offsets (default: i32 where they fit)"},
    {"colind", 0, "TYPE", WLM_OPTION_OPERATOR, parse_colind, "i32 or i64", "of A's columns (default: i32)"},
    {"sample", 0, "HOW:S[:NORM]", WLM_OPTION_OPERATOR, parse_sample,
     "bucket, fastrand or fastrand_coprime, then a width from 8 to 2304, then perhaps none, kept or unbiased, then "
     "perhaps a seed, bucket:64:kept:7",
     "use at most S edges of a row: bucket:64, fastrand:128:unbiased, with a seed fastrand:16:none:7"},
    {"calls", 0, "NUMBER", WLM_OPTION_CALLS, parse_calls, "a number of 1 or more",
     "executions to expect of one plan, which pay for preparing it (default: 1, nothing is prepared)"},
    {"budget", 0, "TIME", WLM_OPTION_BUDGET, parse_seconds, "a time above 0, 60s or 2m",
     "stop tuning after this time: 60s, 2m (without an INPUT: 10m)"},
    {"seed", 0, "NUMBER", WLM_OPTION_SEED, parse_seed, "a number from 0 to 18446744073709551615",
     "order of candidates and content of B (default: 1)"},
    {"json", 0, NULL, WLM_OPTION_JSON, set_json, NULL, "machine-readable output"},
    {"help", 'h', NULL, WLM_OPTION_HELP, set_help, NULL, "this text"},
    {"check", 0, NULL, WLM_OPTION_CHECK, set_check, NULL, "compare the result with a float64 reference"},
    {"list", 0, NULL, WLM_OPTION_LIST, set_list, NULL, "all families with their parameters"},
    {"target", 0, "NAME", WLM_OPTION_TARGET, parse_target, "cuda or host", "cuda or host (default: the family's)"},
    {"variant", 0, "VARIANT", WLM_OPTION_VARIANT, parse_variant, "a variant, row_crc/cf=2,rows=8",
     "this kernel instead of the chosen one"},
    {"output", 'o', "FILE", WLM_OPTION_OUTPUT, parse_output, "a path",
     "the file to write; - is standard output, but for db merge"},
    {"repair", 0, NULL, WLM_OPTION_REPAIR, set_repair, NULL,
     "check: put what is whole into a new file; the damaged one stays beside it"},
    {"keep", 0, "COUNT", WLM_OPTION_KEEP, parse_keep, "a number of 1 or more",
     "prune: leave only so many of the quickest candidates of a matrix and N"},
    {"again", 0, NULL, WLM_OPTION_AGAIN, set_again, NULL, "measure also what was measured before and is not stale"},
    {"recorded", 0, NULL, WLM_OPTION_RECORDED, set_recorded, NULL,
     "tune what programs recorded, on matrices made after the statistics"},
    {"record", 0, NULL, WLM_OPTION_RECORD, set_record, NULL,
     "note the problem down for tune --recorded, where nothing near was tuned"},
    {"format", 0, "FORMAT", WLM_OPTION_FORMAT, parse_format, "jsonl", "jsonl, the only one so far"},
};
enum { OPTIONS = sizeof table / sizeof *table };

void wlmi_cli_print_options(FILE *to, int takes) {
  for (int i = 0; i < OPTIONS; i++) {
    char left[64];
    if (!(table[i].group & (takes | WLM_OPTION_HELP))) continue;
    snprintf(left, sizeof left, "%c%c%s--%s %s", table[i].letter ? '-' : ' ', table[i].letter ? table[i].letter : ' ',
             table[i].letter ? ", " : "  ", table[i].name, table[i].argument ? table[i].argument : "");
    fprintf(to, "  %-28s %s\n", left, table[i].help);
  }
}

static int complain(const char *command, const char *what, const char *which, const char *mend) {
  fprintf(stderr, "warploom %s: %s '%s'; %s\n", command, what, which, mend);
  return 0;
}

int wlmi_cli_parse(int argc, char **argv, wlmi_cli_options *o) {
  struct option longs[OPTIONS + 1] = {{0}};
  char letters[2 * OPTIONS + 2] = ":", help[64], must_be[512];
  const wlm_problem problem = WLM_PROBLEM_INIT;
  const wlm_execute_args args = WLM_EXECUTE_ARGS_INIT;
  *o = (wlmi_cli_options){.n = {32, 128}, .n_count = 2, .problem = problem, .args = args, .seed = 1};
  snprintf(help, sizeof help, "see warploom %s --help", argv[0]);
  for (int i = 0; i < OPTIONS; i++) {
    /* Values past any letter tell the options apart. */
    longs[i] = (struct option){table[i].name, table[i].argument != NULL, NULL, 256 + i};
    if (table[i].letter) snprintf(letters + strlen(letters), 3, "%c%s", table[i].letter, table[i].argument ? ":" : "");
  }
  optind = 1;
  opterr = 0;
  for (int found; (found = getopt_long(argc, argv, letters, longs, NULL)) != -1;) {
    int i = found >= 256 ? found - 256 : -1;
    for (int k = 0; i < 0 && k < OPTIONS; k++)
      if (table[k].letter == found) i = k;
    if (found == ':') return complain(argv[0], "a value is missing after", argv[optind - 1], help);
    if (i < 0) return complain(argv[0], "unknown option", argv[optind - 1], help);
    o->given |= (uint64_t)1 << i;
    wlmi_clear_error();
    if (table[i].parse(o, optarg)) continue;
    snprintf(must_be, sizeof must_be, "must be %s", table[i].must_be);
    if (*wlm_error_detail()) snprintf(must_be, sizeof must_be, "%s", wlm_error_detail());
    char what[64];
    snprintf(what, sizeof what, "--%s cannot be", table[i].name);
    return complain(argv[0], what, optarg ? optarg : "", must_be);
  }
  o->arguments = argv + optind;
  o->argument_count = argc - optind;
  return 1;
}

static int is_given(const wlmi_cli_options *o, int i) { return o->given >> i & 1; }

int wlmi_cli_has(const wlmi_cli_options *o, int which) {
  for (int i = 0; i < OPTIONS; i++)
    if (is_given(o, i) && table[i].group & which) return 1;
  return 0;
}

int wlmi_cli_check(const wlmi_cli_options *o, const char *command, int takes, int needs) {
  for (int i = 0; i < OPTIONS; i++) {
    if (!is_given(o, i) || table[i].group & (takes | WLM_OPTION_HELP)) continue;
    fprintf(stderr, "warploom %s: takes no option '--%s'; see warploom %s --help\n", command, table[i].name, command);
    return 0;
  }
  for (int i = 0; i < OPTIONS; i++) {
    if (is_given(o, i) || !(table[i].group & needs)) continue;
    fprintf(stderr, "warploom %s: say where to with -%c %s\n", command, table[i].letter, table[i].argument);
    return 0;
  }
  return 1;
}
