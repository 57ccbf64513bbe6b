#include "cli/options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/progress.h"
#include "cli/suggest.h"
#include "core/problem/operator.h"
#include "core/problem/spec.h"

/* ---- parsers: each returns 0 for a wrong value; an error's detail text, if there is one, gives the reason ----------
 */

static void *member(wlmi_cli_options *o, const wlmi_option *option) { return (char *)o + option->offset; }

static int set_flag(const wlmi_option *option, const char *value, wlmi_cli_options *o) {
  (void)value;
  *(int *)member(o, option) = 1;
  return 1;
}

static int set_text(const wlmi_option *option, const char *value, wlmi_cli_options *o) {
  *(const char **)member(o, option) = value;
  return *value != 0;
}

static int set_database(const wlmi_option *option, const char *value, wlmi_cli_options *o) {
  set_text(option, value, o);
  return 1; /* "" = no database */
}

static int add_layer(const wlmi_option *option, const char *value, wlmi_cli_options *o) {
  (void)option;
  if (o->layer_count == WLMI_CLI_MAX_LAYERS)
    return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "at most %d times", WLMI_CLI_MAX_LAYERS), 0;
  o->layers[o->layer_count++] = value;
  return *value != 0;
}

/* Enums have the size of an int. */
static int set_choice(const wlmi_option *option, const char *value, wlmi_cli_options *o) {
  const size_t size = strlen(value);
  int number = 0;
  for (const char *name = option->values; *name; number++) {
    const size_t length = strcspn(name, "|");
    if (length == size && !memcmp(name, value, size)) return memcpy(member(o, option), &number, sizeof number), 1;
    name += length + (name[length] == '|');
  }
  return 0;
}

static int set_argmax(const wlmi_option *option, const char *value, wlmi_cli_options *o) {
  return o->problem.want_argmax = set_choice(option, value, o);
}

static int parse_integer(const char *text, char end, int64_t least, int64_t most, const char **rest, int64_t *value) {
  char *stop;
  if (*text < '0' || *text > '9') return 0;
  errno = 0;
  long long number = strtoll(text, &stop, 10);
  if (errno || number < least || number > most || (*stop && *stop != end)) return 0;
  *rest = *stop ? stop + 1 : stop;
  *value = number;
  return !*stop || **rest; /* a separator at the end is an error */
}

static int set_integer(const wlmi_option *option, const char *value, wlmi_cli_options *o) {
  const char *rest;
  return parse_integer(value, 0, option->least, option->most, &rest, member(o, option));
}

/* Each one once, so that no command does the same twice. */
static int set_widths(const wlmi_option *option, const char *value, wlmi_cli_options *o) {
  o->n_count = 0;
  do {
    int known = 0;
    if (o->n_count == WLMI_CLI_MAX_WIDTHS)
      return wlmi_fail(WLM_ERR_INVALID_ARGUMENT, "at most %d numbers", WLMI_CLI_MAX_WIDTHS), 0;
    if (!parse_integer(value, ',', option->least, option->most, &value, &o->n[o->n_count])) return 0;
    while (o->n[known] != o->n[o->n_count]) known++;
    o->n_count += known == o->n_count;
  } while (*value);
  return 1;
}

static int parse_uint64(const char *text, uint64_t *value) {
  char *stop;
  if (*text < '0' || *text > '9') return 0;
  errno = 0;
  *value = strtoull(text, &stop, 10);
  return !errno && !*stop;
}

static int set_seed(const wlmi_option *option, const char *value, wlmi_cli_options *o) {
  return parse_uint64(value, member(o, option));
}

static int set_real(const wlmi_option *option, const char *value, wlmi_cli_options *o) {
  char *stop;
  const double number = strtod(value, &stop);
  *(double *)member(o, option) = number;
  return stop != value && !*stop && isfinite(number);
}

static int set_seconds(const wlmi_option *option, const char *value, wlmi_cli_options *o) {
  static const struct {
    const char *unit;
    double seconds;
  } units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"m", 60}, {"min", 60}, {"h", 3600}};
  char *stop;
  if ((*value < '0' || *value > '9') && *value != '.') return 0;
  const double number = strtod(value, &stop);
  for (size_t i = 0; i < sizeof units / sizeof *units; i++)
    if (!strcmp(stop, units[i].unit)) {
      const double seconds = *(double *)member(o, option) = number * units[i].seconds;
      return isfinite(seconds) && seconds > 0;
    }
  return 0;
}

static int set_custom(const char *value, wlmi_cli_options *o) {
  wlmi_operator op;
  if (wlmi_operator_parse(value, &op) != WLM_OK) return 0;
  wlmi_operator_release(&op);
  o->problem.message = WLM_MUL;
  o->problem.reduce = WLM_CUSTOM;
  o->problem.custom = value;
  return 1;
}

static int set_op(const wlmi_option *option, const char *value, wlmi_cli_options *o) {
  (void)option;
  if (strchr(value, '=')) return set_custom(value, o);
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

static int set_activation(const wlmi_option *option, const char *value, wlmi_cli_options *o) {
  wlmi_expression activation;
  if (wlmi_activation_parse(value, &activation) != WLM_OK) return 0;
  wlmi_expression_release(&activation);
  return set_text(option, value, o);
}

/* HOW:WIDTH[:NORM[:SEED]] */
static int set_sample(const wlmi_option *option, const char *value, wlmi_cli_options *o) {
  char text[64], *left = text;
  if (strlen(value) >= sizeof text) return 0;
  strcpy(text, value);
  const char *how = strsep(&left, ":"), *width = strsep(&left, ":");
  const char *norm = strsep(&left, ":"), *seed = strsep(&left, ":"), *rest;
  int sample = wlmi_sample_from_name(how);
  int sample_norm = norm ? wlmi_sample_norm_from_name(norm) : WLM_NORM_NONE;
  if (sample <= WLM_SAMPLE_NONE || sample_norm < 0 || !width || left) return 0;
  o->problem.sampling.sample = (wlm_sample)sample;
  o->problem.sampling.norm = (wlm_sample_norm)sample_norm;
  if (seed && !parse_uint64(seed, &o->args.seed)) return 0;
  return parse_integer(width, 0, option->least, option->most, &rest, &o->problem.sampling.width);
}

/* ---- the table ------------------------------------------------------------------------------------------------- */

#define AT(member) offsetof(wlmi_cli_options, member)

const wlmi_option wlmi_options[] = {
    {"device", 'd', "NAME", WLMI_OPTION_DEVICE, set_text, AT(device), .values = "host, cuda or cuda:NUMBER",
     .standard = "the first GPU, or the host", .help = "where products run"},
    {"db", 0, "PATH", WLMI_OPTION_DATABASE, set_database, AT(database),
     .standard = "warploom/tuned.db in $XDG_DATA_HOME; none for bench", .help = "the user database; '' for none"},
    {"use", 0, "PATH", WLMI_OPTION_LAYERS, add_layer,
     .help = "also choose by an export, a tuning database, a kernel archive or a folder of these, which are only read; "
             "a later --use counts before an earlier one"},
    {"width", 'n', "N[,N...]", WLMI_OPTION_WIDTH, set_widths, AT(n), 1, INT32_MAX,
     .standard = "32,128; those of the suite for bench", .help = "columns of B and C"},
    {"op", 0, "OP", WLMI_OPTION_OPERATOR, set_op,
     .values = "[MESSAGE.]REDUCE with MESSAGE mul, copy_b, copy_a, add, sub, rsub, div, rdiv and REDUCE sum, mean, "
               "max, min, prod, or your own operator, 'message=fmaxf(a*b,0);init=0;reduce=acc+x'",
     .standard = "mul.sum",
     .help =
         "what is computed for an edge, and how the edges of a row are reduced; beside an expression as --message only "
         "REDUCE"},
    {"message", 0, "TEXT", WLMI_OPTION_MESSAGE, set_text, AT(message),
     .values = "an expression such as 'relu(b+e)', which is summed over the edges of a row, or a whole message, as in "
               "'x:row:1;sum=tanh(x+b);max=b'",
     .help = "compute a message of the operands a and e (edges), b and k (columns of A), x and y (rows of A), or your "
             "own"},
    {"operation", 0, "NAME", WLMI_OPTION_OPERATOR, set_choice, AT(problem.operation), .values = "spmm|sddmm|attention",
     .standard = "spmm",
     .help = "the product, the gradient of the values of A, or attention (with --transpose its gradient)"},
    {"arg", 0, "TYPE", WLMI_OPTION_OPERATOR, set_argmax, AT(problem.argmax_type), .values = "i32|i64|i16",
     .help = "also store the argmax indices of max and min, of this type; of a --message that reads positions, their "
             "type"},
    {"heads", 0, "H", WLMI_OPTION_OPERATOR, set_integer, AT(problem.heads), 1, INT32_MAX, .standard = "1",
     .help = "number of values of each edge, one for n / H columns; a value v becomes v (h + 1) / H for head h"},
    {"transpose", 0, NULL, WLMI_OPTION_OPERATOR, set_flag, AT(problem.transpose),
     .help = "multiply by the transpose of A"},
    {"epilogue", 0, "EXPRESSION", WLMI_OPTION_EPILOGUE, set_activation, AT(problem.epilogue.activation),
     .values = "an expression over x, such as relu, tanh, 'leaky_relu(x,0.2)' or 'x/(1+exp(-x))'",
     .help = "applied to each element of C at the end"},
    {"bias", 0, NULL, WLMI_OPTION_EPILOGUE, set_flag, AT(problem.epilogue.bias),
     .help = "add n values to every row of C before the epilogue"},
    {"alpha", 0, "X", WLMI_OPTION_EPILOGUE, set_real, AT(args.alpha), .values = "a finite number", .standard = "1",
     .help = "of C = alpha A B + beta C"},
    {"beta", 0, "X", WLMI_OPTION_EPILOGUE, set_real, AT(args.beta), .values = "a finite number",
     .standard = "0, which does not read C", .help = "of C = alpha A B + beta C"},
    {"ldb", 0, "LD", WLMI_OPTION_EPILOGUE, set_integer, AT(args.ldb), 1, INT32_MAX, .standard = "n",
     .help = "elements from row to row of B"},
    {"ldc", 0, "LD", WLMI_OPTION_EPILOGUE, set_integer, AT(args.ldc), 1, INT32_MAX, .standard = "n",
     .help = "elements from row to row of C"},
    {"deterministic", 0, NULL, WLMI_OPTION_EPILOGUE, set_flag, AT(problem.policy.deterministic),
     .help = "use only kernels that give the same bits every time"},
    {"empty", 0, "WHAT", WLMI_OPTION_OPERATOR, set_choice, AT(problem.empty), .values = "zero|identity",
     .standard = "zero", .help = "the result of a row without edges: 0 (1 for prod), or the identity of the reduction"},
    {"type", 0, "TYPE", WLMI_OPTION_TYPE, set_choice, AT(problem.dense_type), .values = "f32|f16|bf16|f64",
     .standard = "f32", .help = "the type of B and C"},
    {"rowptr", 0, "TYPE", WLMI_OPTION_OPERATOR, set_choice, AT(rowptr_type), .values = "i32|i64",
     .standard = "i32 where the offsets fit", .help = "the type of A's row offsets"},
    {"colind", 0, "TYPE", WLMI_OPTION_OPERATOR, set_choice, AT(colind_type), .values = "i32|i64", .standard = "i32",
     .help = "the type of A's column indices"},
    {"sample", 0, "HOW:S[:NORM[:SEED]]", WLMI_OPTION_OPERATOR, set_sample, 0, 8, 2304,
     .values = "bucket, fastrand or fastrand_coprime, then a width S from 8 to 2304, then optionally none, kept or "
               "unbiased, then optionally a seed, as in bucket:64:kept:7",
     .standard = "no sampling; NORM none, SEED 0", .help = "use at most S edges of each row"},
    {"calls", 0, "NUMBER", WLMI_OPTION_CALLS, set_integer, AT(problem.policy.expected_calls), 1, INT64_MAX,
     .standard = "1, which prepares nothing",
     .help = "executions to expect of one plan, within which preparation must pay"},
    {"budget", 0, "TIME", WLMI_OPTION_BUDGET, set_seconds, AT(budget_seconds),
     .values = "a time above 0, as in 60s or 2m", .standard = "none; 10m for tune without an INPUT",
     .help = "begin no further measurement after this time"},
    {"seed", 0, "NUMBER", WLMI_OPTION_SEED, set_seed, AT(seed), .values = "0 to 18446744073709551615", .standard = "1",
     .help = "of the order of candidates and the contents of B"},
    {"samples", 0, "COUNT", WLMI_OPTION_SAMPLES, set_integer, AT(samples), 1, 10000,
     .standard = "21; bench operators 7, minibatch 11, dispatch 51", .help = "samples of every reported time"},
    {"data", 0, "DIR", WLMI_OPTION_DATA, set_text, AT(data),
     .help = "the folder with NAME.mtx.gz or NAME/NAME.mtx.gz for each matrix of a suite"},
    {"system", 0, NULL, WLMI_OPTION_SYSTEM, set_flag, AT(system),
     .help = "read the database that warploom ships with, not the user database"},
    {"json", 0, NULL, WLMI_OPTION_JSON, set_flag, AT(json), .help = "print JSON"},
    {"help", 'h', NULL, WLMI_OPTION_HELP, set_flag, AT(help), .help = "print the help of the command"},
    {"check", 0, NULL, WLMI_OPTION_CHECK, set_flag, AT(check), .help = "compare the result with a float64 reference"},
    {"list", 0, NULL, WLMI_OPTION_LIST, set_flag, AT(list), .help = "list all families with their parameters"},
    {"target", 0, "NAME", WLMI_OPTION_TARGET, set_choice, AT(target), .values = "cuda|host", .standard = "the family's",
     .help = "the kind of device to emit for"},
    {"variant", 0, "VARIANT", WLMI_OPTION_VARIANT, set_text, AT(variant),
     .values = "a variant, as in row_crc/cf=2,rows=8, or a family, as in row_crc, of which the best known is taken",
     .help = "use this kernel instead of the chosen one"},
    /* getopt also accepts --out, which the documents of bench use. */
    {"output", 'o', "FILE", WLMI_OPTION_OUTPUT, set_text, AT(output),
     .help = "the file to write, - for standard output; bench (--out) appends one JSON line for each case and skips "
             "the cases that FILE has"},
    {"repair", 0, NULL, WLMI_OPTION_REPAIR, set_flag, AT(repair),
     .help = "write all intact records to a new file; the damaged one stays beside it"},
    {"keep", 0, "COUNT", WLMI_OPTION_KEEP, set_integer, AT(keep), 1, INT64_MAX, .standard = "all that a choice uses",
     .help = "keep only the COUNT fastest candidates of each matrix and N, and what choices need"},
    {"again", 0, NULL, WLMI_OPTION_AGAIN, set_flag, AT(again),
     .help = "also measure kernels that were already measured"},
    {"force", 0, NULL, WLMI_OPTION_FORCE, set_flag, AT(force),
     .help = "continue even if the matrix or the operands need more memory than is free"},
    {"recorded", 0, NULL, WLMI_OPTION_RECORDED, set_flag, AT(recorded),
     .help = "tune the problems that programs recorded, on matrices made from their statistics"},
    {"record", 0, NULL, WLMI_OPTION_RECORD, set_flag, AT(record),
     .help = "record the problem for tune --recorded, if nothing similar was tuned"},
    {"format", 0, "FORMAT", WLMI_OPTION_FORMAT, set_choice, AT(format), .values = "jsonl|c", .standard = "jsonl",
     .help =
         "jsonl: measurements for another warploom; c: a folder with C sources of a library that needs no compiler"},
    {"arch", 0, "LIST", WLMI_OPTION_ARCHS | WLMI_OPTION_FORMAT, set_text, AT(archs),
     .values =
         "of an archive 80, 86, 89 and 90, which give machine code (that of 80 runs on 86 and 89, too), and 100, which "
         "gives PTX for that and all newer GPUs (80,90,100 where none is given); with --format c as in sm_80,sm_90, "
         "compute_90 for PTX, host for this machine's processor",
     .help = "the devices to compile for"},
    {"for", 0, "PARTS", WLMI_OPTION_ARCHS | WLMI_OPTION_FORMAT, set_text, AT(parts), .standard = "all",
     .values =
         "of an archive a list of sum, mean, max, gat, gatv2 and transformer, with their gradients; with --format c a "
         "file with lines PROBLEM WIDTHS [MATRIX or ROWSxCOLS:NNZ ...]",
     .help = "what to contain"},
    {"single", 0, NULL, WLMI_OPTION_ARCHS, set_flag, AT(single), .help = "leave out f16 and bf16"},
};
enum { OPTIONS = sizeof wlmi_options / sizeof *wlmi_options };
const int wlmi_options_count = OPTIONS;
_Static_assert(OPTIONS <= 64, "`given` has 64 bits");
_Static_assert(sizeof(wlm_type) == sizeof(int) && sizeof(wlm_operation) == sizeof(int), "set_choice stores an int");

/* ---- help and messages ------------------------------------------------------------------------------------------- */

/* "f32, f16 or bf16" */
static void put_choices(const char *values, wlmi_text *out) {
  for (const char *name = values; *name;) {
    const size_t length = strcspn(name, "|");
    const int is_last = !name[length];
    if (name != values) wlmi_text_puts(out, is_last ? " or " : ", ");
    wlmi_text_append(out, name, length);
    name += length + !is_last;
  }
}

/* Writes the allowed values, "1 to 10000"; returns 0 if any text is allowed. */
static int put_allowed(const wlmi_option *option, wlmi_text *out) {
  if (option->values)
    put_choices(option->values, out);
  else if (option->most == INT64_MAX)
    wlmi_text_printf(out, "%lld or more", (long long)option->least);
  else if (option->most)
    wlmi_text_printf(out, "%lld to %lld", (long long)option->least, (long long)option->most);
  return option->values || option->most;
}

void wlmi_option_describe(const wlmi_option *option, wlmi_text *out) {
  wlmi_text allowed = {0};
  wlmi_text_puts(out, option->help);
  if (put_allowed(option, &allowed) && allowed.data) wlmi_text_printf(out, ": %s", allowed.data);
  if (option->standard) wlmi_text_printf(out, " (default: %s)", option->standard);
  wlmi_text_release(&allowed);
}

/* The option's name as it was typed: -n or --width. */
static void put_name(const wlmi_cli_options *o, int i, wlmi_text *out) {
  if (o->given_short >> i & 1)
    wlmi_text_printf(out, "-%c", wlmi_options[i].letter);
  else
    wlmi_text_printf(out, "--%s", wlmi_options[i].name);
}

static int complain(const char *command, const wlmi_text *what) {
  wlmi_print_message("warploom %s: %s", command, what->data ? what->data : "out of memory");
  return 0;
}

static int complain_of_value(const char *command, const wlmi_cli_options *o, int i, const char *value) {
  const wlmi_option *option = &wlmi_options[i];
  const char *quote = *value && !strchr(value, ' ') ? "" : "'";
  wlmi_text what = {0};
  put_name(o, i, &what);
  if (*wlm_error_detail()) {
    wlmi_text_printf(&what, ": %s", wlm_error_detail());
  } else {
    wlmi_text_puts(&what, " must be ");
    if (!put_allowed(option, &what)) wlmi_text_puts(&what, "a path");
    wlmi_text_printf(&what, ", not %s%s%s", quote, value, quote);
  }
  complain(command, &what);
  wlmi_text_release(&what);
  return 0;
}

static int complain_of_missing(const char *command, const char *option) {
  wlmi_print_message("warploom %s: a value is missing after '%s'; see warploom %s --help", command, option, command);
  return 0;
}

static const char *option_name(int i) { return i < OPTIONS ? wlmi_options[i].name : NULL; }

static int complain_of_unknown(const char *command, const char *typed) {
  char suggestion[WLMI_SUGGESTION], name[32];
  const char *at = typed + strspn(typed, "-");
  snprintf(name, sizeof name, "%.*s", (int)strcspn(at, "="), at);
  wlmi_suggest(name, "--", option_name, suggestion);
  wlmi_print_message("warploom %s: unknown option '%s'; %swarploom %s --help lists them", command, typed, suggestion,
                     command);
  return 0;
}

/* ---- the command line -------------------------------------------------------------------------------------------- */

int wlmi_cli_parse(int argc, char **argv, wlmi_cli_options *o) {
  struct option longs[OPTIONS + 1] = {{0}};
  char letters[2 * OPTIONS + 2] = ":";
  const wlm_problem problem = WLM_PROBLEM_INIT;
  const wlm_execute_args args = WLM_EXECUTE_ARGS_INIT;
  *o = (wlmi_cli_options){.n = {32, 128}, .n_count = 2, .problem = problem, .args = args, .seed = 1, .target = -1};
  for (int i = 0; i < OPTIONS; i++) {
    const wlmi_option *option = &wlmi_options[i];
    /* values above those of letters identify long options */
    longs[i] = (struct option){option->name, option->argument != NULL, NULL, 256 + i};
    if (option->letter) snprintf(letters + strlen(letters), 3, "%c%s", option->letter, option->argument ? ":" : "");
  }
  optind = 1;
  opterr = 0;
  for (int found; (found = getopt_long(argc, argv, letters, longs, NULL)) != -1;) {
    int i = found >= 256 ? found - 256 : -1;
    for (int k = 0; i < 0 && k < OPTIONS; k++)
      if (wlmi_options[k].letter == found) i = k;
    if (found == ':') return complain_of_missing(argv[0], argv[optind - 1]);
    if (i < 0) return complain_of_unknown(argv[0], argv[optind - 1]);
    const uint64_t bit = (uint64_t)1 << i;
    o->given |= bit;
    o->given_short = found < 256 ? o->given_short | bit : o->given_short & ~bit;
    wlmi_clear_error();
    if (!wlmi_options[i].parse(&wlmi_options[i], optarg, o)) return complain_of_value(argv[0], o, i, optarg);
  }
  o->arguments = argv + optind;
  o->argument_count = argc - optind;
  return 1;
}

int wlmi_cli_has(const wlmi_cli_options *o, int group) {
  for (int i = 0; i < OPTIONS; i++)
    if (o->given >> i & 1 && wlmi_options[i].group & group) return 1;
  return 0;
}

int wlmi_cli_check(const wlmi_cli_options *o, const char *command, int takes, int needs) {
  wlmi_text what = {0};
  for (int i = 0; i < OPTIONS && !what.size; i++) {
    if (!(o->given >> i & 1) || wlmi_options[i].group & (takes | WLMI_OPTION_HELP)) continue;
    wlmi_text_puts(&what, "takes no option '");
    put_name(o, i, &what);
    wlmi_text_printf(&what, "'; see warploom %s --help", command);
  }
  for (int i = 0; i < OPTIONS && !what.size; i++)
    if (!(o->given >> i & 1) && wlmi_options[i].group & needs)
      wlmi_text_printf(&what, "say where to with -%c %s", wlmi_options[i].letter, wlmi_options[i].argument);
  const int good = !what.size;
  if (!good) complain(command, &what);
  wlmi_text_release(&what);
  return good;
}
