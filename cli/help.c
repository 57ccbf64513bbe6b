#include "cli/help.h"

#include <string.h>

enum { COLUMNS = 80, LEFT = 30, NARROW = 22 };

const char wlmi_help_summary[] = "warploom tunes and runs sparse-dense matrix products, C = A B.";

const wlmi_help_entry wlmi_help_inputs[] = {
    {"FILE",
     "a Matrix Market file, an edge list (\"source target [weight]\" in each line, divided by blanks, tabs, commas or "
     "semicolons; a first line of names may give another order) or a matrix of scipy.sparse.save_npz; text may be "
     "compressed by gzip, and the content decides"},
    {"-", "such a file on standard input"},
    {"twin:NAME[,OPTION...]",
     "a synthetic matrix like a published graph: NAME is reddit, proteins, products, arxiv (undirected), "
     "arxiv-directed, youtube, roadnet-ca or web-google; options with their defaults are scale=1, seed=1, "
     "communities=50, local=0.7 and numbering=scattered (or contiguous)"},
    {"uniform:rows=R,d=D", "D entries in each row; options are cols=C and seed=1"},
    {"synth:rows=R,d=D,cv=X",
     "D entries in each row on average, with coefficient of variation X if the sizes allow it; options are cols=C, "
     "longest=L "
     "and seed=1, and those of a twin if it is square"},
    {0},
};

const wlmi_help_entry wlmi_help_exits[] = {
    {"0", "done"},
    {"1", "any other error: a file, a device, a product that no kernel computes, a wrong result"},
    {"2", "the command line is wrong, or a package is missing (a compiler, cuSPARSE)"},
    {0},
};

const wlmi_help_entry wlmi_help_environment[] = {
    {"XDG_DATA_HOME", "the folder of warploom/tuned.db; ~/.local/share where it is not set"},
    {"XDG_CACHE_HOME", "the folder of warploom/kernels.db and of lock files of tunings; ~/.cache where it is not set"},
    {"HOME", "both, where these are not set; relative paths are ignored"},
    {"WARPLOOM_CC", "the C compiler for host kernels; cc where it is not set"},
    {"WARPLOOM_CC_SECONDS", "how long that compiler may run; 300 where it is not set"},
    {"WARPLOOM_NVRTC", "the file of NVRTC"},
    {"WARPLOOM_KERNELS",
     "the kernel archive; by default share/warploom/kernels.archive of the installation, if it is there"},
    {"WARPLOOM_CUSPARSE", "the file of cuSPARSE, for compare and bench"},
    {"WARPLOOM_GRAPHBLAS", "the file of SuiteSparse:GraphBLAS, for bench on the host"},
    {"CUDA_PATH, CUDA_HOME", "where NVRTC and cuSPARSE are looked for after the loader's path; then /usr/local/cuda"},
    {"WARPLOOM_TEMPLATES", "a folder of templates to read instead of the built-in ones"},
    {"OMP_NUM_THREADS", "threads of the host device, as do other OpenMP variables"},
    {"PATH", "where the C compiler is looked for"},
    {"TERM", "dumb prints progress as lines, as when standard error is no terminal"},
    {"TMPDIR", "the folder of temporary files; /tmp where it is not set"},
    {0},
};

void wlmi_help_usage(const wlmi_command *c, wlmi_text *out) {
  wlmi_text_puts(out, c->name);
  if (c->action) wlmi_text_printf(out, " %s", c->action);
  if (*c->arguments) wlmi_text_printf(out, " %s", c->arguments);
}

static int takes_an_input(const wlmi_command *c) { return strstr(c->arguments, "INPUT") != NULL; }

/* `left` at column 2 and `right` from column `at` on, in lines of 80 columns. */
static void put_entry(FILE *to, const char *left, const char *right, int at) {
  int column = fprintf(to, "  %s", left);
  if (column >= at) column = fprintf(to, "\n") - 1;
  while (*right) {
    right += strspn(right, " ");
    const int size = (int)strcspn(right, " ");
    if (column > at && column + 1 + size > COLUMNS) column = fprintf(to, "\n") - 1;
    column += column < at ? fprintf(to, "%*s", at - column, "") : fprintf(to, " ");
    column += fprintf(to, "%.*s", size, right);
    right += size;
  }
  fputs("\n", to);
}

static void put_entries(FILE *to, const char *title, const wlmi_help_entry *list) {
  fprintf(to, "\n%s:\n", title);
  for (; list->name; list++) put_entry(to, list->name, list->help, NARROW);
}

static void put_usage(FILE *to, const wlmi_command *c, const char *before) {
  wlmi_text left = {0};
  wlmi_text_puts(&left, before);
  wlmi_help_usage(c, &left);
  put_entry(to, left.data ? left.data : "", c->help, LEFT);
  wlmi_text_release(&left);
}

static void put_options(FILE *to, int takes) {
  for (int i = 0; i < wlmi_options_count; i++) {
    const wlmi_option *option = &wlmi_options[i];
    char left[64];
    wlmi_text right = {0};
    if (!(option->group & (takes | WLMI_OPTION_HELP))) continue;
    snprintf(left, sizeof left, "%c%c%s--%s %s", option->letter ? '-' : ' ', option->letter ? option->letter : ' ',
             option->letter ? ", " : "  ", option->name, option->argument ? option->argument : "");
    wlmi_option_describe(option, &right);
    put_entry(to, left, right.data ? right.data : "", LEFT);
    wlmi_text_release(&right);
  }
}

void wlmi_help_print(FILE *to) {
  fprintf(to, "%s\n\nusage: warploom COMMAND [ARGUMENT...] [OPTION...]\n\ncommands:\n", wlmi_help_summary);
  for (int i = 0; i < wlmi_commands_count; i++) put_usage(to, &wlmi_commands[i], "");
  put_entries(to, "INPUT", wlmi_help_inputs);
  put_entries(to, "exit codes", wlmi_help_exits);
  put_entries(to, "environment variables", wlmi_help_environment);
  fputs("\nwarploom COMMAND --help lists the options of a command and gives an example.\n", to);
}

void wlmi_help_print_command(const char *name, const wlmi_cli_options *o) {
  const wlmi_command *one = wlmi_command_closest(name, o), *with_suites = NULL;
  const char *help;
  int takes = 0, takes_input = 0;
  puts("usage:");
  for (int i = 0; i < wlmi_commands_count; i++) {
    const wlmi_command *c = &wlmi_commands[i];
    if (strcmp(c->name, name) || (one && one->action && c != one)) continue;
    put_usage(stdout, c, "warploom ");
    takes |= c->takes;
    takes_input |= takes_an_input(c);
    if (c->suite) with_suites = c;
  }
  if (with_suites) puts("\nsuites:");
  for (int i = 0; with_suites && with_suites->suite(i, &help); i++)
    put_entry(stdout, with_suites->suite(i, &help), help, NARROW);
  if (takes_input) put_entries(stdout, "INPUT", wlmi_help_inputs);
  puts("\noptions:");
  put_options(stdout, takes);
  puts("\nexamples:");
  for (int i = 0; i < wlmi_commands_count; i++) {
    const wlmi_command *c = &wlmi_commands[i];
    if (strcmp(c->name, name) || (one && one->action && c != one) || !c->example) continue;
    printf("  warploom %s\n", c->example);
  }
}
