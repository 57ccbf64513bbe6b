/* All C files of the tree are formatted as .clang-format says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/require.h"
#include "support/tree.h"

static FILE *list;
static int files;

static void add_file(const char *path) {
  fprintf(list, "%s\n", path);
  files++;
}

static void tree_is_formatted(void **state) {
  (void)state;
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

static void lists_of_comments_are_whole(void **state) {
  (void)state;
  static const char *const folders[] = {"include", "core",  "generator", "select", "db",
                                        "runtime", "tuner", "cli",       "bench"};
  assert_true(has_item_inside(" * - times come from cases; - a time counts twice"));
  assert_false(has_item_inside(" * - times come from cases;"));
  assert_false(has_item_inside("  return text; /* one; - two */"));
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) tree_each(WLM_SOURCE_DIR, folders[i], find_lists);
  assert_int_equal(run_together, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(tree_is_formatted),
                                     cmocka_unit_test(lists_of_comments_are_whole)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
