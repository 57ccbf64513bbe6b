/* All C files of the tree are formatted as .clang-format says, and functions have few parameters. */
#include <ctype.h>

#include "support/folder.h"
#include "support/test.h"
#include "support/tree.h"

static FILE *list;
static int files;

static void add_file(const char *path) {
  fprintf(list, "%s\n", path);
  files++;
}

TEST(tree_is_formatted) {
  static const char *const folders[] = {"include",  "core",  "generator", "select", "db",       "tools", "runtime",
                                        "exported", "tuner", "cli",       "bench",  "examples", "tests"};
  if (system("clang-format --version >/dev/null 2>&1"))
    test_missing("clang-format", "clang-format", "the format of the tree was not checked");
  /* xargs reads the list from its standard input and passes on the worst exit code. */
  assert_non_null(list = popen("cd '" WLM_SOURCE_DIR "' && xargs clang-format --dry-run -Werror", "w"));
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) tree_each(WLM_SOURCE_DIR, folders[i], add_file);
  int status = pclose(list);
  print_message("%d files\n", files);
  assert_true(files > 100);
  if (status) fail_msg("files are not formatted: clang-format -i them");
}

static int run_together;

/* Whether a comment's line has the begin of a list's item inside it, as a formatter leaves a list that it took for
 * text. */
static int has_item_inside(const char *line) {
  const char *text = line + strspn(line, " ");
  if (strncmp(text, "* ", 2) && strncmp(text, "/*", 2)) return 0;
  return strstr(text, "; - ") || strstr(text, ". - ") || strstr(text, ": - ");
}

static void find_lists(const char *path) {
  char name[1024], line[1024];
  snprintf(name, sizeof name, "%s/%s", WLM_SOURCE_DIR, path);
  FILE *file = fopen(name, "r");
  assert_non_null(file);
  for (int number = 1; fgets(line, sizeof line, file); number++)
    if (has_item_inside(line)) {
      run_together++;
      print_error("%s:%d: a list was run together\n", path, number);
    }
  fclose(file);
}

TEST(lists_of_comments_are_whole) {
  static const char *const folders[] = {"include", "core",  "generator", "select", "db",
                                        "runtime", "tuner", "cli",       "bench"};
  assert_true(has_item_inside(" * - times come from cases; - a time counts twice"));
  assert_false(has_item_inside(" * - times come from cases;"));
  assert_false(has_item_inside("  return text; /* one; - two */"));
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) tree_each(WLM_SOURCE_DIR, folders[i], find_lists);
  assert_int_equal(run_together, 0);
}

enum { MOST_PARAMETERS = 8 };
static int functions, too_many;

/* The parameters of a function whose head begins here; 0 = none does, or it has no parameters. */
static int parameters_at(const char *text) {
  const char *open = text + strcspn(text, "(;={}\"#/\n");
  int depth = 0, parameters = 1;
  if (!isalpha((unsigned char)*text) || *open != '(' || open == text) return 0;
  for (const char *at = open; *at; at++) {
    depth += (*at == '(') - (*at == ')');
    if (*at == ',' && depth == 1) parameters++;
    if (depth == 0) return at[1] == ';' || !strncmp(at + 1, " {", 2) ? parameters : 0;
  }
  return 0;
}

static void count_parameters(const char *path) {
  char name[1024];
  size_t size;
  snprintf(name, sizeof name, "%s/%s", WLM_SOURCE_DIR, path);
  char *raw = (char *)read_whole(name, &size), *text = strndup(raw, size);
  for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
    const int parameters = parameters_at(line);
    functions += parameters > 0;
    if (parameters <= MOST_PARAMETERS) continue;
    too_many++;
    print_error("%s: %d parameters: %.*s\n", path, parameters, (int)strcspn(line, "\n"), line);
  }
  free(text);
  free(raw);
}

TEST(functions_have_few_parameters) {
  static const char *const folders[] = {"include",  "core",  "generator", "select", "db",       "tools", "runtime",
                                        "exported", "tuner", "cli",       "bench",  "examples", "tests"};
  assert_int_equal(parameters_at("static int *f(int a, void (*g)(int, int),\n             int c) {\n"), 3);
  assert_int_equal(parameters_at("WLM_API int f(void);\n"), 1);
  assert_int_equal(parameters_at("  f(a, b);\n"), 0);
  assert_int_equal(parameters_at("static const int a[] = {f(1, 2)};\n"), 0);
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) tree_each(WLM_SOURCE_DIR, folders[i], count_parameters);
  print_message("%d functions\n", functions);
  assert_true(functions > 1000);
  if (too_many) fail_msg("%d functions have more than %d parameters", too_many, MOST_PARAMETERS);
}
